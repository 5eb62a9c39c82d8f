"""Owners of groups, which commit offsets by topic and partition, in the topics that are there now."""

from collections.abc import Mapping

from sparklog.groups import OffsetTable
from sparklog.groups.commits import OffsetCommit
from sparklog.groups.table.owner import Owner
from sparklog.groups.topics import Topics

Offsets = Mapping[str, Mapping[int, int]]


def commits(topics: Topics, offsets: Offsets, metadata: str | None = None) -> list[OffsetCommit]:
    """The commits of these offsets."""
    ids = {topic: topics.state(topic).topic_id for topic in offsets}
    return [
        OffsetCommit(topic, partition, ids[topic], offset, metadata) for topic, to in offsets.items() for partition, offset in to.items()
    ]


def add(table: OffsetTable, group: str, generation: int, offsets: Offsets) -> int:
    """Commits to a generation that another program began, also offsets at which the group is; how many."""
    given = commits(table.topics, offsets)
    return table.generations.add(group, generation, lambda found: table.topics.rows(group, given, found.positions))


class Own(Owner):
    """An owner that takes a group, and moves it to offsets."""

    def __init__(self, table: OffsetTable, group: str, offsets: Offsets | None = None) -> None:
        super().__init__(table, group)
        if offsets is not None:
            self.to(offsets)

    def to(self, offsets: Offsets, *, metadata: str | None = None, query_id: str | None = None, epoch: int | None = None) -> None:
        """Moves the group."""
        self.commit(commits(self._topics, offsets, metadata), query_id=query_id, epoch=epoch)
