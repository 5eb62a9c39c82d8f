"""Consumers of one `group_id` share it without another setting; consumers that assign their partitions commit beside each other."""

import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from groups.programs import World, read, share_out, until
from handmade import draw_seed, either
from owners import Own

from sparklog import CallError, Consumer, GenerationFencedError, TopicPartition
from sparklog.consumer import OffsetAndMetadata
from sparklog.groups import OffsetTable
from sparklog.groups.commits import OffsetCommit
from sparklog.groups.rows import Group
from sparklog.groups.table.assigned import Assigned

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    for each in world.opened:
        with suppress(GenerationFencedError):  # some tests end a consumer so
            each.close()


def opened(world: World, *names: str, **more: Any) -> Consumer:
    given: dict[str, Any] = {"group_id": "g", "table": world.path, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    world.opened.append(Consumer(world.root, *names, **given | more))
    return world.opened[-1]


def test_two_consumers_of_one_group_share_it(world: World) -> None:
    one, two = opened(world, "t"), opened(world, "t")
    share_out(one, two)
    assert one.assignment() | two.assignment() == {T0, T1}
    for each in (one, two):
        each.seek_to_end()
        each.commit()
    assert world.positions() == {0: 20, 1: 20}


def test_an_exclusive_consumer_has_the_group_alone_and_members_take_it_back(world: World) -> None:
    one = opened(world, "t")
    until(one.assignment, one)
    alone = opened(world, "t", partition_assignment_strategy="exclusive")
    assert alone.assignment() == {T0, T1}
    with pytest.raises(GenerationFencedError):
        until(lambda: False, one)
    read(alone)
    alone.commit()
    two = opened(world, "t")
    until(two.assignment, two)
    with pytest.raises(GenerationFencedError):
        alone.commit({T0: 3})
    assert world.positions() == {0: 20, 1: 20}


def test_assigned_consumers_commit_beside_each_other(world: World) -> None:
    one, two = opened(world), opened(world)
    one.assign([T0])
    two.assign([T1])
    assert read(one) == {"t-0": list(range(20))}
    assert read(two) == {"t-1": list(range(20))}
    one.commit()
    two.commit({T1: OffsetAndMetadata(7, "seven")})
    one.commit({T0: 4})  # back
    two.commit({T1: 9})
    assert world.positions() == {0: 4, 1: 9}
    assert (one.committed(T1), two.committed(T0)) == (9, 4)
    again = opened(world)
    again.assign([T0, T1])
    assert (again.position(T0), again.position(T1)) == (4, 9)
    assert not world.table.summaries()[0].running, "as in Kafka, such a consumer does not keep a group from being reset"


def test_a_group_with_members_refuses_assigned_consumers_and_goes_on(world: World) -> None:
    member, assigned = opened(world, "t"), opened(world)
    until(member.assignment, member)
    assigned.assign([T0])
    with pytest.raises(CallError, match="GROUP_HAS_MEMBERS"):
        assigned.commit({T0: 3})
    read(member)
    member.commit()
    assert world.positions() == {0: 20, 1: 20}


def test_a_reset_ends_assigned_consumers_and_is_not_overwritten(world: World) -> None:
    one, two = opened(world), opened(world)
    for each in (one, two):
        each.assign([T0])
        each.poll()
    one.commit({T0: 9})
    world.table.reset("g", {"t": {0: 2}}, dry_run=False)
    for each in (one, two):
        with pytest.raises(GenerationFencedError):
            each.commit({T0: 12})
    assert world.positions() == {0: 2}


def test_a_consumer_changes_between_subscribed_and_assigned(world: World) -> None:
    one = opened(world, "t")
    until(one.assignment, one)
    one.unsubscribe()
    one.assign([T1])
    one.commit({T1: 5})
    one.unsubscribe()
    one.subscribe(["t"])
    until(lambda: len(one.assignment()) == 2, one)
    assert one.committed(T1) == 5
    one.commit({T1: 6})
    assert world.positions()[1] == 6


def histories(table: OffsetTable, some: random.Random) -> None:
    """Assigned consumers beside owners, resets and deletions, against a model: positions, and how often another one took the group."""
    positions: dict[int, int] = {}
    taken = 0
    Own(table, "g")
    consumers: list[tuple[Assigned, list[int]]] = []
    id = table.topics.state("t").topic_id
    for _ in range(14):
        what = some.randrange(10)
        if what < 3 or not consumers:
            consumers.append((Assigned(table, "g"), []))
        elif what == 3:
            Own(table, "g")
            taken += 1
        elif what == 4:
            offset = some.randrange(21)
            table.reset("g", {"t": {0: offset}}, dry_run=False, force=True)
            positions[0], taken = offset, taken + 1
        else:
            consumer, knew = some.choice(consumers)
            if some.randrange(3) == 0:
                knew[:] = knew or [taken]
                assert {each.partition: each.offset for each in consumer.positions()} == positions
            number, offset = some.randrange(2), some.randrange(21)
            try:
                consumer.commit([OffsetCommit("t", number, id, offset)])
            except GenerationFencedError:
                assert knew and knew[0] != taken, "it was fenced by an assigned consumer"
            else:
                assert not knew or knew[0] == taken, "a commit went over the commit of a program that took the group"
                knew[:] = [taken]
                positions[number] = offset
        assert {each.partition: each.offset for each in table.positions("g")} == positions


def test_assigned_consumers_at_random(world: World, tmp_path: Path) -> None:
    drawn = random.Random(draw_seed())
    for number in range(either(12, 300)):
        histories(OffsetTable(world.root, tmp_path / f"table{number}"), random.Random(drawn.random()))


@pytest.mark.parametrize("mutant", ["each claim fences all others", "nothing fences"])
def test_a_broken_rule_is_found(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mutant: str) -> None:
    if mutant == "nothing fences":
        monkeypatch.setattr(Assigned, "_require_mine", lambda self, group: None)
    else:
        monkeypatch.setattr(Group, "since", property(lambda self: self.generation))
    with pytest.raises((AssertionError, GenerationFencedError)):
        test_assigned_consumers_at_random(world, tmp_path)
