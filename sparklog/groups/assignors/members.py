"""The members of a group, and the order in which assignors take them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

Partition = tuple[str, int]
"""A topic, and the number of a partition of it."""
Assignment = dict[str, list[Partition]]
"""The partitions of each member, by its id; sorted by topic and number. A member that gets none has an empty list."""


@dataclass(frozen=True)
class Member:
    """A member of a group.

    Attributes:
        id: The id; no two members have the same. topics: The topics that it reads. Topics that do not exist do not count. instance: The
        name of a static member (Kafka's `group.instance.id`). Static members come before the others, by this name. capacity: The number of
        members as which it counts, 1 or more; default 1. rack: The rack where it runs. Only `range` looks at it.

    Example:
        >>> from sparklog.groups.assignors import Member
        >>> Member("host1", ["orders"], capacity=2).capacity
        2
    """

    id: str
    topics: Collection[str]
    instance: str | None = None
    capacity: int = 1
    rack: str | None = None

    @property
    def place(self) -> tuple[bool, bytes]:
        """The key of their order: static ones first by instance, then the others by id, as Java sorts texts."""
        return self.instance is None, sorted_as(self.id if self.instance is None else self.instance)


def sorted_as(text: str) -> bytes:
    """The key by which Java sorts a text: its units of UTF-16. Above U+FFFF that is another order than Python's."""
    return text.encode("utf-16-be", "surrogatepass")


def in_order(partitions: Iterable[Partition]) -> list[Partition]:
    """The partitions, sorted by topic and number."""
    return sorted(partitions, key=lambda each: (sorted_as(each[0]), each[1]))
