"""How a log, its topics, commits and records are shown in a terminal and in a notebook."""

from __future__ import annotations

import base64
import datetime
import html
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN = 50
"""The most rows of a table."""
SEGMENTS_SUMMED = 5_000
"""The most segments that are summed up, so that a table appears at once."""
_WRAPPED = 40
"""Columns whose longest text has more characters are wrapped in a notebook."""
_TABLE = "margin: 0.5em 0; border-collapse: collapse; font-variant-numeric: tabular-nums"
_HEAD = "border-bottom: 1px solid currentColor"
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


def counted(count: int, what: str) -> str:
    """As `1 record` and `2 records`."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def rows(records: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """Records as dicts, with times in milliseconds: some are beyond what Python's datetime holds."""
    import pyarrow as pa

    at = records.schema.get_field_index("timestamp")
    times = [micros // 1000 for micros in records.column(at).cast(pa.int64()).to_pylist()]  # a function of Arrow's imports pandas
    found = records.drop_columns(["timestamp"]).to_pylist()
    return [{**row, "timestamp": time} for row, time in zip(found, times, strict=True)]


def readable(data: bytes | str | None, longest: int | None) -> str:
    """Bytes as UTF-8 text of at most `longest` characters; `null` for None.

    Bytes that are not UTF-8, and characters that are not printable, become escapes.
    """
    if data is None:
        return "null"
    text = data if isinstance(data, str) else data[: None if longest is None else 4 * longest].decode(errors="backslashreplace")
    if not text.isprintable():
        text = "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
    cut = longest is not None and (len(text) > longest or (isinstance(data, bytes) and len(data) > 4 * longest))
    return f"{text[:longest]}…" if cut else text


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else readable(str(value), None)


def _row(tag: str, styles: Sequence[str], cells: Sequence[str]) -> str:
    aligned = zip(styles, cells, strict=True)
    return "<tr>" + "".join(f'<{tag} style="{style}">{html.escape(cell)}</{tag}>' for style, cell in aligned) + "</tr>"


def field(name: str, data: bytes | None) -> dict[str, str | None]:
    """A field of a JSON object: text, or if it is not UTF-8 a field `<name>_base64`."""
    try:
        return {name: None if data is None else data.decode()}
    except UnicodeDecodeError as error:
        return {f"{name}_base64": base64.b64encode(error.object).decode()}


class Display:
    """A title, some lines below it, and a table. `more` is the number of rows that the table leaves out.

    Texts come from files, so every character of them that is not printable becomes an escape: none reaches a terminal.
    """

    def __init__(self, title: str, about: Sequence[str], columns: Sequence[str], rows: Sequence[Sequence[object]], more: int = 0) -> None:
        self.title = readable(title, None)
        self.about = [readable(line, None) for text in about for line in text.split("\n")]
        self.columns = columns
        self.rows = [[_cell(cell) for cell in row] for row in rows]
        self.numeric = [all(isinstance(row[column], int | float) or row[column] == "" for row in rows) for column in range(len(columns))]
        self._more = f"… and {more:,} more" if more > 0 else ""

    def text(self) -> str:
        """For a terminal."""
        lines = [self.title, *self.about]
        if self.rows:
            table = [list(self.columns), *self.rows]
            widths = [max(len(row[column]) for row in table) for column in range(len(self.columns))]
            lines.append("")
            lines += ["  ".join(self._aligned(row, widths)).rstrip() for row in table]
        return "\n".join([*lines, self._more] if self._more else lines)

    def _aligned(self, row: Sequence[str], widths: Sequence[int]) -> list[str]:
        cells = zip(row, widths, self.numeric, strict=True)
        return [cell.rjust(width) if numeric else cell.ljust(width) for cell, width, numeric in cells]

    def html(self) -> str:
        """For a notebook, light or dark: no colour is set. Long texts are wrapped, and a table that is too wide scrolls by itself."""
        lines = "".join(f"<br>{html.escape(line)}" for line in self.about)
        parts = [f'<div style="overflow-wrap: anywhere"><strong>{html.escape(self.title)}</strong>{lines}</div>']
        if self.rows:
            styles = [self._style(column) for column in range(len(self.columns))]
            parts.append(f'<div style="overflow-x: auto"><table style="{_TABLE}"><thead style="{_HEAD}">')
            parts.append(_row("th", styles, self.columns) + "</thead><tbody>")
            parts += [_row("td", styles, row) for row in self.rows]
            parts.append("</tbody></table></div>")
        if self._more:
            parts.append(f"<div>{self._more}</div>")
        return "<div>" + "".join(parts) + "</div>"

    def _style(self, column: int) -> str:
        """The style of the cells of a column. Spaces are kept, as they may be part of a value."""
        longest = max(len(row[column]) for row in self.rows)
        wrapped = "white-space: pre-wrap; overflow-wrap: anywhere; min-width: 12em" if longest > _WRAPPED else "white-space: pre"
        return f"{wrapped}; vertical-align: top; text-align: {'right' if self.numeric[column] else 'left'}"

    __repr__ = text
    _repr_html_ = html

    def show(self) -> None:
        """Prints the text; in a notebook, shows the HTML."""
        ipython = sys.modules.get("IPython")
        if ipython and ipython.get_ipython():
            ipython.display.display(self)
        else:
            print(self.text())


class Displayed(ABC):
    """Shows itself as `_display` says: as text in a terminal, as HTML in a notebook."""

    def __repr__(self) -> str:
        return self._display().text()

    def _repr_html_(self) -> str:
        return self._display().html()

    @abstractmethod
    def _display(self) -> Display: ...
