"""Figures, axes and colours that the plots of topics and of groups share. Each plot is a matplotlib Figure."""

from __future__ import annotations

import datetime
import functools
import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sparklog.errors import SparklogError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#7f7f7f"
"""The colour of texts and lines: a grey that can be read on white and on black. The background is transparent."""
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442")
"""Colours that people with any colour vision can tell apart (Okabe and Ito)."""
_WIDTH, _HEIGHT = 9.0, 3.6
_DPI = 110
"""The resolution of pictures in a notebook."""

Size = tuple[float, float]


def figure(rows: int, figsize: Size | None, title: str) -> tuple[Figure, list[Axes]]:
    """A figure with axes side by side, as many as `rows`, in the common style of all plots."""
    figure = _class()(figsize=figsize or (_WIDTH, _HEIGHT), layout="constrained")
    figure.patch.set_alpha(0)
    figure.suptitle(plain(title), color=INK, x=0.01, ha="left", fontsize="medium")
    axes = [figure.add_subplot(1, rows, number + 1) for number in range(rows)]
    for each in axes:
        each.patch.set_alpha(0)
        each.tick_params(colors=INK, labelsize="small")
        each.xaxis.label.set_color(INK)
        each.yaxis.label.set_color(INK)
        each.grid(visible=True, axis="y", color=INK, alpha=0.2, linewidth=0.6)
        each.set_axisbelow(True)
        for side, spine in each.spines.items():
            spine.set_color(INK)
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


def plain(text: str) -> str:
    """A text in which matplotlib finds no formula."""
    return text.replace("$", r"\$")


def bars(axes: Axes, heights: Sequence[float], label: str) -> None:
    """A bar for each partition, and a line at their mean."""
    axes.bar(range(len(heights)), heights, color=COLOURS[0], width=0.8 if len(heights) < 200 else 1.0)
    if heights:
        mean = sum(heights) / len(heights)
        axes.axhline(mean, color=COLOURS[5], linewidth=1, linestyle="--")
        axes.set_title(f"mean {mean:,.0f}", color=COLOURS[5], fontsize="small", loc="right")
    axes.set_xlabel("partition")
    axes.set_ylabel(label)
    whole(axes.xaxis)
    thousands(axes.yaxis)


def whole(axis: Any) -> None:
    """Marks an axis at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(integer=True, nbins="auto"))


def thousands(axis: Any) -> None:
    """Writes the numbers of an axis with commas."""
    from matplotlib.ticker import StrMethodFormatter

    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def times(times: Iterable[datetime.datetime]) -> Any:
    """The times as matplotlib takes them."""
    return np.array([each.replace(tzinfo=None) for each in times], dtype="datetime64[us]")


def dates(axis: Any) -> None:
    """Marks a time axis."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(tz=datetime.timezone.utc)  # type: ignore[no-untyped-call]
    axis.set_major_locator(locator)
    axis.set_major_formatter(ConciseDateFormatter(locator, tz=datetime.timezone.utc))  # type: ignore[no-untyped-call]
    axis.get_offset_text().set_color(INK)


def empty(axes: Axes, why: str) -> None:
    """Says why there is nothing to draw."""
    axes.text(0.5, 0.5, why, ha="center", va="center", color=INK, transform=axes.transAxes)
    axes.set_xticks([])
    axes.set_yticks([])


def legend(axes: Axes) -> None:
    """A legend above the axes, if anything in them has a label."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0, fontsize="small", labelcolor=INK, frameon=False, ncols=4)
