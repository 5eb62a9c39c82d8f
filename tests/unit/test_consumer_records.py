"""The records of a consumer are the rows of the Arrow batches that they are made of."""

import gc
import pickle
from collections.abc import Sequence
from random import Random

import pyarrow as pa
import pytest
from handmade import TIME, either, seeded

from sparklog import ConsumerRecord, TopicPartition
from sparklog.batches.columns import SCHEMA
from sparklog.consumer import records as records_module
from sparklog.consumer.records import records_of, together

PARTITION = TopicPartition("tøpic", 3)
VALUES = (None, b"", b"\0", b"v", b"\xff" * 300, bytes(1 << 20))
NAMES = ("", "h", "größe", "n" * 300)
TIMES = (-62_135_424_000_000, -2, -1, 0, TIME, 253_402_250_399_999)


@pytest.fixture(autouse=True, params=[True, False], ids=["by Arrow", "by bounds"])
def each_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """An Arrow that makes Python values fast, and an earlier one."""
    monkeypatch.setattr(records_module, "_ARROW_IS_FAST", request.param)


def batch_of(rows: int, draw: Random, keys: Sequence[bytes | None], values: Sequence[bytes | None], headers_max: int) -> pa.RecordBatch:
    offset, found = 0, []
    for _ in range(rows):
        offset += draw.choice((1, 1, 5, 1 << 33))
        headers = [{"key": draw.choice(NAMES), "value": draw.choice(values)} for _ in range(draw.randint(0, headers_max))]
        found.append(
            {
                **{"topic": PARTITION.topic, "partition": PARTITION.partition, "offset": offset},
                **{"timestamp": draw.choice(TIMES) * 1000, "timestampType": draw.randint(0, 1)},
                **{
                    "key": draw.choice(keys),
                    "value": draw.choice(values),
                    "headers": headers or (draw.choice((None, [])) if headers_max else None),
                },
            }
        )
    return pa.RecordBatch.from_pylist(found, schema=SCHEMA)


def rows_of(batch: pa.RecordBatch) -> list[ConsumerRecord]:
    """The rows one by one, from the scalars of Arrow."""
    found = []
    for row in range(batch.num_rows):
        key, value, topic, partition, offset, time, kind, headers = (column[row] for column in batch.columns)
        pairs = [(each["key"].as_py(), each["value"].as_py()) for each in headers.values] if headers.is_valid else []
        whole = (topic.as_py(), partition.as_py(), offset.as_py(), time.value // 1000, kind.as_py(), key.as_py(), value.as_py(), pairs)
        found.append(ConsumerRecord(*whole))
    return found


def made(batch: pa.RecordBatch) -> list[ConsumerRecord]:
    found, error = records_of(PARTITION, batch, None, None, "root")
    assert error is None
    return found


@pytest.mark.parametrize("headers_max", [0, 1, 4])
@pytest.mark.parametrize("values", [VALUES, VALUES[1:-1], VALUES[:1]], ids=["with nulls", "without nulls", "all null"])
def test_records_are_the_rows_of_batches_of_any_kind_and_of_their_slices(values: Sequence[bytes | None], headers_max: int) -> None:
    draw = seeded()
    for _ in range(either(5, 100)):
        batch = batch_of(draw.randint(1, 60), draw, draw.choice((VALUES[:-1], VALUES[1:-1], VALUES[:1])), values, headers_max)
        parts = [batch]
        for _ in range(3):
            within = parts[-1]
            begin = draw.randrange(within.num_rows)
            parts.append(within.slice(begin, draw.randint(1, within.num_rows - begin)))
        parts.append(together([parts[3], parts[1], parts[2]]))
        parts.append(parts[-1].slice(1 % parts[-1].num_rows))
        for part in parts:
            found = made(part)
            assert found == rows_of(part)
            assert [list(map(type, each)) for each in found] == [list(map(type, each)) for each in rows_of(part)]


def test_a_record_made_of_a_batch_is_as_one_that_a_program_makes() -> None:
    draw = seeded()
    found = made(batch_of(20, draw, VALUES[:4], VALUES[:4], 2))
    for each in found:
        same = ConsumerRecord(*each)
        assert type(each) is ConsumerRecord
        assert (repr(each), hash(each[:7]), each._asdict()) == (repr(same), hash(same[:7]), same._asdict())
        assert pickle.loads(pickle.dumps(each)) == each == same


@pytest.mark.parametrize("headers_max", [0, 3])
def test_a_program_that_adds_a_header_to_a_record_changes_no_other(headers_max: int) -> None:
    found = made(batch_of(20, seeded(), VALUES[:4], VALUES[:4], headers_max))
    before = [list(each.headers) for each in found]
    found[7].headers.append(("added", b""))
    before[7].append(("added", b""))
    assert [each.headers for each in found] == before


@pytest.mark.parametrize("polls_kept", [0, 1])
def test_a_program_that_drops_its_records_is_not_stopped_by_the_garbage_collector(polls_kept: int) -> None:
    """By the threshold of Python before 3.13, and polls of 500 records."""
    batch, threshold, collections = batch_of(500, seeded(), VALUES[:4], VALUES[:4], 0), gc.get_threshold(), 0

    def count(phase: str, _: dict[str, int]) -> None:
        nonlocal collections
        collections += phase == "start"

    found: list[list[ConsumerRecord]] = []
    gc.set_threshold(700, 10, 10)
    gc.callbacks.append(count)
    try:
        for number in range(20):
            if number == 3:
                gc.collect()
                collections = 0
            found.append(made(batch))
            del found[: len(found) - polls_kept]
    finally:
        gc.callbacks.remove(count)
        gc.set_threshold(*threshold)
    assert collections == 0
