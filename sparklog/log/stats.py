"""Statistics of the records of a topic: how many, how large, which keys, and how they are spread over partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import mmh3
import pyarrow as pa
import pyarrow.compute as pc

from sparklog.errors import SparklogError
from sparklog.ondisk.reader import PartitionReader
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog
from sparklog.show.display import Display, counted, field, readable, when

_SKETCH_LOG2 = 14
"""2¹⁴ counters: up to 12,000 keys are counted exactly; among more keys, keys with a four-thousandth of the records are found."""
_DISTINCT_LOG2 = 12


@dataclass(frozen=True)
class HotKey:
    """A key and how many records have it: between `at_least` and `at_most`, which are equal if there are few keys."""

    key: bytes
    partition: int
    at_least: int
    at_most: int


@dataclass(frozen=True)
class PartitionStats:
    """The records of a partition. Sizes are bytes; times are milliseconds since 1970-01-01 UTC, None if no record has one.

    * stored: bytes of the record batches on disk; raw: of keys and values.
    * keys: about how many different keys (within 5 %); null_keys: records without a key.
    * value_min, value_median, value_max: sizes of values; None without records. The median is within 2 % of the ranks.
    """

    partition: int
    records: int
    stored: int
    raw: int
    keys: int
    null_keys: int
    null_values: int
    value_min: int | None
    value_median: int | None
    value_max: int | None
    min_timestamp: int | None
    max_timestamp: int | None


@dataclass(frozen=True)
class Stats:
    """The answer of `Topic.stats`: a `PartitionStats` for each partition that was asked for, and the most frequent keys of all of them."""

    topic: str
    partitions: list[PartitionStats]
    hot_keys: list[HotKey]

    @property
    def records(self) -> int:
        """The records of all these partitions."""
        return sum(each.records for each in self.partitions)

    @property
    def skew(self) -> float:
        """The records of the largest partition, by the mean of all: 1 if all are equal."""
        return max((each.records for each in self.partitions), default=0) * len(self.partitions) / self.records if self.records else 1.0

    @property
    def compression_ratio(self) -> float:
        """Bytes of keys and values, by the bytes on disk."""
        stored = sum(each.stored for each in self.partitions)
        return sum(each.raw for each in self.partitions) / stored if stored else 1.0

    def as_dict(self) -> dict[str, Any]:
        """The figures as JSON types. A key that is not UTF-8 is in a field `key_base64`."""
        return {
            "topic": self.topic,
            "records": self.records,
            "skew": round(self.skew, 3),
            "compression_ratio": round(self.compression_ratio, 3),
            "partitions": [asdict(each) for each in self.partitions],
            "hot_keys": [
                {**field("key", each.key), "partition": each.partition, "at_least": each.at_least, "at_most": each.at_most}
                for each in self.hot_keys
            ],
        }

    def __repr__(self) -> str:
        return "\n\n".join(Display(*each).text() for each in self.displays())

    def _repr_html_(self) -> str:
        return "".join(Display(*each).html() for each in self.displays())

    def displays(self) -> list[tuple[str, list[str], list[str], list[list[object]]]]:
        """A table of the partitions, and a table of the frequent keys if records have keys: a title, lines below it, names of columns,
        rows.
        """
        about = [
            f"{counted(self.records, 'record')}; the largest partition has {self.skew:.2f} times the mean",
            f"{self.compression_ratio:.2f} bytes of keys and values for each byte on disk",
        ]
        columns = ["partition", "records", "bytes", "keys", "null keys", "value min", "median", "max", "from (UTC)", "to (UTC)"]
        rows: list[list[object]] = [
            [
                *(each.partition, each.records, each.stored, each.keys, each.null_keys),
                *("" if size is None else size for size in (each.value_min, each.value_median, each.value_max)),
                *(when(each.min_timestamp), when(each.max_timestamp)),
            ]
            for each in self.partitions
        ]
        hot: list[list[object]] = []
        for each in self.hot_keys:
            count = each.at_least if each.at_least == each.at_most else f"{each.at_least:,} to {each.at_most:,}"
            hot.append([readable(each.key, 60), each.partition, count, f"{each.at_least / self.records:.1%}"])
        tables = [(f"Topic {self.topic}", about, columns, rows)]
        return [*tables, ("Most frequent keys", [], ["key", "partition", "records", "share"], hot)] if hot else tables


class _Counting:
    def __init__(self) -> None:
        try:
            import datasketches
        except ImportError:
            raise SparklogError("CLI_EXTRA", module="datasketches") from None
        self._sketches = datasketches
        self._frequent = datasketches.frequent_items_sketch(_SKETCH_LOG2)
        self._at: dict[bytes, int] = {}

    def partition(self, log: TopicLog, state: State, partition: int, read: Callable[[int], object]) -> PartitionStats:
        keys, sizes = self._sketches.hll_sketch(_DISTINCT_LOG2), self._sketches.kll_ints_sketch()
        records = raw = null_keys = null_values = 0
        times: list[int] = []
        reader = PartitionReader(log, state, partition)
        for batch in reader.records(state.starts[partition], state.ends[partition], columns=["key", "value", "timestamp"]):
            key, value, timestamp = batch.columns
            records += batch.num_rows
            null_keys += key.null_count
            null_values += value.null_count
            for each in pc.value_counts(key.drop_null()).to_pylist():
                self._frequent.update(each["values"], each["counts"])
                keys.update(mmh3.hash64(each["values"], signed=True)[0])
                self._at[each["values"]] = partition
            if len(self._at) > 4 << _SKETCH_LOG2:
                hot = {item for item, *_ in self._frequent.get_frequent_items(self._sketches.frequent_items_error_type.NO_FALSE_NEGATIVES)}
                self._at = {each: number for each, number in self._at.items() if each in hot}
            lengths = pc.binary_length(value.drop_null())
            if len(lengths):
                sizes.update(lengths.cast(pa.int32()).to_numpy().copy())  # it takes no array that must not be written
            raw += (pc.sum(lengths).as_py() or 0) + (pc.sum(pc.binary_length(key)).as_py() or 0)
            micros = timestamp.cast(pa.int64())
            known = micros.filter(pc.greater_equal(micros, 0))  # −1 ms: the record does not have a time
            if len(known):
                bounds = pc.min_max(known).as_py()
                times += [bounds["min"] // 1000, bounds["max"] // 1000]
            read(batch.num_rows)
        stored = sum(each.bytes for each in log.segments(state, partition))
        none = sizes.is_empty()
        return PartitionStats(
            partition,
            records,
            stored,
            raw,
            round(keys.get_estimate()),
            null_keys,
            null_values,
            None if none else sizes.get_min_value(),
            None if none else sizes.get_quantile(0.5),
            None if none else sizes.get_max_value(),
            min(times, default=None),
            max(times, default=None),
        )

    def hot(self, limit: int) -> list[HotKey]:
        found = self._frequent.get_frequent_items(self._sketches.frequent_items_error_type.NO_FALSE_POSITIVES)
        return [HotKey(key, self._at.get(key, -1), low, high) for key, _, low, high in found[:limit]]


def of_topic(log: TopicLog, state: State, partitions: Iterable[int], limit: int, progress: Callable[[int, int], object] | None) -> Stats:
    """The figures of some partitions, with at most `limit` hot keys. `progress` is called with the records so far, and their end."""
    counting, asked, done = _Counting(), list(partitions), 0
    total = sum(state.ends[each] - state.starts[each] for each in asked)

    def read(records: int) -> None:
        nonlocal done
        done += records
        if progress is not None:
            progress(done, total)

    found = [counting.partition(log, state, partition, read) for partition in asked]
    return Stats(state.topic, found, counting.hot(limit))
