"""A consumer of a topic whose keys are pinned and unpinned: each key comes in order. FORMAT.md sections 9 and 13."""

from collections.abc import Callable
from pathlib import Path

import pytest
from broken_bindings import UNBOUND
from numbered import Reader, Written, WrittenUnbound, out_of_order

from sparklog import Consumer, TopicPartition
from sparklog.ondisk.routing import Past, Routing

KEY = b"key-1"
ONE, OTHER = (TopicPartition("t", number) for number in (0, 1))


@pytest.fixture
def of_slots(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes the barrier wait only for partitions that give slots."""
    donors = Routing.donors

    def of_slots(self: Routing, slot_of: Callable[[bytes], int]) -> list[dict[int, set[int]]]:
        past = [Past(each.version, each.cut, each.moved) for each in self.past]
        return donors(Routing(self.epoch, self.weights, self.first, self.now, past), slot_of)

    return lambda: monkeypatch.setattr(Routing, "donors", of_slots)


def pinned(root: Path) -> Written:
    """A topic whose key is pinned to the partition that does not have its slot, and then unpinned, with records in between."""
    written = Written(root, 1)
    home = written.home(KEY)
    written.write(30, keys=[KEY])
    written.put(written.pin({KEY: 1 - home}))
    written.write(20, keys=[KEY])
    return written


def pinned_unbound(root: Path) -> WrittenUnbound:
    """A topic whose key is pinned to partition 0 before its first record, and whose slot is bound to partition 1 when the pin has ended."""
    written = WrittenUnbound(root, 1, keys=[b"key-2"])
    assert written.home(KEY) == UNBOUND
    written.put(written.pin({KEY: 0}))
    written.write(30, keys=[KEY])
    written.put(written.pin({KEY: None}))
    assert written.home(KEY) == UNBOUND
    written.place(KEY, 1, 20)
    assert written.home(KEY) == 1
    return written


def consumer_of(written: Written) -> Consumer:
    return Consumer(written.topic.root, "t", auto_offset_reset="earliest", poll_interval_ms=1)


def test_a_pinned_key_is_read_where_it_was_first(tmp_path: Path) -> None:
    written = pinned(tmp_path)
    to, home = TopicPartition("t", written.pins[KEY]), TopicPartition("t", 1 - written.pins[KEY])
    cuts = written.past[0]["cut"]
    reader = Reader()
    with consumer_of(written) as consumer:
        consumer.pause(home)
        while reader.take(consumer):
            pass
        assert consumer.position(to) == cuts[to.partition]
        assert consumer.waiting() == {to: {home: cuts[home.partition]}}
        consumer.resume(home)
        while reader.take(consumer):
            pass
        assert reader.read == written.written
        written.put(written.pin({KEY: None}))
        written.write(10, keys=[KEY])
        while reader.take(consumer):
            pass
        assert reader.read == written.written


def test_a_slot_that_is_bound_when_a_pin_has_ended_waits_for_the_partition_of_the_pin(tmp_path: Path) -> None:
    written = pinned_unbound(tmp_path)
    cuts = written.past[1]["cut"]
    reader = Reader()
    with consumer_of(written) as consumer:
        consumer.pause(ONE)
        while reader.take(consumer):
            pass
        assert consumer.waiting() == {OTHER: {ONE: cuts[0]}}
        consumer.resume(ONE)
        while reader.take(consumer):
            pass
        assert reader.read == written.written


@pytest.mark.parametrize("write", [pinned, pinned_unbound])
def test_without_the_donors_of_pins_the_order_is_lost(
    tmp_path: Path, of_slots: Callable[[], None], write: Callable[[Path], Written]
) -> None:
    """The tests above find it."""
    of_slots()
    written = write(tmp_path)
    first = TopicPartition("t", 1 - written.home(KEY))
    with consumer_of(written) as consumer:
        consumer.pause(first)
        assert consumer.waiting() == {}
        with pytest.raises(AssertionError, match="key b'key-1'"):
            Reader().take(consumer)


@pytest.mark.parametrize("kind", [Written, WrittenUnbound])
def test_without_the_donors_of_pins_some_random_history_comes_out_of_order(
    tmp_path: Path, of_slots: Callable[[], None], kind: type[Written]
) -> None:
    """The random histories of `test_consumer_reroutes.py` find it, too."""
    of_slots()
    assert out_of_order(kind, tmp_path)
