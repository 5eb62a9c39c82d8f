"""How commands print: tables for people, JSON for programs, progress on standard error."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, TypeVar

from sparklog.errors import SparklogError, declared
from sparklog.show.display import Display, readable

if TYPE_CHECKING:
    from rich.progress import Progress

Item = TypeVar("Item")
_FOLDED = {
    "key",
    "busiest keys",
    "value",
    "headers",
    "error",
    "file",
    "topic",
    "topics",
    "group",
    "note",
    "query",
    "assignment",
    "gets",
    "gives up",
    "why",
    "by",
    "waits for",
    "consumer-id",
}
"""Columns of texts, which may have several lines in a cell."""
_FOLDED_TO = 24

_STATUS = {"call": 2, "data": 3, "upgrade": 4, "retry": 5, "unknown": 5, "fenced": 5}
"""The exit status for each kind of error. 0 is success, 1 a fault that was found, 130 and 143 a signal, 141 a broken pipe, 70 a bug."""
_WAITS_S = 1.0
"""A progress bar appears only after this time."""


def terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout.isatty()


def write(text: str) -> None:
    """Prints a line. Characters that the encoding of the terminal does not have become escapes."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def write_json(value: object) -> None:
    """Prints a JSON document: a line in ASCII, or indented in a terminal."""
    write(json.dumps(value, indent=2 if terminal() else None))


def answer(
    as_json: bool, document: Callable[[], object], display: Callable[[], Display], spare: Sequence[str] = (), after: str | None = None
) -> None:
    """Prints an answer: with --json its document, else as `show` does; `after` is a line that follows the table. Only one is made."""
    if as_json:
        write_json(document())
        return
    show(display(), spare)
    if after is not None:
        write(after)


def complain(error: SparklogError | OSError) -> int:
    """Prints an error, and returns the exit status for it."""
    print(readable(error.in_shell() if isinstance(error, SparklogError) else str(error), None), file=sys.stderr)
    return _STATUS[declared()[error.id].kind] if isinstance(error, SparklogError) else _STATUS["retry"]


def table(title: str, about: Sequence[str], columns: Sequence[str], rows: Sequence[Sequence[object]], spare: Sequence[str] = ()) -> None:
    """Prints a table, as `show` does."""
    show(Display(title, about, columns, rows), spare)


def show(display: Display, spare: Sequence[str] = ()) -> None:
    """Prints a table: in a terminal a table that fits its width, elsewhere each row as one line of any length.

    A table that is too wide loses the columns `spare`, from the first on, and then folds the columns of texts.
    """
    if not terminal():
        write(display.text())
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    console.print(Text(display.title, style="bold"))
    for line in display.about:
        console.print(Text(line))
    if not display.rows:
        return
    kept, left_out = _fitting(display.columns, display.rows, spare, console.width)
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold cyan")
    for number in kept:
        name = display.columns[number]
        shown.add_column(name, justify="right" if display.numeric[number] else "left", overflow="fold", no_wrap=name not in _FOLDED)
    for each in display.rows:
        shown.add_row(*(Text(each[number]) for number in kept), style="red" if each[-1].startswith("PARTLOG_") else None)
    console.print(shown)
    if left_out:
        console.print(Text(f"A wider terminal, a pipe or --json shows {', '.join(left_out)} too.", style="dim"))


def _fitting(columns: Sequence[str], cells: Sequence[Sequence[str]], spare: Sequence[str], width: int) -> tuple[list[int], list[str]]:
    """The numbers of the columns that fit, and the names of the others."""
    widths = [max(len(name), *(len(row[number]) for row in cells)) + 2 for number, name in enumerate(columns)]
    widths = [min(each, _FOLDED_TO) if name in _FOLDED else each for name, each in zip(columns, widths, strict=True)]
    kept, left_out = list(range(len(columns))), []
    for name in spare:
        if sum(widths[number] for number in kept) - 2 <= width:
            break
        if name in columns:
            kept.remove(columns.index(name))
            left_out.append(name)
    return kept, left_out


def progress(items: Iterable[Item], total: int | None, what: str) -> Iterator[Item]:
    """The items, with a bar on standard error if that is a terminal and it takes over a second. `total` is None if it is not known."""
    with bar(total, what) as advance:
        for item in items:
            yield item
            advance(1)


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar as `bar`. Call it with the work that is done, and all work: how much that is, may be known late."""
    with ExitStack() as stack:
        advance: Callable[[int], None] | None = None
        before = 0

        def progress(done: int, total: int) -> None:
            nonlocal advance, before
            advance = advance or stack.enter_context(bar(total, what))
            advance(done - before)
            before = done

        yield progress


@contextmanager
def bar(total: int | None, what: str) -> Iterator[Callable[[int], None]]:
    """A bar on standard error, if that is a terminal and the work takes over a second. Call it with the work that was done since."""
    began, done = time.monotonic(), 0
    shown: Progress | None = None

    def advance(more: int) -> None:
        nonlocal shown, done
        done += more
        if shown is not None:
            shown.update(shown.task_ids[0], completed=done)
        elif time.monotonic() - began >= _WAITS_S and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress

            shown = Progress(console=Console(stderr=True), transient=True)
            shown.add_task(what, total=total, completed=done)
            shown.start()

    try:
        yield advance
    finally:
        if shown is not None:
            shown.stop()
