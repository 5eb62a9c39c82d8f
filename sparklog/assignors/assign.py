"""One call for all assignors: what it is given is checked and sorted, so that order of input never matters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from sparklog import arguments
from sparklog.assignors import ranges, ring, sticky
from sparklog.assignors.members import Assignment, Member, Partition, in_order, sorted_as
from sparklog.errors import SparklogError

ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky", "uniform")
"""Names of assignors, as Kafka has them. `cooperative-sticky` and `uniform` are names of `sticky`: members of a group here hand over
only what moves, whichever assignor they have."""


def canonical(assignor: str) -> str:
    """The name of the rule that an assignor is: `range`, `roundrobin` or `sticky`. CallError OPTION_VALUE if it is unknown."""
    arguments.choice("assignor", assignor, ASSIGNORS)
    return assignor if assignor in ("range", "roundrobin") else "sticky"


def assign(
    assignor: str,
    topics: Mapping[str, int],
    members: Iterable[Member],
    *,
    owners: Mapping[Partition, str] | None = None,
    weights: Mapping[Partition, int] | None = None,
    racks: Mapping[Partition, Collection[str]] | None = None,
) -> Assignment:
    """Gives every partition of a topic that a member reads to exactly one member that reads it.

    The same arguments give the same answer, whatever order they are in, so that every member of a group can compute it.

    * topics: the topics that exist, each with its number of partitions.
    * owners: by partition, the id of the member that has it now. `sticky` moves as few of them as it can; the others do not look at it.
    * weights: for `sticky`, what a partition weighs, such as its lag or its rate in records; 0 by default. Members then get partitions of
      about the same weight together, in place of about the same number. Every partition weighs one more than is given, so that idle ones
      are shared too.
    * racks: for `range`, by partition, where its copies are. Members with a rack get, as far as their numbers stay, partitions that have a
      copy on it.

    CallError OPTION_VALUE if the assignor is unknown, two members have one id or instance, a number of partitions or a capacity is less
    than 1, or a weight is negative.
    """
    rule = canonical(assignor)
    crew = _checked(members)
    read = {name for member in crew for name in member.topics}
    known = {name: arguments.positive("topics", topics[name]) for name in sorted(read & topics.keys(), key=sorted_as)}
    readers = [member for member in crew if not known.keys().isdisjoint(member.topics)]
    given: list[list[Partition]]
    if rule == "range":
        given = ranges.assigned(known, readers, racks or {})
    elif rule == "roundrobin":
        given = ring.assigned(known, readers)
    else:
        weighed = None if weights is None else {each: 1 + arguments.count("weights", weight) for each, weight in weights.items()}
        given = sticky.assigned(known, readers, owners or {}, weighed)
    found = {member.id: in_order(partitions) for member, partitions in zip(readers, given, strict=True)}
    return {member.id: found.get(member.id, []) for member in crew}


def owners_of(assignment: Assignment) -> dict[Partition, str]:
    """The owner of each partition that an assignment gives."""
    return {each: member for member, partitions in assignment.items() for each in partitions}


def moved(owners: Mapping[Partition, str], assignment: Assignment) -> list[Partition]:
    """The partitions that go from one owner to another: those that an assignment gives to another member than owns them."""
    return in_order(each for each, member in owners_of(assignment).items() if owners.get(each) not in (None, member))


def _checked(members: Iterable[Member]) -> list[Member]:
    """The members in their order. CallError if they cannot be told apart, or one has no capacity."""
    crew = sorted(members, key=lambda member: member.place)
    for member in crew:
        arguments.positive("capacity", member.capacity)
    for option, names in (("id", [each.id for each in crew]), ("instance", [each.instance for each in crew if each.instance is not None])):
        if twice := sorted(name for name in set(names) if names.count(name) > 1):
            raise SparklogError("OPTION_VALUE", option=option, value=twice[0], reason="two members have it; each needs one of its own")
    return crew
