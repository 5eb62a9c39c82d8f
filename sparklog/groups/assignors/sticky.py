"""`sticky`: members keep their partitions, as far as the shares stay even. The rule is the rule of Kafka 4.3's uniform assignor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import lcm

from sparklog.groups.assignors.members import Member, Partition, in_order


def assigned(
    topics: Mapping[str, int], members: Sequence[Member], owners: Mapping[Partition, str], weights: Mapping[Partition, int] | None
) -> list[list[Partition]]:
    """The partitions of each member, which are given in their order; so are the topics. Without weights each partition weighs 1."""
    number_of = {member.id: number for number, member in enumerate(members)}
    every = [(topic, number) for topic, count in topics.items() for number in range(count)]
    owned = {
        each: number_of[owners[each]]
        for each in every
        if owners.get(each) in number_of and each[0] in members[number_of[owners[each]]].topics
    }
    alike = len({frozenset(topics.keys() & set(member.topics)) for member in members}) == 1
    if alike and weights is None and all(member.capacity == 1 for member in members):
        return _in_equal_numbers(every, len(members), owned)
    return _Shares(every, topics, members, owned, weights or {}).evened_out()


def _in_equal_numbers(every: Sequence[Partition], members: int, owned: Mapping[Partition, int]) -> list[list[Partition]]:
    """Members that read the same topics: each gets as many as any other one, or one more.

    One more goes first to members that have one more already, and else to the last ones. So as few as possible move, and none does if the
    group is given its own shares again.
    """
    given: list[list[Partition]] = [[] for _ in range(members)]
    for partition, member in owned.items():
        given[member].append(partition)
    free = [each for each in every if each not in owned]
    least, extras = divmod(len(every), members)
    quotas = []
    for member, mine in enumerate(given):
        quota = least + (extras > 0)
        free += mine[quota:]
        del mine[quota:]
        if extras and len(mine) < quota and members - member > extras:
            quota -= 1  # a later one may have one more already
        elif extras:
            extras -= 1
        quotas.append(quota)
    rest = iter(free)
    for mine, quota in zip(given, quotas, strict=True):
        mine += [next(rest) for _ in range(quota - len(mine))]
    return given


class _Shares:
    """Members that do not read the same topics, or partitions that do not weigh the same: shares that become even, topic by topic."""

    def __init__(
        self,
        every: Iterable[Partition],
        topics: Mapping[str, int],
        members: Sequence[Member],
        owned: Mapping[Partition, int],
        weights: Mapping[Partition, int],
    ) -> None:
        self._members = len(members)
        self._weights = {each: weights.get(each, 1) for each in every}
        self._owners: dict[Partition, int] = dict(owned)
        # A member of twice the capacity is as full with twice the weight. Whole numbers compare exactly.
        common = lcm(*(member.capacity for member in members))
        self._factors = [common // member.capacity for member in members]
        self._weighs = [0] * len(members)
        for partition, member in owned.items():
            self._weighs[member] += self._weights[partition]
        readers = {topic: [number for number, member in enumerate(members) if topic in member.topics] for topic in topics}
        total = dict.fromkeys(topics, 0)
        for (topic, _), weight in self._weights.items():
            total[topic] += weight
        # Topics that leave the fewest choices come first: topics with the most partitions for each reader, then topics with the fewest
        # readers.
        self._readers = {
            topic: readers[topic]
            for topic in sorted(topics, key=lambda topic: (-Fraction(total[topic], len(readers[topic])), len(readers[topic])))
        }
        self._counts = topics

    def evened_out(self) -> list[list[Partition]]:
        """Gives away free partitions, and then moves partitions until a whole round of the topics moves no partition."""
        for topic in self._readers:
            self._give_away(topic)
        shared = [topic for topic, readers in self._readers.items() if len(readers) > 1]
        since_last = 0
        while since_last < len(shared):
            for topic in shared:
                since_last = 0 if self._even_out(topic) else since_last + 1
                if since_last == len(shared):
                    break
        given: list[list[Partition]] = [[] for _ in range(self._members)]
        for partition in in_order(self._owners):
            given[self._owners[partition]].append(partition)
        return given

    def _ranked(self, topic: str) -> list[int]:
        """The readers of a topic as its turn comes, the emptiest first. Later ties go by this order: the first takes, the last gives."""
        return sorted(self._readers[topic], key=self._next)

    def _next(self, member: int, weight: int = 1) -> int:
        """How full a member is with one partition more."""
        return (self._weighs[member] + weight) * self._factors[member]

    def _full(self, member: int) -> int:
        return self._weighs[member] * self._factors[member]

    def _give_away(self, topic: str) -> None:
        places = self._ranked(topic)
        free = [each for each in self._of(topic) if each not in self._owners]
        for partition in sorted(free, key=lambda each: -self._weights[each]):
            self._move(partition, min(places, key=self._next))

    def _even_out(self, topic: str) -> bool:
        """Moves partitions of a topic from its fullest reader to the emptiest, as long as the fuller of the two becomes less full.

        A partition moves once in a round. Whether any moved.
        """
        places = self._ranked(topic)
        held: dict[int, list[Partition]] = {reader: [] for reader in places}
        for partition in self._of(topic):
            held[self._owners[partition]].append(partition)
        givers = len(places)
        """Only the first of the places may still give."""
        moved = False
        while givers:
            at = max(range(givers), key=lambda place: (self._full(places[place]), place))
            giver = places[at]
            if not held[giver]:
                # Like in Kafka, the last member takes the place of a member that has nothing to give, which decides later ties.
                givers -= 1
                places[at], places[givers] = places[givers], giver
                continue
            taker = min(places, key=self._next)
            # The last partition among the partitions that make the fuller member the least full.
            partition = min(reversed(held[giver]), key=lambda each: self._fuller_after(each, giver, taker))
            if giver == taker or self._fuller_after(partition, giver, taker) >= self._full(giver):
                break
            held[giver].remove(partition)
            self._move(partition, taker)
            moved = True
        return moved

    def _fuller_after(self, partition: Partition, giver: int, taker: int) -> int:
        """How full the fuller of two members is, once a partition went from one to the other."""
        weight = self._weights[partition]
        return max((self._weighs[giver] - weight) * self._factors[giver], self._next(taker, weight))

    def _of(self, topic: str) -> list[Partition]:
        return [(topic, number) for number in range(self._counts[topic])]

    def _move(self, partition: Partition, to: int) -> None:
        if partition in self._owners:
            self._weighs[self._owners[partition]] -= self._weights[partition]
        self._owners[partition] = to
        self._weighs[to] += self._weights[partition]
