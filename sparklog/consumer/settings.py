"""The arguments of a consumer, as its core takes them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """The arguments of a consumer, which do not change. Times are in seconds.

    * root: its name, for errors. far: whether its store is behind a network, so that the bytes of fetches are requested before.
    * group: the name of its group, if any. shares: whether it is a member of the group, which shares its topics.
    * reset: `auto_offset_reset`. commit_s: how often it commits by itself; None for never.
    """

    root: str
    group: str | None = None
    table: str | None = None
    shares: bool = False
    reset: str = "latest"
    interval_s: float = 0.1
    part_bytes: int = 1 << 20
    list_again_s: float = 5.0
    commit_s: float | None = None
    far: bool = False
    fetch_bytes: int = 50 << 20

    @property
    def has_group(self) -> bool:
        """Whether positions are kept in a group."""
        return self.group is not None

    @property
    def auto_commits(self) -> bool:
        """Whether it commits without being asked."""
        return self.has_group and self.commit_s is not None
