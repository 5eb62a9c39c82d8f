"""Says what is wrong with a history: with the records that clients sent and polled, and with the positions that they committed.

The checks are those of Jepsen's workload for Kafka. They have no I/O: a history may come from any client, and any server.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import NamedTuple

SHOWN_MAX = 5
"""How many faults of a kind a summary tells."""


class Place(NamedTuple):
    topic: str
    partition: int


class Send(NamedTuple):
    """A record that a producer sent. The sends of a producer are in the order of its calls."""

    producer: str
    place: Place
    value: str
    offset: int | None = None
    """None: the producer has no acknowledgement, so the record is there once, or is not there."""


class Poll(NamedTuple):
    """Records that one poll gave, of one partition: one at least."""

    member: str
    place: Place
    records: tuple[tuple[int, str], ...]
    """Each with its offset."""
    at: float


class Assign(NamedTuple):
    """A member begins to read a partition, at the position of its group."""

    member: str
    place: Place
    at: float


class Commit(NamedTuple):
    """A member committed a position. The commits of a member are in the order of its calls."""

    member: str
    place: Place
    position: int
    begun: float
    ended: float | None = None
    """None: the member has no answer, so the position may be committed."""


Seen = Poll | Assign | Commit
"""An act of a member of a group."""


class Kept(NamedTuple):
    """A partition as a reader of the root's files finds it when all is over."""

    start: int
    values: tuple[str, ...]
    """From the log start offset on."""

    @property
    def end(self) -> int:
        return self.start + len(self.values)


class Fault(NamedTuple):
    kind: str
    what: str


@dataclass
class History:
    sends: list[Send] = field(default_factory=list)
    groups: dict[str, list[Seen]] = field(default_factory=dict)
    """By group. The calls of each member are in their order."""
    kept: dict[Place, Kept] = field(default_factory=dict)
    """The partitions of the topics that are there all the time."""

    def faults(self) -> list[Fault]:
        found = [*self._of_offsets(), *self._of_sends()]
        for group, seen in self.groups.items():
            found += [Fault(fault.kind, f"group {group}: {fault.what}") for fault in (*self._of_polls(seen), *_of_commits(seen, self.kept))]
        return found

    def _polls(self) -> Iterator[Poll]:
        return (each for seen in self.groups.values() for each in seen if isinstance(each, Poll))

    def _of_offsets(self) -> Iterator[Fault]:
        """An offset has one value for ever, and a value has one place in its topic."""
        values: dict[tuple[Place, int], set[str]] = defaultdict(set)
        for place, kept in self.kept.items():
            for offset, value in enumerate(kept.values, kept.start):
                values[place, offset].add(value)
        for poll in self._polls():
            for offset, value in poll.records:
                values[poll.place, offset].add(value)
        offsets: dict[tuple[str, str], set[tuple[int, int]]] = defaultdict(set)
        for (place, offset), those in values.items():
            if len(those) > 1:
                yield Fault("offset mismatch", f"offset {offset} of {_name(place)} has {sorted(those)}")
            for value in those:
                offsets[place.topic, value].add((place.partition, offset))
        for (topic, value), at in offsets.items():
            if len(at) > 1:
                yield Fault("doubled", f"{value} is in topic {topic} at {sorted(at)}")
        for send in self.sends:
            there = values.get((send.place, send.offset), set()) if send.offset is not None else set()
            if there and send.value not in there:
                kind = "spurious zero offset" if send.offset == 0 else "offset mismatch"
                yield Fault(
                    kind, f"{send.value} was acknowledged at offset {send.offset} of {_name(send.place)}, which has {sorted(there)}"
                )

    def _of_sends(self) -> Iterator[Fault]:
        """Each acknowledged record is there. The records of a producer are in the order in which it sent them."""
        there = {place: {value: offset for offset, value in enumerate(kept.values, kept.start)} for place, kept in self.kept.items()}
        last: dict[tuple[str, Place], Send] = {}
        order: dict[tuple[str, Place], list[tuple[int, str]]] = defaultdict(list)
        for send in self.sends:
            kept = self.kept.get(send.place)
            if kept is None:
                continue
            offset = there[send.place].get(send.value)
            if send.offset is not None and offset is None and send.offset >= kept.start:
                yield Fault("lost", f"{send.value} was acknowledged at offset {send.offset} of {_name(send.place)}, and is not there")
            if offset is not None:
                order[send.producer, send.place].append((offset, send.value))
            if send.offset is not None:
                before = last.get((send.producer, send.place))
                if before is not None and before.offset is not None and before.offset >= send.offset:
                    yield Fault("non-monotonic send", f"{send.value} was acknowledged after {before}, at offset {send.offset}")
                last[send.producer, send.place] = send
        for (producer, place), found in order.items():
            for (before, earlier), (after, later) in pairwise(found):
                if after < before:
                    yield Fault("reordered", f"{producer} sent {earlier} before {later}, which are in {_name(place)} at {before}, {after}")

    def _of_polls(self, seen: list[Seen]) -> Iterator[Fault]:
        """A member sees each record from its position on, in order; and the group sees all."""
        polled: dict[Place, set[int]] = defaultdict(set)
        next_of: dict[tuple[str, Place], int] = {}
        known = {place: set(range(kept.start, kept.end)) for place, kept in self.kept.items()}
        for each in seen:
            if isinstance(each, Assign):
                next_of.pop((each.member, each.place), None)
            elif isinstance(each, Poll):
                external = True
                for offset, _ in each.records:
                    expected = next_of.get((each.member, each.place), offset)
                    where = "between two polls" if external else "within a poll"
                    if offset < expected:
                        yield Fault(
                            f"non-monotonic poll, {where}", f"{each.member} gets offset {offset} of {_name(each.place)}, not {expected}"
                        )
                    if skipped := known.get(each.place, set()) & set(range(expected, offset)):
                        yield Fault(
                            f"skipped, {where}", f"{each.member} gets offset {offset} of {_name(each.place)} without {sorted(skipped)}"
                        )
                    next_of[each.member, each.place] = offset + 1
                    polled[each.place].add(offset)
                    external = False
        for place, kept in self.kept.items():
            if place in polled and (missed := set(range(kept.start, kept.end)) - polled[place]):
                later = [offset for offset in missed if offset < max(polled[place])]
                kind = "unseen, although later ones were polled" if later else "unseen"
                yield Fault(kind, f"{_name(place)} has offsets {sorted(later or missed)}, which nobody polled")


class _Committed:
    """The positions that a group surely has: of commits with an answer."""

    def __init__(self, commits: list[Commit]) -> None:
        done = sorted((each.ended, each.position) for each in commits if each.ended is not None)
        self._ends = [ended for ended, _ in done]
        self._best = list(accumulate((position for _, position in done), max))

    def before(self, at: float) -> int:
        """The greatest position whose commit had ended then; 0 if there is none."""
        number = bisect_right(self._ends, at)
        return self._best[number - 1] if number else 0


def _of_commits(seen: list[Seen], kept: dict[Place, Kept]) -> Iterator[Fault]:
    """The position of a group goes forward, and one member at a time commits it."""
    for place in sorted({each.place for each in seen}):
        here = [each for each in seen if each.place == place]
        commits = [each for each in here if isinstance(each, Commit)]
        committed = _Committed(commits)
        for each in commits:
            if each.ended is not None and each.position < (before := committed.before(each.begun)):
                yield Fault("position went back", f"{each.member} commits {each.position} of {_name(place)} after {before}")
        yield from _begun_wrong(place, here, commits, kept.get(place))
        yield from _torn(place, here, commits)


def _begun_wrong(place: Place, here: list[Seen], commits: list[Commit], kept: Kept | None) -> Iterator[Fault]:
    """A member that gets a partition begins where its group is: not before what was committed, and not after what may be committed."""
    committed = _Committed(commits)
    begun: dict[str, float] = {}
    for each in here:
        if isinstance(each, Assign):
            begun[each.member] = each.at
        elif isinstance(each, Poll) and each.member in begun:
            least, first = committed.before(begun.pop(each.member)), each.records[0][0]
            most = max((commit.position for commit in commits if commit.begun < each.at), default=0)
            if first < least:
                kind = "spurious zero offset" if first == 0 else "position went back"
                yield Fault(kind, f"{each.member} begins {_name(place)} at offset {first}, and its group was at {least}")
            if kept is not None and first > max(most, kept.start):
                yield Fault("skipped, at an assignment", f"{each.member} begins {_name(place)} at offset {first}, its group was at {most}")


def _torn(place: Place, here: list[Seen], commits: list[Commit]) -> Iterator[Fault]:
    """A member that another has followed commits no more, unless it gets the partition again."""
    followed: dict[str, float] = {}
    """By member, when another member committed after it."""
    answered = sorted((each for each in commits if each.ended is not None), key=lambda each: each.begun)
    for before, after in pairwise(answered):
        if before.member == after.member or (before.ended or 0) > after.begun:
            continue
        followed[before.member] = after.begun
        since = followed.pop(after.member, None)
        assigned = [each for each in here if isinstance(each, Assign) and each.member == after.member]
        if since is not None and not any(since <= each.at <= after.begun for each in assigned):
            what = f"{after.member} commits {after.position} of {_name(place)} after {before.member}, without a new assignment"
            yield Fault("torn group", what)


def _name(place: Place) -> str:
    return f"{place.topic}-{place.partition}"


def summary(faults: list[Fault]) -> str:
    """How many faults of each kind there are, and the first of each."""
    counts = Counter(fault.kind for fault in faults)
    lines = [f"{count} × {kind}" for kind, count in counts.most_common()]
    for kind in counts:
        lines += [f"{kind}: {fault.what[:500]}" for fault in faults if fault.kind == kind][:SHOWN_MAX]
    return "\n".join(lines)
