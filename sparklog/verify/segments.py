"""Every byte of a segment, and its files in the Kafka view. FORMAT.md sections 3, 4, 5 and 8.

A reader stops at the first fault. This code goes on behind it, as far as positions and offsets are still known. It makes checks that
readers do not make: times, keys, counts, the stamp, indexes and copies.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import google_crc32c

from sparklog.batches.faults import TooLarge
from sparklog.batches.header import HEADER_BYTES, LENGTH_FROM, Header, batch_bytes_max, decompressed_max
from sparklog.batches.records import RECORDS_AT_ONCE, Payload
from sparklog.ondisk.index import INTERVAL_BYTES
from sparklog.ondisk.names import data_file
from sparklog.ondisk.root import Root, is_seen
from sparklog.ondisk.segment import is_stamped
from sparklog.store.store import Absent, Damaged, File
from sparklog.verify.asking import asking
from sparklog.verify.contents import Contents
from sparklog.verify.expected import Expected
from sparklog.verify.report import DAMAGE, REPAIRABLE, Counts, Finding, NotRead
from sparklog.verify.view import Indexes, ViewOfSegment, shared

_BLOCK_BYTES = 1 << 21
_CHUNK_BYTES = 1 << 21
_CHUNK_RECORDS = RECORDS_AT_ONCE // 2
_RESTORE = "restore the file from a copy; other offsets can still be read"


class Walked(NamedTuple):
    """A batch at a byte of the data file. `base` is its base offset in the partition."""

    position: int
    base: int
    header: Header
    data: memoryview


class Checked(NamedTuple):
    """The findings in a segment. `unread` has the files that could not be read; the counts are 0 unless the segment was read whole."""

    findings: list[Finding]
    unread: list[NotRead]
    counts: Counts

    @property
    def is_right(self) -> bool:
        """Whether it was read whole, and nothing is wrong."""
        return not self.findings and not self.unread


def check(root: Root, segments: list[Expected], quick: bool) -> list[Checked]:
    """Checks some segments. Only metadata and lengths with `quick`."""
    found = []
    for expected, file in zip(segments, root.store.at_once(lambda each: _opened(root, each, quick), segments), strict=True):
        one = SegmentCheck(root, expected)
        one.run(file, quick)
        counts = Counts(segments=1, batches=one.batches, records=one.records, bytes=expected.segment.bytes)
        found.append(Checked(one.findings, one.unread, Counts() if one.unread else counts))
    return found


_Opened: TypeAlias = File | int | Absent | Damaged | OSError
"""A data file; or its bytes, if only they are checked and a listing has them; or the reason why it cannot be opened."""


def _opened(root: Root, expected: Expected, quick: bool) -> _Opened:
    if quick and expected.listed_bytes is not None and not expected.has_view:
        return expected.listed_bytes
    name = data_file(expected.topic, expected.segment.file)

    def ask() -> _Opened:
        try:
            return root.store.open(name) if quick else root.store.open_at(name, expected.segment.position)
        except (Absent, Damaged, OSError) as error:
            return error

    # A file that was listed, and is absent then, was deleted since; or an answer of the store is wrong.
    return asking(root).until(ask, lambda file: expected.listed_bytes is None or not isinstance(file, Absent))


class SegmentCheck:
    """Checks one segment. `findings`, `unread`, `batches` and `records` are there after `run`."""

    def __init__(self, root: Root, expected: Expected) -> None:
        self._root = root
        self._expected = expected
        self._segment = expected.segment
        self._name = data_file(expected.topic, expected.segment.file)
        self._decompressed_max = decompressed_max(expected.message_bytes_max)
        self._chunk: list[tuple[Walked, Payload]] = []
        self._chunk_bytes = self._chunk_records = 0
        self._contents = Contents(expected.segment, expected.partitions, expected.partitioner, expected.table)
        self._stamps = [0, 0, 0]
        """How many fields hold the relative offset, the absolute one, and a mixture. A field whose two offsets are equal is not counted."""
        self._unstamped: int | None = None
        self._reached = expected.segment.base
        self._index = Indexes(expected.segment.base, INTERVAL_BYTES)
        self.findings: list[Finding] = []
        self.unread: list[NotRead] = []
        self.batches = self.records = 0

    def run(self, file: _Opened, quick: bool) -> None:
        """Does it, with the answer of `_opened`."""
        if isinstance(file, Absent):
            self._missing()
        elif isinstance(file, Damaged):
            self._segment_fault("SEGMENT_CORRUPT", str(file), None, _RESTORE)
        elif isinstance(file, OSError):
            self._not_read(file)
        elif isinstance(file, int):
            self._require_lengths(file)
        else:
            self._check(file, quick)

    def _check(self, file: File, quick: bool) -> None:
        segment = self._segment
        with file:
            self._require_lengths(file.size)
            view = ViewOfSegment(self._root, self._expected, file)
            try:
                if not quick:
                    self._walk(file, min(segment.position + segment.bytes, file.size), view)
                if self._expected.has_view:
                    self.findings += view.end(quick, self._unstamped)
                    self.unread += view.unread
            except Absent:
                self._missing()
            except OSError as error:
                self._not_read(error)
            finally:
                view.close()

    def _not_read(self, reason: object) -> None:
        segment = self._segment
        self.unread.append(NotRead(self._expected.topic, "segment", self._name, str(reason), segment.partition, segment.base))

    def _missing(self) -> None:
        if self._expected.listed_bytes is not None:
            self._not_read("it is listed, and the store says that it is absent")
            return
        self._segment_fault("SEGMENT_MISSING", "the data file does not exist", None, self._way_back(missing=True))

    def _require_lengths(self, size: int) -> None:
        """Checks the bytes of the data file."""
        end = self._segment.position + self._segment.bytes
        if size < end:
            problem = f"the file ends at byte {size}, and the segment ends at byte {end}"
            self._segment_fault("SEGMENT_CORRUPT", problem, size, _RESTORE)

    def _way_back(self, missing: bool = False) -> str:
        """How the bytes of the data file can be restored."""
        view = f"{self._expected.topic}-{self._segment.partition}/{self._segment.base:020d}.log"
        if not self._expected.has_view or not is_seen(self._root.store, view):
            return _RESTORE
        if not self._segment.in_own_file:
            return f"{_RESTORE}. The Kafka view may have the same records, in {view}"
        return f"its other name is still there: hard-link {view} to {self._name}" if missing else _RESTORE

    def _walk(self, file: File, end: int, view: ViewOfSegment) -> None:
        segment = self._segment
        header_crc = counted = 0
        for batch in self._batches(file, end):
            header = batch.header
            self.batches += 1
            counted += header.records
            header_crc = google_crc32c.extend(header_crc, bytes(batch.data[LENGTH_FROM:HEADER_BYTES]))
            view.batch(batch.position - segment.position, batch.base, header, batch.data)
            self._index.batch(batch.position - segment.position, batch.base + header.last_offset_delta, header.max_timestamp)
            self._sent_by(batch)
            self._decode(batch)
        self._decode_chunk()
        walked = self._position == segment.position + segment.bytes
        if self.unread:
            return
        self.findings += self._contents.findings(self._name, self._expected.topic, walked and not self.findings)
        self.records = self._contents.records
        if not walked:
            return  # The walk could not reach the end, which was reported.
        faults = []
        if self.batches != segment.batches:
            faults.append(f"it has {self.batches} batches where {segment.batches} were committed")
        if self._reached != segment.end:
            faults.append(f"its batches end at offset {self._reached} and not at {segment.end}")
        if not segment.dense and counted != segment.records:
            faults.append(f"its batches count {counted} records where {segment.records} were committed")
        if header_crc != segment.header_crc:
            faults.append(
                f"the checksum of its headers is {header_crc:08x}, committed was {segment.header_crc:08x}: a header, or a batch with its "
                "checksum, is another one than was committed"
            )
        for problem in faults:
            self._segment_fault("SEGMENT_CORRUPT", problem, segment.position, _RESTORE)
        self._stamp()
        if segment.index_bytes and not faults:
            self._require_index(file)

    def _sent_by(self, batch: Walked) -> None:
        """Compares the producer in the header of a batch with the version that added the segment."""
        if self._expected.sent is None:
            return
        header, base = batch.header, batch.base
        written = (header.producer_id, header.producer_epoch, header.base_sequence, base + header.last_offset_delta + 1)
        sent = self._expected.sent.get(base)
        said = [(sent.id, sent.epoch, sent.batch.first, sent.batch.end)] if sent else []
        if said != ([written] if header.producer_id >= 0 else []):
            names = [f"producer {id}, epoch {epoch}, sequence {first} and end offset {end}" for id, epoch, first, end in [written, *said]]
            problem = f"the header of the batch has {names[0]}, and its version has {names[1] if said else 'no producer of it'}"
            impact = "no record; a producer that sends a batch again may add the records twice"
            self._add(DAMAGE, "PRODUCER_WRONG", problem, impact, _RESTORE, batch.position, base)

    def _require_index(self, file: File) -> None:
        end = self._segment.position + self._segment.bytes
        right, found = bytes(self._index.made[".index"]), file.read(end, self._segment.index_bytes)
        if found != right:
            problem = "the index behind the segment is not that of its batches"
            fix = "nothing must be done; CALL partlog.merge writes the segment again where it is small"
            byte = end + shared(found, right)
            self._add(REPAIRABLE, "INDEX_WRONG", problem, "no record: a reader walks more of the segment", fix, byte, self._segment.base)

    def _batches(self, file: File, end: int) -> Iterator[Walked]:
        """The batches whose headers are right, in order; wrong headers are reported. Ends where the next batch is not known."""
        segment = self._segment
        self._position = segment.position
        block, block_at = b"", segment.position
        whole = segment.position + segment.bytes
        while self._position < whole:
            position = self._position
            at = position - block_at
            if at + HEADER_BYTES > len(block):
                block, block_at, at = file.read(position, min(_BLOCK_BYTES, end - position)), position, 0
                if len(block) < min(HEADER_BYTES, end - position):
                    self._not_read(f"the file has {file.size} bytes, and only {len(block)} could be read from byte {position} on")
                    return
            try:
                header = Header.read(block[at : at + HEADER_BYTES], 0, end - position)
                size = header.total_bytes
                if size > batch_bytes_max(self._expected.message_bytes_max):
                    raise Damaged(f"it has {size} bytes, more than a batch of the topic may have")
                self._check_offsets(header, position)
            except Damaged as damage:
                rest = "the records from there to the end of the segment"
                self._batch_fault(position, self._reached, segment.end - 1, damage, rest)
                return
            if at + size > len(block):
                block, block_at, at = file.read(position, min(max(_BLOCK_BYTES, size), end - position)), position, 0
                if len(block) < size:
                    self._not_read(f"the file has {file.size} bytes, and only {len(block)} could be read from byte {position} on")
                    return
            yield Walked(position, self._reached, header, memoryview(block)[at : at + size])
            self._reached += header.last_offset_delta + 1
            self._position = position + size

    def _check_offsets(self, header: Header, position: int) -> None:
        """Checks the offsets of a batch. Damaged if the batches behind it cannot be checked; what else is wrong is reported."""
        segment, base = self._segment, self._reached
        relative, last = base - segment.base, base + header.last_offset_delta
        if segment.dense and header.records != header.last_offset_delta + 1:
            raise Damaged(f"it counts {header.records} records in {header.last_offset_delta + 1} offsets")
        if not is_stamped(header.base_offset, relative, base):
            self._batch_fault(position, base, last, f"its base offset field is {header.base_offset}, neither {relative} nor {base}")
        elif relative != base:
            self._stamps[0 if header.base_offset == relative else 1 if header.base_offset == base else 2] += 1
        if header.base_offset != base and self._unstamped is None:
            self._unstamped = position
        if last >= segment.end:
            raise Damaged(f"its last offset is {last}, beyond its segment, which ends at {segment.end}")

    def _stamp(self) -> None:
        """Without a stamp, every field has the relative offset, or after a merge every field has the absolute offset."""
        if not self._segment.in_own_file and sum(map(bool, self._stamps)) > 1:
            problem = "some base offset fields hold relative offsets and some absolute ones, although nothing stamps this file"
            self._add(
                REPAIRABLE,
                "STAMP_WRONG",
                problem,
                "no record: readers accept both",
                "nothing must be done; CALL partlog.merge writes the segment again",
                self._unstamped,
                self._segment.base,
            )

    def _decode(self, batch: Walked) -> None:
        """Checks the checksum of a batch; its records are checked together with the records of other batches."""
        header = batch.header
        try:
            payload = Payload.of(header, batch.data, batch.base, self._decompressed_max)
        except TooLarge as excess:
            self._too_large(batch, excess.limit)
            return
        except Damaged as damage:
            self._batch_fault(batch.position, batch.base, batch.base + header.last_offset_delta, damage)
            return
        self._chunk.append((batch, payload))
        self._chunk_bytes += payload.bytes
        self._chunk_records += header.records
        if self._chunk_bytes >= _CHUNK_BYTES or self._chunk_records >= _CHUNK_RECORDS:
            self._decode_chunk()

    def _decode_chunk(self) -> None:
        chunk, self._chunk = self._chunk, []
        self._chunk_bytes = self._chunk_records = 0
        if not chunk:
            return
        try:
            self._contents.batches([(batch.position, payload) for batch, payload in chunk])
        except Damaged:
            for batch, payload in chunk:
                try:
                    self._contents.batches([(batch.position, payload)])
                except Damaged as damage:
                    last = batch.base + batch.header.last_offset_delta
                    self._batch_fault(batch.position, batch.base, last, damage)

    def _batch_fault(self, position: int, first: int, last: int, reason: object, rest: str | None = None) -> None:
        impact = self._impact(first, last + 1) if rest is None else f"{rest}: {self._impact(first, last + 1)}"
        self._add(DAMAGE, "BATCH_CORRUPT", f"the record batch is damaged: {reason}", impact, self._way_back(), position, first)

    def _too_large(self, batch: Walked, limit: int) -> None:
        """The batch may be right, and this process cannot tell."""
        self._add(
            DAMAGE,
            "BATCH_TOO_LARGE",
            f"the records of the batch take more than {limit} bytes when decompressed, the limit of this process, and are not checked",
            self._impact(batch.base, batch.base + batch.header.last_offset_delta + 1),
            "if the topic has such records, verify again with the environment variable SPARKLOG_MAX_BATCH_BYTES set to more bytes; "
            f"otherwise {self._way_back()}",
            batch.position,
            batch.base,
        )

    def _segment_fault(self, condition: str, problem: str, byte: int | None, fix: str) -> None:
        segment = self._segment
        text = f"the segment of offsets {segment.base} to {segment.end} (exclusive): {problem}"
        self._add(DAMAGE, condition, text, self._impact(segment.base, segment.end), fix, byte, segment.base)

    def _impact(self, first: int, end: int) -> str:
        visible = max(first, self._expected.start)
        if visible >= end:
            return f"no record: the log starts at offset {self._expected.start}"
        return f"{end - visible:,} offsets, {visible} to {end} (exclusive)"

    def _add(self, severity: str, condition: str, problem: str, impact: str, fix: str, byte: int | None, offset: int | None) -> None:
        topic = self._expected.topic
        self.findings.append(Finding(severity, condition, problem, impact, fix, topic, self._segment.partition, offset, self._name, byte))


def bytes_of(segments: list[Expected]) -> int:
    """The bytes of these segments."""
    return sum(each.segment.bytes for each in segments)
