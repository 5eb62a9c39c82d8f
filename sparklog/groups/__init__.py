"""Named groups of readers and their positions: in Delta tables, and in the topic that a server keeps for Kafka's clients."""

from typing import TYPE_CHECKING, Any

from sparklog.groups.plans import GroupPlan, plan
from sparklog.groups.rows import Position
from sparklog.groups.table.offset_table import OffsetTable
from sparklog.groups.topic.topic_groups import TopicGroups

if TYPE_CHECKING:
    from sparklog.queries.tracker import Tracker, track
    from sparklog.queries.write_delta import write_delta

__all__ = [
    "GroupPlan",
    "OffsetTable",
    "Position",
    "TopicGroups",
    "Tracker",
    "plan",
    "track",
    "write_delta",
]


if not TYPE_CHECKING:  # type checkers then refuse a name that does not exist

    def __getattr__(name: str) -> Any:
        # Users find these names here too. Their package is above this package.
        if name in ("Tracker", "track", "write_delta"):
            from sparklog import queries

            return getattr(queries, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
