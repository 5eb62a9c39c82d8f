"""The Kafka view of one segment: its indexes are made again, and its copy is compared. FORMAT.md section 8."""

from __future__ import annotations

import struct

import numpy as np

from sparklog.batches.header import LENGTH_FROM, Header
from sparklog.ondisk.names import data_file, view_folder
from sparklog.ondisk.root import Root
from sparklog.store.store import Absent, Damaged, File
from sparklog.verify.expected import Expected
from sparklog.verify.report import REPAIRABLE, Finding, NotRead

_PUBLISH = "CALL partlog.publish makes it again; so may the next commit"
_NO_RECORD = "no record: readers of sparklog do not depend on the Kafka view, but Kafka's tools do"
_OFFSET = struct.Struct(">ii")
_TIME = struct.Struct(">qi")
_SIZES = {".index": _OFFSET.size, ".timeindex": _TIME.size}


class Indexes:
    """Makes both indexes of a segment in one walk over its batches, for one `index.interval.bytes`."""

    def __init__(self, base: int, interval: int) -> None:
        self._base = base
        self._interval = interval
        self._last, self._indexed, self._greatest, self._greatest_offset = 0, -1, -1, 0
        self.made = {".index": bytearray(), ".timeindex": bytearray()}

    def batch(self, position: int, last_offset: int, max_timestamp: int) -> None:
        """The next batch, at a byte of the segment."""
        if max_timestamp > self._greatest:
            self._greatest, self._greatest_offset = max_timestamp, last_offset
        if position - self._last > self._interval:
            self.made[".index"] += _OFFSET.pack(last_offset - self._base, position)
            self._last = position
            self._time()

    def end(self) -> None:
        """After the last batch."""
        self._time()

    def _time(self) -> None:
        if self._greatest > self._indexed:
            self.made[".timeindex"] += _TIME.pack(self._greatest, self._greatest_offset - self._base)
            self._indexed = self._greatest


class ViewOfSegment:
    """The files of a segment in the view. `batch` gets every batch of the segment, and `end` returns the faults.

    `unread` has the files that could not be read.
    """

    def __init__(self, root: Root, expected: Expected, data: File) -> None:
        segment = expected.segment
        self._store = root.store
        self._expected = expected
        self._data = data
        self._prefix = f"{view_folder(expected.topic, segment.partition)}/{segment.base:020d}"
        self._indexes = [Indexes(segment.base, interval) for interval in expected.intervals]
        self._findings: list[Finding] = []
        self.unread: list[NotRead] = []
        self._walked = 0
        self._differs: int | None = None
        self._copy: File | None = None
        self._linked = False
        if expected.has_view:
            self._open()

    def close(self) -> None:
        """Closes the copy."""
        if self._copy:
            self._copy.close()
            self._copy = None

    def _open(self) -> None:
        name = f"{self._prefix}.log"
        segment = self._expected.segment
        try:
            linked = segment.in_own_file and self._store.are_one(data_file(self._expected.topic, segment.file), name)
            file = self._store.open(name)
        except Absent:
            self._add("VIEW_MISSING", "the segment's `.log` is missing", name, None)
            return
        except Damaged as damage:
            self._add("VIEW_WRONG", str(damage), name, None)
            return
        except OSError as error:
            self._not_read(name, error)
            return
        self._linked = linked
        # A data file with bytes behind its segment is not the segment's own, and is copied.
        if segment.in_own_file and not linked and self._data.size == segment.position + segment.bytes:
            self._add("VIEW_WRONG", "it is not the same file as the data file, of which it must be a hard link", name, None)
            file.close()
            return
        if self._linked:
            file.close()
        elif file.size != segment.bytes:
            self._add("VIEW_WRONG", f"it has {file.size} bytes, and the segment {segment.bytes}", name, min(file.size, segment.bytes))
            file.close()
        else:
            self._copy = file

    def batch(self, position: int, base: int, header: Header, data: memoryview) -> None:
        """The next batch, at a byte of the segment, with its base offset in the partition."""
        for index in self._indexes:
            index.batch(position, base + header.last_offset_delta, header.max_timestamp)
        self._walked = position + len(data)
        if self._copy and self._differs is None:
            copied = self._copy.read(position, len(data))
            if len(copied) == len(data) and copied[:LENGTH_FROM] == base.to_bytes(LENGTH_FROM, "big", signed=True):
                here, there = (np.frombuffer(each, dtype=np.uint8)[LENGTH_FROM:] for each in (data, copied))
                if not np.array_equal(here, there):
                    self._differs = position + LENGTH_FROM + int((here != there).argmax())
            else:
                self._differs = position

    def end(self, quick: bool, unstamped: int | None) -> list[Finding]:
        """The findings. `unstamped` is the byte of the first batch of the data file whose base offset field is not the absolute one."""
        if self._differs is not None:
            self._add("VIEW_WRONG", "its bytes are not those of the segment with absolute offsets", f"{self._prefix}.log", self._differs)
        if self._linked and unstamped is not None:
            problem = "a batch of the data file does not have its absolute offset, although it is in the view"
            self._add("STAMP_WRONG", problem, data_file(self._expected.topic, self._expected.segment.file), unstamped)
        for index in self._indexes:
            index.end()
        whole = self._walked == self._expected.segment.bytes
        for suffix, size in _SIZES.items():
            right = [bytes(index.made[suffix]) for index in self._indexes] if whole and not quick else None
            self._index(suffix, size, right)
        return self._findings

    def _index(self, suffix: str, entry_bytes: int, right: list[bytes] | None) -> None:
        name = f"{self._prefix}{suffix}"
        try:
            with self._store.open(name) as file:
                found, size = (file.read(0, max(map(len, right)) + 1) if right else b""), file.size
        except Absent:
            self._add("VIEW_MISSING", f"the segment's `{suffix}` is missing", name, None)
            return
        except Damaged as damage:
            self._add("VIEW_WRONG", str(damage), name, None)
            return
        except OSError as error:
            self._not_read(name, error)
            return
        if right is not None and found not in right:
            byte = max(shared(found, each) for each in right)
            self._add("INDEX_WRONG", "it is not the index of the segment's batches", name, byte)
        elif right is None and size % entry_bytes:
            self._add("INDEX_WRONG", f"it has {size} bytes, which is not a number of entries", name, size - size % entry_bytes)

    def _not_read(self, file: str, error: OSError) -> None:
        segment = self._expected.segment
        self.unread.append(NotRead(self._expected.topic, "view", file, str(error), segment.partition, segment.base))

    def _add(self, condition: str, problem: str, file: str, byte: int | None) -> None:
        segment = self._expected.segment
        impact = "a reader walks more of the segment; Kafka's tools may be misled" if condition == "INDEX_WRONG" else _NO_RECORD
        self._findings.append(
            Finding(REPAIRABLE, condition, problem, impact, _PUBLISH, self._expected.topic, segment.partition, segment.base, file, byte)
        )


def shared(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    return next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), min(len(one), len(other)))
