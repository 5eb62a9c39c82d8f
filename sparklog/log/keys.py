"""Where the records of a key can be in a topic."""

from __future__ import annotations

from typing import NamedTuple

from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog
from sparklog.router import partition_for


class Key(NamedTuple):
    """A key, and the partition that the topic's partitioner chooses for it."""

    octets: bytes
    home: int

    @classmethod
    def of(cls, state: State, key: bytes | bytearray | memoryview | str) -> Key:
        """A key of the topic; a string is encoded as UTF-8. TypeError if it is None."""
        home = partition_for(key, state.partitions, state.config["partitioner"])
        if home is None:
            raise TypeError("`key` is None; records without a key are in any partition")
        return cls(key.encode() if isinstance(key, str) else bytes(key), home)

    def partitions(self, log: TopicLog, state: State) -> list[int]:
        """The partitions that may hold records of the key, in order: its home, and those with a segment that is not `routed`.

        In such a segment, records were written to a partition that the caller chose, or before partitions were added. FORMAT.md section 5.
        """
        return [
            each for each in range(state.partitions) if each == self.home or not all(found.routed for found in log.segments(state, each))
        ]
