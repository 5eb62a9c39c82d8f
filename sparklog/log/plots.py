"""Plots of a topic and of groups. Each method returns a matplotlib Figure, which a notebook shows; `figure.savefig(…)` writes it."""

from __future__ import annotations

import datetime
import functools
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sparklog.errors import SparklogError
from sparklog.log.display import counted, moment

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from sparklog.log.topic import Topic
    from sparklog.offsets import OffsetTable

_INK = "#7f7f7f"
"""Of texts and lines: a grey that can be read on white and on black. The background is transparent."""
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442")
"""Colours that people with any colour vision can tell apart (Okabe and Ito)."""
_WIDTH, _HEIGHT = 9.0, 3.6
_DPI = 110
"""Of pictures in a notebook."""
_POINTS = 20_000
"""The most records that `times` draws."""
_A_COMMIT = datetime.timedelta(milliseconds=50)
"""The rows of a commit are this close to one another."""
_LAST_DAY = 2_932_896
"""The last day that matplotlib draws, 9999-12-31, in days since 1970-01-01."""
_RECTANGLES = 20_000
"""The most segments that `segments` draws."""

Size = tuple[float, float]


def _figure(rows: int, figsize: Size | None, title: str) -> tuple[Figure, list[Axes]]:
    figure = _class()(figsize=figsize or (_WIDTH, _HEIGHT), layout="constrained")
    figure.patch.set_alpha(0)
    figure.suptitle(_plain(title), color=_INK, x=0.01, ha="left", fontsize="medium")
    axes = [figure.add_subplot(1, rows, number + 1) for number in range(rows)]
    for each in axes:
        each.patch.set_alpha(0)
        each.tick_params(colors=_INK, labelsize="small")
        each.xaxis.label.set_color(_INK)
        each.yaxis.label.set_color(_INK)
        each.grid(visible=True, axis="y", color=_INK, alpha=0.2, linewidth=0.6)
        each.set_axisbelow(True)
        for side, spine in each.spines.items():
            spine.set_color(_INK)
            spine.set_visible(side in ("left", "bottom"))
    return figure, axes


@functools.cache
def _class() -> type[Figure]:
    """Figures that a notebook shows as pictures, also if nothing set up matplotlib in it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SparklogError("NOTEBOOK_EXTRA", module="matplotlib") from None

    class Plot(Figure):
        def _repr_png_(self) -> bytes:
            into = io.BytesIO()
            self.savefig(into, format="png", dpi=_DPI)
            return into.getvalue()

    return Plot


def _plain(text: str) -> str:
    """A text in which matplotlib finds no formula."""
    return text.replace("$", r"\$")


def _bars(axes: Axes, heights: Sequence[float], label: str) -> None:
    axes.bar(range(len(heights)), heights, color=_COLOURS[0], width=0.8 if len(heights) < 200 else 1.0)
    if heights:
        mean = sum(heights) / len(heights)
        axes.axhline(mean, color=_COLOURS[5], linewidth=1, linestyle="--")
        axes.set_title(f"mean {mean:,.0f}", color=_COLOURS[5], fontsize="small", loc="right")
    axes.set_xlabel("partition")
    axes.set_ylabel(label)
    _whole(axes.xaxis)
    _thousands(axes.yaxis)


def _whole(axis: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True, nbins="auto"))


def _thousands(axis: Any) -> None:
    from matplotlib.ticker import StrMethodFormatter

    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def _times(times: Iterable[datetime.datetime]) -> Any:
    """What matplotlib takes for times."""
    return np.array([each.replace(tzinfo=None) for each in times], dtype="datetime64[us]")


def _dates(axis: Any) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(tz=datetime.timezone.utc)  # type: ignore[no-untyped-call]
    axis.set_major_locator(locator)
    axis.set_major_formatter(ConciseDateFormatter(locator, tz=datetime.timezone.utc))  # type: ignore[no-untyped-call]
    axis.get_offset_text().set_color(_INK)


def _empty(axes: Axes, why: str) -> None:
    axes.text(0.5, 0.5, why, ha="center", va="center", color=_INK, transform=axes.transAxes)
    axes.set_xticks([])
    axes.set_yticks([])


def _legend(axes: Axes) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0, fontsize="small", labelcolor=_INK, frameon=False, ncols=4)


class TopicPlots:
    """What `Topic.plot` returns. `figsize` is in inches, as matplotlib's. CallError NOTEBOOK_EXTRA if matplotlib is not installed."""

    def __init__(self, topic: Topic) -> None:
        self._topic = topic

    def partitions(self, *, figsize: Size | None = None) -> Figure:
        """Records and bytes of each partition, with their means: how even the topic is spread."""
        about = self._topic.describe()
        title = f"Topic {self._topic.name}: {counted(about['records'], 'record')}, {about['bytes']:,} bytes"
        figure, (records, octets) = _figure(2, figsize, title)
        _bars(records, [each["records"] for each in about["partitions"]], "records")
        _bars(octets, [each["bytes"] for each in about["partitions"]], "bytes")
        return figure

    def segments(self, partition: int | None = None, *, figsize: Size | None = None) -> Figure:
        """A map of the segments: each a bar over its offsets, in the row of its partition, by size; the colour is the age of its records.

        Of more than 20,000 segments, the largest are drawn.
        """
        found = self._topic.segments(partition)
        figure, (axes,) = _figure(1, figsize, f"Topic {self._topic.name}: {counted(len(found), 'segment')} by offset, size and age")
        if not found:
            _empty(axes, "no segments")
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
        faces[times < 0] = colors.to_rgba(_INK)  # whose records have no times
        axes.add_collection(PolyCollection(corners, facecolors=faces, edgecolors=_INK, linewidths=0.4))
        axes.set_xlim(min(each.base for each in drawn), max(each.end for each in drawn))
        axes.set_ylim(max(each.partition for each in drawn) + 0.6, min(each.partition for each in drawn) - 0.6)
        axes.set_xlabel("offset")
        axes.set_ylabel("partition")
        _whole(axes.yaxis)
        _thousands(axes.xaxis)
        if known.size:
            bar = figure.colorbar(scale, ax=axes, pad=0.01)
            bar.ax.tick_params(colors=_INK, labelsize="small")
            ends = sorted({low, high})
            names = [f"{moment(int(time * 1000)):%Y-%m-%d %H:%M:%S}" for time in ends]
            minutes = [name[:-3] for name in names]
            bar.set_ticks(ends, labels=minutes if len(set(minutes)) == len(ends) else names)
            bar.outline.set_visible(False)
        return figure

    def commits(self, limit: int | None = None, *, figsize: Size | None = None) -> Figure:
        """A timeline of the commits, as far as their version files are kept: when each was made, how many records it wrote, and by what.

        Those of a merge were there before, in other segments. `limit` is how many of the newest to show.
        """
        found = self._topic.commits(limit)
        figure, (axes,) = _figure(1, figsize, f"Topic {self._topic.name}: {counted(len(found), 'commit')}")
        if not found:
            _empty(axes, "no commits")
            return figure
        for number, operation in enumerate(sorted({each.operation for each in found}, key=lambda each: (each != "write", each))):
            of = [each for each in found if each.operation == operation]
            colour = _COLOURS[number % len(_COLOURS)]
            times = _times(each.time for each in of)
            axes.vlines(times, 0, [each.records for each in of], color=colour, linewidth=1.4)
            axes.plot(times, [each.records for each in of], "o", color=colour, markersize=4, label=operation)
        axes.set_ylim(bottom=0)
        axes.set_ylabel("records written")
        axes.set_xlabel("committed at (UTC)")
        _dates(axes.xaxis)
        _thousands(axes.yaxis)
        _legend(axes)
        return figure

    def times(self, partition: int | None = None, *, figsize: Size | None = None) -> Figure:
        """The times of records against when they were committed: what came late lies below the line of equal times.

        It is drawn from the segments that each commit added, with their earliest and latest record, as far as version files are kept.
        """
        figure, (axes,) = _figure(1, figsize, f"Topic {self._topic.name}: time of records, by time of commit")
        arrived, first, last = [], [], []
        for commit, segment in self._added():
            if partition in (None, segment.partition) and segment.max_timestamp >= 0:
                arrived.append(commit)
                first.append(moment(segment.min_timestamp))
                last.append(moment(segment.max_timestamp))
        if not arrived:
            _empty(axes, "no times are known")
            return figure
        step = -(-len(arrived) // _POINTS)
        arrived, first, last = arrived[::step], first[::step], last[::step]
        arrival, begin, end = _times(arrived), _times(first), _times(last)
        axes.vlines(arrival, begin, end, color=_COLOURS[0], linewidth=1.2, alpha=0.7)
        axes.plot(arrival, end, "_", color=_COLOURS[0], markersize=6, label="latest record of a segment")
        axes.plot(arrival, begin, "_", color=_COLOURS[1], markersize=6, label="earliest record of a segment")
        if min(arrived) < max(arrived) and min(arrived) - max(last) <= max(last) - min(first):  # else it would be far from all
            bounds = _times([min(arrived), max(arrived)])
            axes.plot(bounds, bounds, "--", color=_COLOURS[5], linewidth=1, label="equal times")
        axes.set_xlabel("committed at (UTC)")
        axes.set_ylabel("time of records (UTC)")
        _dates(axes.xaxis)
        _dates(axes.yaxis)
        axes.set_ylim(top=min(axes.get_ylim()[1], _LAST_DAY))
        _legend(axes)
        return figure

    def _added(self) -> Iterator[tuple[datetime.datetime, Any]]:
        for version in self._topic._log.history():
            for segment in version.added:
                if version.operation != "merge":
                    yield moment(version.time), segment


class GroupPlots:
    """What `OffsetTable.plot` returns."""

    def __init__(self, table: OffsetTable) -> None:
        self._table = table

    def lag(self, group: str, *, figsize: Size | None = None) -> Figure:
        """How far a group was behind, in records, at each of its commits: of each topic, all partitions together.

        What the log has forgotten by now (see `lag_history`) is left out. CallError GROUP_NOT_FOUND.
        """
        found = self._table.lag_history(group)
        rows = (found if hasattr(found, "to_pylist") else found.toArrow()).to_pylist()
        figure, (axes,) = _figure(1, figsize, f"Group {group}: records behind")
        lines: dict[str, tuple[list[datetime.datetime], list[int]]] = {}
        for topic in {row["topic"] for row in rows if row["records"] is not None}:
            lines[topic] = _sums([row for row in rows if row["topic"] == topic and row["records"] is not None])
        for number, (topic, (times, sums)) in enumerate(sorted(lines.items())):
            colour = _COLOURS[number % len(_COLOURS)]
            axes.step(_times(times), sums, where="post", color=colour, linewidth=1.4, label=_plain(topic))
            axes.plot(_times(times), sums, "o", color=colour, markersize=3)
        if not lines:
            _empty(axes, "no lag is known")
            return figure
        axes.set_ylim(bottom=0)
        axes.set_xlabel("committed at (UTC)")
        axes.set_ylabel("records behind")
        _dates(axes.xaxis)
        _thousands(axes.yaxis)
        _legend(axes)
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
