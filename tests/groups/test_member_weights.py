"""Members whose assignor weighs partitions by lag or rate while they run."""

from __future__ import annotations

import dataclasses
import json
import time

import pytest
from groups.member_world import Group, Thread, got
from handmade import records

import sparklog
from sparklog.groups.member import weights
from sparklog.groups.member.state import GroupState, MemberSettings, Registered, SharedTopic


@pytest.fixture
def six(tmp_path, monkeypatch):
    """A topic of six partitions with 10 records each, and groups that weigh single records at each look."""
    monkeypatch.setattr(weights, "_EVERY_S", 0)
    monkeypatch.setattr(weights, "UNIT", 1)
    made = Group(tmp_path, Thread, partitions=6, count=10)
    yield made
    made.end()


def reasons(group: Group) -> list[str]:
    return [each.why for each in group.table.changes("g")]


def test_partitions_that_are_far_behind_go_to_several_members(six: Group):
    """Not by their number, which is even before and is not afterwards."""
    one, two = six.members(2, weight="lag", enable_auto_commit=False)
    before = six.owners()
    busy = [number for number in before if before[number] == before[0]]
    assert len(busy) == 3
    for number in busy:
        six.topic.append(records(1_000 * (number + 1)), number)
    six.until(lambda: six.is_even(2) and len({six.owners()[number] for number in busy}) == 2, [one, two])
    state = six.state()
    assert state.assignor == "sticky-lag"
    assert "weighs by lag" in reasons(six)
    assert {each.partition: each.weight for each in six.table.assignments("g")} == {
        number: state.weights["t", number] for number in range(6)
    }
    assert [state.weights["t", number] for number in range(6)] == [
        8 if number not in busy else 512 << number.bit_length() for number in range(6)
    ]
    quiet = len(reasons(six))
    for _ in range(10):
        one.poll(ms=20)
        two.poll(ms=20)
    assert len(reasons(six)) == quiet


def test_a_rate_is_evened_out_and_nothing_is_read_twice(six: Group):
    one, two = six.members(2, weight="rate")
    before = six.owners()
    busy = [number for number in before if before[number] == before[0]]
    for number in busy:
        six.topic.append(records(100, timestamp=round(time.time() * 1000)), number)
    answers = six.until(lambda: six.is_even(2) and len({six.owners()[number] for number in busy}) == 2, [one, two])
    answers += six.until(lambda: sum(six.positions().values()) == 60 + 100 * len(busy), [one, two])
    assert "weighs by rate" in reasons(six)
    assert set(got(answers).values()) == {1}
    assert got(answers).total() >= 100 * len(busy)


@pytest.mark.soak
def test_processes_weigh_after_a_minute(processes: Group):
    """With nothing set: every minute, and in thousands of records."""
    began = time.monotonic()
    one, two = processes.members(2, weight="lag", enable_auto_commit=False)
    before = processes.owners()
    busy = [number for number in before if before[number] == before[0]]
    assert len(busy) == 2
    for number in busy:
        processes.topic.append(records(5_000), number)
    processes.until(lambda: processes.is_even(2) and len({processes.owners()[number] for number in busy}) == 2, [one, two])
    assert time.monotonic() - began > 55
    assert processes.state().weights == {("t", number): 4 if number in busy else 0 for number in range(4)}


def test_all_members_weigh_alike(six: Group):
    """A program that does not know weights asks for `sticky`, and is refused, too."""
    six.member(weight="lag", max_poll_interval_ms=120_000).poll()
    for others in ({}, {"weight": "rate"}, {"partition_assignment_strategy": "range"}):
        answer = six.member(**others).poll()
        assert answer["error"] == "GROUP_ASSIGNOR"
        assert "sticky-lag" in answer["text"]


def test_an_operators_reset_keeps_the_weights(six: Group):
    one, two = six.members(2, weight="lag", enable_auto_commit=False)
    six.topic.append(records(5_000), 0)
    six.topic.append(records(5_000), 1)
    six.until(lambda: six.state().weights, [one, two])
    before = six.state().weights
    six.table.reset("g", "earliest", dry_run=False, force=True)
    assert six.state().weights == before


def test_only_the_owner_of_the_first_share_measures_and_not_too_often(six: Group, monkeypatch: pytest.MonkeyPatch):
    one, two = six.members(2, weight="lag")
    first = six.state().first_owner()
    (other,) = six.state().members.keys() - {first}
    now = 100.0
    monkeypatch.setattr(weights, "clock", lambda: now)
    monkeypatch.setattr(weights, "_EVERY_S", 60)
    weigher = weights.Weigher(six.table.topics, lambda: six.table.positions("g"))
    state = six.state()
    assert weigher.weigh(state, first) is None
    now = 159.0
    assert weigher.weigh(state, first) is None
    now = 160.0
    assert weigher.weigh(state, first) == {("t", number): 10 - six.positions()[number] for number in range(6)}
    assert weigher.weigh(state, first) is None
    now = 300.0
    assert weigher.weigh(state, other) is None
    assert weigher.weigh(state, first) is None, "it counts from when it is the owner again"
    assert weigher.weigh(dataclasses.replace(state, assignor="sticky"), first) is None
    for each in (one, two):
        each.close()


def test_partitions_that_cannot_be_measured_stay_as_they_are(six: Group, caplog: pytest.LogCaptureFixture):
    six.members(1, weight="rate", enable_auto_commit=False)
    six.topic.append(records(5, timestamp=round(time.time() * 1000)), 0)
    six.topic.data_file(len(six.topic.versions) - 1).write_bytes(b"")
    weigher = weights.Weigher(six.table.topics, lambda: six.table.positions("g"))
    assert weigher.weigh(six.state(), six.state().first_owner()) is None
    assert "the partitions are not weighed" in caplog.text


def test_weights_are_stored_and_read() -> None:
    state = GroupState("sticky-rate").joined(Registered("m", ("t",))).with_topics({"t": SharedTopic("id", 3)}).taken("m")
    state = state.joined(Registered("n", ("t",))).released("m", [("t", 2)]).taken("n")
    state = state.weighed({("t", 0): 1000, ("t", 1): 1000})
    stored = json.loads(json.dumps(state.stored()))
    assert stored["weights"] == {"t": [512, 512, 0]}
    assert GroupState.of(stored) == dataclasses.replace(state, weights=dict.fromkeys([("t", 0), ("t", 1)], 512) | {("t", 2): 0})
    assert GroupState.of({name: value for name, value in stored.items() if name != "weights"}) == dataclasses.replace(state, weights={})
    for wrong in (-1, 2.0, "8", None, 2**63):
        with pytest.raises(ValueError, match="weight"):
            GroupState.of({**stored, "weights": {"t": [wrong]}})
    again = state.with_topics({"t": SharedTopic("other", 3)})
    assert again.weights == {}


@pytest.mark.parametrize(
    ("given", "condition"),
    [
        ({"weight": "size"}, "OPTION_VALUE"),
        ({"weight": "lag", "assignor": "range"}, "OPTION_CONFLICT"),
        ({"weight": "rate", "assignor": "roundrobin"}, "OPTION_CONFLICT"),
        ({"assignor": "sticky-lag"}, "OPTION_VALUE"),
    ],
)
def test_wrong_weights(given: dict[str, str], condition: str) -> None:
    with pytest.raises(sparklog.CallError, match=condition):
        _ = MemberSettings(**given).shared_by
    assert MemberSettings("cooperative-sticky", weight="lag").shared_by == "sticky-lag"
