"""Plots show what the topic has, and are figures that are not empty."""

import datetime
import io
import itertools
import sys

import pytest
from handmade import TIME, Record, Topic, batch, records, sample
from in_notebook import png
from matplotlib.image import imread
from owners import Own

import sparklog
from sparklog.groups import OffsetTable, rows, topics
from sparklog.show import figures


def drawn(figure) -> float:
    """The share of the pixels that are not background."""
    into = io.BytesIO()
    figure.savefig(into, format="png", facecolor="white")
    into.seek(0)
    return float((imread(into)[:, :, :3].min(axis=2) < 0.9).mean())


def test_partitions(tmp_path):
    topic = sparklog.Log(sample(tmp_path).root)["t"]
    figure = topic.plot.partitions(figsize=(6, 3))
    counts, octets = figure.axes
    assert [bar.get_height() for bar in counts.patches] == [25, 10]
    assert [bar.get_height() for bar in octets.patches] == [each["bytes"] for each in topic.describe()["partitions"]]
    assert list(figure.get_size_inches()) == [6, 3]
    assert drawn(figure) > 0.1
    assert png(figure).startswith(b"\x89PNG"), "a notebook shows it"


def test_segments(tmp_path):
    topic = sparklog.Log(sample(tmp_path).root)["t"]
    figure = topic.plot.segments()
    (found,) = figure.axes[0].collections
    assert sorted((box.x0, box.x1) for box in (path.get_extents() for path in found.get_paths())) == [(0, 10), (0, 15), (15, 25)]
    assert drawn(figure) > 0.1
    assert len(topic.plot.segments(1).axes[0].collections[0].get_paths()) == 1


def test_commits_and_times(tmp_path):
    topic = sample(tmp_path)
    topic.append(records(3, timestamp=TIME + 5000))
    plot, commits = sparklog.Log(topic.root)["t"].plot, sparklog.Log(topic.root)["t"].commits()
    shown = {line.get_label(): list(line.get_ydata()) for line in plot.commits().axes[0].lines}
    assert shown == {each.operation: [other.records for other in commits if other.operation == each.operation] for each in commits}
    assert sorted(number for records in shown.values() for number in records) == [3, 15, 20]
    assert len(plot.commits(1).axes[0].lines[0].get_ydata()) == 1
    latest, earliest, *_ = plot.times().axes[0].lines
    assert len(latest.get_ydata()) == len(earliest.get_ydata()) == 4
    assert [int(time.astype("datetime64[ms]").astype(int)) for time in latest.get_ydata()][-1] == TIME + 5002
    assert len(plot.times(1).axes[0].lines[0].get_ydata()) == 1
    assert min(drawn(plot.commits()), drawn(plot.times())) > 0.01


def test_times_beyond_those_of_matplotlib(tmp_path):
    topic = Topic(tmp_path)
    topic.append(records(3))
    topic.append([Record(timestamp=2**62)])
    assert drawn(sparklog.Log(tmp_path)["t"].plot.times()) > 0.01
    later = Topic(tmp_path, "later")
    later.append([Record(timestamp=2**62)])
    assert drawn(sparklog.Log(tmp_path)["later"].plot.times()) > 0.01


def test_a_write_has_one_colour_whatever_else_was_committed(tmp_path):
    topic = Topic(tmp_path)
    colours = []
    for operation in ("write", "merge", "append"):
        topic.commit(topic.data(batch(records(3))), operation=operation)
        lines = {line.get_label(): line.get_color() for line in sparklog.Log(tmp_path)["t"].plot.commits().axes[0].lines}
        assert len(set(lines.values())) == len(lines)
        colours.append(lines["write"])
    assert len(colours) == 3 and len(set(colours)) == 1


@pytest.mark.parametrize(
    ("later", "said"),
    [
        (0, ["2023-11-14 22:13"]),
        (2_000, ["2023-11-14 22:13:20", "2023-11-14 22:13:22"]),
        (60_000, ["2023-11-14 22:13", "2023-11-14 22:14"]),
    ],
)
def test_the_ends_of_the_ages_can_be_told_apart(tmp_path, later, said):
    topic = Topic(tmp_path)
    for newest in (TIME, TIME + later):
        topic.append(records(1, timestamp=newest))
    _, ages = sparklog.Log(tmp_path)["t"].plot.segments().axes
    assert [label.get_text() for label in ages.get_yticklabels()] == said


def test_nothing_to_show(tmp_path):
    topic = Topic(tmp_path)
    topic.commit()
    plot = sparklog.Log(tmp_path)["t"].plot
    for figure in (plot.partitions(), plot.segments(), plot.times()):
        drawn(figure)
    assert plot.segments().axes[0].texts[0].get_text() == "no segments"
    assert plot.times().axes[0].texts[0].get_text() == "no times are known"


def test_lag(tmp_path):
    topic = sample(tmp_path / "root")
    table = OffsetTable(topic.root, tmp_path / "offsets")
    own = Own(table, "$g$")
    own.to({"t": {0: 5, 1: 0}})
    own.to({"t": {1: 10}})
    _, points = table.plot.lag("$g$").axes[0].lines
    assert list(points.get_ydata()) == [30, 20]
    assert drawn(table.plot.lag("$g$")) > 0.01
    with pytest.raises(sparklog.CallError, match="PARTLOG_GROUP_NOT_FOUND"):
        table.plot.lag("h")


@pytest.mark.parametrize("step", [1, 200])
def test_commits_of_a_group_are_points_however_fast_or_slow_they_are(tmp_path, monkeypatch, step):
    topic = sample(tmp_path / "root")
    table = OffsetTable(topic.root, tmp_path / "offsets")
    own = Own(table, "g")
    calls = itertools.count(1)
    begun = rows.now()
    monkeypatch.setattr(topics, "now", lambda: begun + datetime.timedelta(milliseconds=step * next(calls)))
    for offsets in ({0: 5, 1: 0}, {0: 6}, {1: 10}):
        own.to({"t": offsets})
    _, points = table.plot.lag("g").axes[0].lines
    assert list(points.get_ydata()) == [30, 29, 19]


@pytest.mark.parametrize("name", ["partitions", "segments", "commits", "times"])
def test_without_matplotlib_the_error_says_what_to_install(name, tmp_path, monkeypatch):
    topic = sparklog.Log(sample(tmp_path).root)["t"]
    for module in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    figures._class.cache_clear()
    with pytest.raises(sparklog.CallError, match=r"pip install 'sparklog\[notebook\]'"):
        getattr(topic.plot, name)()
