"""Where a consumer with a group begins, what it commits, and which member may."""

import os
import signal
import subprocess
import sys
import time

import pytest
from handmade import Topic, records, seeded

import sparklog
from sparklog import Consumer, TopicPartition
from sparklog.consumer import OffsetAndMetadata
from sparklog.groups import OffsetTable
from sparklog.groups.table import owner
from sparklog.groups.table.lake import Lake

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def member(topic, table):
    """Makes consumers of group g, which commit only when they are told to."""

    given = {"enable_auto_commit": False, "partition_assignment_strategy": "exclusive"}

    def make(**options: object) -> Consumer:
        return Consumer(topic.root, "t", group_id="g", table=table.path, **given | options)

    return make


def places(table: OffsetTable) -> dict[int, int]:
    return {each.partition: each.offset for each in table.positions("g")}


def test_a_group_goes_on_where_it_committed(member, table, topic):
    first = member(auto_offset_reset="earliest")
    assert first.committed(T0) is None
    first.poll(max_records=7)
    first.commit()
    first.poll()
    first.close()
    # The committed position counts, not the last read. A partition without records was committed too: "latest" cannot skip what comes.
    assert places(table) == {0: 7, 1: 0}
    second = member()
    assert (second.committed(T0), second.position(T0), second.position(T1)) == (7, 7, 0)
    assert [record.offset for record in second.poll()[T0]] == list(range(7, 25))
    second.commit({T0: 9, T1: OffsetAndMetadata(4, "half")})
    assert [(each.offset, each.metadata) for each in table.positions("g")] == [(9, None), (4, "half")]
    assert second.position(T0) == 25


def test_a_commit_in_a_loop_is_exact(member, table):
    consumer = member(auto_offset_reset="earliest")
    for record in consumer:
        if record.offset == 11:
            break
    consumer.commit()
    assert places(table) == {0: 12, 1: 0}


def test_a_commit_can_go_back(member, table):
    consumer = member(auto_offset_reset="earliest")
    consumer.poll()
    consumer.commit()
    consumer.seek(T0, 3)
    consumer.commit()
    assert places(table) == {0: 3, 1: 10}
    consumer.poll(max_records=2)
    consumer.commit()
    assert places(table) == {0: 5, 1: 10}
    # It took a generation for itself. Another consumer is still told of it.
    member().close()
    with pytest.raises(sparklog.GenerationFencedError):
        consumer.commit({T0: 1})
    assert places(table) == {0: 5, 1: 10}


def test_a_consumer_whose_group_was_taken_cannot_commit(member, table):
    first = member(auto_offset_reset="earliest")
    first.poll()
    second = member(auto_offset_reset="earliest")
    second.poll(max_records=3)
    second.commit()
    for _ in range(2):
        with pytest.raises(sparklog.GenerationFencedError, match=r"Generation 1 of group g .* newest generation is 2"):
            first.commit()
    with pytest.raises(sparklog.GenerationFencedError):
        first.close()
    assert places(table) == {0: 3, 1: 0}
    second.commit()


def test_auto_commit_commits_what_earlier_calls_returned(member, table, topic):
    consumer = member(auto_offset_reset="earliest", enable_auto_commit=True, auto_commit_interval_ms=0)
    consumer.poll(max_records=4)
    assert places(table) == {}
    consumer.poll(max_records=4)
    assert places(table) == {0: 4, 1: 0}
    consumer.poll()
    commits = len(table.history("g"))
    consumer.poll()
    consumer.poll()
    # A position that did not move is not written again.
    assert len(table.history("g")) == commits + 2
    topic.append(records(1), 1)
    consumer.poll()
    consumer.close()
    assert places(table) == {0: 25, 1: 11}
    slow = member(enable_auto_commit=True, auto_commit_interval_ms=60_000)
    topic.append(records(1))
    slow.poll()
    slow.poll()
    assert places(table) == {0: 25, 1: 11}
    member().close()
    topic.append(records(1))
    with pytest.raises(sparklog.GenerationFencedError):
        slow.unsubscribe()


def test_a_block_that_fails_does_not_commit(member, table):
    def fail() -> None:
        with member(auto_offset_reset="earliest", enable_auto_commit=True) as consumer:
            consumer.poll()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert places(table) == {}
    with member(auto_offset_reset="earliest", enable_auto_commit=True) as consumer:
        consumer.poll()
    assert places(table) == {0: 25, 1: 10}


def test_a_topic_that_was_created_again_has_no_positions(member, table, topic):
    consumer = member(auto_offset_reset="earliest")
    consumer.poll()
    consumer.commit()
    topic.delete()
    topic.partitions = 1
    topic.append(records(30))
    assert member().committed(T0) is None
    consumer = member(auto_offset_reset="earliest", poll_interval_ms=1)
    assert consumer.position(T0) == 0
    consumer.poll(max_records=6)
    consumer.commit()
    assert places(table) == {0: 6}
    topic.delete()
    topic.append(records(4))
    time.sleep(0.01)
    assert len(consumer.poll()[T0]) == 4
    consumer.commit()
    assert places(table) == {0: 4}


def test_a_consumer_that_only_waits_says_that_it_is_there(member, table, monkeypatch):
    monkeypatch.setattr(owner, "_HEARTBEAT_S", 0.05)
    consumer = member()
    before = table.generations.group("g").last
    while not table.generations.group("g").last > before:
        consumer.poll(120)  # on a busy machine, a poll may look once, before the heartbeat is due
    assert table.generations.group("g").event == "begin"
    consumer.close()
    assert table.generations.group("g").event == "end"


def test_a_table_that_cannot_be_written_is_tried_again(member, table, topic, caplog, monkeypatch):
    consumer = member(auto_offset_reset="earliest", enable_auto_commit=True, auto_commit_interval_ms=0)
    consumer.poll()
    append = Lake.append

    def fail(*_: object, **__: object) -> bool:
        raise sparklog.SparklogError("OFFSETS_TABLE", table=table.path, cause="the disk is full")

    monkeypatch.setattr(Lake, "append", fail)
    assert consumer.poll() == {}
    assert "the disk is full" in caplog.text
    monkeypatch.setattr(Lake, "append", append)
    consumer.poll()
    assert places(table) == {0: 25, 1: 10}


def test_wrong_tables_and_offsets(member, table, topic, tmp_path):
    import deltalake
    import pyarrow as pa

    deltalake.write_deltalake(tmp_path / "other", pa.table({"group": ["g"]}))
    with pytest.raises(sparklog.CallError, match="OFFSETS_SCHEMA"):
        Consumer(topic.root, "t", group_id="g", table=tmp_path / "other", partition_assignment_strategy="exclusive")
    with pytest.raises(sparklog.CallError, match="TOPIC_NOT_FOUND"):
        Consumer(topic.root, "oders", group_id="g", table=table)
    with pytest.raises(sparklog.CallError, match=r"OPTION_VALUE.*opened with the root None"):
        Consumer(topic.root, "t", group_id="g", table=OffsetTable(None, table.path))
    # A consumer that did not begin has not ended another one.
    assert not table.exists()
    consumer = member()
    for offsets, condition in [({T0: -1}, "OPTION_VALUE"), ({T0: 26}, "OFFSETS_OUT_OF_RANGE"), ({("t", 9): 0}, "PARTITION_NOT_FOUND")]:
        with pytest.raises(sparklog.CallError, match=condition):
            consumer.commit(offsets)
    with pytest.raises(sparklog.CallError, match="TOPIC_NOT_FOUND"):
        consumer.committed(("u", 0))
    assert places(table) == {}


SCRIPT = """
import sys
from sparklog import Consumer
root, table, seen = sys.argv[1:]
given = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "partition_assignment_strategy": "exclusive"}
consumer = Consumer(root, "t", group_id="g", table=table, **given)
with open(seen, "a") as out:
    print("begin", *(consumer.position(each) for each in sorted(consumer.assignment())), file=out, flush=True)
    while True:
        for partition, its in consumer.poll(1000, max_records=5).items():
            print(partition.partition, its[0].offset, its[-1].offset + 1, file=out, flush=True)
        consumer.commit()
        print("committed", *(consumer.position(each) for each in sorted(consumer.assignment())), file=out, flush=True)
"""


@pytest.mark.parametrize("kills", [3, pytest.param(40, marks=pytest.mark.soak)])
def test_a_consumer_that_is_killed_goes_on_from_what_it_committed(tmp_path, table, topic, kills):
    chance = seeded()
    for _ in range(10 * kills):
        topic.append(records(20), chance.randrange(2))
    seen = tmp_path / "seen"
    seen.touch()
    for _ in range(kills):
        size = seen.stat().st_size
        process = subprocess.Popen([sys.executable, "-c", SCRIPT, topic.root, table.path, seen])
        until = time.monotonic() + 300
        while b"committed" not in seen.read_bytes()[size:]:
            assert process.poll() is None and time.monotonic() < until
            time.sleep(0.005)
        time.sleep(chance.uniform(0, 0.2))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    committed, position = [0, 0], [0, 0]
    begins = 0
    for line in seen.read_text().splitlines():
        word, *numbers = line.split()
        if word == "begin":
            # A kill can come between the commit and the line about it.
            at = list(map(int, numbers))
            assert at in (committed, position)
            committed = position = at
            begins += 1
        elif word == "committed":
            committed = list(map(int, numbers))
            assert committed == position
        else:
            partition, first, end = int(word), *map(int, numbers)
            assert first == position[partition] and end > first
            position = [end if number == partition else old for number, old in enumerate(position)]
    assert begins == kills
    assert [each.offset for each in table.positions("g")] in (committed, position)
    print(f"{sum(position)} records over {kills} kills")


def test_the_table_is_not_needed_without_a_group(topic: Topic):
    script = """
import sys
class Never:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pyspark", "py4j", "pandas", "delta", "deltalake"):
            raise ImportError(name)
sys.meta_path.insert(0, Never())
import sparklog
consumer = sparklog.Consumer(sys.argv[1], "t", auto_offset_reset="earliest")
print(sum(map(len, consumer.poll().values())), consumer.poll_batches(), next(iter(consumer.offsets_for_times({("t", 0): 0}).values())))
try:
    sparklog.Consumer(sys.argv[1], "t", group_id="g", table=sys.argv[1] + "-table")
except sparklog.CallError as error:
    print(error.id)
"""
    ended = subprocess.run([sys.executable, "-c", script, topic.root], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines() == ["35 {} OffsetAndTimestamp(offset=0, timestamp=1700000000000)", "OFFSETS_EXTRA"]


def test_offsets_with_several_texts_are_one_commit(member, table, topic):
    """Where one of them is refused, none is committed."""
    consumer = member(auto_offset_reset="earliest")
    consumer.poll()
    before = [each.seq for each in table.history("g")]
    one, other = TopicPartition("t", 0), TopicPartition("t", 1)
    with pytest.raises(sparklog.CallError, match="PARTLOG_OFFSETS_OUT_OF_RANGE"):
        consumer.commit({one: OffsetAndMetadata(3, "a"), other: OffsetAndMetadata(99, "b")})
    assert [each.seq for each in table.history("g")] == before
    consumer.commit({one: OffsetAndMetadata(3, "a"), other: OffsetAndMetadata(4, "b")})
    assert {(each.partition, each.offset, each.metadata) for each in table.positions("g")} == {(0, 3, "a"), (1, 4, "b")}
    assert len({each.seq for each in table.history("g")} - set(before)) == 1
