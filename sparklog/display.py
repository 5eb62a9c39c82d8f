"""What a log, its topics, commits and records look like in a terminal and in a notebook."""

from __future__ import annotations

import datetime
import html
import sys
from collections.abc import Sequence

SHOWN = 50
"""So many rows are shown at most of what can be long."""
SEGMENTS_SUMMED = 5_000
"""So many segments are summed at most: what is seen must come at once."""
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def moment(millis: int) -> datetime.datetime:
    """A time given as milliseconds since 1970-01-01 UTC, or the last that a datetime can hold."""
    try:
        return _EPOCH + datetime.timedelta(milliseconds=millis)
    except OverflowError:
        return datetime.datetime.max.replace(tzinfo=datetime.timezone.utc)


def when(time: datetime.datetime | int | None) -> str:
    """A time of UTC (a number counts milliseconds since 1970-01-01), with milliseconds where it has some."""
    if time is None:
        return ""
    if isinstance(time, int):
        time = moment(time)
    return f"{time:%Y-%m-%d %H:%M:%S}" + (f".{time.microsecond // 1000:03}" if time.microsecond else "")


def readable(octets: bytes | str | None, longest: int | None) -> str:
    """Bytes as the UTF-8 text that they most often are; what is not, and what would break a line, as escapes. `null` where nothing is."""
    if octets is None:
        return "null"
    text = octets if isinstance(octets, str) else octets[: None if longest is None else 4 * longest].decode(errors="backslashreplace")
    text = "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
    cut = longest is not None and (len(text) > longest or (isinstance(octets, bytes) and len(octets) > 4 * longest))
    return f"{text[:longest]}…" if cut else text


class Display:
    """A title, some lines about it, and a table, of which `more` rows are left out."""

    def __init__(self, title: str, about: Sequence[str], columns: Sequence[str], rows: Sequence[Sequence[object]], more: int = 0) -> None:
        self._title = title
        self._about = about
        self._columns = columns
        self._rows = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
        self._numeric = [all(isinstance(row[column], int) or row[column] == "" for row in rows) for column in range(len(columns))]
        self._more = f"… and {more:,} more" if more > 0 else ""

    def text(self) -> str:
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
        """Prints it; in a notebook, shows it as a table."""
        ipython = sys.modules.get("IPython")
        if ipython and ipython.get_ipython():
            ipython.display.display(self)
        else:
            print(self.text())
