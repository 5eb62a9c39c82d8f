"""The shares that a member has, and their committed positions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sparklog.groups.assignors import Partition
from sparklog.groups.commits import OffsetCommit
from sparklog.groups.member.state import Held, Hold
from sparklog.groups.rows import Position


class Holdings:
    """The shares of one member whose positions it knows, and these positions.

    * The position of a share was read or committed after the share came. No other member can move it before the share goes.
    * A commit counts only while the member has the share as it had it when the offset was read.
    """

    def __init__(self) -> None:
        self.mine: dict[Partition, Hold] = {}
        self.at: dict[Partition, Position] = {}
        """The positions, as the table has them. Shares that were lost keep theirs until they are taken again."""
        self._takes = 0

    def take(self, came: Mapping[Partition, Held], known: Iterable[Position]) -> None:
        """Owns shares from now on. `known` are their positions, where they have one."""
        for each in came:
            self.at.pop(each, None)
        self.committed(known)
        self._takes += 1
        self.mine |= {each: Hold(held, self._takes) for each, held in came.items()}

    def committed(self, placed: Iterable[Position]) -> None:
        """The group has these positions now."""
        self.at |= {(each.topic, each.partition): each for each in placed}

    def drop(self) -> None:
        """Gives up all shares."""
        self.mine = {}

    def drop_strayed(self, owned: Mapping[Partition, Held]) -> None:
        """Gives up the shares that the member does not own as before, by the shares that it owns in a newer state."""
        self.mine = {each: hold for each, hold in self.mine.items() if owned.get(each) == hold.held}

    def came(self, owned: Mapping[Partition, Held]) -> dict[Partition, Held]:
        """The owned shares whose positions it does not know."""
        return {each: held for each, held in owned.items() if each not in self.mine}

    def has_as_before(self, share: Partition, owned: Mapping[Partition, Held]) -> bool:
        """Whether the member has a share in the same epoch in a newer state of the group."""
        return share in owned and share in self.mine and owned[share] == self.mine[share].held

    def still_mine(self, placed: Iterable[Position]) -> list[Position]:
        """The positions of these in shares that the member has not lost."""
        return [each for each in placed if (each.topic, each.partition) in self.mine]

    def owns(self, commit: OffsetCommit) -> bool:
        """Whether the member has the share of a commit in the same topic, and as the consumer held it."""
        now = self.mine.get(commit.place)
        return now is not None and now.topic_id == commit.topic_id and commit.holding in (None, now)

    def is_committed(self, commit: OffsetCommit) -> bool:
        """Whether the group is at an offset, as far as the member knows."""
        known = self.at.get(commit.place)
        return known is not None and (known.topic_id, known.offset) == (commit.topic_id, commit.offset)

    def is_back(self, to: Position) -> bool:
        """Whether a position is lower than the known one, or in a topic that was created again: rows of the generation hide it."""
        known = self.at.get((to.topic, to.partition))
        return known is not None and (known.topic_id != to.topic_id or known.offset > to.offset)
