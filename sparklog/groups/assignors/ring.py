"""`roundrobin`: the members stand in a ring, and each partition goes to the next member that reads its topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sparklog.groups.assignors.members import Member, Partition


def assigned(topics: Mapping[str, int], members: Sequence[Member]) -> list[list[Partition]]:
    """The partitions of each member, which are given in their order; so are the topics."""
    # A member of several streams has as many places, one after the other: as many as could get a partition.
    most = sum(topics.values())
    ring = [number for number, member in enumerate(members) for _ in range(min(member.capacity, most))]
    given: list[list[Partition]] = [[] for _ in members]
    turn = 0
    for topic, count in topics.items():
        for number in range(count):
            while topic not in members[ring[turn % len(ring)]].topics:
                turn += 1
            given[ring[turn % len(ring)]].append((topic, number))
            turn += 1
    return given
