"""The slots whose exchange levels partitions."""

import json

import numpy as np
import pytest
from broken_reroutes import SLOTS, Routed, begun
from handmade import Record, Topic, batch, batches, featured, seeded
from mmh3 import hash as murmur3

from sparklog import Log, SparklogError
from sparklog.errors import CallError, DataError
from sparklog.log import slot_moves
from sparklog.log.slot_moves import PartitionLoad, levelled, sums_of
from sparklog.ondisk.routing import UNBOUND


def slot_of(key: bytes) -> int:
    return (murmur3(key) & 0x7FFFFFFF) % SLOTS


def after(table: np.ndarray, moves: dict[int, int]) -> np.ndarray:
    moved = table.copy()
    for slot, partition in moves.items():
        moved[slot] = partition
    return moved


def test_busy_slots_go_where_there_is_room():
    """Partition 0 has the busy slots 0, 2 and 4."""
    table, loads = np.arange(8) % 2, np.array([50, 1, 30, 1, 20, 1, 0, 1])
    moves = levelled(table, loads, [1, 1], 100)
    assert sums_of(after(table, moves), loads, 2).tolist() == [52, 52]
    assert np.bincount(after(table, moves)).tolist() == [4, 4]
    assert len(levelled(table, loads, [1, 1], 3)) == 2
    assert levelled(table, loads, [1, 1], 1) == {}


def test_a_slot_that_is_busy_alone_stays():
    assert levelled(np.arange(8) % 2, np.array([100, *[0] * 7]), [1, 1], 100) == {}
    assert levelled(np.arange(8) % 2, np.zeros(8, dtype=np.int64), [1, 1], 100) == {}


def test_a_fall_of_less_than_a_part_in_twenty_is_not_worth_it():
    table = np.arange(4) % 2
    assert levelled(table, np.array([52, 48, 1, 1]), [1, 1], 100) == {}
    assert levelled(table, np.array([90, 80, 10, 0]), [1, 1], 100) == {2: 1, 3: 0}


def test_loads_go_by_weight_and_a_closed_partition_gets_no_slot():
    table, loads = np.array([0, 1] * 30), np.array([2, 1] * 30)
    moves = levelled(table, loads, [1, 2, 0], 100)
    assert sums_of(after(table, moves), loads, 3).tolist() == [30, 60, 0]


def test_random_loads_are_levelled():
    random = seeded()
    moved = 0
    for _ in range(300):
        weights = [1, 1, *(random.randrange(4) for _ in range(random.randrange(6)))]
        homes = [partition for partition, weight in enumerate(weights) for _ in range(40 * weight)]
        table = np.array(random.sample(homes, len(homes)))
        loads = np.array([int(1 / (random.random() + 0.001)) for _ in homes])
        bound = table.copy()
        bound[random.randrange(len(homes))] = UNBOUND
        most = random.randrange(60)
        moves = levelled(table, loads, weights, most)
        moved += len(moves)
        assert len(moves) <= most
        assert list(moves) == sorted(moves)
        levels = after(table, moves)
        assert np.bincount(levels).tolist() == np.bincount(table).tolist()
        before, now = (
            max(load / weight for load, weight in zip(sums_of(each, loads, len(weights)), weights, strict=True) if weight)
            for each in (table, levels)
        )
        assert not moves or before - now >= 0.05 * before
        assert np.flatnonzero(bound == UNBOUND)[0] not in levelled(bound, loads, weights, most)
    assert moved > 1_000


def keys_of(routed: Routed, partition: int) -> list[bytes]:
    """Keys of a partition, each of another slot."""
    of_slots = {slot_of(key): key for key in (b"key-%d" % number for number in range(300))}
    return [key for slot, key in sorted(of_slots.items()) if routed.table[slot] == partition]


def test_a_topic_is_levelled_by_its_newest_records(tmp_path):
    """Also by records from before a re-route, and by those in another partition than their slot's."""
    routed = begun(Topic(tmp_path, partitions=2))
    one, two, three = keys_of(routed, 0)[:3]
    idle = keys_of(routed, 1)[0]
    topic = Log(tmp_path)["t"]
    first, second = (each.records_before for each in topic.suggest_moves().loads)
    routed.topic.append([Record(key=one)] * 50 + [Record(key=two)] * 30 + [Record()] * 9, 0, features=featured("routing.slots"))
    routed.topic.append([Record(key=three)] * 20 + [Record(key=idle)], 1, features=featured("routing.slots"))
    moves = topic.suggest_moves()
    assert len(moves) == 2
    assert moves[slot_of(one)] == 1
    assert moves.loads == [PartitionLoad(0, 1, first + 100, first + 50, 1), PartitionLoad(1, 1, second + 1, second + 51, 1)]
    assert moves.sql == "map({})".format(", ".join(f"{slot}, {partition}" for slot, partition in moves.items()))
    assert json.loads(json.dumps(moves.as_dict())) == {
        "moves": [{"slot": slot, "partition": partition} for slot, partition in moves.items()],
        "partitions": [vars(each) for each in moves.loads],
    }
    assert "Topic t: 2 slots to move" in repr(moves)
    assert "Topic t: 2 slots moved" in moves.display(moved=True).text()
    assert f"A sample: {first + second + 101} records with keys" in repr(moves)
    taken = {partition: [slot for slot, to in moves.items() if to == partition] for partition in (0, 1)}
    routed.put(routed.reroute([1, 1], taken))
    again = topic.suggest_moves()
    assert not again
    assert [each.records_before for each in again.loads] == [first + 50, second + 51]


def test_moves_that_would_be_refused_are_not_suggested(tmp_path):
    routed = begun(Topic(tmp_path, partitions=2))
    keys = keys_of(routed, 0)[:2]
    routed.topic.append([Record(key=key) for key in keys for _ in range(50)], 0)
    topic = Log(tmp_path)["t"]
    assert topic.suggest_moves()
    routed.topic.commit(operation="alter", config={"routing.pending.weights": "0:1,3"})
    with pytest.raises(SparklogError, match=r"PARTLOG_REROUTE_PENDING.*\[1, 3\]"):
        topic.suggest_moves()
    routed.topic.commit(operation="alter", config={"routing.pending.weights": "none"})
    assert topic.suggest_moves()
    routed.topic.commit(operation="alter", config={"kafka.view": "links"})
    with pytest.raises(SparklogError, match=r"PARTLOG_FORMAT_TOO_NEW.*kafka.view is links"):
        topic.suggest_moves()


def test_a_topic_without_records_or_with_one_busy_key_moves_nothing(tmp_path):
    topic = Topic(tmp_path, "t", partitions=2)
    topic.append([Record()])
    assert not Log(tmp_path)["t"].suggest_moves()
    topic.append([Record(key=b"k")] * 50)
    moves = Log(tmp_path)["t"].suggest_moves()
    assert (len(moves), moves.sql) == (0, "map()")
    assert {each.records_before for each in moves.loads} == {0, 50}
    assert not Log(tmp_path)["t"].suggest_moves(0)
    for most in (-1, 65_537):
        with pytest.raises(CallError, match="max_moves"):
            Log(tmp_path)["t"].suggest_moves(most)
    assert not Log(tmp_path)["t"].suggest_moves(65_536)


def test_a_large_segment_is_read_from_its_middle_on(tmp_path, monkeypatch):
    """A sample that is a part of a segment is read as a part, by the share of its offsets. Older files may even be gone."""
    monkeypatch.setattr(slot_moves, "_BYTES", 4 << 20)
    topic = Topic(tmp_path, "t", partitions=1)
    topic.append([Record(key=b"gone")] * 5)
    topic.data_file(0).unlink()
    parts = [[Record(bytes(20_000), b"old"), Record(bytes(20_000), b"young")] for _ in range(200)]
    topic.commit(topic.data(batches(*parts)))
    topic.append([Record(bytes(1 << 20), b"new")])
    [load] = Log(tmp_path)["t"].suggest_moves().loads
    assert load.records_before == pytest.approx(1 + (3 << 20) / 20_000, rel=0.03)


def test_a_sample_has_twice_its_bytes_at_most(tmp_path, monkeypatch):
    """Here the newest records are larger than the others of their segment."""
    monkeypatch.setattr(slot_moves, "_BYTES", 1 << 20)
    topic = Topic(tmp_path, "t", partitions=1)
    small = [[Record(b"", b"k")] * 100 for _ in range(10)]
    large = [[Record(bytes(100_000), b"k")] for _ in range(1_000 // 10)]
    topic.commit(topic.data(batches(*small, *large)))
    [load] = Log(tmp_path)["t"].suggest_moves().loads
    assert 0 < load.records_before < 150


def test_a_sample_that_cannot_be_read_is_an_error(tmp_path):
    topic = Topic(tmp_path, "t", partitions=1)
    topic.commit(topic.data(batch([Record(key=b"k")])))
    topic.data_file(0).write_bytes(b"")
    with pytest.raises(DataError) as error:
        Log(tmp_path)["t"].suggest_moves()
    assert error.value.id == "SEGMENT_CORRUPT"
