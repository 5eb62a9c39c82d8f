"""How a log, its topics, commits and records are shown in a terminal and in a notebook."""

from __future__ import annotations

import datetime
import html
import sys
from collections.abc import Sequence

SHOWN = 50
"""The most rows of a table."""
SEGMENTS_SUMMED = 5_000
"""The most segments that are summed up, so that a table appears at once."""
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def moment(millis: int) -> datetime.datetime:
    """A time in milliseconds since 1970-01-01 UTC as a datetime; the last possible datetime if it is later."""
    try:
        return _EPOCH + datetime.timedelta(milliseconds=millis)
    except OverflowError:
        return datetime.datetime.max.replace(tzinfo=datetime.timezone.utc)


def when(time: datetime.datetime | int | None) -> str:
    """A time (a number is milliseconds since 1970-01-01 UTC) as text in UTC, with milliseconds unless they are 0. Empty for None."""
    if time is None:
        return ""
    if isinstance(time, int):
        time = moment(time)
    return f"{time:%Y-%m-%d %H:%M:%S}" + (f".{time.microsecond // 1000:03}" if time.microsecond else "")


def readable(octets: bytes | str | None, longest: int | None) -> str:
    """Bytes as UTF-8 text of at most `longest` characters; `null` for None.

    Bytes that are not UTF-8, and characters that are not printable, become escapes.
    """
    if octets is None:
        return "null"
    text = octets if isinstance(octets, str) else octets[: None if longest is None else 4 * longest].decode(errors="backslashreplace")
    text = "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
    cut = longest is not None and (len(text) > longest or (isinstance(octets, bytes) and len(octets) > 4 * longest))
    return f"{text[:longest]}…" if cut else text


class Display:
    """A title, some lines below it, and a table. `more` is the number of rows that the table leaves out."""

    def __init__(self, title: str, about: Sequence[str], columns: Sequence[str], rows: Sequence[Sequence[object]], more: int = 0) -> None:
        self._title = title
        self._about = about
        self._columns = columns
        self._rows = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
        self._numeric = [all(isinstance(row[column], int) or row[column] == "" for row in rows) for column in range(len(columns))]
        self._more = f"… and {more:,} more" if more > 0 else ""

    def text(self) -> str:
        """For a terminal."""
        lines = [self._title, *self._about]
        if self._rows:
            table = [list(self._columns), *self._rows]
            widths = [max(len(row[column]) for row in table) for column in range(len(self._columns))]
            lines.append("")
            lines += ["  ".join(self._aligned(row, widths)).rstrip() for row in table]
        return "\n".join([*lines, self._more] if self._more else lines)

    def _aligned(self, row: Sequence[str], widths: Sequence[int]) -> list[str]:
        cells = zip(row, widths, self._numeric, strict=True)
        return [cell.rjust(width) if numeric else cell.ljust(width) for cell, width, numeric in cells]

    def html(self) -> str:
        """For a notebook."""
        parts = [f"<div><strong>{html.escape(self._title)}</strong>", *(f"<br>{html.escape(line)}" for line in self._about)]
        if self._rows:
            parts.append("<table><thead>" + self._row("th", self._columns) + "</thead><tbody>")
            parts += [self._row("td", row) for row in self._rows]
            parts.append("</tbody></table>")
        return "".join([*parts, html.escape(self._more), "</div>"])

    def _row(self, tag: str, cells: Sequence[str]) -> str:
        aligned = zip(cells, self._numeric, strict=True)
        return (
            "<tr>"
            + "".join(
                f'<{tag} style="text-align: {"right" if numeric else "left"}">{html.escape(cell)}</{tag}>' for cell, numeric in aligned
            )
            + "</tr>"
        )

    __repr__ = text
    _repr_html_ = html

    def show(self) -> None:
        """Prints the text; in a notebook, shows the HTML."""
        ipython = sys.modules.get("IPython")
        if ipython and ipython.get_ipython():
            ipython.display.display(self)
        else:
            print(self.text())
