"""The doctor of a group: each finding comes from the fault that it names, and a call changes no file."""

from __future__ import annotations

import dataclasses
import itertools
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from groups.member_world import Group, Process, Thread
from groups.programs import World, apart, made_members, read, share_out
from handmade import draw_seed, records
from numbered import Written
from owners import Own

import sparklog
from sparklog.__main__ import main
from sparklog.groups import OffsetTable, rows
from sparklog.groups.doctor import GroupDiagnosis, GroupFinding
from sparklog.groups.member.heartbeats import clock
from sparklog.groups.member.state import GroupState, Registered


def files(folder: Path) -> dict[str, tuple[int, int]]:
    """All files below a folder but heartbeats, which members write meanwhile."""
    return {
        str(each): (each.stat().st_size, each.stat().st_mtime_ns)
        for each in folder.rglob("*")
        if each.is_file() and "offsets.members" not in str(each)
    }


def rules(found: GroupDiagnosis) -> dict[str, GroupFinding]:
    return {each.rule: each for each in found}


def put(table: OffsetTable, **changes: Any) -> GroupState:
    """Changes the state of group `g` as a member of another program would."""
    number, generation, state = table.generations.state("g")
    after = dataclasses.replace(state or GroupState("sticky"), **changes)
    table.generations.commit("g", number + 1, generation, [rows.note_of_members("g", generation, "other", "test", after)])
    return after


def add(table: OffsetTable, member: Registered) -> GroupState:
    _, _, state = table.generations.state("g")
    assert state is not None
    return put(table, members={**state.members, member.id: member})


def test_a_group_that_is_well_has_no_findings(world: World) -> None:
    one, two = world.consumer("t"), world.consumer("t")
    share_out(one, two)
    before, began = files(world.path), time.monotonic()
    found = world.table.doctor("g", watch_s=60)
    assert (list(found), found.is_stuck, repr(found)) == ([], False, "Group g is well: nothing keeps it from going on.")
    assert files(world.path) == before
    assert time.monotonic() - began < 60, "it ends when each member wrote a heartbeat"


@pytest.mark.slow
def test_a_member_that_was_killed_or_stopped_is_silent(processes_of_two: Group) -> None:
    group = processes_of_two
    one, two = group.members(2, session_timeout_ms=12_000)
    two.freeze()
    found = group.table.doctor("g", watch_s=4)
    (silent,) = [each for each in found if each.rule == "member-silent"]
    assert silent.severity == "error" and found.is_stuck
    assert "It wrote no heartbeat in 4.0 s." in silent.text
    assert "1 live member will expire it, after its session of 12 s" in silent.fix
    two.wake()
    two.kill()
    group.until_even(one)
    assert rules(group.table.doctor("g", watch_s=60)).keys() == set()
    one.kill()
    found = group.table.doctor("g", watch_s=0.3)
    (silent,) = [each for each in found if each.rule == "member-silent"]
    assert (silent.severity, found.is_stuck) == ("warning", False), "0.3 s are less than a third of the session"
    assert "It wrote no heartbeat in 0.3 s." in silent.text
    assert "The next consumer that joins will expire it" in silent.fix


def test_a_member_that_left_while_the_group_was_watched_expires_no_other(processes_of_two: Group) -> None:
    group = processes_of_two
    one, two = group.members(2)
    two.freeze()
    ((_, its),) = one.poll()["has"]
    silent = group.owners()[1 - its]
    looks, number = group.table.generations.group, iter(range(100))

    def look(name: str) -> Any:
        if next(number) == 2:
            one.close()
        return looks(name)

    group.table.generations.group = look  # type: ignore[method-assign]
    found = [each for each in group.table.doctor("g", watch_s=4) if each.where == f"member {silent}"]
    assert found and "The next consumer that joins will expire it" in found[0].fix


@pytest.mark.parametrize("watch_s", [0, 0.3])
def test_a_group_in_mid_move_is_not_stuck(world: World, watch_s: float) -> None:
    """Two members live, and one asks for a partition of the other. No heartbeat can be seen in so short a time."""
    one = world.consumer("t", heartbeat_interval_ms=30_000)
    one.poll(0)
    two = world.consumer("t", heartbeat_interval_ms=30_000)
    two.poll(0)
    found = world.table.doctor("g", watch_s=watch_s)
    assert (rules(found)["partition-waits"].severity, found.is_stuck) == ("warning", False)
    assert f"all of the {watch_s:.1f} s" in rules(found)["partition-waits"].text


@pytest.fixture
def processes_of_two(tmp_path: Path) -> Iterator[Group]:
    group = Group(tmp_path, Process, partitions=2)
    yield group
    group.end()


def test_heartbeats_in_another_folder_are_not_seen(world: World, tmp_path: Path) -> None:
    table = apart(world.table, tmp_path / "container.members")
    one = world.consumer("t", table=table, enable_auto_commit=False, session_timeout_ms=1_500)
    read(one)
    found = world.table.doctor("g", watch_s=0.6)
    unseen = rules(found)["heartbeats-not-seen"]
    assert (unseen.severity, "did not commit" in unseen.text) == ("error", True)
    assert f"{world.path}.members" in unseen.text
    committed = OffsetTable(world.root, world.path)
    look = committed.generations.versions
    offsets = iter(range(1, 20))

    def looked(members: Any) -> dict[str, int]:
        one.commit({sparklog.TopicPartition("t", 0): sparklog.consumer.OffsetAndMetadata(20, str(next(offsets)))})
        return look(members)

    committed.generations.versions = looked  # type: ignore[method-assign]
    found = committed.doctor("g", watch_s=5)
    assert (rules(found)["heartbeats-not-seen"].severity, found.is_stuck) == ("warning", False)


def test_the_folder_of_heartbeats_cannot_be_read(world: World) -> None:
    world.consumer("t", heartbeat_interval_ms=30_000).poll(0)
    folder = Path(f"{world.path}.members")
    shutil.rmtree(folder)
    folder.write_text("")
    assert rules(world.table.doctor("g", watch_s=0)).keys() >= {"heartbeats-unreadable"}


def test_a_member_that_does_not_poll_and_the_partitions_that_wait_for_it(world: World) -> None:
    one = world.consumer("t")
    one.poll(0)
    two = world.consumer("t")
    two.poll(0)
    found = world.table.doctor("g", watch_s=5)
    assert rules(found).keys() == {"member-does-not-poll", "partition-waits"}
    assert not found.is_stuck
    assert rules(found)["member-does-not-poll"].where == f"member {world.members[one].id}"
    assert "Partitions that wait for it: 1." in rules(found)["member-does-not-poll"].text
    assert rules(found)["partition-waits"].where == "t(1)"
    share_out(one, two)
    assert world.table.doctor("g", watch_s=60) == []


def test_a_member_that_does_not_poll_after_another_gave_it_a_partition(world: World) -> None:
    one, two = world.consumer("t"), world.consumer("t")
    one.poll(0)
    two.poll(0)
    while not ((state := world.table.generations.state("g")[2]) and state.owned(world.members[two].id)):
        one.poll(100)
    found = world.table.doctor("g", watch_s=5)
    assert {each.rule: each.where for each in found} == {"member-does-not-poll": f"member {world.members[two].id}"}
    assert "Partitions that wait for it: 1." in found[0].text


def test_a_program_that_waits_to_join_is_told_of(world: World) -> None:
    one = world.consumer("t")
    one.poll(0)
    heartbeats, counter = world.table.generations.heartbeats("g"), itertools.count()
    heartbeats.write("stranger-1", next(counter), 0)
    looks = world.table.generations.group

    def group(name: str) -> Any:
        heartbeats.write("stranger-1", next(counter), 0)
        return looks(name)

    world.table.generations.group = group  # type: ignore[method-assign]
    told = rules(world.table.doctor("g", watch_s=60))["member-not-joined"]
    assert (told.where, "assignor is sticky" in told.text) == ("member stranger-1", True)


def test_members_with_patterns_topics_and_assignors_that_lead_nowhere(world: World) -> None:
    read(world.consumer("t"))
    for member in (
        Registered("a-1", (), r"\p{Upper}+"),
        Registered("b-1", (), "none.*"),
        Registered("c-1", ("nothing",)),
        Registered("d-1", ("t",)),
    ):
        add(world.table, member)
    put(world.table, assignor="nearest")
    found = world.table.doctor("g", watch_s=0)
    assert rules(found)["topic-missing"].text == "Members that read it: 1. The topic does not exist."
    assert {each.rule: each.where for each in found if "not-seen" not in each.rule} == {
        "pattern-unreadable": "member a-1",
        "pattern-without-topic": "member b-1",
        "topic-missing": "topic nothing",
        "member-idle": "member d-1",
        "assignor-unknown": "group g",
    }
    assert {each.severity for each in found if each.rule in ("pattern-unreadable", "assignor-unknown")} == {"error"}


def test_partitions_without_an_owner_and_an_announced_change(world: World) -> None:
    one = world.consumer("t", heartbeat_interval_ms=30_000)
    read(one)
    _, _, state = world.table.generations.state("g")
    assert state is not None
    shares = {each: dataclasses.replace(share, owner=None, wanted_by=None) for each, share in state.shares.items()}
    put(world.table, shares=shares, announced="x")
    found = rules(world.table.doctor("g", watch_s=0))
    assert found["partition-without-owner"].where == "t(0,1)"
    assert found["operator-announced"].severity == "warning"


def test_positions_that_are_not_in_the_log(world: World) -> None:
    for name in ("u", "v", "w"):
        world.create(name)
    with world.consumer("t", "u", "v", "w") as one:
        read(one)
    assert world.table.doctor("g") == []
    world.topics["t"].append(records(5), 0)
    topic = world.topics["t"]
    topic.commit(removed=topic.live[0], starts=[25, 0], operation="delete-records")
    world.topics["u"].delete()
    world.topics["v"].delete()
    world.topics["v"].append(records(3))
    world.create("w", 3)  # as if it was restored from an older copy
    found = world.table.doctor("g")
    assert {(each.rule, each.where) for each in found} == {
        ("position-expired", "topic t partition 0"),
        ("position-of-topic-gone", "topic u"),
        ("position-of-topic-gone", "topic v"),
        ("position-beyond-end", "topic w partition 0"),
        ("position-beyond-end", "topic w partition 1"),
    }
    (of_t,) = [each for each in found if each.where.startswith("topic t")]
    assert of_t.text == "The position is 20, and the log start offset is 25. Offsets that expired before the group read them: 5."
    assert {each.fix for each in found if each.where == "topic w partition 1"} == {
        f"sparklog groups reset {world.root} g --topic w:1 --to-latest --table {world.path} --execute"
    }
    assert {each.fix for each in found if each.where == "topic u"} == {
        f"sparklog groups delete {world.root} g --topic u --table {world.path} --execute"
    }
    for each in found:
        if each.rule != "position-expired":
            assert main(each.fix.split()[1:]) == 0, "each remedy is a command that can be run as it is"
    found = world.table.doctor("g")
    assert (rules(found).keys(), "longer retention.ms" in found[0].fix) == ({"position-expired"}, True)
    topic.commit(config={"cleanup.policy": "compact"})
    assert "retention.ms" not in world.table.doctor("g")[0].fix, "it does not count there"
    world.topics["t"].append(records(5), 0)
    assert rules(world.table.doctor("g"))["group-not-running"].text == "No program runs the group. Records that wait: 5."


@pytest.mark.slow
def test_a_table_whose_upkeep_is_behind(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    table = world.table
    monkeypatch.setattr(table.lake, "maintain", lambda: {})
    own = Own(table, "g", {"t": {0: 0}})
    for number in range(210):
        own.to({"t": {0: number % 20}})
    assert rules(table.doctor("g"))["upkeep-behind"].where == f"table {world.path}"
    OffsetTable(None, world.path).maintain()
    assert "upkeep-behind" not in rules(table.doctor("g"))


class AtCut:
    """A topic with a re-route from two partitions to three, and a table in which group `g` is at the cut of partition 1 alone."""

    def __init__(self, folder: Path) -> None:
        written = Written(folder / "root", 1)
        written.write(60)
        written.change([1, 1, 1])
        written.write(60)
        (self.cut,), self.ends = ([past["cut"] for past in written.past]), written.topic.versions[-1]["ends"]
        self.root, self.table = folder / "root", OffsetTable(folder / "root", folder / "offsets")
        self.own = Own(self.table, "g", {"t": {0: self.cut[0] - 3, 1: self.cut[1]}})

    def commit(self, left: int) -> None:
        """A commit after which the group has so many offsets left before the cut of partition 0."""
        self.own.to({"t": {0: self.cut[0] - left}})


@pytest.fixture
def at_cut(tmp_path: Path) -> AtCut:
    return AtCut(tmp_path)


def test_partitions_that_wait_at_a_cut(at_cut: AtCut) -> None:
    found = rules(at_cut.table.doctor("g", watch_s=0.6))["partition-at-cut"]
    assert (found.severity, found.where) == ("warning", "topic t partition 2")
    assert found.text == (
        f"Records that wait at a re-route: {at_cut.ends[2]}. They follow when partition 0 is read and committed up to offset "
        f"{at_cut.cut[0]}; offsets left to read: 3. One program reads the group, and committed nothing in 0.6 s."
    )
    at_cut.commit(0)
    assert "partition-at-cut" not in rules(at_cut.table.doctor("g"))


def test_a_program_that_commits_before_a_cut_is_to_be_waited_for(at_cut: AtCut) -> None:
    """The group is watched until the program commits; without a watch, the finding does not say that nothing was committed."""
    unwatched = rules(at_cut.table.doctor("g", watch_s=0))["partition-at-cut"]
    assert unwatched.text.endswith("One program reads the group.")
    looks, number = at_cut.table.generations.group, iter(range(1, 100))

    def look(name: str) -> Any:
        if next(number) == 3:
            at_cut.commit(2)
        return looks(name)

    at_cut.table.generations.group = look  # type: ignore[method-assign]
    began = time.monotonic()
    found = rules(at_cut.table.doctor("g", watch_s=60))["partition-at-cut"]
    assert (found.text.endswith("One program reads the group, and commits."), found.fix) == (True, "Wait.")
    assert time.monotonic() - began < 60, "it ends when a commit came"


def test_a_member_that_a_cut_waits_for(at_cut: AtCut) -> None:
    """The owner lives, then it is dead, then no member reads the partition."""
    at_cut.table.reset("g", {"t": {0: 0}}, dry_run=False, force=True)
    group: dict[str, Any] = {"group_id": "g", "table": at_cut.table, "partition_assignment_strategy": "sticky"}
    with made_members(clock) as made:
        one = sparklog.Consumer(at_cut.root, "t", **group, max_poll_records=1, heartbeat_interval_ms=500, session_timeout_ms=9_000)
    (member,) = made
    one.poll(0)
    told = [each for each in at_cut.table.doctor("g", watch_s=2) if each.rule == "partition-at-cut"]
    assert told and all(f"Member {member.id} owns it" in each.text for each in told)
    assert {each.severity for each in told} == {"warning"}
    member.heartbeater.stop(5)
    told = [each for each in at_cut.table.doctor("g", watch_s=3.1) if each.rule == "partition-at-cut"]
    assert {each.severity for each in told} == {"error"}
    _, _, state = at_cut.table.generations.state("g")
    assert state is not None
    put(at_cut.table, shares={each: dataclasses.replace(share, owner=None, wanted_by=None) for each, share in state.shares.items()})
    told = [each for each in at_cut.table.doctor("g", watch_s=0) if each.rule == "partition-at-cut"]
    assert {(each.severity, each.text.endswith("No member owns partition 0.")) for each in told} == {("error", True)}


def test_a_topic_that_cannot_be_read(world: World) -> None:
    with world.consumer("t") as one:
        read(one)
    newest = max((world.root / "_partlog" / "t").glob("*.json"))
    newest.write_text("{")
    found = rules(OffsetTable(world.root, world.path).doctor("g"))["topic-unreadable"]
    assert (found.severity, found.where, found.fix) == ("error", "topic t", f"sparklog verify {world.root} t")
    assert str(newest) in found.text


@pytest.mark.parametrize("seed", range(3))
def test_a_doctor_of_a_random_group_never_raises_and_changes_nothing(tmp_path: Path, seed: int) -> None:
    """Members that come, go and fall silent, operators, topics that go; the doctor is called after each act."""
    chance = random.Random(draw_seed() + seed)
    group = Group(tmp_path, Thread, partitions=3)
    members: list[Any] = []
    Own(group.table, "g")
    for _ in range(25):
        act = chance.choice(("start", "poll", "poll", "poll", "append", "close", "silent", "reset", "recreate"))
        if act == "start" and len(members) < 4:
            members.append(
                group.open(
                    *group.start(),
                    heartbeat_interval_ms=20_000,
                    mortal=True,
                    partition_assignment_strategy=chance.choice(("sticky", "range")),
                )
            )
        elif act == "append":
            group.append(2)
        elif act == "reset" and group.table.positions("g"):
            group.table.reset("g", chance.choice(("earliest", "latest")), dry_run=False, force=True)
        elif act == "recreate" and chance.random() < 0.3:
            group.topic.delete()
            if chance.random() < 0.7:
                group.append(1)
        elif members and act in ("poll", "close", "silent"):
            one = chance.choice(members)
            if act == "poll":
                one.poll(ms=1, commits=chance.random() < 0.5)
            else:
                members.remove(one)
                one.close() if act == "close" else one.end()
        before = files(tmp_path)
        group.table.doctor("g", watch_s=0)
        assert files(tmp_path) == before
    group.end()


def test_a_group_that_does_not_exist_is_an_error(world: World) -> None:
    with pytest.raises(sparklog.CallError, match="PARTLOG_OFFSETS_TABLE_NOT_FOUND"):
        world.table.doctor("g")
    Own(world.table, "other")
    with pytest.raises(sparklog.CallError, match="PARTLOG_GROUP_NOT_FOUND"):
        world.table.doctor("g")
    with pytest.raises(sparklog.CallError, match="PARTLOG_OFFSETS_ROOT"):
        OffsetTable(None, world.path).doctor("other")
