"""A member of a shared consumer group: it joins, takes and releases partitions, commits, beats, and leaves."""

from sparklog.membership.membership import Membership

__all__ = ["Membership"]
