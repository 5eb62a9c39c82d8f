"""The checks of histories find each fault, and nothing in a good history."""

from collections.abc import Callable

import pytest
from serve.histories import Assign, Commit, History, Kept, Place, Poll, Send, summary

HERE = Place("t", 0)
THERE = Place("t", 1)


def good() -> History:
    """Two producers send, one of them once without an answer. Member `a` reads 4 records and commits 4; `b` follows it, and reads all."""
    values = ["x0", "y0", "x1", "x2", "y1", "x3"]
    sends = [Send(value[0], HERE, value, offset) for offset, value in enumerate(values)]
    sends[3] = Send("x", HERE, "x2")
    sends.insert(4, Send("x", THERE, "x2b"))
    records = tuple(enumerate(values))
    seen = [
        Assign("a", HERE, 1),
        Poll("a", HERE, records[:2], 2),
        Poll("a", HERE, records[2:4], 3),
        Commit("a", HERE, 4, 4, 5),
        Poll("a", HERE, records[4:5], 6),
        Assign("b", HERE, 7),
        Poll("b", HERE, records[4:], 8),
        Commit("b", HERE, 6, 9, 10),
    ]
    return History(sends, {"g": seen}, {HERE: Kept(0, tuple(values)), THERE: Kept(0, ())})


def kinds(history: History) -> set[str]:
    return {fault.kind for fault in history.faults()}


def test_a_good_history_has_no_fault() -> None:
    assert good().faults() == []
    assert summary([]) == ""


def test_a_member_that_has_its_partition_again_commits_again() -> None:
    history = good()
    history.groups["g"] += [Assign("a", HERE, 11), Commit("a", HERE, 6, 12, 13)]
    assert history.faults() == []


def test_records_that_expired_are_no_fault() -> None:
    history = good()
    history.kept[HERE] = Kept(3, history.kept[HERE].values[3:])
    history.groups["g"] = [Assign("a", HERE, 1), Poll("a", HERE, ((3, "x2"), (4, "y1"), (5, "x3")), 2)]
    assert history.faults() == []


def sent(history: History, number: int, **changed: object) -> None:
    history.sends[number] = history.sends[number]._replace(**changed)


def seen(history: History, number: int, **changed: object) -> None:
    history.groups["g"][number] = history.groups["g"][number]._replace(**changed)


def kept(history: History, *values: str, start: int = 0) -> None:
    history.kept[HERE] = Kept(start, values)


FAULTS: dict[str, tuple[str, Callable[[History], object]]] = {
    "an acknowledged record is not there": ("lost", lambda it: kept(it, "x0", "y0", "x1", "x2", "y1")),
    "an acknowledged record has another's place": ("lost", lambda it: kept(it, "x0", "y0", "x1", "x2", "z", "x3")),
    "a record is there twice": ("doubled", lambda it: kept(it, "x0", "y0", "x1", "x2", "y1", "x3", "x1")),
    "a record is in two partitions": ("doubled", lambda it: it.kept.update({THERE: Kept(0, ("x1",))})),
    "a record without an answer is there twice": ("doubled", lambda it: kept(it, "x0", "y0", "x1", "x2", "y1", "x3", "x2")),
    "a poll shows a record at a second offset": ("doubled", lambda it: seen(it, 6, records=((4, "y1"), (5, "x3"), (6, "x3")))),
    "records of a producer are in another order": ("reordered", lambda it: kept(it, "x0", "y0", "x2", "x1", "y1", "x3")),
    "a record without an answer comes too late": ("reordered", lambda it: kept(it, "x0", "y0", "x1", "x3", "y1", "x2")),
    "no member polls the last record": ("unseen", lambda it: seen(it, 6, records=((4, "y1"),))),
    "no member polls a record in the middle": (
        "unseen, although later ones were polled",
        lambda it: (seen(it, 2, records=((3, "x2"),)), seen(it, 1, records=((0, "x0"), (1, "y0")))),
    ),
    "a poll goes back": ("non-monotonic poll, within a poll", lambda it: seen(it, 2, records=((3, "x2"), (2, "x1")))),
    "the next poll goes back": ("non-monotonic poll, between two polls", lambda it: seen(it, 2, records=((1, "y0"), (2, "x1"), (3, "x2")))),
    "a poll skips a record": ("skipped, within a poll", lambda it: seen(it, 6, records=((4, "y1"), (6, "z")))),
    "the next poll skips a record": ("skipped, between two polls", lambda it: seen(it, 2, records=((3, "x2"),))),
    "a member begins after what was committed": ("skipped, at an assignment", lambda it: seen(it, 6, records=((5, "x3"),))),
    "two polls show two values at one offset": ("offset mismatch", lambda it: seen(it, 4, records=((4, "z"),))),
    "an acknowledgement has the offset of another record": ("offset mismatch", lambda it: sent(it, 2, offset=1)),
    "an acknowledgement has offset 0": ("spurious zero offset", lambda it: sent(it, 2, offset=0)),
    "a member begins at 0 although its group does not": ("spurious zero offset", lambda it: seen(it, 6, records=((0, "x0"),))),
    "a member begins before its group": ("position went back", lambda it: seen(it, 6, records=((3, "x2"), (4, "y1"), (5, "x3")))),
    "a later commit has a lower position": ("position went back", lambda it: seen(it, 7, position=3)),
    "acknowledged offsets of a producer fall": ("non-monotonic send", lambda it: (sent(it, 0, offset=2), sent(it, 2, offset=0))),
    "a member commits after its successor": ("torn group", lambda it: it.groups["g"].append(Commit("a", HERE, 6, 11, 12))),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_named(name: str) -> None:
    history = good()
    kind, inject = FAULTS[name]
    inject(history)
    assert kind in kinds(history)
    assert f"× {kind}" in summary(history.faults())


def test_a_commit_without_an_answer_may_be_committed_or_not() -> None:
    for first in (4, 5):
        history = good()
        history.groups["g"].insert(5, Commit("a", HERE, 5, 6))
        seen(history, 7, records=((4, "y1"), (5, "x3"))[first - 4 :])
        assert history.faults() == []


def test_topics_that_were_deleted_have_no_kept_records() -> None:
    history = good()
    history.sends.append(Send("x", Place("gone", 0), "x9", 3))
    assert history.faults() == []
