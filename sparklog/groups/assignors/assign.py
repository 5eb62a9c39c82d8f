"""One call for all assignors: its input is checked and sorted, so the order of input never matters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.groups.assignors import ranges, ring, sticky
from sparklog.groups.assignors.members import Assignment, Member, Partition, in_order, sorted_as

ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky", "uniform")
"""Names of assignors, as Kafka has them. `cooperative-sticky` and `uniform` are names of `sticky`: members of a group here hand over
only what moves, whichever assignor they have."""


def canonical(assignor: str) -> str:
    """Returns the rule that an assignor names.

    Args:
        assignor: One of `ASSIGNORS`.

    Returns:
        `range`, `roundrobin` or `sticky`.

    Raises:
        CallError: OPTION_VALUE if the assignor is unknown.

    Example:
        >>> from sparklog.groups.assignors import canonical
        >>> canonical("uniform")
        'sticky'
    """
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

    The same arguments give the same answer, in any order, so every member of a group can compute it.

    Args:
        assignor: One of `ASSIGNORS`.
        topics: The topics that exist, each with its number of partitions.
        members: The members.
        owners: By partition, the id of the member that has it now. `sticky` moves as few partitions as it can; the others do not look at
            it.
        weights: For `sticky`, the weight of a partition, such as its lag or its rate in records, 0 or more; 0 by default. Members then get
            about the same weight, in place of about the same number. Every partition weighs one more than is given, so that idle ones are
            shared too.
        racks: For `range`, by partition, the racks of its copies. Members with a rack get, as far as their numbers stay, partitions that
            have a copy on it.

    Returns:
        The partitions of each member, sorted by topic and number.

    Raises:
        CallError: OPTION_VALUE if the assignor is unknown, two members have one id or instance, a number of partitions or a capacity is
            less than 1, or a weight is negative.

    Example:
        >>> from sparklog.groups.assignors import Member, assign
        >>> assign("sticky", {"orders": 3}, [Member("ann", ["orders"]), Member("bob", ["orders"])])
        {'ann': [('orders', 0)], 'bob': [('orders', 1), ('orders', 2)]}
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
    """Returns the owner of each partition that an assignment gives.

    Args:
        assignment: The partitions of each member, as `assign` returns them.

    Returns:
        The id of the member, by partition.

    Example:
        >>> from sparklog.groups.assignors import owners_of
        >>> owners_of({"ann": [("orders", 0)], "bob": []})
        {('orders', 0): 'ann'}
    """
    return {each: member for member, partitions in assignment.items() for each in partitions}


def moved(owners: Mapping[Partition, str], assignment: Assignment) -> list[Partition]:
    """Returns the partitions that an assignment moves from one owner to another.

    Args:
        owners: The id of the member that has each partition before.
        assignment: The partitions of each member afterwards.

    Returns:
        The partitions, sorted by topic and number.

    Example:
        >>> from sparklog.groups.assignors import moved
        >>> moved({("orders", 0): "ann", ("orders", 1): "ann"}, {"ann": [("orders", 0)], "bob": [("orders", 1)]})
        [('orders', 1)]
    """
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
