"""The help of the command line: every command in one line, by panel; texts that flow; and which names are near enough to be meant."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typer.core import TyperGroup

_NEAR = 0.75
"""How alike two names are, by difflib's ratio, if one may be a slip of the other: `tpoics` and `topics`, not `compact` and `cat`."""
_LEAST_LETTERS = 3


def flowing(text: str) -> str:
    """A docstring whose paragraphs are one line each, so that they fill a terminal of any width. Examples keep their lines."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(each if each.startswith("Example") else " ".join(each.split("\n")) for each in paragraphs)


def show(group: TyperGroup, panels: Sequence[str], about: Sequence[str], more: Sequence[str]) -> None:
    """Prints the commands of a group: the panel of each, its name, and the first paragraph of its help, which is short."""
    from rich.console import Console
    from rich.text import Text

    lines = [Text(line, "bold" if number == 0 else "") for number, line in enumerate(about)]
    first, second = (max(map(len, words)) + 2 for words in (panels, group.commands))
    lines.append(Text())
    for panel in panels:
        label = panel
        for name, command in group.commands.items():
            if getattr(command, "rich_help_panel", None) == panel:
                summary = (command.help or "").split("\n")[0]
                lines.append(Text.assemble((label.ljust(first), "bold"), (name.ljust(second), "cyan"), summary))
                label = ""
    console = Console(highlight=False)
    for line in [*lines, *map(Text, more)]:
        console.print(line, soft_wrap=True)


def near(given: str, names: Iterable[str]) -> list[str]:
    """The names that may be meant by `given`, as a slip or a beginning; the likeliest first."""
    known = list(names)
    begun = [name for name in known if name.lstrip("-").startswith(given.lstrip("-"))] if len(given.lstrip("-")) >= _LEAST_LETTERS else []
    return list(dict.fromkeys([*difflib.get_close_matches(given, known, cutoff=_NEAR), *begun]))
