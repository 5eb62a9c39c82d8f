"""Rebuilt topics: the order of each key over re-routes, what a kill leaves, writers beside it, and groups that are carried over."""

import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from broken_reroutes import crc_of
from commit_steps import DONE, NOT_DONE
from handmade import Topic, either, featured
from handmade import records as numbered
from logtool import HALTED, TIMEOUT_S, LogTool
from owners import Own
from verifying import faults

import sparklog
from sparklog import Consumer, Log
from sparklog.groups import OffsetTable

pytestmark = pytest.mark.slow

TOPIC, NEW, KEYS = "t", "new", 12
Record = tuple[int, int, bytes, bytes]
"""Partition, offset, key and value."""


def write(tool: LogTool, number: int, records: int = 30) -> None:
    """Values of one key rise."""
    tool.run("append", topic=TOPIC, tag=f"{number:04d}", tasks=1, records=records, keys=KEYS, partitions=3, seed=number + 1)


def history(tool: LogTool, draw: random.Random) -> None:
    """Writes, beside which partitions are added and closed, records deleted and segments merged."""
    partitions = 3
    for number in range(10):
        write(tool, number, draw.randrange(1, 60))
        act = draw.choice(["none", "none", "add", "weigh", "delete", "merge"])
        if act == "add" and partitions < 7:
            partitions += draw.randrange(1, 3)
            tool.run("change", topic=TOPIC, what="partitions", to=partitions)
        elif act == "weigh":
            tool.run("change", topic=TOPIC, what="weights", weights=f"{draw.randrange(partitions)}:{draw.randrange(1, 9)}")
        elif act == "delete":
            partition = draw.randrange(3)
            end = Log(tool.root)[TOPIC].end_offsets()[partition]
            tool.run("change", topic=TOPIC, what="records", offsets=f"{partition}:{draw.randrange(end + 1)}")
        elif act == "merge":
            tool.run("merge", topic=TOPIC)


def records(tool: LogTool, topic: str) -> list[Record]:
    rows = Log(tool.root)[topic].read(columns=["partition", "offset", "key", "value"]).to_pylist()
    return sorted((row["partition"], row["offset"], row["key"], row["value"]) for row in rows)


def values(read: Iterable[Record]) -> dict[bytes, list[bytes]]:
    """By key, the values in the order in which they are read from its partition."""
    found: dict[bytes, list[bytes]] = defaultdict(list)
    for _, _, key, value in read:
        found[key].append(value)
    return found


def rebuild(tool: LogTool, partitions: int) -> None:
    tool.run("change", topic=TOPIC, what="rebuild", into=NEW, to=partitions)


@pytest.mark.parametrize("seed", range(either(4, 40)))
def test_each_key_keeps_its_order_and_groups_miss_nothing(tool: LogTool, tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    history(tool, draw)
    rebuild(tool, partitions := draw.choice([1, 2, 5, 8]))
    old, new = records(tool, TOPIC), records(tool, NEW)
    log = Log(tool.root)[NEW]
    assert {key: sorted(of) for key, of in values(old).items()} == values(new)
    assert {(p, key) for p, _, key, _ in new} == {(log.partition_for(key), key) for key in values(new)}
    assert log.end_offsets() == {p: sum(each[0] == p for each in new) for p in range(partitions)}
    assert [each for each in faults(tool.root) if each.topic == NEW or each.severity != "repairable"] == []
    table = OffsetTable(tool.root, tmp_path / "offsets")
    starts, ends = Log(tool.root)[TOPIC].start_offsets(), Log(tool.root)[TOPIC].end_offsets()
    exact = {"nothing": dict(starts), "all": dict(ends)}
    anywhere = {f"g{number}": {p: draw.randint(starts[p], ends[p]) for p in starts} for number in range(5)}
    for group, at in (exact | anywhere).items():
        Own(table, group, {TOPIC: at}).end()
        planned = table.carry(group, TOPIC, NEW)
        assert {each.topic for each in table.positions(group)} == {TOPIC}
        assert table.carry(group, TOPIC, NEW, dry_run=False) == planned
        now = {each.partition: each.offset for each in table.positions(group) if each.topic == NEW}
        passed = {value for p, offset, _, value in old if offset < at[p]}
        left = {value for p, offset, _, value in new if offset >= now[p]}
        assert passed | left == {value for *_, value in old}, (seed, group)
        if group in exact:
            assert not passed & left
    with Consumer(tool.root, NEW, group_id="all", table=table) as consumer:
        assert consumer.poll(100) == {}


def test_a_group_is_exact_at_a_cut(tool: LogTool, tmp_path: Path) -> None:
    write(tool, 0)
    at = Log(tool.root)[TOPIC].end_offsets()
    tool.run("change", topic=TOPIC, what="partitions", to=5)
    write(tool, 1)
    rebuild(tool, 2)
    table = OffsetTable(tool.root, tmp_path / "offsets")
    Own(table, "g", {TOPIC: at}).end()
    table.carry("g", TOPIC, NEW, dry_run=False)
    now = {each.partition: each.offset for each in table.positions("g") if each.topic == NEW}
    assert {value[:4] for p, offset, _, value in records(tool, NEW) if offset >= now[p]} == {b"0001"}
    assert {value[:4] for p, offset, _, value in records(tool, NEW) if offset < now[p]} == {b"0000"}


def test_what_had_expired_unread_does_not_take_a_group_back(tool: LogTool, tmp_path: Path) -> None:
    write(tool, 0)
    ends = Log(tool.root)[TOPIC].end_offsets()
    tool.run("change", topic=TOPIC, what="records", offsets=f"1:{ends[1]}")
    rebuild(tool, 2)
    table = OffsetTable(tool.root, tmp_path / "offsets")
    Own(table, "g", {TOPIC: {**ends, 1: 0}}).end()
    assert {each.partition: each.now for each in table.carry("g", TOPIC, NEW)} == Log(tool.root)[NEW].end_offsets()


def test_a_group_that_cannot_be_carried(tool: LogTool, tmp_path: Path) -> None:
    write(tool, 0)
    rebuild(tool, 2)
    table = OffsetTable(tool.root, tmp_path / "offsets")
    Own(table, "g", {NEW: {0: 0}}).end()
    for topic, to, said in [(TOPIC, NEW, "has no positions"), (NEW, TOPIC, "rebuilt from new"), (TOPIC, "none", "TOPIC_NOT_FOUND")]:
        with pytest.raises(sparklog.CallError, match=said):
            table.carry("g", topic, to, dry_run=False)
    with pytest.raises(sparklog.CallError, match="none"):
        table.carry("none", TOPIC, NEW)
    assert [(each.topic, each.offset) for each in table.positions("g")] == [(NEW, 0)]


def test_many_reroutes_with_short_cuts_take_no_room(tool: LogTool) -> None:
    """Such a state passes: the limit is on the numbers that it has, and not on what they are if each is of all partitions."""
    partitions, count = 10_000, 3_000
    topic = Topic(tool.root, TOPIC, partitions)
    topic.append(numbered(count))
    routing = {"epoch": count, "slots": 1, "weights": [1] * partitions, "table": crc_of([0])}
    topic.put(topic.next(features=featured("routing.slots"), version=count, operation="reroute", routing=routing | {"moved": []}))
    reroutes = [{"version": number, "cut": [number], "moved": []} for number in range(1, count + 1)]
    topic.checkpoint(features=featured("routing.slots"), routing=routing | {"first": [0], "reroutes": reroutes})
    topic.version_file(0).unlink()
    before = values(records(tool, TOPIC))
    small = replace(tool, java=("-Xmx128m", "-XX:+UseSerialGC"))
    small.run("change", topic=TOPIC, what="rebuild", into=NEW, to=2)
    assert values(records(tool, NEW)) == before


@pytest.mark.parametrize("step", [step for step in NOT_DONE + DONE if step not in ("publish.stamp", "commit.pool")])
def test_a_rebuild_that_is_killed_leaves_the_topic_whole_or_none(tool: LogTool, step: str) -> None:
    write(tool, 0)
    tool.run("change", topic=TOPIC, what="partitions", to=5)
    tool.run("append", topic=TOPIC, tag="0001", tasks=1, records=40, big=60_000, keys=KEYS, seed=2)
    before = records(tool, TOPIC)
    words = {"topic": TOPIC, "what": "rebuild", "into": NEW, "to": 2}
    tool.run("change", stop=f"{step}:halt", status=HALTED, **words)
    there = step in DONE
    assert Log(tool.root).topics() == ([NEW, TOPIC] if there else [TOPIC])
    assert (tool.outcome("change", **words) == ["TOPIC_EXISTS"]) == there
    assert values(records(tool, NEW)) == {key: sorted(of) for key, of in values(before).items()}
    assert records(tool, TOPIC) == before
    assert faults(tool.root, unfinished=True) == []


def test_what_is_written_beside_a_rebuild_stays_in_the_old_topic(tool: LogTool, tmp_path: Path) -> None:
    write(tool, 0)
    before, release = records(tool, TOPIC), tmp_path / "release"
    slow = tool.start("change", topic=TOPIC, what="rebuild", into=NEW, to=4, stop="commit.link:pause", release=release)
    assert slow.stderr is not None
    assert "pause at" in slow.stderr.readline()
    write(tool, 1)
    tool.run("change", topic=TOPIC, what="partitions", to=5)
    release.touch()
    _, err = slow.communicate(timeout=TIMEOUT_S)
    assert slow.returncode == 0, err
    assert values(records(tool, NEW)) == {key: sorted(of) for key, of in values(before).items()}
    assert len(records(tool, TOPIC)) == 60
    assert [each for each in faults(tool.root) if each.topic == NEW or each.severity != "repairable"] == []
