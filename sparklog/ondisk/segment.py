"""The batches of one segment: every one is checked before it is returned. FORMAT.md sections 4 and 9."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import google_crc32c

from sparklog.batches.faults import TooLarge
from sparklog.batches.header import HEADER_BYTES, LENGTH_FROM, Header
from sparklog.errors import SparklogError
from sparklog.ondisk import index
from sparklog.ondisk.names import data_file, index_file, view_folder
from sparklog.ondisk.prefetch import Prefetch
from sparklog.ondisk.root import Root
from sparklog.ondisk.version import Segment
from sparklog.store.store import Damaged, File

_BLOCK_BYTES_MIN = 1 << 16
_BLOCK_BYTES_MAX = 1 << 22
_INDEX_WORTHWHILE_BYTES = 1 << 20


class Place(NamedTuple):
    """A boundary between the batches of a segment that a reader has come to, from which it, or a later one, can continue.

    * position: the byte of the data file.
    * offset: the offset after the batches before it.
    * batches, header_crc: how many these are, and the checksum over their headers; None if the reader began later than the segment.
    """

    position: int
    offset: int
    batches: int
    header_crc: int | None


class StoredBatch(NamedTuple):
    """A batch at a byte of its data file, with its base offset in the partition. `data` is the whole batch, or empty after `headers`."""

    position: int
    base_offset: int
    header: Header
    data: memoryview
    after: Place

    @property
    def last_offset(self) -> int:
        """The last offset that the batch covers."""
        return self.base_offset + self.header.last_offset_delta


class SegmentReader:
    """Reads a segment from its data file. All of it raises SparklogErrors, and Absent if that file does not exist, or is gone by then."""

    def __init__(self, root: Root, topic: str, segment: Segment, batch_bytes_max: int, prefetch: Prefetch) -> None:
        self._root = root
        self._topic = topic
        self._segment = segment
        self._batch_bytes_max = batch_bytes_max
        self._prefetch = prefetch
        self.end = segment.position + segment.bytes
        self._name = data_file(topic, segment.file)
        self.path = root.store.location(self._name)
        self._file = self._opened()

    def _opened(self) -> File:
        try:
            file = self._prefetch.open(self._name, self._segment.position, self.end)
        except Damaged as damage:
            raise self.corrupt(damage) from None
        except OSError as error:
            raise SparklogError("IO", file=self.path, cause=error) from None
        if file.size < self.end:
            file.close()
            raise self.corrupt(f"the file has {file.size} bytes where it ends at {self.end}")
        return file

    def _open_again(self) -> None:
        """Opens the data file again, without bytes that were read before: some of them are wrong."""
        self._prefetch.forget(self._name)
        before, self._file = self._file, self._opened()
        before.close()

    def close(self) -> None:
        """Closes the data file."""
        self._file.close()

    def __enter__(self) -> SegmentReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def corrupt(self, reason: object) -> SparklogError:
        """The error that the segment as a whole is damaged."""
        segment = self._segment
        return SparklogError(
            "SEGMENT_CORRUPT",
            topic=self._topic,
            partition=segment.partition,
            base=segment.base,
            end=segment.end,
            file=self.path,
            reason=reason,
        )

    def batch_corrupt(self, position: int, reason: object) -> SparklogError:
        """The error that the batch at this byte of the data file is damaged, or too large for this process."""
        if isinstance(reason, TooLarge):
            return SparklogError(
                "BATCH_TOO_LARGE", topic=self._topic, partition=self._segment.partition, byte=position, file=self.path, limit=reason.limit
            )
        return SparklogError(
            "BATCH_CORRUPT", topic=self._topic, partition=self._segment.partition, byte=position, file=self.path, reason=reason
        )

    def headers(self) -> list[StoredBatch]:
        """All batches without their data. Their headers are compared with the committed checksum before the first is returned."""
        return list(self.walk())

    def walk(self) -> Iterator[StoredBatch]:
        """All batches without their data, one by one. Their headers are compared with the committed checksum after the last one."""
        return self._walk(self.begin, None)

    def batches(self, start: int, place: Place | None = None, bytes_max: int | None = None, *, one: bool = True) -> Iterator[StoredBatch]:
        """The batches with offsets from `start` on, without a check of their data. The segment as a whole is checked after the last one.

        `place` is where an earlier reader of this segment stopped. The batches have at most `bytes_max` bytes together. With `one`, the
        first batch may have more.
        """
        yield from self._walk(place or self.seek(start), start, bytes_max, one=one)

    def read(self, batch: StoredBatch) -> StoredBatch:
        """A batch that `headers` returned, with its data."""
        self._require_readable(batch.position, batch.header)
        return batch._replace(data=memoryview(self._read(batch.position, batch.header.total_bytes)))

    def read_again(self, batch: StoredBatch) -> StoredBatch:
        """A batch whose data is damaged, with its data as the store gives it now."""
        self._open_again()
        data = self._read(batch.position, batch.header.total_bytes)
        # The checksum over all headers must cover the headers that were used.
        if batch.data and data[LENGTH_FROM:HEADER_BYTES] != batch.data[LENGTH_FROM:HEADER_BYTES]:
            raise self.batch_corrupt(batch.position, "its header is another one when it is read again")
        return batch._replace(data=memoryview(data))

    @property
    def begin(self) -> Place:
        """Where the segment begins."""
        return Place(self._segment.position, self._segment.base, 0, 0)

    def _walk(self, place: Place, start: int | None, bytes_max: int | None = None, *, one: bool = True) -> Iterator[StoredBatch]:
        """The batches from a place on; the first has the place's offset.

        Without `start`, only headers are read. With it, batches that end before `start` are skipped.
        """
        segment = self._segment
        position, offset, count, header_crc = place
        block, block_at = b"", position
        block_bytes = _BLOCK_BYTES_MIN
        again: int | None = None
        while position < self.end:
            if offset == segment.end:
                raise self.corrupt(f"it has {self.end - position} bytes after the batch with its last offset")
            if bytes_max is not None and bytes_max <= 0 and not one:
                return
            at = position - block_at
            if at + HEADER_BYTES > len(block):
                wanted = block_bytes if start is not None else HEADER_BYTES
                block = self._some(position, min(HEADER_BYTES, self.end - position), min(wanted, self.end - position))
                block_at, at = position, 0
            try:
                header = Header.read(block, at, self.end - position)
                self._require_offsets(header, offset)
            except Damaged as damage:
                if again == position:
                    raise self.batch_corrupt(position, damage) from None
                self._open_again()
                again, block = position, b""
                continue
            base = offset
            count += 1
            if count > segment.batches:
                raise self.corrupt(f"it has more than {segment.batches} batches")
            if header_crc is not None:
                header_crc = google_crc32c.extend(header_crc, block[at + LENGTH_FROM : at + HEADER_BYTES])
            offset = base + header.last_offset_delta + 1
            size = header.total_bytes
            after = Place(position + size, offset, count, header_crc)
            if start is None:
                yield StoredBatch(position, base, header, memoryview(b""), after)
            elif offset > start:
                self._require_readable(position, header)
                if bytes_max is not None:
                    bytes_max -= size
                    if bytes_max < 0 and not one:
                        return
                    one = False
                if at + size > len(block):
                    block_bytes = min(4 * block_bytes, _BLOCK_BYTES_MAX)
                    block = self._some(position, size, min(max(block_bytes, size), self.end - position))
                    block_at, at = position, 0
                yield StoredBatch(position, base, header, memoryview(block)[at : at + size], after)
            position += size
        if offset != segment.end:
            raise self.corrupt(f"its batches end at offset {offset}")
        if header_crc is not None and count != segment.batches:
            raise self.corrupt(f"it has {count} batches, not {segment.batches}")
        if header_crc is not None and header_crc != segment.header_crc:
            raise self.corrupt(f"the checksum of its headers is {header_crc:08x}, committed was {segment.header_crc:08x}")

    def _require_readable(self, position: int, header: Header) -> None:
        """Checks the size of a batch before its bytes are read."""
        if header.total_bytes > self._batch_bytes_max:
            raise self.batch_corrupt(position, f"it has {header.total_bytes} bytes, and {self._batch_bytes_max} is the limit")

    def _require_offsets(self, header: Header, base: int) -> None:
        """Checks the offsets of a batch that begins after the batches before it, at the offset `base`. Damaged if it cannot."""
        segment = self._segment
        if not is_stamped(header.base_offset, base - segment.base, base):
            raise Damaged(f"its offset is {header.base_offset}, not {base} nor {base - segment.base}")
        if segment.dense and header.records != header.last_offset_delta + 1:
            raise Damaged(f"it counts {header.records} records in {header.last_offset_delta + 1} offsets")
        if base + header.last_offset_delta >= segment.end:
            raise Damaged(f"its last offset is {base + header.last_offset_delta}, beyond its segment")

    def seek(self, start: int) -> Place:
        """The place of a batch that holds the offset `start` or lies before it."""
        segment = self._segment
        here = self.begin
        if not is_sought(segment, start):
            return here
        entry = index.look_up(self._index(), start - segment.base)
        if not entry:
            return here
        last, position = entry[0], segment.position + entry[1]
        if not segment.position <= position <= self.end - HEADER_BYTES:
            return here
        try:
            header = Header.read(self._apart(position, HEADER_BYTES), 0, self.end - position)
            base = segment.base + last - header.last_offset_delta
            self._require_offsets(header, base)
        except Damaged:
            return here
        # An index is linked only after the stamp was synced. So it never points at a field that is half stamped.
        if header.base_offset not in (base, base - segment.base) or not segment.base <= base <= start or position == segment.position:
            return here
        # A field that could be a relative offset as well as an absolute one proves nothing: a wrong entry could fit it the wrong way.
        ambiguous = 0 < segment.base <= header.base_offset < segment.end - segment.base
        if ambiguous and not (segment.index_bytes and header.base_offset - base == self._first_field() - segment.base):
            return here
        return Place(position, base, 0, None)

    def _index(self) -> bytes:
        """The entries of the segment's index: of the index behind it, or of the index in the Kafka view."""
        segment = self._segment
        if segment.index_bytes:
            try:
                return self._file.apart(self.end, segment.index_bytes)
            except Damaged as damage:
                raise self.corrupt(damage) from None
            except OSError:
                return b""
        if not self._root.store.has_links:
            return b""
        return index.of_view(self._root, f"{view_folder(self._topic, segment.partition)}/{index_file(segment.base)}")

    def _first_field(self) -> int:
        """The base offset field of the first batch. Nothing stamps a file with an index behind its segment: all fields are alike."""
        return int.from_bytes(self._apart(self._segment.position, LENGTH_FROM), "big", signed=True)

    def _read(self, position: int, size: int) -> bytes:
        return self._some(position, size, size)

    def _apart(self, position: int, size: int) -> bytes:
        return self._got(position, size, lambda: self._file.apart(position, size))

    def _some(self, position: int, least: int, most: int) -> bytes:
        return self._got(position, least, lambda: self._file.some(position, least, most))

    def _got(self, position: int, least: int, read: Callable[[], bytes]) -> bytes:
        try:
            data = read()
        except Damaged as damage:
            raise self.corrupt(damage) from None
        except OSError as error:
            raise SparklogError("IO", file=self.path, cause=error) from None
        if len(data) < least:
            raise self.corrupt(f"the file ends at byte {position + len(data)}")
        return data


def is_sought(segment: Segment, start: int) -> bool:
    """Whether a reader finds the first batch by the index of a segment. From there on it reads."""
    return start > segment.base and segment.bytes >= _INDEX_WORTHWHILE_BYTES


def is_stamped(field: int, relative: int, absolute: int) -> bool:
    """Whether each byte of the base offset field is the byte of the relative or of the absolute offset.

    A reader beside a writer can see a stamp half written, and a power loss can leave it so.
    """
    if field in (relative, absolute):
        return True
    fields = (number.to_bytes(8, "big", signed=True) for number in (field, relative, absolute))
    return all(one in others for one, *others in zip(*fields, strict=True))
