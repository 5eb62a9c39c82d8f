"""Output of consumers to a Delta table: each record once, whichever members read it, and whichever of them die or wake."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from handmade import records

import sparklog
from sparklog.consumer import DeltaOutput
from sparklog.offsets import OffsetTable


def consumer(topic, **more) -> sparklog.Consumer:
    given = {"group": "g", "table": topic.root.parent / "offsets", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    return sparklog.Consumer(topic.root, "t", **given | more)


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


@pytest.mark.parametrize("assignor", [None, "sticky"])
def test_rows_and_offsets_are_one_commit(topic, tmp_path, assignor):
    path = tmp_path / "output"
    with consumer(topic, assignor=assignor) as one:
        drain(DeltaOutput(path, one))
    assert written(path) == once(25, 10)
    table = OffsetTable(tmp_path / "offsets", topic.root)
    assert {each.partition: each.offset for each in table.positions("g")} == {0: 25, 1: 10}
    topic.append(records(3), 1)
    with consumer(topic, assignor=assignor) as again:
        drain(DeltaOutput(path, again))
    assert written(path) == once(25, 13)


def test_it_dies_between_the_rows_and_the_positions(topic, tmp_path, monkeypatch):
    """The next one goes on where the table of the output is."""
    path = tmp_path / "output"
    one = consumer(topic)
    output = DeltaOutput(path, one)
    batches = output.poll(200, max_records=7)
    monkeypatch.setattr(one, "commit", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        output.write(rows(batches))
    with consumer(topic) as again:
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


def test_what_was_not_written_comes_again(topic, tmp_path):
    path = tmp_path / "output"
    with consumer(topic) as one:
        output = DeltaOutput(path, one)
        first = output.poll(200, max_records=7)
        assert {p: b["offset"].to_pylist() for p, b in output.poll(200, max_records=7).items()}.keys() >= first.keys()
        drain(output)
    assert written(path) == once(25, 10)


def test_a_consumer_that_commits_by_itself_is_refused(topic, tmp_path):
    with consumer(topic, enable_auto_commit=True) as one, pytest.raises(sparklog.CallError, match="enable_auto_commit=False"):
        DeltaOutput(tmp_path / "output", one)
    with sparklog.Consumer(topic.root, "t") as alone, pytest.raises(sparklog.CallError, match="GROUP_REQUIRED"):
        DeltaOutput(tmp_path / "output", alone)
