"""A topic and its records, read without a JVM and without Spark."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sparklog import arguments
from sparklog.batches.columns import schema_of
from sparklog.errors import SparklogError
from sparklog.log import by_time
from sparklog.log.batches import Batches, Segments
from sparklog.log.commits import Commits
from sparklog.log.description import describe
from sparklog.log.keys import Key, key_table
from sparklog.ondisk.reader import PartitionReader, Wanted
from sparklog.ondisk.root import Root
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_logs import TopicLogs
from sparklog.ondisk.totals import Totals
from sparklog.show.display import SEGMENTS_SUMMED, SHOWN, Display, Displayed, counted, readable, rows, when

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

    from sparklog.log.hot_slots import HotSlots
    from sparklog.log.plots import TopicPlots
    from sparklog.log.slot_moves import SlotMoves
    from sparklog.log.stats import Stats

_SHOWN_COLUMNS = ["partition", "offset", "timestamp", "key", "value", "headers"]


class Topic(Displayed):
    """A topic of a log, as `Log.topic` returns it. Every call sees what is committed at that moment.

    It is an Arrow stream of all its records: `pa.table(topic)`, `pl.DataFrame(topic)`, DuckDB's `FROM topic`.
    """

    name: str

    def __init__(self, root: str | os.PathLike[str] | Root | TopicLogs, name: str, *, filesystem: FileSystem | None = None) -> None:
        """Opens a topic. The root, and `filesystem`, are those of `Log`."""
        self.name = arguments.topic(name)
        self._log = arguments.topic_logs(root, filesystem).log(self.name)
        try:
            self._log.newest()
        except SparklogError:
            self._log.root.require()
            raise

    @property
    def root(self) -> str:
        """The absolute path of the root, or its URL."""
        return str(self._log.root)

    @property
    def partitions(self) -> int:
        """The number of partitions; they are numbered from 0."""
        return self._log.newest().partitions

    @property
    def config(self) -> dict[str, str]:
        """The topic's configuration, under Kafka's names."""
        return dict(self._log.newest().config)

    def partition_for(self, key: bytes | bytearray | memoryview | str) -> int:
        """The partition that the topic chooses for this key; a string is encoded as UTF-8.

        A record that was written to an explicit partition, or before partitions changed, can be in another one: see `partitions_for`.
        TypeError if the key is None.
        """
        return Key.of(self._log.newest(), key).home

    def partitions_for(self, key: bytes | bytearray | memoryview | str) -> list[int]:
        """All partitions that may hold records of this key, in order; a string is encoded as UTF-8. TypeError if the key is None.

        They are the one that the topic chooses now, those that it chose before its partitions changed and that have records of that time,
        and those that have records whose partition a caller chose.
        """
        state = self._log.newest()
        return Key.of(state, key).partitions(self._log, state)

    def key_table(self, n: int = 10_000) -> pa.Table:
        """The keys of the last n records of each partition, and the partition to which the topic sends each of them now.

        A row for each key, by partition, then by key: `key`, `partition`, `records` (how many of those that were read have it), and the
        newest `timestamp` among these. Records without a key are left out. A key is listed once, also where its partition has changed.
        """
        state, columns = self._log.newest(), ["key", "timestamp"]
        n = arguments.count("n", n)
        tails = [self._tail(state, partition, n, Wanted(), columns) for partition in range(state.partitions)]
        return key_table(state, pa.concat_tables(tails))

    def hot_slots(self, n: int = 3, records: int = 1_000) -> HotSlots:
        """The n busiest slots of each partition, by a sample of its newest records. Without slots yet, those that it would have.

        The sample has about `records` of the newest records of a partition since a re-route last cut it, and of these about 1 MiB of
        stored batches; of at most 32 partitions, those with the most records since then. Records without a key, and those that a caller put
        into another partition, do not count. `suggest_moves` says which slots to move, and `CALL partlog.move_slots` moves them.
        """
        from sparklog.log.hot_slots import HotSlots

        return HotSlots.of(self._log, self._log.newest(), arguments.count("n", n), arguments.count("records", records))

    def suggest_moves(self, max_moves: int = 100) -> SlotMoves:
        """Chooses slots to exchange, so that partitions have more equal loads.

        About 32 MiB of the newest record batches of each partition are read, and the records of each slot are counted. Busy slots of the
        busiest partition are exchanged for the smallest slots of the idlest one, the largest first. So each partition keeps its number of
        slots. No slot moves if the greatest load, by weight, would fall by less than 5 %, such as where one key is busy alone. The topic is
        not changed: `CALL partlog.move_slots` makes the moves. Then writes that were planned before are refused.

        Args:
            max_moves: How many slots may move, from 0 to 65,536.

        Returns:
            The partition by slot. `loads` has the load of each partition before and after. `sql` is the argument for `move_slots`.

        Raises:
            CallError: OPTION_VALUE if `max_moves` is not in that range.
            DataError: SEGMENT_CORRUPT or BATCH_CORRUPT if a record of the sample cannot be read.

        Example:
            >>> if moves := topic.suggest_moves():
            ...     spark.sql(f"CALL partlog.move_slots('{topic.root}', '{topic.name}', {moves.sql})")
        """
        from sparklog.log.slot_moves import MOVES_MAX, SlotMoves

        return SlotMoves.of(self._log, self._log.newest(), arguments.count("max_moves", max_moves, MOVES_MAX))

    def start_offsets(self) -> dict[int, int]:
        """The log start offset of each partition: the first offset that can still be read."""
        return dict(enumerate(self._log.newest().starts))

    def end_offsets(self) -> dict[int, int]:
        """The end offset of each partition: the offset that its next record will get."""
        return dict(enumerate(self._log.newest().ends))

    def offsets_for_time(self, time: int | datetime.datetime | str) -> dict[int, int]:
        """For each partition, the offset of its first record at or after this time, or its end offset if there is no such record.

        A time is an integer (milliseconds since 1970-01-01 UTC), a datetime with a time zone, or a text: such an integer, or ISO 8601 in
        UTC if it has no zone, as `2024-05-01`, `2024-05-01T12:00Z` or `2024-05-01 12:00:30.5+02:00`.
        """
        state = self._log.newest()
        millis = arguments.millis(time)
        return {partition: PartitionReader(self._log, state, partition).offset_at(millis) for partition in range(state.partitions)}

    def show(
        self,
        n: int = 10,
        partition: int | Collection[int] | None = None,
        *,
        key: bytes | str | None = None,
        last: bool = False,
        truncate: int | None = 60,
    ) -> None:
        """Prints the records of `head`, or with `last` those of `tail`, as text; in a notebook, as a table.

        Keys, values and headers are shown as UTF-8, at most `truncate` characters of each (None: all of them). Bytes that are not UTF-8
        become escapes (\\x00). Times are UTC.
        """
        longest = None if truncate is None else arguments.count("truncate", truncate)
        table = (self.tail if arguments.boolean("last", last) else self.head)(n, partition, key=key, columns=_SHOWN_COLUMNS)
        columns = [name for name in _SHOWN_COLUMNS if name != "headers" or table["headers"].null_count < table.num_rows]
        cells = [[_cell(name, row[name], longest) for name in columns] for row in rows(table)]
        title = f"Topic {self.name}, {'last' if last else 'first'} {counted(table.num_rows, 'record')}"
        if key is not None:
            title += f" with the key {readable(key, longest)}"
        heads = ["timestamp (UTC)" if name == "timestamp" else name for name in columns]
        Display(title, [], heads, cells).show()

    def head(
        self,
        n: int = 10,
        partition: int | Collection[int] | None = None,
        *,
        key: bytes | str | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """The first n records, partition by partition, in order of offsets. `key` and `columns` are as in `scan`."""
        return self.read(partition, limit=arguments.count("n", n), key=key, columns=columns)

    def tail(
        self,
        n: int = 10,
        partition: int | Collection[int] | None = None,
        *,
        key: bytes | str | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """The last n records. Several partitions are merged by timestamp, and each keeps the order of its offsets.

        `key` and `columns` are as in `scan`.
        """
        state = self._log.newest()
        n = arguments.count("n", n)
        names = arguments.columns(columns)
        partitions, wanted = self._asked(state, partition, key)
        if len(partitions) == 1:
            return self._tail(state, partitions[0], n, wanted, names)
        # Which records these are, offsets and times tell. Only these are read whole, which are few where partitions are many.
        readers = [PartitionReader(self._log, state, each) for each in partitions]
        found = [
            by_time.last_places(reader, state.starts[each], state.ends[each], n, wanted)
            for each, reader in zip(partitions, readers, strict=True)
        ]
        owners, offsets = by_time.chosen(found, n, last=True)
        tables = []
        for number, reader in enumerate(readers):
            its = offsets[owners == number]
            batches = reader.records(int(its[0]), int(its[-1]) + 1, None, wanted, names) if its.size else ()
            tables.append(pa.Table.from_batches(batches, schema_of(names)))
        return by_time.interleaved(tables, owners) if tables else schema_of(names).empty_table()

    def read(
        self,
        partition: int | Collection[int] | None = None,
        start: int | Mapping[int, int] | None = None,
        end: int | Mapping[int, int] | None = None,
        limit: int | None = None,
        *,
        key: bytes | str | None = None,
        since: int | datetime.datetime | str | None = None,
        until: int | datetime.datetime | str | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """Records as a table, in order of partitions and offsets. The arguments are those of `scan`."""
        return self.scan(partition, start, end, limit, key=key, since=since, until=until, columns=columns).read_all()

    def scan(
        self,
        partition: int | Collection[int] | None = None,
        start: int | Mapping[int, int] | None = None,
        end: int | Mapping[int, int] | None = None,
        limit: int | None = None,
        *,
        key: bytes | str | None = None,
        since: int | datetime.datetime | str | None = None,
        until: int | datetime.datetime | str | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.RecordBatchReader:
        """Records in parts of some megabytes, in order of partitions and offsets, as they are committed at the time of the call.

        The result is an iterator of Arrow record batches. DuckDB, Polars and PyArrow accept it as a stream.

        * partition: only this partition, or only those of a list; by default, all of them.
        * start, end: the first offset, and the offset to stop before, for all partitions or as a dict by partition. The defaults are
          the log start offset and the end offset. Offsets outside these are an error (PARTLOG_OFFSETS_OUT_OF_RANGE), and so is an end
          before its start (PARTLOG_OFFSETS_BACKWARDS).
        * limit: the most records to return, over all partitions.
        * key: only records with this key (a string is encoded as UTF-8), from all partitions that may hold it (`partitions_for`). Segments
          in which its partition shows that they cannot are not read.
        * since, until: only records with timestamps from `since` to before `until`, as times in `offsets_for_time`; `until` must not be
          before `since`. Segments without such a record are not read.
        * columns: the names of the columns to return, in this order; by default, all of them.
        """
        state = self._log.newest()
        partitions, wanted = self._asked(state, partition, key)
        ranges = arguments.offset_ranges(state, self._log.root, start, end, partitions)
        names = arguments.columns(columns)
        earliest, latest = arguments.times(since, until)
        wanted = wanted._replace(since=earliest, until=latest)
        batches = self._scan(state, ranges, None if limit is None else arguments.count("limit", limit), wanted, names)
        return pa.RecordBatchReader.from_batches(schema_of(names), batches)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """All records as a stream of Arrow's PyCapsule interface."""
        return self.scan().__arrow_c_stream__(requested_schema)

    def _asked(self, state: State, partition: object, key: bytes | str | None) -> tuple[list[int], Wanted]:
        """The partitions to read, and what of them."""
        if key is None:
            return arguments.some_partitions(state, self._log.root, partition), Wanted()
        its = Key.of(state, key)
        asked = its.partitions(self._log, state) if partition is None else arguments.some_partitions(state, self._log.root, partition)
        return asked, Wanted(its.data, its.may_be_in if partition is None or its.routing else None)

    def _scan(
        self, state: State, ranges: list[tuple[int, int, int]], limit: int | None, wanted: Wanted, columns: list[str]
    ) -> Iterator[pa.RecordBatch]:
        for partition, start, end in ranges:
            if limit == 0:
                return
            for batch in PartitionReader(self._log, state, partition).records(start, end, limit, wanted, columns):
                yield batch
                if limit is not None:
                    limit -= batch.num_rows

    def _tail(self, state: State, partition: int, n: int, wanted: Wanted, columns: list[str]) -> pa.Table:
        reader = PartitionReader(self._log, state, partition)
        found = by_time.last_batches(reader, state.starts[partition], state.ends[partition], n, wanted, columns)
        table = pa.Table.from_batches(found, schema_of(columns))
        return table.slice(max(0, table.num_rows - n))

    def batches(self, partition: int) -> Batches:
        """The record batches of a partition, from their headers. After a rebatch, the next one may begin below where this stands."""
        state = self._log.newest()
        arguments.integer("partition", partition)
        (partition,) = arguments.partitions(state, self._log.root, partition)
        return Batches(PartitionReader(self._log, state, partition), partition)

    def segments(self, partition: int | Collection[int] | None = None) -> Segments:
        """The live segments of a partition, or of all, in order of offsets: where each is stored, and what it holds.

        Offsets are [base, end). `file` is relative to `_partlog/<topic>/`, `position` a byte of it. Times are milliseconds since 1970-01-01
        UTC, or −1. FORMAT.md section 4.
        """
        return Segments.of(self._log, partition)

    def stats(
        self, partition: int | Collection[int] | None = None, *, hot_keys: int = 10, progress: Callable[[int], object] = lambda _: None
    ) -> Stats:
        """Statistics of the records of a partition, or of all: numbers, sizes, keys, the most frequent keys. All of them are read.

        `progress` is called with the number of records that were read since. CallError CLI_EXTRA if a library is missing.
        """
        from sparklog.log.stats import of_topic

        state = self._log.newest()
        asked = arguments.some_partitions(state, self._log.root, partition)
        return of_topic(self._log, state, asked, arguments.count("hot_keys", hot_keys), arguments.function("progress", progress))

    @property
    def plot(self) -> TopicPlots:
        """Plots of the topic: `topic.plot.partitions()`, `.segments()`, `.commits()`, `.times()`."""
        from sparklog.log.plots import TopicPlots

        return TopicPlots(self._log)

    def commits(self, limit: int | None = None) -> Commits:
        """The commits, oldest first; with a limit, only that number of the newest. The files of very old commits may have been deleted."""
        return Commits.of(self._log, limit)

    def describe(self) -> dict[str, Any]:
        """All facts about the topic, in types that JSON has. Times are milliseconds since 1970-01-01 UTC; None if no record has one.

        `records`, `batches`, `bytes`, `segments`, `min_timestamp` and `max_timestamp` are of all partitions, and again of each.
        `bytes` are those of the live segments, `view_bytes` those that the Kafka view takes beside them: copies and indexes.
        `routing` is None until partitions were first changed with slots; then it has the routing `epoch`, the number of `slots`,
        the `closed` partitions, and the `reroutes` that have records from before them, each with its version and its cut: by
        partition, the end offset when the partition last gave or got slots. With `placement` = `on_first_write`, `unbound` is the number
        of slots that have no partition yet, `shares` are the shares of partitions in them (or None), and `shares_until` is the time until
        which these have effect. Each partition
        then has its `slots` and its `weight`. `pending_weights` are those of a re-route that waits for the next write, or None.
        `waiting` has the `files` that wait for their deletion, which `bytes` does not count, and their `bytes`; None if that is not known.
        """
        return {"root": self.root, **describe(self._log)}

    def _display(self) -> Display:
        try:
            state = self._log.newest()
            totals = Totals.of_partitions(self._log, state, SEGMENTS_SUMMED)
        except SparklogError as error:
            return Display(f"Topic {self.name}", [f"in {self.root}", str(error)], [], [])
        about = [
            f"in {self.root}",
            f"version {state.version}, committed at {when(state.time)} UTC",
            _sums(totals),
            ", ".join(f"{key}={value}" for key, value in sorted(state.config.items())),
        ]
        rows: list[list[object]] = [
            [partition, start, end, end - start] for partition, (start, end) in enumerate(zip(state.starts, state.ends, strict=True))
        ]
        columns = ["partition", "start", "end", "offsets"]
        if totals is not None:
            columns += ["bytes", "from (UTC)", "to (UTC)"]
            for row, each in zip(rows, totals, strict=True):
                row += [each.bytes, when(each.min_timestamp), when(each.max_timestamp)]
        return Display(f"Topic {self.name}", about, columns, rows[:SHOWN], more=len(rows) - SHOWN)


def _sums(totals: list[Totals] | None) -> str:
    if totals is None:
        return f"more than {SEGMENTS_SUMMED:,} segments; describe() sums up their bytes and times"
    together = Totals.together(totals)
    return f"{counted(together.records, 'record')} in {together.bytes:,} bytes"


def _cell(column: str, value: Any, longest: int | None) -> object:
    if column in ("key", "value"):
        return readable(value, longest)
    if column == "headers":
        return readable(", ".join(f"{each['key']}={readable(each['value'], longest)}" for each in value or ()), longest)
    return when(value) if column == "timestamp" else value
