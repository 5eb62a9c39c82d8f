"""Positions of named groups of readers, kept as rows of a Delta table: offset commit tables."""

from sparklog.offsets.members import MemberSettings
from sparklog.offsets.membership import Membership
from sparklog.offsets.owner import Owner
from sparklog.offsets.plans import GroupPlan, plan
from sparklog.offsets.rows import Position
from sparklog.offsets.table import OffsetTable
from sparklog.offsets.tracker import Tracker, track
from sparklog.offsets.write_delta import write_delta

__all__ = ["GroupPlan", "MemberSettings", "Membership", "OffsetTable", "Owner", "Position", "Tracker", "plan", "track", "write_delta"]
