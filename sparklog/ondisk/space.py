"""What the files of a topic take on disk, beside the bytes of its segments."""

from __future__ import annotations

import stat
from pathlib import Path

from sparklog.ondisk.names import view_file_of, view_folder
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog


def view_bytes(log: TopicLog, state: State) -> int:
    """The bytes of the topic's Kafka view that are not links to data files: copies of segments, and indexes. FORMAT.md section 8.

    Each file takes a stat. A folder that cannot be listed counts as empty, since no reader depends on the view.
    """
    return sum(_of_partition(log, state, partition) for partition in range(state.partitions))


def _of_partition(log: TopicLog, state: State, partition: int) -> int:
    folder = Path(log.root, view_folder(log.topic, partition))
    try:
        files = list(folder.iterdir())
    except OSError:
        return 0
    linked = {segment.base for segment in log.segments(state, partition) if segment.in_own_file}
    taken = 0
    for file in files:
        found = view_file_of(file.name)
        if found is None:
            continue
        try:
            status = file.lstat()
        except OSError:  # Writers add and remove files all the time.
            continue
        base, kind = found
        is_link = kind == "log" and base in linked and status.st_nlink > 1
        if stat.S_ISREG(status.st_mode) and not is_link:
            taken += status.st_size
    return taken
