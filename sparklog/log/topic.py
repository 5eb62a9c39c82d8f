"""A topic and its records, read without a JVM and without Spark."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sparklog import arguments
from sparklog.batches.columns import schema_of
from sparklog.errors import SparklogError
from sparklog.log import by_time
from sparklog.log.batches import Batches, Segments
from sparklog.log.commits import Commits
from sparklog.log.description import describe
from sparklog.log.keys import Key, recent_keys
from sparklog.ondisk.prefetch import Prefetch
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
    """A topic of a log, as `Log.topic` returns it. Every call sees the newest commit.

    It is an Arrow stream of all its records: `pa.table(topic)`, `pl.DataFrame(topic)`, DuckDB's `FROM topic`.

    Example:
        >>> import pyarrow as pa
        >>> topic = sparklog.Log("events")["orders"]
        >>> pa.table(topic).num_rows
        20
    """

    __module__ = "sparklog"

    name: str

    def __init__(self, root: str | os.PathLike[str] | Root | TopicLogs, name: str, *, filesystem: FileSystem | None = None) -> None:
        """Opens a topic.

        Args:
            root: The root, as in `Log`.
            name: The name of the topic.
            filesystem: The file system of the root, as in `Log`.

        Raises:
            CallError: ROOT_NOT_FOUND, TOPIC_NOT_FOUND or TOPIC_NAME_ILLEGAL.
            DataError: VERSION_CORRUPT or VERSION_MISSING if the newest state cannot be read.

        Example:
            >>> sparklog.Topic("events", "orders").partitions
            2
        """
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
        """Finds the partition to which the topic sends a key now.

        A record that was written to an explicit partition, or before partitions changed, can be in another one: see `partitions_holding`.

        Args:
            key: The key; a string is encoded as UTF-8.

        Returns:
            The number of the partition, from 0.

        Raises:
            TypeError: If the key is None, or of another type.

        Example:
            >>> topic.partition_for("customer-1"), topic.partition_for(b"customer-2")
            (0, 1)
        """
        return Key.of(self._log.newest(), key).home

    def partitions_holding(self, key: bytes | bytearray | memoryview | str) -> list[int]:
        """Finds all partitions that may hold records of a key.

        They are:

        * the partition to which the topic sends the key now;
        * partitions to which it sent the key before its partitions changed, if they have records of that time;
        * partitions with records for which a writer named the partition.

        Args:
            key: The key; a string is encoded as UTF-8.

        Returns:
            The numbers of the partitions, in order.

        Raises:
            TypeError: If the key is None, or of another type.

        Example:
            >>> topic.partitions_holding("customer-1")
            [0]
        """
        state = self._log.newest()
        return Key.of(state, key).partitions(self._log, state)

    def recent_keys(self, n: int = 10_000) -> pa.Table:
        """Lists the keys of the newest records of each partition, and the partition to which the topic sends each key now.

        Args:
            n: The number of records of each partition that are read; default 10,000.

        Returns:
            A row for each key, by partition, then by key: `key`, `partition`, `records` (the number of these records with the key), and
            their newest `timestamp`. Records without a key are left out.

        Raises:
            DataError: BATCH_CORRUPT or SEGMENT_CORRUPT if a record cannot be read.

        Example:
            >>> topic.recent_keys().select(["key", "partition", "records"]).to_pylist()[0]
            {'key': b'customer-1', 'partition': 0, 'records': 5}
        """
        state, columns = self._log.newest(), ["key", "timestamp"]
        n = arguments.count("n", n)
        tails = [self._tail(state, partition, n, Wanted(), columns) for partition in range(state.partitions)]
        return recent_keys(state, pa.concat_tables(tails))

    def hot_slots(self, n: int = 3, records: int = 1_000) -> HotSlots:
        """Finds the busiest slots of each partition, by a sample of its newest records.

        The sample has at most about 1 MiB of stored batches of a partition, since a re-route last cut it. It has at most 32 partitions: the
        busiest since then. Records without a key, and records for which a writer named another partition, do not count. A topic without
        slots shows the slots that it would have. `suggest_moves` says which slots to move.

        Args:
            n: The number of slots of each partition; default 3.
            records: About the number of records of each partition in the sample; default 1,000.

        Returns:
            The slots, each with its partition, its records in the sample, and its busiest keys.

        Raises:
            DataError: BATCH_CORRUPT or SEGMENT_CORRUPT if a record of the sample cannot be read.

        Example:
            >>> [(each.partition, each.records) for each in topic.hot_slots(1)]
            [(0, 5), (1, 5)]
        """
        from sparklog.log.hot_slots import HotSlots

        return HotSlots.of(self._log, self._log.newest(), arguments.count("n", n), arguments.count("records", records))

    def suggest_moves(self, max_moves: int = 100) -> SlotMoves:
        """Chooses slots to exchange, so that partitions have more equal loads. The topic is not changed.

        About 32 MiB of the newest record batches of each partition are read, and the records of each slot are counted. Samples of larger
        partitions are equally large, so a partition with twice the records does not look busier. Busy slots of the busiest partition are
        exchanged for the smallest slots of the idlest one, the largest first. So each partition keeps its number of slots. No slot moves if
        the greatest load, by weight, would fall by less than 5 %, such as where one key is busy alone. `CALL partlog.move_slots` makes the
        moves. Then writes that were planned before are refused.

        Args:
            max_moves: The most slots that may move, from 0 to 65,536; default 100.

        Returns:
            The partition by slot. `loads` has the load of each partition before and after. `sql` is the argument for `move_slots`.

        Raises:
            CallError: OPTION_VALUE if `max_moves` is not in that range. REROUTE_PENDING if `move_slots` is refused now.
            UpgradeError: FORMAT_TOO_NEW if `move_slots` is refused, as this release does not know the topic's placement.
            DataError: SEGMENT_CORRUPT or BATCH_CORRUPT if a record of the sample cannot be read.

        Example:
            >>> moves = topic.suggest_moves()
            >>> [(each.partition, each.records_before, each.records_after) for each in moves.loads]
            [(0, 5, 10), (1, 15, 10)]
        """
        from sparklog.log.slot_moves import MOVES_MAX, SlotMoves

        return SlotMoves.of(self._log, self._log.newest(), arguments.count("max_moves", max_moves, MOVES_MAX))

    def start_offsets(self) -> dict[int, int]:
        """Returns the log start offsets: the first offset of each partition that can be read.

        Returns:
            The offsets by partition.

        Raises:
            CallError: TOPIC_NOT_FOUND if the topic was deleted.

        Example:
            >>> topic.start_offsets()
            {0: 0, 1: 0}
        """
        return dict(enumerate(self._log.newest().starts))

    def end_offsets(self) -> dict[int, int]:
        """Returns the end offsets: the offset that the next record of each partition will get.

        Returns:
            The offsets by partition.

        Raises:
            CallError: TOPIC_NOT_FOUND if the topic was deleted.

        Example:
            >>> topic.end_offsets()
            {0: 5, 1: 15}
        """
        return dict(enumerate(self._log.newest().ends))

    def offsets_for_time(self, time: int | datetime.datetime | str) -> dict[int, int]:
        """Finds the first record of each partition at or after a time.

        Args:
            time: An integer of milliseconds since 1970-01-01 UTC; a datetime with a time zone; or a text: such an integer, or ISO 8601, in
                UTC without a zone, such as `2024-05-01`, `2024-05-01T12:00Z` or `2024-05-01 12:00:30.5+02:00`.

        Returns:
            The offsets by partition; the end offset where no record is at or after the time.

        Raises:
            CallError: OPTION_VALUE if the time cannot be read.

        Example:
            >>> topic.offsets_for_time("2023-11-14T22:13:30Z")
            {0: 3, 1: 7}
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
        """Prints the records of `head`, or with `last` of `tail`, as text; in a notebook, as a table. Times are in UTC.

        Args:
            n: The number of records; default 10.
            partition: A partition, or several; by default all.
            key: Only records with this key; a string is encoded as UTF-8.
            last: Whether the last records are shown, in place of the first; default False.
            truncate: The most characters of a key, a value or a header that are shown; default 60, None for all. Bytes that are not UTF-8
                become escapes.

        Raises:
            CallError: OPTION_VALUE if an argument is out of its range; PARTITION_NOT_FOUND.
            DataError: BATCH_CORRUPT or SEGMENT_CORRUPT if a record cannot be read.

        Example:
            >>> topic.show(1, partition=0)
            Topic orders, first 1 record
            <BLANKLINE>
            partition  offset  timestamp (UTC)      key         value
                    0       0  2023-11-14 22:13:21  customer-1  {"cents": 100}
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
        """Reads the first records, partition by partition, in the order of offsets.

        Args:
            n: The number of records; default 10.
            partition: A partition, or several; by default all.
            key: Only records with this key, as in `scan`.
            columns: The names of the columns to return, in this order; by default all.

        Returns:
            The records as a table.

        Raises:
            CallError: OPTION_VALUE if an argument is out of its range; PARTITION_NOT_FOUND.
            DataError: BATCH_CORRUPT or SEGMENT_CORRUPT if a record cannot be read.

        Example:
            >>> topic.head(2, partition=0, columns=["offset", "key"]).to_pylist()
            [{'offset': 0, 'key': b'customer-1'}, {'offset': 1, 'key': b'customer-1'}]
        """
        return self.read(partition, limit=arguments.count("n", n), key=key, columns=columns)

    def tail(
        self,
        n: int = 10,
        partition: int | Collection[int] | None = None,
        *,
        key: bytes | str | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """Reads the last records. Several partitions are merged by timestamp, and each keeps the order of its offsets.

        Args:
            n: The number of records; default 10.
            partition: A partition, or several; by default all.
            key: Only records with this key, as in `scan`.
            columns: The names of the columns to return, in this order; by default all.

        Returns:
            The records as a table, the oldest first.

        Raises:
            CallError: OPTION_VALUE if an argument is out of its range; PARTITION_NOT_FOUND.
            DataError: BATCH_CORRUPT or SEGMENT_CORRUPT if a record cannot be read.

        Example:
            >>> topic.tail(2, columns=["partition", "offset"]).to_pylist()
            [{'partition': 1, 'offset': 13}, {'partition': 1, 'offset': 14}]
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
            chosen = offsets[owners == number]
            batches = reader.records(int(chosen[0]), int(chosen[-1]) + 1, None, wanted, names) if chosen.size else ()
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
        """Reads records as a table, in the order of partitions and offsets. `scan` does the same part by part.

        Args:
            partition: A partition, or several; by default all.
            start: The first offset, for all partitions or as a dict by partition; by default the log start offset.
            end: The offset to stop before, for all partitions or as a dict by partition; by default the end offset.
            limit: The most records to return, over all partitions; by default all.
            key: Only records with this key, from all partitions that may hold it; a string is encoded as UTF-8.
            since: Only records at or after this time, as in `offsets_for_time`.
            until: Only records before this time, which must not be before `since`.
            columns: The names of the columns to return, in this order; by default all.

        Returns:
            The records as a table.

        Raises:
            CallError: OFFSETS_OUT_OF_RANGE, OFFSETS_BACKWARDS, PARTITION_NOT_FOUND, or OPTION_VALUE.
            DataError: BATCH_CORRUPT or SEGMENT_CORRUPT if a record cannot be read.

        Example:
            >>> topic.read(key="customer-2").num_rows
            5
            >>> topic.read(1, start=5, end=8)["offset"].to_pylist()
            [5, 6, 7]
        """
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
        """Reads records in parts of some megabytes, in the order of partitions and offsets, as they are committed at the time of the call.

        DuckDB, Polars and PyArrow accept the result as a stream. In a store over a network, up to 32 MiB of the next segments are requested
        at once while a part is decoded.

        Args:
            partition: A partition, or several; by default all.
            start: The first offset, for all partitions or as a dict by partition; by default the log start offset.
            end: The offset to stop before, for all partitions or as a dict by partition; by default the end offset.
            limit: The most records to return, over all partitions; by default all.
            key: Only records with this key, from all partitions that may hold it (`partitions_holding`); a string is encoded as UTF-8.
                Segments that cannot hold the key are not read.
            since: Only records at or after this time, as in `offsets_for_time`. Segments without such a record are not read.
            until: Only records before this time, which must not be before `since`.
            columns: The names of the columns to return, in this order; by default all.

        Returns:
            An iterator of Arrow record batches.

        Raises:
            CallError: OFFSETS_OUT_OF_RANGE if an offset is outside of the log; OFFSETS_BACKWARDS if an end is before its start;
                PARTITION_NOT_FOUND; OPTION_VALUE.
            DataError: BATCH_CORRUPT or SEGMENT_CORRUPT, from the iterator, if a record cannot be read.

        Example:
            >>> sum(batch.num_rows for batch in topic.scan(since="2023-11-14T22:13:30Z"))
            10
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
        wanted_key = Key.of(state, key)
        asked = (
            wanted_key.partitions(self._log, state) if partition is None else arguments.some_partitions(state, self._log.root, partition)
        )
        return asked, Wanted(wanted_key.data, wanted_key.may_be_in if partition is None or wanted_key.routing else None)

    def _scan(
        self, state: State, ranges: list[tuple[int, int, int]], limit: int | None, wanted: Wanted, columns: list[str]
    ) -> Iterator[pa.RecordBatch]:
        prefetch = Prefetch(self._log.root.store)
        readers = [(PartitionReader(self._log, state, partition, prefetch), start, end) for partition, start, end in ranges]
        spans = (reader.spans(start, end, wanted.may_be_in) for reader, start, end in readers)
        prefetch.follow(chain.from_iterable(spans), few=limit is not None)
        try:
            for reader, start, end in readers:
                if limit == 0:
                    return
                for batch in reader.records(start, end, limit, wanted, columns):
                    yield batch
                    if limit is not None:
                        limit -= batch.num_rows
        finally:
            prefetch.drop()

    def _tail(self, state: State, partition: int, n: int, wanted: Wanted, columns: list[str]) -> pa.Table:
        reader = PartitionReader(self._log, state, partition)
        found = by_time.last_batches(reader, state.starts[partition], state.ends[partition], n, wanted, columns)
        table = pa.Table.from_batches(found, schema_of(columns))
        return table.slice(max(0, table.num_rows - n))

    def batches(self, partition: int) -> Batches:
        """Reads the headers of the record batches of a partition.

        After a merge with `rebatch`, the next batch may overlap the last one.

        Args:
            partition: The number of the partition.

        Returns:
            An iterator of batches: position, codec, times, producer, checksum.

        Raises:
            CallError: PARTITION_NOT_FOUND.
            DataError: BATCH_CORRUPT or SEGMENT_CORRUPT, from the iterator.

        Example:
            >>> [(each.base_offset, each.records, each.codec) for each in topic.batches(0)]
            [(0, 5, 'none')]
        """
        state = self._log.newest()
        arguments.integer("partition", partition)
        (partition,) = arguments.partitions(state, self._log.root, partition)
        return Batches(PartitionReader(self._log, state, partition), partition)

    def segments(self, partition: int | Collection[int] | None = None) -> Segments:
        """Lists the live segments, in the order of offsets. Section 4 of docs/FORMAT.md has their fields.

        Args:
            partition: A partition, or several; by default all.

        Returns:
            The segments. Offsets are [base, end). `file` is relative to `_partlog/<topic>/`, and `position` is a byte of the file. Times
            are milliseconds since 1970-01-01 UTC, or −1.

        Raises:
            CallError: PARTITION_NOT_FOUND.

        Example:
            >>> [(each.partition, each.base, each.end) for each in topic.segments()]
            [(0, 0, 5), (1, 0, 15)]
        """
        return Segments.of(self._log, partition)

    def stats(
        self, partition: int | Collection[int] | None = None, *, hot_keys: int = 10, progress: Callable[[int, int], object] | None = None
    ) -> Stats:
        """Computes statistics of all records of partitions: numbers, sizes, keys, the most frequent keys. It reads every record.

        Args:
            partition: A partition, or several; by default all.
            hot_keys: The number of the most frequent keys; default 10.
            progress: A function that is called with two numbers of records: the read ones so far, and all offsets of the partitions.

        Returns:
            The statistics of each partition, and the most frequent keys of all of them.

        Raises:
            CallError: CLI_EXTRA if `pip install 'sparklog[cli]'` is needed; PARTITION_NOT_FOUND.
            DataError: BATCH_CORRUPT or SEGMENT_CORRUPT if a record cannot be read.

        Example:
            >>> topic.stats().records
            20
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
        """Lists the commits, the oldest first. The files of very old commits are deleted in time.

        Args:
            limit: The number of the newest commits to return; by default all that have a file.

        Returns:
            The commits: version, time, operation, records.

        Raises:
            DataError: VERSION_CORRUPT if a version file is damaged.

        Example:
            >>> [(each.version, each.operation) for each in topic.commits(1)]
            [(1, 'write')]
        """
        return Commits.of(self._log, limit)

    def describe(self) -> dict[str, Any]:
        """Describes the topic in types that JSON has. Times are milliseconds since 1970-01-01 UTC, or None.

        Returns:
            A dict:

            * `records`, `batches`, `bytes`, `segments`, `min_timestamp`, `max_timestamp`: of all partitions, and of each in `partitions`.
              `bytes` counts the live segments.
            * `view_bytes`: the bytes of copies and indexes in the Kafka view.
            * `has_retention`: whether `retention.ms` and `retention.bytes` count. They do not if clients of Kafka have given the topic a
              `cleanup.policy` without `delete`.
            * `routing`: None before the first change of partitions with slots. Then it has the routing `epoch`, the number of `slots`, the
              `closed` partitions, and the `reroutes` with their versions and cuts. A cut has, by partition, the end offset at which the
              partition last gave or got slots. With `placement` = `on_first_write` it also has the number of `unbound` slots, their
              `shares` (or None), and `shares_until`, the time at which these end. Each partition then has its `slots` and its `weight`.
            * `pending_weights`: the weights of a re-route that waits for the next write, or None.
            * `waiting`: the `files` that wait for their deletion, and their `bytes`; None if that is not known.

        Raises:
            DataError: VERSION_CORRUPT or VERSION_MISSING if the newest state cannot be read.

        Example:
            >>> about = topic.describe()
            >>> about["records"], about["partitions"][0]["records"], about["config"]["partitioner"]
            (20, 5, 'murmur3')
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
