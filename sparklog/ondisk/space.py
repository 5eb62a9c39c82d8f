"""The disk space of a topic's files, beside the bytes of its segments."""

from __future__ import annotations

from sparklog.ondisk.names import view_file_of, view_folder
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog
from sparklog.store.store import Damaged


def view_bytes(log: TopicLog, state: State) -> int:
    """The bytes of the topic's Kafka view that are not links to data files: copies of segments, and indexes. FORMAT.md section 8.

    A store without links has none. Otherwise each file takes a stat. A folder that cannot be listed counts as empty, since no reader
    depends on the view.
    """
    viewed = state.partitions if log.root.store.has_links else 0
    return sum(_of_partition(log, state, partition) for partition in range(viewed))


def _of_partition(log: TopicLog, state: State, partition: int) -> int:
    store, folder = log.root.store, view_folder(log.topic, partition)
    try:
        names = store.names(folder)
    except (OSError, Damaged):
        return 0
    linked = {segment.base for segment in log.segments(state, partition) if segment.in_own_file}
    taken = 0
    for name in names:
        found = view_file_of(name)
        if found is None:
            continue
        try:
            entry = store.look(f"{folder}/{name}")
        except OSError:
            continue
        base, kind = found
        # Writers add and remove files all the time.
        if entry and entry.is_file and not (kind == "log" and base in linked and entry.links > 1):
            taken += entry.bytes
    return taken
