"""`range`: each topic is cut into as many pieces as it has readers. So topics of one size and the same readers are cut alike."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby, islice

from sparklog.groups.assignors.members import Member, Partition


def assigned(topics: Mapping[str, int], members: Sequence[Member], racks: Mapping[Partition, Collection[str]]) -> list[list[Partition]]:
    """The partitions of each member, which are given in their order; so are the topics."""
    # A member of several streams is as many readers, one after the other: as many as could get a partition of one topic.
    most = max(topics.values(), default=0)
    readers = [number for number, member in enumerate(members) for _ in range(min(member.capacity, most))]
    cuts = [
        _TopicShares(name, count, [at for at, number in enumerate(readers) if name in members[number].topics], racks)
        for name, count in topics.items()
    ]
    rack_of = [members[number].rack for number in readers]
    # Racks matter only where a reader could be nearer to one partition of a topic than to another.
    if any(cut.prefers(rack_of) for cut in cuts):
        for alike in _cut_alike(cuts):
            if len(alike) > 1:
                _take_together(alike, rack_of)
            elif alike[0].prefers(rack_of):
                alike[0].take_near(rack_of)
    given: list[list[Partition]] = [[] for _ in members]
    for cut in cuts:
        cut.take_near([None] * len(readers))
        for reader, numbers in cut.given.items():
            given[readers[reader]] += [(cut.topic, number) for number in numbers]
    return given


class _TopicShares:
    """A topic: its readers, the partitions of each reader, and the free partitions."""

    def __init__(self, topic: str, count: int, readers: Sequence[int], racks: Mapping[Partition, Collection[str]]) -> None:
        self.topic = topic
        self.count = count
        self.given: dict[int, list[int]] = {reader: [] for reader in readers}
        self.free = dict.fromkeys(range(count))
        self._least, self._extras = divmod(count, len(readers))
        """How many each reader gets, and how many readers get one more; the first readers get one more."""
        self._racks = [frozenset(racks.get((topic, number), ())) for number in range(count)]

    def prefers(self, rack_of: Sequence[str | None]) -> bool:
        """Whether racks tell partitions of this topic apart for its readers."""
        everywhere = frozenset().union(*self._racks)
        return any(rack_of[reader] in everywhere for reader in self.given) and any(each != everywhere for each in self._racks)

    def is_near(self, rack: str | None, number: int) -> bool:
        """Whether a partition has a copy on a rack. To a reader without a rack all of them are near."""
        return rack is None or rack in self._racks[number]

    def room(self, reader: int) -> int:
        """How many more partitions the reader may get."""
        return max(0, self._least + (self._extras > 0) - len(self.given[reader]))

    def give(self, reader: int, numbers: Collection[int]) -> None:
        self.given[reader] += numbers
        self._extras -= len(self.given[reader]) > self._least
        for number in numbers:
            del self.free[number]

    def take_near(self, rack_of: Sequence[str | None]) -> None:
        """Each reader in turn takes the first free partitions that are near to it, as many as it has room for."""
        for reader, rack in ((reader, rack_of[reader]) for reader in self.given):
            if numbers := list(islice(filter(partial(self.is_near, rack), self.free), self.room(reader))):
                self.give(reader, numbers)


def _cut_alike(cuts: Iterable[_TopicShares]) -> list[list[_TopicShares]]:
    """The topics in groups with the same readers and the same number of partitions."""

    def common(cut: _TopicShares) -> tuple[tuple[int, ...], int]:
        return tuple(cut.given), cut.count

    return [list(alike) for _, alike in groupby(sorted(cuts, key=common), common)]


def _take_together(alike: Sequence[_TopicShares], rack_of: Sequence[str | None]) -> None:
    """Partitions of one number go to one reader that is near to all of them, so that topics stay cut alike."""
    waiting = list(alike[0].given)
    for number in range(alike[0].count):
        for reader in waiting:
            if all(cut.is_near(rack_of[reader], number) and cut.room(reader) for cut in alike):
                for cut in alike:
                    cut.give(reader, [number])
                if not any(cut.room(reader) for cut in alike):
                    waiting.remove(reader)
                break
