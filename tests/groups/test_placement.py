"""The shares of partitions in new keys, from what was written and read between two looks."""

import logging
import shutil
from pathlib import Path

import pytest
from broken_bindings import SLOTS, Bound
from handmade import Record, Topic, batch
from mmh3 import hash as murmur3
from owners import Own

from sparklog import Placement, SparklogError
from sparklog.groups import OffsetTable
from sparklog.queries.placement import SHARE_MAX, Load, shares_of


def slot(key: bytes) -> int:
    return (murmur3(key) & 0x7FFFFFFF) % SLOTS


def test_a_placement_opens_its_topic_once(tmp_path, opens):
    placed = Placed(tmp_path / "root", tmp_path / "offsets", group="g")
    placed.placement.look()
    assert opens == ["t"]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Placed:
    """A topic of three partitions, and a look at it that the clock of the test times."""

    def __init__(self, root: Path, table: Path | None = None, **options: object) -> None:
        self.topic = Topic(root, partitions=3)
        self.bound = Bound(self.topic)
        self.bound.weights = [1, 1, 1]
        self.bound.begin({0: [1]})
        self.clock = Clock()
        self.placement = Placement(root, "t", table=table, clock=self.clock, **options)  # type: ignore[arg-type]

    def write(self, partition: int, key: bytes, count: int) -> None:
        """Records of a key, whose slot is bound if it is not yet."""
        added = self.topic.data(batch([Record(key=key) for _ in range(count)]), partition)
        if self.bound.home(key) == partition:
            self.topic.commit(added, features=self.bound.features)
        else:
            self.bound.take(self.bound.bind({partition: [slot(key)]}, added))

    def look(self, after: float) -> dict[int, int]:
        self.clock.now += after
        return self.placement.look()


def test_what_is_level_gets_equal_shares() -> None:
    assert shares_of([Load(10, 0, 5)] * 4, 3, 60) == [SHARE_MAX] * 4


def test_new_load_goes_where_load_per_capacity_is_least() -> None:
    shares = shares_of([Load(30, 0, 10), Load(10, 0, 10), Load(20, 0, 20)], 20, 60)
    # 80 records a second in all: 20, 20 and 40 by capacity. The first has too much, the others lack 10 and 20.
    assert shares == [round(SHARE_MAX * 0.02 * 20 / 3 / 20), SHARE_MAX // 2, SHARE_MAX]


def test_a_backlog_counts_as_load_to_be_worked_off() -> None:
    assert shares_of([Load(10, 0, 1), Load(10, 600, 1)], 20, 60) == [SHARE_MAX, round(SHARE_MAX * 0.2 / 10)]
    assert shares_of([Load(10, 0, 1), Load(10, 300, 1)], 20, 60) == [SHARE_MAX, SHARE_MAX // 2]


def test_none_starves_and_shares_are_whole() -> None:
    for lag in (0.0, 1e3, 1e12):
        shares = shares_of([Load(1e6, lag, 1e-3), Load(0, 0, 1e9)], 0, 60)
        assert all(isinstance(share, int) and 1 <= share <= SHARE_MAX for share in shares)
        assert max(shares) == SHARE_MAX


def test_without_a_group_rates_are_levelled(tmp_path: Path) -> None:
    placed = Placed(tmp_path)
    assert placed.look(0) == {0: 1, 1: 1, 2: 1}, "nothing to compare with"
    placed.write(0, b"old", 10)
    placed.look(10)
    placed.write(0, b"old", 400)
    placed.write(1, b"old too", 100)
    placed.write(2, b"new", 100)
    # In 10 s: 40, 10 and 10 records a second, of which 20 are of slots that are new.
    expected = shares_of([Load(40, 0, 1), Load(10, 0, 1), Load(10, 0, 1)], 20, 60)
    assert placed.look(10) == dict(enumerate(expected))
    placed.write(2, b"new", 300)
    expected = shares_of([Load(0, 0, 1), Load(0, 0, 1), Load(30, 0, 1)], 0, 60)
    assert placed.look(10) == dict(enumerate(expected)), "nothing is new"


def test_the_lag_and_the_speed_of_a_group(tmp_path: Path) -> None:
    placed = Placed(tmp_path / "root", tmp_path / "table", group="g")
    table = OffsetTable(tmp_path / "root", tmp_path / "table")
    for partition in range(3):
        placed.write(partition, b"key-%d" % partition, 1000)
    own = Own(table, "g", {"t": {0: 0, 1: 0, 2: 1000}})
    placed.look(0)
    own.to({"t": {0: 500, 1: 100, 2: 1000}})
    # It read 50 and 10 records a second where it has lag. The third partition is read whole, and its speed taken for the mean.
    expected = shares_of([Load(0, 500, 50), Load(0, 900, 10), Load(0, 0, 30)], 0, 60)
    assert placed.look(10) == dict(enumerate(expected))
    # The group counts in each partition that needs longest there.
    placed.placement.groups.append("h")
    Own(table, "h", {"t": {0: 1000, 1: 1000, 2: 0}})
    placed.placement._last = None
    placed.look(10)
    shares = placed.look(10)
    expected = shares_of([Load(0, 500, 1), Load(0, 900, 1), Load(0, 1000, 1)], 0, 60)
    assert shares == dict(enumerate(expected))


def test_a_group_that_cannot_be_asked_counts_for_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    placed = Placed(tmp_path / "root", tmp_path / "none", group="g")
    with caplog.at_level(logging.WARNING):
        assert placed.look(0) == {0: 1, 1: 1, 2: 1}
        placed.write(0, b"key", 10)
        assert placed.look(10)[0] < placed.look(10)[1]
    assert "the lag of group g counts as 0 for new keys of topic t" in caplog.text


def test_the_lag_is_that_of_the_table_that_took_the_place_of_another_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    placed = Placed(tmp_path / "root", tmp_path / "table", group="g")
    placed.write(0, b"key", 10)
    Own(OffsetTable(tmp_path / "root", tmp_path / "table"), "g", {"t": {0: 10}})
    placed.look(0)
    assert placed.placement._last.lag("g", 0) == 0
    shutil.rmtree(tmp_path / "table")
    Own(OffsetTable(tmp_path / "root", tmp_path / "table"), "g", {"t": {0: 3}})
    with caplog.at_level(logging.WARNING):
        placed.look(10)
        assert "PARTLOG_OFFSETS_TABLE_REPLACED" in caplog.text
        caplog.clear()
        placed.look(10)
    assert placed.placement._last.lag("g", 0) == 7
    assert caplog.text == ""


def test_a_closed_partition_has_no_share_and_a_reroute_begins_anew(tmp_path: Path) -> None:
    placed = Placed(tmp_path)
    placed.look(0)
    placed.write(0, b"key", 10)
    placed.bound.take(placed.bound.reroute([0, 2, 1], {1: [slot for slot, home in enumerate(placed.bound.table) if home == 0]}))
    assert placed.look(10) == {1: 2, 2: 1}


def test_what_cannot_be(tmp_path: Path) -> None:
    Placed(tmp_path)
    with pytest.raises(SparklogError, match=r"OPTION_VALUE.*at least 1 second"):
        Placement(tmp_path, "t", refresh_s=0.5)
    with pytest.raises(SparklogError, match=r"OPTION_VALUE.*give the offset table"):
        Placement(tmp_path, "t", group="g")
    with pytest.raises(SparklogError, match="TOPIC_NOT_FOUND"):
        Placement(tmp_path, "other")
    Topic(tmp_path, "murmur").append([Record(key=b"k")])
    with pytest.raises(SparklogError, match="with placement on_first_write"):
        Placement(tmp_path, "murmur")


def test_a_topic_of_the_name_that_places_keys_otherwise_is_refused(tmp_path: Path) -> None:
    placed = Placed(tmp_path)
    placed.look(0)
    placed.topic.delete()
    del placed.topic.config["placement"]
    placed.topic.append([Record(key=b"k")])
    with pytest.raises(SparklogError, match="with placement on_first_write"):
        placed.look(10)
