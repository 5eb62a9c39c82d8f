"""The keys of a partition's newest records: the sample by which busy slots are found."""

from __future__ import annotations

from collections import Counter

import pyarrow.compute as pc

from sparklog.ondisk.reader import PartitionReader
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog

_PART_BYTES = 2 << 20
"""So many bytes of stored batches are in memory at once."""


def newest_keys(log: TopicLog, state: State, partition: int, low: int, sample_bytes: int, records: float = float("inf")) -> Counter[bytes]:
    """The keys of about `records` of the newest records of a partition, from the offset `low` on, each with its number of records.

    The sample has about `sample_bytes` of stored batches, 1 MiB at least, and twice as many at most, or one batch.
    """
    reader, at, stop = PartitionReader(log, state, partition), _first(log, state, partition, low, sample_bytes, records), None
    keys: Counter[bytes] = Counter()
    # Where the newest records are larger than the others of their segment, the sample ends before the newest.
    for _ in range(2 * sample_bytes // _PART_BYTES):
        if at >= state.ends[partition]:
            break
        reader.request(at, _PART_BYTES, stop)
        batches, at, stop = reader.part(at, _PART_BYTES, stop)
        for batch in batches:
            for each in pc.value_counts(batch.column("key").drop_null()).to_pylist():
                keys[each["values"]] += each["counts"]
    return keys


def _first(log: TopicLog, state: State, partition: int, low: int, sample_bytes: int, records: float) -> int:
    """The offset, at least `low`, from which the partition has about `records` records, or `sample_bytes`, whichever comes first."""
    at, left = state.ends[partition], float(sample_bytes)
    while at > low and records > 0 and left > 0:
        (segment,) = log.segments(state, partition, at - 1, at)
        part = min(1.0, records / max(1, segment.records), left / max(1, segment.bytes))
        if part < 1:
            return max(low, min(at - 1, segment.end - int(part * (segment.end - segment.base))))
        records, left, at = records - segment.records, left - segment.bytes, segment.base
    return max(low, at)
