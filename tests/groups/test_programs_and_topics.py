"""Programs beside a group whose topics come, grow and go between two of its looks; each was once a fault."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from groups.programs import World, read, share_out, until
from handmade import records

import sparklog
from sparklog import Consumer
from sparklog.groups import rows
from sparklog.groups.member import requests as ask


def test_latest_reads_a_partition_that_comes_between_the_call_and_the_first_poll(world: World) -> None:
    consumer = world.consumer("t", auto_offset_reset="latest")
    topic = world.topics["t"]
    topic.grow(3)
    topic.append(records(10), 2)
    assert read(consumer) == {"t-2": list(range(10))}


@pytest.mark.parametrize("call", ["subscribe", "unsubscribe", "close"])
def test_partitions_of_a_deleted_topic_are_told_as_lost_where_the_subscription_ends(world: World, call: str) -> None:
    world.create("u")
    consumer = world.consumer("t", "u", heartbeat_interval_ms=30_000, **world.told)
    read(consumer)
    world.events.clear()
    world.topics["t"].delete()
    consumer.poll(100)  # it knows that the topic is deleted, and the group does not
    if call == "subscribe":
        consumer.subscribe(["u"])
    else:
        getattr(consumer, call)()
    revoked = [] if call == "subscribe" else [("on_revoke", ["u-0", "u-1"])]
    assert world.events == [("on_lost", ["t-0", "t-1"]), *revoked]


def test_each_topic_that_is_gone_is_told_of_although_a_callback_raises(world: World) -> None:
    world.create("u")

    def fail(*_: object) -> None:
        raise RuntimeError("made to fail")

    consumer = world.consumer("t", "u", on_lost=fail)
    read(consumer)
    world.topics["t"].delete()
    world.topics["u"].delete()
    told = []

    def are_told() -> bool:
        try:
            consumer.poll(20)
        except RuntimeError:
            told.append("raised")
        except sparklog.RetryError as error:
            told.append(error.parameters["topic"])
        return len(told) >= 3

    until(are_told)
    assert sorted(told) == ["raised", "t", "u"]


def test_a_member_that_is_expired_while_it_hands_over_is_not_told_of_a_deletion(world: World) -> None:
    world.create("u")

    def expire(consumer: Consumer, _: object) -> None:
        if world.events:
            return
        me, generations = world.members[consumer].id or "", world.table.generations
        number, generation, state = generations.state("g")
        assert state is not None
        after = state.without(me).with_topics({"u": state.topics["u"]})
        note = rows.note_of_members("g", generation, "another", f"expires {me}", after)
        assert generations.commit("g", number + 1, generation, [note], {me: generations.version(me)}) is not None
        world.events.append(("expired", []))

    one = world.consumer("t", "u", on_revoke=expire, on_lost=lambda *_: None)
    one.poll(100)
    two = world.consumer("u")
    until(lambda: world.events, two, one)
    until(lambda: any(each.topic == "t" for each in one.assignment()), one)


def test_a_topic_that_was_created_again_with_fewer_partitions_is_subscribed_to_again(world: World) -> None:
    consumer = world.consumer("t", heartbeat_interval_ms=30_000)
    read(consumer)
    topic = world.topics["t"]
    topic.delete()
    topic.partitions = 1
    topic.append(records(5))
    consumer.subscribe(["t"])
    assert consumer.waiting() == {}


def test_a_topic_that_was_created_again_is_read_from_its_start_where_a_member_dies(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It dies between the take of its partition and the commit of the beginning; meanwhile another member begins in its own partition."""
    one, two = (world.consumer("t", auto_offset_reset="latest") for _ in range(2))
    share_out(one, two)
    world.topics["t"].delete()
    for number in (0, 1):
        world.topics["t"].append(records(10), number)

    member, reply = world.members[two], world.members[two].reply

    def dies(request: Any) -> object:
        if isinstance(request, ask.CommitChange) and request.why == "goes back":
            raise MemoryError
        return reply(request)

    found: dict[int, list[int]] = {}

    def reads(consumer: Consumer) -> dict[int, list[int]]:
        with contextlib.suppress(sparklog.RetryError):
            for (_, number), its in consumer.poll(20).items():
                found.setdefault(number, []).extend(each.offset for each in its)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(member, "reply", dies)
        with pytest.raises(MemoryError):
            until(lambda: reads(two) and False)
    until(lambda: reads(one))
    member.leave()
    three = world.consumer("t", auto_offset_reset="latest")
    until(lambda: reads(one) and len(reads(three)) == 2)
    assert found == {0: list(range(10)), 1: list(range(10))}
