"""The records of a partition as Arrow record batches, and its record batches. FORMAT.md section 9."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from sparklog.batches import memory
from sparklog.batches.columns import SCHEMA, arrow_batch, numbers_of
from sparklog.batches.faults import TooLarge
from sparklog.batches.header import batch_bytes_max, decompressed_max
from sparklog.batches.records import RECORDS_AT_ONCE, Payload, Records, locate
from sparklog.errors import DataError, SparklogError
from sparklog.ondisk.names import data_file
from sparklog.ondisk.prefetch import Prefetch, Span
from sparklog.ondisk.segment import Place, SegmentReader, StoredBatch, is_sought
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog
from sparklog.ondisk.version import Segment
from sparklog.store.store import Absent, Damaged

T = TypeVar("T")

_CHUNK_BYTES = 1 << 21
"""Batches are decoded together until they have this many bytes, which stay in the cache of a processor."""
_CHUNK_RECORDS = RECORDS_AT_ONCE // 2
_MORE_BYTES = 1 << 16
"""Where the end of a range is in a segment is about known. So many bytes more are requested."""
PART_BYTES_MAX = 1 << 30
"""A part ends when its Arrow batches have this many bytes.

The offsets of an Arrow array reach up to 2 GiB. A column of a part, and of one more record batch of at most 1 GiB (FORMAT.md section 10),
stays below. So a part can become one batch.
"""


class Wanted(NamedTuple):
    """Which records to read: records with this key, and with times from `since` to before `until` (ms since 1970-01-01 UTC)."""

    key: bytes | None = None
    routes: Callable[[Segment], bool] | None = None
    """Whether a `routed` segment may hold the key. Others are read in any case; without it, all are."""
    since: int | None = None
    until: int | None = None

    @property
    def everything(self) -> bool:
        """Whether all records are wanted."""
        return self == EVERYTHING

    def may_be_in(self, segment: Segment) -> bool:
        """Whether the place and the times of a segment let it hold such a record."""
        if self.routes and segment.routed and not self.routes(segment):
            return False
        # Times below −1 count as −1 in a segment's bounds.
        early = self.until is None or segment.min_timestamp < max(self.until, 0)
        return early and (self.since is None or segment.max_timestamp >= self.since)

    def of(self, records: Records) -> Records:
        """Those of the records that are wanted."""
        if self.key is not None:
            records = records.having(self.key)
        if self.since is not None or self.until is not None:
            records = records.within(self.since, self.until)
        return records


EVERYTHING = Wanted()


class Stop(NamedTuple):
    """Where in a segment a part of a partition ends."""

    segment: Segment
    place: Place


class Part(NamedTuple):
    """A part of a partition. The next one begins at `offset`; `stop` makes it faster to find."""

    batches: list[pa.RecordBatch]
    offset: int
    stop: Stop | None


class PartitionReader:
    """Reads a partition in one state. If a data file was deleted since, it continues with the newest state, which has the same records."""

    def __init__(self, log: TopicLog, state: State, partition: int, prefetch: Prefetch | None = None) -> None:
        """`prefetch` has the bytes that are read soon, if other readers share it."""
        self._log = log
        self._prefetch = prefetch or Prefetch(log.root.store)
        self._shares_prefetch = prefetch is not None
        self._state = state
        self._partition = partition
        message_bytes_max = int(state.config["max.message.bytes"])
        self._decompressed_max = decompressed_max(message_bytes_max)
        self._batch_bytes_max = batch_bytes_max(message_bytes_max)
        memory.batch_bytes_max()  # refuses a wrong setting, also where no batch is compressed

    def records(
        self, start: int, end: int, limit: int | None = None, wanted: Wanted = EVERYTHING, columns: Sequence[str] = SCHEMA.names
    ) -> Iterator[pa.RecordBatch]:
        """The records with the offsets from `start` to before `end`. All these offsets must exist. With `limit`, at most that many."""

        def read(segment: Segment, reader: SegmentReader, begin: int) -> Iterator[tuple[int, pa.RecordBatch | None]]:
            nonlocal limit
            place = None
            if is_sought(segment, begin):
                place = reader.seek(begin)
                self._prefetch.follow(self.spans(begin, end, wanted.may_be_in, place), few=limit is not None)
            batches: Iterable[StoredBatch] = reader.batches(begin, place)
            if end < segment.end:
                batches = takewhile(lambda batch: batch.base_offset < end, batches)
            for chunk in self._chunks(reader, batches, begin, limit if wanted.everything else None):
                reached = chunk[-1][0].after.offset
                for records in self._located(reader, chunk):
                    kept = wanted.of(records)
                    first, after = np.searchsorted(kept.offsets, (begin, end)).tolist()
                    if limit is not None:
                        after = min(after, first + limit)
                        limit -= after - first
                    if first < after:
                        yield reached, arrow_batch(self._state.topic, self._partition, kept, first, after, columns)
                yield reached, None

        if limit == 0:
            return
        for batch in self._read(start, end, read, wanted.may_be_in, few=limit is not None):
            if batch is not None:
                yield batch
            if limit == 0:
                return

    def part(self, start: int, bytes_max: int, stop: Stop | None = None) -> Part:
        """The records from `start` on, which must be between the log start offset and the end offset.

        They are the records of whole batches: as many batches as have `bytes_max` stored bytes together, and at least one batch, which may
        have more. A part that decompresses to far more bytes is shorter, and so is a part of PART_BYTES_MAX as Arrow batches. `stop` is
        where the part before this one ended. Where a file is gone, a merged segment may have records from the end offset on, too.
        """
        end = reached = self._state.ends[self._partition]
        decompressed_max = max(bytes_max, self._decompressed_max)
        found: list[pa.RecordBatch] = []
        stored = size = held = 0

        def is_full() -> bool:
            return size >= decompressed_max or held >= PART_BYTES_MAX

        def read(segment: Segment, reader: SegmentReader, begin: int) -> Iterator[tuple[int, Part | None]]:
            nonlocal stored, size, held, reached
            place = stop.place if stop and stop.segment == segment and stop.place.offset == begin else None
            batches = reader.batches(begin, place, bytes_max - stored, one=not stored)
            for chunk in self._chunks(reader, batches):
                for records in self._located(reader, chunk):
                    first = int(np.searchsorted(records.offsets, begin))
                    if first < records.offsets.size:
                        found.append(arrow_batch(self._state.topic, self._partition, records, first, records.offsets.size))
                        held += found[-1].nbytes
                place = chunk[-1][0].after
                stored += sum(batch.header.total_bytes for batch, _ in chunk)
                size += sum(payload.bytes for _, payload in chunk)
                yield place.offset, None
                if is_full():
                    break
            if place is None:
                # The first batch exceeds the rest of this part, and is the first batch of the next part.
                rest = Stop(segment, reader.begin) if begin == segment.base else None
                yield begin, Part(found, begin, rest)
                return
            if place.position < reader.end:
                yield place.offset, Part(found, place.offset, Stop(segment, place))
                return
            # It was read to its end, where it is checked as a whole.
            for _ in batches:
                pass
            reached = max(reached, segment.end)
            if stored >= bytes_max or is_full():
                yield segment.end, Part(found, segment.end, None)

        limited = next(filter(None, self._read(start, end, read, ahead=False)), None)
        return limited or Part(found, reached, None)

    def contents(self) -> Iterator[tuple[str, StoredBatch | None, list[pa.RecordBatch] | SparklogError]]:
        """All batches, each with its data file, and with its records or the error that it is damaged.

        The rest of a segment that is damaged beyond a batch is skipped, with the error and without a batch.
        """
        start, end = self._state.starts[self._partition], self._state.ends[self._partition]

        def read(segment: Segment, reader: SegmentReader, begin: int) -> Iterator[tuple[int, tuple[str, StoredBatch, Any]]]:
            nonlocal start
            for batch in reader.walk():
                if batch.last_offset >= begin and batch.base_offset < end:
                    content = self._content(reader, batch, begin)
                    start = batch.after.offset
                    yield start, (reader.path, batch, content)
            start = segment.end

        while start < end:
            try:
                yield from self._read(start, end, read)
            except DataError as error:
                (segment, *_) = self._log.segments(self._state, self._partition, start, end)
                yield self._log.location(segment.file), None, error
                start = segment.end

    def _content(self, reader: SegmentReader, batch: StoredBatch, begin: int) -> list[pa.RecordBatch] | SparklogError:
        try:
            payload = self._payload(reader, reader.read(batch))
            found = []
            for records in locate([payload]):
                first = int(np.searchsorted(records.offsets, begin))
                found.append(arrow_batch(self._state.topic, self._partition, records, first, records.offsets.size))
        except Damaged as damage:
            return reader.batch_corrupt(batch.position, damage)
        except DataError as error:
            return error
        return found

    def headers(self) -> Iterator[tuple[str, list[StoredBatch]]]:
        """For each segment its data file, and its batches without their data."""
        start, end = self._state.starts[self._partition], self._state.ends[self._partition]

        def read(segment: Segment, reader: SegmentReader, begin: int) -> Iterator[tuple[int, tuple[str, list[StoredBatch]]]]:
            batches = [batch for batch in reader.headers() if batch.last_offset >= begin and batch.base_offset < end]
            yield segment.end, (reader.path, batches)

        yield from self._read(start, end, read)

    def offset_at(self, millis: int, after: int = 0) -> int:
        """The offset of the first record at or after a time in milliseconds since 1970-01-01 UTC; the end offset without such a record.

        Only records with the offset `after` or a greater one count.
        """
        end = self._state.ends[self._partition]
        start = min(max(self._state.starts[self._partition], after), end)

        def read(_: Segment, reader: SegmentReader, begin: int) -> Iterator[tuple[int, int]]:
            for batch in reader.headers():
                if batch.header.max_timestamp >= millis and batch.last_offset >= begin:
                    for records in self._located(reader, [(batch, self._payload(reader, reader.read(batch)))]):
                        found = np.flatnonzero((records.timestamps >= millis) & (records.offsets >= begin))
                        if found.size:
                            yield begin, int(records.offsets[found[0]])

        return next(self._read(start, end, read, lambda segment: segment.max_timestamp >= millis, ahead=False), end)

    def newest_time(self, start: int, end: int) -> int:
        """The greatest time of the records with the offsets from `start` to before `end`, in milliseconds; −1 if none has one.

        It reads the headers of batches, and only the records of a batch that begins before `start`.
        """

        def read(_: Segment, reader: SegmentReader, begin: int) -> Iterator[tuple[int, int]]:
            for batch in takewhile(lambda batch: batch.base_offset < end, reader.batches(begin)):
                if batch.base_offset >= begin:
                    yield batch.after.offset, batch.header.max_timestamp
                    continue
                for part in self.records(begin, min(batch.last_offset + 1, end), columns=["timestamp"]):
                    yield batch.after.offset, int(numbers_of(part.column(0)).max()) // 1000

        return max(self._read(start, end, read, ahead=False), default=-1)

    def spans(self, start: int, end: int, wanted: Callable[[Segment], bool] = lambda _: True, place: Place | None = None) -> Iterator[Span]:
        """The bytes that are read for the offsets from `start` to before `end`, or about these bytes.

        `place` is where the first segment is read from. Without it, a segment whose first batch is sought is left out.
        """
        for segment in self._log.segments(self._state, self._partition, start, end):
            sought = is_sought(segment, start)
            if wanted(segment) and (place or not sought):
                share = (end - segment.base) / (segment.end - segment.base)
                size = segment.bytes if share >= 1 else min(segment.bytes, int(share * segment.bytes) + _MORE_BYTES)
                begin = place.position if place and sought else segment.position
                yield self._span(segment, begin, max(begin, segment.position + size))

    def next_spans(self, start: int, bytes_max: int, stop: Stop | None = None) -> Iterator[Span]:
        """The bytes that `part` reads from an offset on."""
        for segment in self._log.segments(self._state, self._partition, start):
            begin, end = segment.position, segment.position + segment.bytes
            if stop and stop.segment == segment and stop.place.offset == start:
                begin = stop.place.position
            elif is_sought(segment, start):
                return
            yield self._span(segment, begin, min(end, begin + bytes_max))
            bytes_max -= end - begin
            if bytes_max <= 0:
                return

    def request(self, start: int, bytes_max: int, stop: Stop | None = None) -> None:
        """Requests the bytes that `part` reads from an offset on."""
        self._prefetch.want(self.next_spans(start, bytes_max, stop))

    def _span(self, segment: Segment, begin: int, end: int) -> Span:
        return Span(data_file(self._state.topic, segment.file), begin, end)

    def _read(
        self,
        start: int,
        end: int,
        read: Callable[[Segment, SegmentReader, int], Iterator[tuple[int, T]]],
        wanted: Callable[[Segment], bool] = lambda _: True,
        *,
        ahead: bool = True,
        few: bool = False,
    ) -> Iterator[T]:
        """Everything that `read` finds in the segments that hold these offsets and are wanted.

        It is given a segment, its reader, and the first offset that is wanted of it. With each thing it says up to which offset it
        has read: there it goes on, in another segment, if the data file is gone. `ahead`: it reads the whole segments. `few`: it may
        stop soon.

        A store may give a wrong answer once. So a segment that is damaged or missing is read once more before the error is raised, unless
        something of it was given already: `SegmentReader` reads a batch once more by itself.
        """
        again: tuple[Segment, int] | None = None
        try:
            while start < end:
                state = self._state
                if ahead:
                    self._prefetch.follow(self.spans(start, end, wanted), few=few)
                for segment in self._log.segments(state, self._partition, start, end):
                    if wanted(segment):
                        began = start
                        try:
                            with SegmentReader(self._log.root, state.topic, segment, self._batch_bytes_max, self._prefetch) as reader:
                                for reached, found in read(segment, reader, start):
                                    start = reached
                                    yield found
                        except (Absent, DataError) as fault:
                            self._prefetch.forget(data_file(state.topic, segment.file))
                            once = (segment, start) != again
                            if isinstance(fault, Absent):
                                self._reload(state, segment, start, once=once)
                            elif not once or start != began:
                                raise
                            again = segment, start
                            break
                        if ahead:
                            self._prefetch.done(*self._span(segment, segment.position, segment.position + segment.bytes))
                    start = segment.end
        finally:
            if ahead and not self._shares_prefetch:
                self._prefetch.drop()

    def _reload(self, before: State, missing: Segment, start: int, *, once: bool) -> None:
        """Takes the newest state, from which to continue at `start`, because the data file of a segment does not exist.

        `once`: the file was not found once only.
        """
        state = self._log.newest()
        if state.topic_id != before.topic_id:
            raise SparklogError("TOPIC_REPLACED", topic=state.topic, root=self._log.root)
        if state.version == before.version:
            if once:
                return
            path = self._log.location(missing.file)
            raise SparklogError(
                "SEGMENT_MISSING", topic=state.topic, partition=self._partition, file=path, base=missing.base, end=missing.end
            )
        if start < state.starts[self._partition]:
            raise SparklogError(
                "OFFSETS_EXPIRED",
                topic=state.topic,
                partition=self._partition,
                root=self._log.root,
                offset=start,
                end=state.starts[self._partition],
                count=state.starts[self._partition] - start,
                start=state.starts[self._partition],
            )
        self._state = state

    def _chunks(
        self, reader: SegmentReader, batches: Iterable[StoredBatch], start: int = 0, limit: int | None = None
    ) -> Iterator[list[tuple[StoredBatch, Payload]]]:
        """The batches in chunks of a size that is fast to decode.

        With `limit`, a chunk ends early when it is enough for that many records from the offset `start` on.
        """
        chunk: list[tuple[StoredBatch, Payload]] = []
        size = count = 0
        for batch in batches:
            found = self._payload(reader, batch)
            if chunk and size + found.bytes > 2 * _CHUNK_BYTES:
                yield chunk
                chunk, size, count = [], 0, 0
            chunk.append((batch, found))
            size += found.bytes
            count += batch.header.records
            enough = limit is not None and batch.last_offset >= start + limit and count >= limit
            if size >= _CHUNK_BYTES or count >= _CHUNK_RECORDS or enough:
                yield chunk
                chunk, size, count = [], 0, 0
        if chunk:
            yield chunk

    def _payload(self, reader: SegmentReader, batch: StoredBatch) -> Payload:
        for once in (True, False):
            try:
                return Payload.of(batch.header, batch.data, batch.base_offset, self._decompressed_max)
            except Damaged as damage:
                if not once or isinstance(damage, TooLarge):
                    raise reader.batch_corrupt(batch.position, damage) from None
                batch = reader.read_again(batch)
        raise AssertionError

    def _located(self, reader: SegmentReader, chunk: list[tuple[StoredBatch, Payload]]) -> Iterator[Records]:
        """The records of some batches. All are checked before the first is returned."""
        payloads = [found for _, found in chunk]
        try:
            if sum(found.header.records for found in payloads) <= RECORDS_AT_ONCE:
                records: Iterable[Records] = list(locate(payloads))
            else:
                for _ in locate(payloads):
                    pass
                records = locate(payloads)
            yield from records
        except Damaged as damage:
            raise self._damaged_batch(reader, chunk, damage) from None

    def _damaged_batch(self, reader: SegmentReader, chunk: list[tuple[StoredBatch, Payload]], damage: Damaged) -> SparklogError:
        for batch, found in chunk:
            try:
                for _ in locate([found]):
                    pass
            except Damaged as its_own:
                return reader.batch_corrupt(batch.position, its_own)
        return reader.corrupt(damage)
