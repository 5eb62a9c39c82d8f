"""The promises of every place of heartbeats, as tests: those of a place derive from `HeartbeatContract`, and give heartbeats in it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sparklog.groups.member.heartbeater import Heartbeater
from sparklog.groups.member.heartbeats import Heartbeats

Make = Callable[[str], Heartbeats]


class HeartbeatContract:
    """A class that derives from it has a fixture `make`, which makes the heartbeats of a group by its name: all beside one new table."""

    @pytest.fixture
    def found(self, make: Make) -> Heartbeats:
        return make("g")

    def test_nothing_is_there_at_first(self, found: Heartbeats) -> None:
        assert (found.marks(), found.read(), found.called("one")) == ({}, {}, None)
        found.remove(["one"])
        assert found.marks() == {}

    def test_each_heartbeat_changes_the_mark_of_its_member_alone(self, found: Heartbeats) -> None:
        found.write("one", 1, 7)
        found.write("host.of-two", 1, 7)
        marks = [found.marks()]
        for counter in range(2, 7):  # some within a second
            found.write("one", counter, 7)
            marks.append(found.marks())
        assert {frozenset(each) for each in marks} == {frozenset({"one", "host.of-two"})}
        assert len({each["one"] for each in marks}) == 6
        assert len({each["host.of-two"] for each in marks}) == 1
        assert found.marks() == marks[-1], "a read changes nothing"

    def test_the_state_that_a_member_knows(self, found: Heartbeats) -> None:
        found.write("one", 1, 7)
        found.place.put("two.json", "no JSON")
        found.place.put("three", "not of a member")
        assert {member: state for member, (_, state) in found.read().items()} == {"one": 7, "two": 0}
        found.write("one", 2, 8)
        assert {member: state for member, (_, state) in found.read().items()} == {"one": 8, "two": 0}
        assert {member: mark for member, (mark, _) in found.read().items()} == found.marks()

    def test_each_call_is_another_one(self, found: Heartbeats) -> None:
        found.write("one", 1, 1)
        marks = [found.called("one")]
        for _ in range(3):
            found.call("one")
            marks += [found.called("one")]
        assert len(set(marks)) == 4
        assert found.called("one") == marks[-1]
        assert found.marks().keys() == {"one"}, "a call is no heartbeat"

    def test_a_member_that_has_left_is_not_called(self, found: Heartbeats) -> None:
        """Nothing would delete the file of the call."""
        found.write("one", 1, 1)
        found.call("one")
        found.remove(["one"])
        found.call("one")
        assert (found.called("one"), found.marks(), found.place.marks("")) == (None, {}, {})

    def test_members_are_removed_with_their_calls(self, found: Heartbeats) -> None:
        for member in ("one", "two", "three"):
            found.write(member, 1, 1)
            found.call(member)
        found.remove(["one", "two", "gone"])
        assert found.place.marks("").keys() == {"three.json", "three.given"}

    def test_groups_do_not_see_one_another(self, make: Make) -> None:
        names = ["g", "g/h", "ä" * 300]
        for number, each in enumerate(names):
            make(each).write(f"member-{number}", 1, 1)
        assert [make(each).marks().keys() for each in names] == [{"member-0"}, {"member-1"}, {"member-2"}]

    def test_another_process_sees_them(self, make: Make) -> None:
        make("g").write("one", 1, 1)
        assert make("g").marks() == make("g").marks() != {}

    def test_what_dead_programs_left_is_deleted(self, make: Make, found: Heartbeats) -> None:
        """After two sessions, by the observer's own clock; not what is written now and then, nor what members wrote."""
        now = 0.0
        observer = Heartbeater(make("g"), 10, lambda members: dict.fromkeys(members, 0), lambda: now)
        observer.write("own", 1)
        for each in ("left", "joins", "member"):
            found.write(each, 1, 1)
            found.call(each)
        for number in range(7):
            assert observer.silent({"member": 1_000}) == []
            found.write("joins", 2 + number, 1)
            now += 3
        assert found.marks().keys() == {"own", "left", "joins", "member"}
        now += 3
        observer.silent({"member": 1_000})
        assert found.marks().keys() == {"own", "joins", "member"}
        assert found.called("left") is None
