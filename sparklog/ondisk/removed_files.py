"""Data files that versions have removed, and that wait for their deletion. FORMAT.md section 12."""

from __future__ import annotations

import contextlib
from typing import NamedTuple

from sparklog.errors import SparklogError
from sparklog.ondisk.names import is_shared, topic_file
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog


class RemovedFiles(NamedTuple):
    """How many files wait, and how many bytes of the disk come back with them."""

    files: int
    bytes: int

    @classmethod
    def of(cls, log: TopicLog, state: State) -> RemovedFiles | None:
        """The files of a topic that wait; None if any of the version files that name them cannot be read.

        Reads the version files from the boundary on.
        """
        try:
            versions = log.history(state.version - state.boundary + 1)
        except SparklogError:
            return None
        removed = {each.file for version in versions for each in version.removed if not is_shared(each.file)}
        if removed:
            removed -= {segment.file for partition in range(state.partitions) for segment in log.segments(state, partition)}
        sizes = []
        for file in removed:
            with contextlib.suppress(OSError):
                if entry := log.root.store.look(topic_file(log.topic, file)):  # else it is deleted
                    sizes.append(entry.bytes)
        return cls(len(sizes), sum(sizes))
