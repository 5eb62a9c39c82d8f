"""Plots of groups. Each method returns a matplotlib Figure, which a notebook shows; `figure.savefig(…)` writes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sparklog.groups import lags
from sparklog.show import figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class GroupPlots:
    """The plots of groups, as `OffsetTable.plot` returns them."""

    def __init__(self, lag_history: Callable[[str], Any]) -> None:
        self._lag_history = lag_history

    def lag(self, group: str, *, figsize: figures.Size | None = None) -> Figure:
        """How far a group was behind, in records, at each of its commits: of each topic, all partitions together.

        Lag that the log can no longer tell (see `lag_history`) is left out. CallError GROUP_NOT_FOUND.
        """
        found = self._lag_history(group)
        rows = (found if hasattr(found, "to_pylist") else found.toArrow()).to_pylist()
        figure, (axes,) = figures.figure(1, figsize, f"Group {group}: records behind")
        known = sorted({row["topic"] for row in rows if row["records"] is not None})
        for number, topic in enumerate(known):
            times, sums = zip(*lags.together(row for row in rows if row["topic"] == topic), strict=True)
            colour = figures.COLOURS[number % len(figures.COLOURS)]
            axes.step(figures.times(times), sums, where="post", color=colour, linewidth=1.4, label=figures.plain(topic))
            axes.plot(figures.times(times), sums, "o", color=colour, markersize=3)
        if not known:
            figures.empty(axes, "no lag is known")
            return figure
        axes.set_ylim(bottom=0)
        axes.set_xlabel("committed at (UTC)")
        axes.set_ylabel("records behind")
        figures.dates(axes.xaxis)
        figures.thousands(axes.yaxis)
        figures.legend(axes)
        return figure
