"""Positions of named groups of readers, kept as rows of a Delta table: offset commit tables."""

from typing import TYPE_CHECKING, Any

from sparklog.offsets.members import MemberSettings
from sparklog.offsets.owner import Owner
from sparklog.offsets.plans import GroupPlan, plan
from sparklog.offsets.rows import Position
from sparklog.offsets.table import OffsetTable
from sparklog.offsets.topic_groups import TopicGroups

if TYPE_CHECKING:
    from sparklog.membership import Membership
    from sparklog.queries.tracker import Tracker, track
    from sparklog.queries.write_delta import write_delta

__all__ = [
    "GroupPlan",
    "MemberSettings",
    "Membership",
    "OffsetTable",
    "Owner",
    "Position",
    "TopicGroups",
    "Tracker",
    "plan",
    "track",
    "write_delta",
]


if not TYPE_CHECKING:  # type checkers then refuse a name that does not exist

    def __getattr__(name: str) -> Any:
        # Users find these names here too. Their packages are above this package.
        if name == "Membership":
            from sparklog import membership

            return membership.Membership
        if name in ("Tracker", "track", "write_delta"):
            from sparklog import queries

            return getattr(queries, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
