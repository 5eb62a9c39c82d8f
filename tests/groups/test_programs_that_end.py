"""Programs that are interrupted, that fail while they close, and that are put out of their group; each was once a fault."""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, wait
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from groups.programs import World, read, share_out, until
from handmade import Topic, records

import sparklog
from sparklog import Consumer, TopicPartition
from sparklog.consumer import DeltaOutput

CONSUMER = Path(sparklog.__file__).parent / "consumer"


# ---- subscriptions that are taken back


@pytest.mark.parametrize("wide", [["t", "u"], "[tu]"], ids=["names", "pattern"])
def test_partitions_of_a_subscription_that_was_taken_back_go_to_others(world: World, wide: Any) -> None:
    """They stayed with the first member, which did not read them, as long as it lived."""
    added = world.create("u")
    one, two = world.consumer("t", heartbeat_interval_ms=30_000), world.consumer("u", heartbeat_interval_ms=30_000)
    until(lambda: len(one.assignment()) == len(two.assignment()) == 2, one, two)
    added.grow(4)
    for number in (2, 3):
        added.append(records(20), number)
    one.subscribe(pattern=wide) if isinstance(wide, str) else one.subscribe(wide)
    one.subscribe(["t"])
    until(lambda: len(two.assignment()) == 4, one, two)
    assert {each.consumer_id for each in world.table.assignments("g") if each.topic == "u"} == {world.members[two].id}


# ---- callbacks of commits


@pytest.mark.parametrize(("callbacks", "by_itself"), [(1, True), (2, True), (1, False)])
def test_a_commit_callback_that_raises_keeps_a_consumer_neither_from_committing_nor_from_leaving(
    world: World, callbacks: int, by_itself: bool
) -> None:
    one = world.consumer("t", max_poll_records=10, auto_commit_interval_ms=60_000, enable_auto_commit=by_itself)
    records_of = iter(one)
    for _ in range(3):
        next(records_of)
    wait([one.commit_async(callback=raising) for _ in range(callbacks)])
    for _ in range(4):
        next(records_of)
    with pytest.raises(ZeroDivisionError):
        one.close()
    assert world.positions() == {0: 7 if by_itself else 3, 1: 0}
    assert len(world.table.members("g")) == 0


def test_a_commit_callback_that_raises_keeps_no_partition_and_no_commit(world: World) -> None:
    one = world.consumer("t", enable_auto_commit=False)
    read(one)
    wait([one.commit_async({TopicPartition("t", 0): 4}, raising)])
    with pytest.raises(ZeroDivisionError):
        one.commit()
    assert world.positions() == {0: 20, 1: 20}
    two = world.consumer("t")
    two.poll(0)
    wait([one.commit_async({TopicPartition("t", 0): 20}, raising)])
    with pytest.raises(ZeroDivisionError):
        until(lambda: False, one)
    share_out(one, two)


def test_a_commit_that_the_program_cancels_is_told_as_cancelled(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each later call raised its CancelledError, and a closed consumer did not leave."""
    one, told, may_commit = world.consumer("t", enable_auto_commit=False), list[Any](), threading.Event()
    until(lambda: one.assignment(), one)
    member, commit = world.members[one], world.members[one].commit
    monkeypatch.setattr(member, "commit", lambda ats: may_commit.wait(60) and commit(ats))
    one.commit_async()
    assert one.commit_async(callback=lambda _, error: told.append(error)).cancel()
    may_commit.set()
    one.close()
    assert list(map(type, told)) == [CancelledError]
    assert len(world.table.members("g")) == 0


def raising(*_: object) -> None:
    raise ZeroDivisionError


# ---- the end of a membership


def take(world: World) -> None:
    world.consumer("t", partition_assignment_strategy="exclusive").poll(0)


def delete(world: World) -> None:
    world.opened[0].commit()
    world.table.delete("g", force=True)


def replace(world: World) -> None:
    world.consumer("t", group_instance_id="one").poll(300)


def until_it_fails(call: Callable[[], object]) -> None:
    while True:
        call()


CALLS: dict[str, Callable[[Consumer], object]] = {"poll": lambda one: one.poll(20), "poll_batches": lambda one: one.poll_batches(20)}
CALLS["iteration"] = lambda one: next(one, None)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("end", [take, delete, replace], ids=lambda each: each.__name__)
def test_a_member_that_was_ended_learns_once_that_its_partitions_are_lost(world: World, end: Any, call: str) -> None:
    """It was told nothing, and then by `close` that they are revoked, where programs write what they hold."""
    one = world.consumer("t", group_instance_id="one", consumer_timeout_ms=20, **world.told)
    until(lambda: len(one.assignment()) == 2, one)
    world.events.clear()
    end(world)
    with pytest.raises(sparklog.GenerationFencedError):
        until_it_fails(lambda: CALLS[call](one))
    assert (world.events, one.assignment()) == ([("on_lost", ["t-0", "t-1"])], set())
    with pytest.raises(sparklog.GenerationFencedError):
        CALLS[call](one)
    one.close()
    assert len(world.events) == 1


def test_a_member_whose_commit_was_fenced_loses_its_partitions_as_it_closes(world: World) -> None:
    one = world.consumer("t", enable_auto_commit=False, heartbeat_interval_ms=30_000, **world.told)
    read(one)
    take(world)
    for _ in range(2):
        with pytest.raises(sparklog.GenerationFencedError, match="GENERATION_FENCED"):
            one.commit()
    one.close()
    assert [event for event, _ in world.events] == ["on_assign", "on_lost"]


# ---- interrupts


class Interrupts:
    """Raises KeyboardInterrupt at the line of this number that the package of consumers runs, or a file of it; a signal may come there."""

    def __init__(self, at: int, where: Path = CONSUMER) -> None:
        self.left, self._where = at, str(where)

    def __enter__(self) -> Interrupts:
        self._before = sys.gettrace()
        sys.settrace(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _called(self, frame: FrameType, event: str, _: object) -> Any:
        return self._reached if frame.f_code.co_filename.startswith(self._where) else None

    def _reached(self, frame: FrameType, event: str, _: object) -> Any:
        if event == "line":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt(f"{frame.f_code.co_filename}, line {frame.f_lineno}")
        return self._reached


def polled(one: Consumer) -> list[tuple[int, int]]:
    return [(partition.partition, each.offset) for partition, its in one.poll(0, 2).items() for each in its]


def batched(one: Consumer) -> list[tuple[int, int]]:
    return [(partition.partition, offset) for partition, its in one.poll_batches(0, 2).items() for offset in its["offset"].to_pylist()]


def iterated(one: Consumer) -> list[tuple[int, int]]:
    record = next(one, None)
    return [] if record is None else [(record.partition, record.offset)]


@pytest.mark.parametrize(
    ("call", "shared"),
    [(polled, "exclusive"), (polled, "sticky"), (batched, "sticky"), (iterated, "sticky")],
    ids=lambda each: str(each)[:20],
)
def test_an_interrupt_at_any_line_skips_and_repeats_no_record(tmp_path: Path, call: Callable[[Consumer], list[Any]], shared: str) -> None:
    """The positions of partitions that `poll` had decoded were behind records that the program never got, and `close` committed them."""
    topic = Topic(tmp_path / "root", partitions=2)
    for number in (0, 1):
        topic.append(records(3), number)
    given: dict[str, Any] = {"partition_assignment_strategy": shared, "value_deserializer": len, "heartbeat_interval_ms": 40_000}
    given |= {"session_timeout_ms": 120_000, "auto_offset_reset": "earliest", "consumer_timeout_ms": 0}
    one = Consumer(topic.root, "t", group_id="g", table=tmp_path / "offsets", **given)
    call(one)  # it joins
    for at in itertools.count(1):
        for number in (0, 1):
            one.seek(TopicPartition("t", number), 0)
        found, where = list[Any](), ""
        try:
            with Interrupts(at) as interrupts:
                for _ in range(2 if call is iterated else 1):  # the second record comes from a generator that goes on
                    found += call(one)
        except KeyboardInterrupt as interrupt:
            where = str(interrupt)
        ends = {number: one.position(TopicPartition("t", number)) for number in (0, 1)}
        assert sorted(found) == [(number, offset) for number in (0, 1) for offset in range(ends[number])], where
        while more := call(one):
            found += more
        assert sorted(found) == [(number, offset) for number in (0, 1) for offset in range(3)], where
        if interrupts.left > 0:
            break
    assert at > 50
    one.close()


def test_an_interrupt_within_the_poll_of_an_output_skips_no_record(world: World) -> None:
    output = DeltaOutput(world.path.parent / "rows", world.consumer("t", enable_auto_commit=False))
    for at in itertools.count(1):
        try:
            with Interrupts(at, CONSUMER / "delta_output.py") as interrupts:
                output.poll(100)
        except KeyboardInterrupt as interrupt:
            where = str(interrupt)
        assert sorted(batch["offset"][0].as_py() for batch in output.poll(100).values()) == [0, 0], where
        if interrupts.left > 0:
            break
    assert at > 10
