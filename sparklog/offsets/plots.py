"""Plots of groups. Each method returns a matplotlib Figure, which a notebook shows; `figure.savefig(…)` writes it."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sparklog.show import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_A_COMMIT = datetime.timedelta(milliseconds=50)
"""The rows of a commit are this close to one another."""


class GroupPlots:
    """The plots of groups, as `OffsetTable.plot` returns them."""

    def __init__(self, lag_history: Callable[[str], Any]) -> None:
        self._lag_history = lag_history

    def lag(self, group: str, *, figsize: figures.Size | None = None) -> Figure:
        """How far a group was behind, in records, at each of its commits: of each topic, all partitions together.

        What the log has forgotten by now (see `lag_history`) is left out. CallError GROUP_NOT_FOUND.
        """
        found = self._lag_history(group)
        rows = (found if hasattr(found, "to_pylist") else found.toArrow()).to_pylist()
        figure, (axes,) = figures.figure(1, figsize, f"Group {group}: records behind")
        lines: dict[str, tuple[list[datetime.datetime], list[int]]] = {}
        for topic in {row["topic"] for row in rows if row["records"] is not None}:
            lines[topic] = _sums([row for row in rows if row["topic"] == topic and row["records"] is not None])
        for number, (topic, (times, sums)) in enumerate(sorted(lines.items())):
            colour = figures.COLOURS[number % len(figures.COLOURS)]
            axes.step(figures.times(times), sums, where="post", color=colour, linewidth=1.4, label=figures.plain(topic))
            axes.plot(figures.times(times), sums, "o", color=colour, markersize=3)
        if not lines:
            figures.empty(axes, "no lag is known")
            return figure
        axes.set_ylim(bottom=0)
        axes.set_xlabel("committed at (UTC)")
        axes.set_ylabel("records behind")
        figures.dates(axes.xaxis)
        figures.thousands(axes.yaxis)
        figures.legend(axes)
        return figure


def _sums(rows: Sequence[Any]) -> tuple[list[datetime.datetime], list[int]]:
    """The lag of all partitions together after each commit of a group to one topic. The rows of a commit have each partition once."""
    times: list[datetime.datetime] = []
    sums: list[int] = []
    behind: dict[int, int] = {}
    commit: set[int] = set()
    for row in rows:
        if row["partition"] in commit or not times or row["committed_at"] - times[-1] > _A_COMMIT:
            commit = set()
            times.append(row["committed_at"])
            sums.append(0)
        commit.add(row["partition"])
        behind[row["partition"]] = row["records"]
        times[-1], sums[-1] = row["committed_at"], sum(behind.values())
    return times, sums
