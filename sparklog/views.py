"""What a log and its topics look like in a terminal and in a notebook."""

from __future__ import annotations

import html
from collections.abc import Sequence


class View:
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
