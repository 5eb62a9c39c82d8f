"""Plots of a topic. Each method returns a matplotlib Figure, which a notebook shows; `figure.savefig(…)` writes it."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from sparklog.log.batches import Segments
from sparklog.log.commits import Commits
from sparklog.ondisk.topic_log import TopicLog
from sparklog.ondisk.totals import Totals
from sparklog.ondisk.version import Segment
from sparklog.show import figures
from sparklog.show.display import counted, moment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POINTS = 20_000
"""The most records that `times` draws."""
_LAST_DAY = 2_932_896
"""The last day that matplotlib draws, 9999-12-31, in days since 1970-01-01."""
_RECTANGLES = 20_000
"""The most segments that `segments` draws."""


class TopicPlots:
    """The plots of a topic, as `Topic.plot` returns them. `figsize` is in inches. CallError NOTEBOOK_EXTRA without matplotlib."""

    def __init__(self, log: TopicLog) -> None:
        self._log = log

    def partitions(self, *, figsize: figures.Size | None = None) -> Figure:
        """Records and bytes of each partition, with their means: how even the topic is spread."""
        totals = Totals.of_partitions(self._log, self._log.newest())
        assert totals is not None
        together = Totals.together(totals)
        title = f"Topic {self._log.topic}: {counted(together.records, 'record')}, {together.bytes:,} bytes"
        figure, (records, size) = figures.figure(2, figsize, title)
        figures.bars(records, [each.records for each in totals], "records")
        figures.bars(size, [each.bytes for each in totals], "bytes")
        return figure

    def segments(self, partition: int | None = None, *, figsize: figures.Size | None = None) -> Figure:
        """A map of the segments: each a bar over its offsets, in the row of its partition, by size; the colour is the age of its records.

        If there are more than 20,000 segments, the largest are drawn.
        """
        found = Segments.of(self._log, partition)
        figure, (axes,) = figures.figure(1, figsize, f"Topic {self._log.topic}: {counted(len(found), 'segment')} by offset, size and age")
        if not found:
            figures.empty(axes, "no segments")
            return figure
        from matplotlib import cm, colors
        from matplotlib.collections import PolyCollection

        drawn = sorted(found, key=lambda each: -each.bytes)[:_RECTANGLES]
        largest = drawn[0].bytes
        # The height is the root of the size, so that small ones can be seen beside large ones.
        heights = [0.08 + 0.8 * (each.bytes / largest) ** 0.5 for each in drawn]
        corners = [
            [
                (each.base, each.partition - 0.44),
                (each.base, each.partition - 0.44 + height),
                (each.end, each.partition - 0.44 + height),
                (each.end, each.partition - 0.44),
            ]
            for each, height in zip(drawn, heights, strict=True)
        ]
        times = np.array([each.max_timestamp for each in drawn], dtype=np.float64) / 1000
        known = times[times >= 0]
        low, high = (known.min(), known.max()) if known.size else (0.0, 1.0)
        scale = cm.ScalarMappable(colors.Normalize(low, max(high, low + 1)), "viridis")
        faces = scale.to_rgba(np.where(times >= 0, times, low))
        faces[times < 0] = colors.to_rgba(figures.INK)  # whose records have no times
        axes.add_collection(PolyCollection(corners, facecolors=faces, edgecolors=figures.INK, linewidths=0.4))
        axes.set_xlim(min(each.base for each in drawn), max(each.end for each in drawn))
        axes.set_ylim(max(each.partition for each in drawn) + 0.6, min(each.partition for each in drawn) - 0.6)
        axes.set_xlabel("offset")
        axes.set_ylabel("partition")
        figures.whole(axes.yaxis)
        figures.thousands(axes.xaxis)
        if known.size:
            bar = figure.colorbar(scale, ax=axes, pad=0.01)
            bar.ax.tick_params(colors=figures.INK, labelsize="small")
            ends = sorted({low, high})
            names = [f"{moment(int(time * 1000)):%Y-%m-%d %H:%M:%S}" for time in ends]
            minutes = [name[:-3] for name in names]
            bar.set_ticks(ends, labels=minutes if len(set(minutes)) == len(ends) else names)
            bar.outline.set_visible(False)
        return figure

    def commits(self, limit: int | None = None, *, figsize: figures.Size | None = None) -> Figure:
        """A timeline of the commits, as far as their version files are kept: when each was made, how many records it wrote, and by what.

        Those of a merge were there before, in other segments. `limit` is how many of the newest to show.
        """
        found = Commits.of(self._log, limit)
        figure, (axes,) = figures.figure(1, figsize, f"Topic {self._log.topic}: {counted(len(found), 'commit')}")
        if not found:
            figures.empty(axes, "no commits")
            return figure
        for number, operation in enumerate(sorted({each.operation for each in found}, key=lambda each: (each != "write", each))):
            of = [each for each in found if each.operation == operation]
            colour = figures.COLOURS[number % len(figures.COLOURS)]
            times = figures.times(each.time for each in of)
            axes.vlines(times, 0, [each.records for each in of], color=colour, linewidth=1.4)
            axes.plot(times, [each.records for each in of], "o", color=colour, markersize=4, label=operation)
        axes.set_ylim(bottom=0)
        axes.set_ylabel("records written")
        axes.set_xlabel("committed at (UTC)")
        figures.dates(axes.xaxis)
        figures.thousands(axes.yaxis)
        figures.legend(axes)
        return figure

    def times(self, partition: int | None = None, *, figsize: figures.Size | None = None) -> Figure:
        """The times of records against when they were committed: what came late lies below the line of equal times.

        It is drawn from the segments that each commit added, with their earliest and latest record, as far as version files are kept.
        """
        figure, (axes,) = figures.figure(1, figsize, f"Topic {self._log.topic}: time of records, by time of commit")
        arrived, first, last = [], [], []
        for commit, segment in self._added():
            if partition in (None, segment.partition) and segment.max_timestamp >= 0:
                arrived.append(commit)
                first.append(moment(segment.min_timestamp))
                last.append(moment(segment.max_timestamp))
        if not arrived:
            figures.empty(axes, "no times are known")
            return figure
        step = -(-len(arrived) // _POINTS)
        arrived, first, last = arrived[::step], first[::step], last[::step]
        arrival, begin, end = figures.times(arrived), figures.times(first), figures.times(last)
        axes.vlines(arrival, begin, end, color=figures.COLOURS[0], linewidth=1.2, alpha=0.7)
        axes.plot(arrival, end, "_", color=figures.COLOURS[0], markersize=6, label="latest record of a segment")
        axes.plot(arrival, begin, "_", color=figures.COLOURS[1], markersize=6, label="earliest record of a segment")
        if min(arrived) < max(arrived) and min(arrived) - max(last) <= max(last) - min(first):  # else it would be far from all
            bounds = figures.times([min(arrived), max(arrived)])
            axes.plot(bounds, bounds, "--", color=figures.COLOURS[5], linewidth=1, label="equal times")
        axes.set_xlabel("committed at (UTC)")
        axes.set_ylabel("time of records (UTC)")
        figures.dates(axes.xaxis)
        figures.dates(axes.yaxis)
        axes.set_ylim(top=min(axes.get_ylim()[1], _LAST_DAY))
        figures.legend(axes)
        return figure

    def _added(self) -> Iterator[tuple[datetime.datetime, Segment]]:
        for version in self._log.history():
            for segment in version.added:
                if version.operation != "merge":
                    yield moment(version.time), segment
