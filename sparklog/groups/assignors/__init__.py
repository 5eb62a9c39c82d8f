"""Assignors: they share the partitions of topics among the members of a group. They look at nothing but their arguments."""

from sparklog.groups.assignors.assign import ASSIGNORS, assign, canonical, moved, owners_of
from sparklog.groups.assignors.members import Assignment, Member, Partition

__all__ = ["ASSIGNORS", "Assignment", "Member", "Partition", "assign", "canonical", "moved", "owners_of"]
