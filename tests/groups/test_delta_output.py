"""Output of consumers to a Delta table: each record once, whichever members read it, and whichever of them die or wake."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from handmade import Topic, records

import sparklog
from sparklog import TopicPartition
from sparklog.consumer import DeltaOutput
from sparklog.groups import OffsetTable
from sparklog.groups.table.lake import Lake

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def consumer(topic, **more) -> sparklog.Consumer:
    given = {"group_id": "g", "table": topic.root.parent / "offsets", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    return sparklog.Consumer(topic.root, "t", **given | {"partition_assignment_strategy": "exclusive"} | more)


def rows(batches: dict) -> pa.Table:
    return pa.Table.from_batches(batches.values()).select(["partition", "offset", "value"])


def written(path: Path) -> Counter:
    found = deltalake.DeltaTable(path).to_pyarrow_table(columns=["partition", "offset"]).to_pylist()
    return Counter((row["partition"], row["offset"]) for row in found)


def once(first: int, second: int) -> Counter:
    return Counter({(0, offset): 1 for offset in range(first)} | {(1, offset): 1 for offset in range(second)})


def drain(output: DeltaOutput) -> None:
    while batches := output.poll(200, max_records=7):
        output.write(rows(batches))


@pytest.mark.parametrize("strategy", ["exclusive", "sticky"])
def test_rows_and_offsets_are_one_commit(topic, tmp_path, strategy):
    path = tmp_path / "output"
    with consumer(topic, partition_assignment_strategy=strategy) as one:
        drain(DeltaOutput(path, one))
    assert written(path) == once(25, 10)
    table = OffsetTable(topic.root, tmp_path / "offsets")
    assert {each.partition: each.offset for each in table.positions("g")} == {0: 25, 1: 10}
    topic.append(records(3), 1)
    with consumer(topic, partition_assignment_strategy=strategy) as again:
        drain(DeltaOutput(path, again))
    assert written(path) == once(25, 13)


def test_it_dies_between_the_rows_and_the_positions(topic, tmp_path, monkeypatch):
    """The next one goes on where the table of the output is."""
    path = tmp_path / "output"
    one = consumer(topic)
    output = DeltaOutput(path, one)
    batches = output.poll(200, max_records=7)
    monkeypatch.setattr(output, "_follow", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        output.write(rows(batches))
    with consumer(topic) as again:
        DeltaOutput(path, again).poll(200)
        assert again.committed(P0) == 7  # the positions follow the table
        drain(DeltaOutput(path, again))
    assert written(path) == once(25, 10)


def test_one_that_wakes_up_with_a_batch_in_hand_writes_nothing(topic, tmp_path):
    path = tmp_path / "output"
    asleep = consumer(topic)
    output = DeltaOutput(path, asleep)
    batches = output.poll(200)
    with consumer(topic) as other:
        drain(DeltaOutput(path, other))
    assert written(path) == once(25, 10)
    with pytest.raises(sparklog.RetryError, match="OUTPUT_FENCED"):
        output.write(rows(batches))
    assert written(path) == once(25, 10)
    topic.append(records(2), 0)
    drain(output)  # the group's new owner does not mind: the table of the output decides
    assert written(path) == once(27, 10)


def test_rows_of_a_topic_that_is_deleted_before_the_write_are_written_once(topic, tmp_path, caplog):
    """The write commits the positions of the other topic; also where the topic was created again."""
    more = [Topic(topic.root, name) for name in ("u", "v")]
    for each in more:
        each.append(records(5), 0)
    path = tmp_path / "output"
    one = consumer(topic)
    one.subscribe(["t", "u", "v"])
    output = DeltaOutput(path, one)
    batches = output.poll(200)
    assert {each.topic for each in batches} == {"t", "u", "v"}
    more[1].delete()
    more[1].append(records(1), 0)
    topic.delete()
    output.write(rows(batches))
    assert "positions of group g were not committed" in caplog.text
    assert sum(written(path).values()) == 45
    output.write(rows(batches).slice(0, 0))
    positions = OffsetTable(topic.root, tmp_path / "offsets").positions("g")
    assert {each.topic: each.offset for each in positions} == {"u": 5}


def test_what_was_not_written_comes_again(topic, tmp_path):
    path = tmp_path / "output"
    with consumer(topic) as one:
        output = DeltaOutput(path, one)
        first = output.poll(200, max_records=7)
        assert {p: b["offset"].to_pylist() for p, b in output.poll(200, max_records=7).items()}.keys() >= first.keys()
        drain(output)
    assert written(path) == once(25, 10)


def test_a_seek_counts_whether_the_last_poll_was_written_or_not(topic, tmp_path):
    with consumer(topic) as one:
        output = DeltaOutput(tmp_path / "output", one)
        output.poll(200, max_records=7)
        one.seek(P0, 15)
        assert output.poll(200, max_records=3)[P0]["offset"].to_pylist() == [15, 16, 17]
        drain(output)
        one.seek(P0, 3)  # the table goes on where it is
        drain(output)
        assert one.position(P0) == 25
    assert written(tmp_path / "output") == Counter({(0, at): 1 for at in range(15, 25)} | {(1, at): 1 for at in range(10)})


def test_positions_move_when_the_rows_are_written(topic, tmp_path):
    """A commit of the program before that skips no record."""
    path = tmp_path / "output"
    with consumer(topic) as one:
        output = DeltaOutput(path, one)
        batches = output.poll(200)
        assert (one.position(P0), one.position(P1)) == (0, 0)
        one.commit()
        output.write(rows(batches))
        assert (one.position(P0), one.position(P1)) == (25, 10)
    assert written(path) == once(25, 10)


def test_on_revoke_writes_the_records_in_hand(topic, tmp_path):
    """In a poll that hands a partition over, and in `close`."""
    path = tmp_path / "output"
    hand: list[dict] = []
    flushed: list[int] = []

    def flush(*_):
        made = rows(hand.pop())
        output.write(made)
        flushed.append(made.num_rows)

    given = {"partition_assignment_strategy": "sticky", "heartbeat_interval_ms": 100, "session_timeout_ms": 120_000, "poll_interval_ms": 20}
    with consumer(topic, on_revoke=flush, **given) as one, consumer(topic, **given) as two:
        output = DeltaOutput(path, one)
        while not flushed:
            hand[:] = [output.poll(200, max_records=7)]
            two.poll(20)
        assert sum(written(path).values()) == sum(flushed)
    assert len(flushed) == 2
    assert sum(written(path).values()) == sum(flushed)
    positions = [each.offset for each in OffsetTable(topic.root, tmp_path / "offsets").positions("g")]
    assert sum(positions) == sum(flushed)


def test_rows_without_records_are_refused(topic, tmp_path):
    with consumer(topic) as one:
        output = DeltaOutput(tmp_path / "output", one)
        made = rows(output.poll(200))
        output.write(made)
        output.write(made.slice(0, 0))
        with pytest.raises(sparklog.CallError, match="OUTPUT_NOT_READ"):
            output.write(made)
    assert written(tmp_path / "output") == once(25, 10)


def test_a_write_whose_positions_could_not_be_committed_may_be_repeated(topic, tmp_path, monkeypatch):
    with consumer(topic) as one:
        output = DeltaOutput(tmp_path / "output", one)
        made = rows(output.poll(200))
        with monkeypatch.context() as patch:
            patch.setattr(
                Lake, "append", lambda *_: (_ for _ in ()).throw(sparklog.SparklogError("OFFSETS_TABLE", table="t", cause="full"))
            )
            with pytest.raises(sparklog.RetryError, match="OFFSETS_TABLE"):
                output.write(made)
        output.write(made)
        assert (one.committed(P0), one.committed(P1)) == (25, 10)
    assert written(tmp_path / "output") == once(25, 10)


def test_a_poll_that_cannot_look_at_the_table_loses_no_record(topic, tmp_path, monkeypatch):
    with consumer(topic) as one:
        output = DeltaOutput(tmp_path / "output", one)
        with monkeypatch.context() as patch:
            patch.setattr(output, "_table", lambda: (_ for _ in ()).throw(OSError("full")))
            with pytest.raises(OSError, match="full"):
                output.poll(200)
        drain(output)
    assert written(tmp_path / "output") == once(25, 10)


def test_a_consumer_that_commits_by_itself_is_refused(topic, tmp_path):
    with consumer(topic, enable_auto_commit=True) as one, pytest.raises(sparklog.CallError, match="enable_auto_commit=False"):
        DeltaOutput(tmp_path / "output", one)
    with sparklog.Consumer(topic.root, "t") as alone, pytest.raises(sparklog.CallError, match="GROUP_REQUIRED"):
        DeltaOutput(tmp_path / "output", alone)
