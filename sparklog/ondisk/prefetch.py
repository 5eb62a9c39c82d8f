"""Bytes of data files that are requested before a reader needs them. It is of use in stores over a network; on a disk it does nothing."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import NamedTuple

from sparklog.store.requests import Answer
from sparklog.store.store import Damaged, File, Store

BYTES_MAX = 32 << 20
"""The bytes that a scan holds, or has requested."""
_PIECE_BYTES = 8 << 20
"""The bytes of one request, or a quarter of the bound if that is less."""
_LEAST_BYTES = 64 << 10
"""A request has so many bytes also where the bound is lower, unless fewer bytes are wanted."""
_GAP_BYTES = 64 << 10
"""Spans of one file with at most so many bytes between them are requested together."""
_BEHIND_BYTES = 8 << 20
"""A reader of a segment may go back so far, or a quarter of the bound if that is less."""
_FEW_BYTES = 256 << 10
_SPANS_MAX = 4096


class Span(NamedTuple):
    """Bytes of a file, named as below the root, that will be read."""

    file: str
    begin: int
    end: int

    @property
    def bytes(self) -> int:
        """How many they are."""
        return self.end - self.begin


class _Piece:
    """The bytes of one request. Without an answer, the request is not made yet; a piece that is gone needs none."""

    __slots__ = ("answer", "data", "gone", "span")

    def __init__(self, span: Span) -> None:
        self.span = span
        self.answer: Answer[bytes] | None = None
        self.data: bytes | None = None
        self.gone = False


class Prefetch:
    """Requests bytes in the order in which they will be read, many at a time, and holds them until they are read.

    It holds at most `bytes_max` bytes, and the requests of one read. A data file never changes, so held bytes are right wherever a reader
    goes. A reader that asks for other bytes gets them by a request of its own. One thread uses it.
    """

    def __init__(self, store: Store, bytes_max: int = BYTES_MAX) -> None:
        self._store = store
        self._bytes_max = bytes_max
        self._piece_bytes = min(_PIECE_BYTES, max(_LEAST_BYTES, bytes_max // 4))
        self._behind_bytes = min(_BEHIND_BYTES, bytes_max // 4)
        self._readers: dict[str, Callable[[int, int], bytes]] = {}
        """By file. A file is looked at once, however many requests read it."""
        self._pieces: dict[str, list[_Piece]] = {}
        """By file, in the order of their bytes. No two pieces of a file overlap."""
        self._not_begun: deque[_Piece] = deque()
        """The pieces without a request, in the order of their use."""
        self.held_bytes = 0
        """The bytes that it holds, or has requested."""
        self._rest: Iterator[Span] = iter(())
        self._waiting: deque[Span] = deque()
        """The next spans of a scan; a reader may be in the first span already."""
        self._waiting_bytes = self._read_bytes = 0
        self._spans_max = _SPANS_MAX
        self._bound = bytes_max
        """The bytes that may be held now, at most `bytes_max`."""
        self._due = 0
        """When so few spans wait, more are asked for."""

    # ---- the bytes that will be read

    def want(self, spans: Iterable[Span]) -> None:
        """Requests these bytes, in this order, as far as it may hold them. It drops all others."""
        if not self._store.is_far:
            return
        wanted = _joined(islice(spans, _SPANS_MAX))
        before, self._pieces, self._not_begun = self._pieces, {}, deque()
        for span in wanted:
            its = before.get(span.file, [])
            for piece in [each for each in its if each.answer and each.span.begin < span.end and span.begin < each.span.end]:
                its.remove(piece)
                self._insert(piece)
        for piece in chain.from_iterable(before.values()):
            self._release(piece)
        self._readers = {file: reader for file, reader in self._readers.items() if file in self._pieces}
        most = min(max(_LEAST_BYTES, self._bound), self._piece_bytes)
        for span in wanted:
            for begin, end in self._gaps(span):
                at = begin
                while at < end:
                    piece = _Piece(Span(span.file, at, min(at + most, end)))
                    self._insert(piece)
                    self._not_begun.append(piece)
                    at += most
                    most = min(2 * most, self._piece_bytes)
        self._begin()

    def follow(self, spans: Iterable[Span], *, few: bool = False) -> None:
        """Reads ahead of a scan of these spans, whose reader says of each when it is `done`.

        Nothing changes if the scan that is followed already goes on with the first span. `few`: the scan may end soon. Then 256 KiB of
        one span are requested first, and twice as much each time.
        """
        if not self._store.is_far:
            return
        rest = iter(spans)
        first = next(rest, None)
        if first is None or (self._waiting and self._waiting[0] == first):
            return
        self._rest, self._waiting = chain([first], rest), deque()
        self._waiting_bytes = self._read_bytes = 0
        self._spans_max = 1 if few else _SPANS_MAX
        self._bound = min(_FEW_BYTES, self._bytes_max) if few else self._bytes_max
        self._refill()

    def done(self, file: str, begin: int, end: int) -> None:
        """The scan has read the segment that has these bytes of a file."""
        if not self._waiting or self._waiting[0].file != file or not begin <= self._waiting[0].begin < end:
            return
        span = self._waiting.popleft()
        self._waiting_bytes -= span.bytes
        self._read_bytes += span.bytes
        if self._read_bytes >= self._bytes_max // 2 or len(self._waiting) <= self._due:
            self._spans_max = min(2 * self._spans_max, _SPANS_MAX)
            self._refill()

    def forget(self, name: str) -> None:
        """Drops the bytes and the length of a file, since a reader found its bytes wrong. Its next reads make requests of their own."""
        if its := self._pieces.get(name):
            self._remove(list(its))
        self._readers.pop(name, None)

    def drop(self) -> None:
        """Drops all bytes, and asks for no more."""
        self._rest = iter(())
        self._waiting.clear()
        self.want(())

    def held(self) -> dict[str, int]:
        """The bytes of each file that it holds, or has requested: `held_bytes` in all."""
        found = {file: sum(piece.span.bytes for piece in its if piece.answer) for file, its in self._pieces.items()}
        return {file: count for file, count in found.items() if count}

    def __del__(self) -> None:
        """A scan that is given up requests no more."""
        self.drop()

    def _refill(self) -> None:
        """Takes more spans. The bytes of the first span do not count, since its reader drops them as it goes on."""
        self._read_bytes = 0
        while len(self._waiting) < self._spans_max and (
            not self._waiting or self._waiting_bytes - self._waiting[0].bytes < self._bytes_max
        ):
            span = next(self._rest, None)
            if span is None:
                break
            self._waiting.append(span)
            self._waiting_bytes += span.bytes
        self._due = len(self._waiting) // 2
        self.want(self._waiting)

    # ---- pieces

    def _insert(self, piece: _Piece) -> None:
        its = self._pieces.setdefault(piece.span.file, [])
        its.insert(_after(its, piece.span.begin), piece)

    def _gaps(self, span: Span) -> Iterator[tuple[int, int]]:
        """The bytes of a span that no piece has."""
        at = span.begin
        for piece in list(self._pieces.get(span.file, ())):
            if piece.span.begin < span.end and at < piece.span.end:
                if at < piece.span.begin:
                    yield at, piece.span.begin
                at = piece.span.end
        if at < span.end:
            yield at, span.end

    def _begin(self) -> None:
        while self._not_begun:
            piece = self._not_begun[0]
            if not piece.gone and self.held_bytes and self.held_bytes + piece.span.bytes > self._bound:
                return
            self._not_begun.popleft()
            if not piece.gone:
                self._request(piece)

    def _request(self, piece: _Piece) -> None:
        if piece.answer is None:
            read = self.reader(piece.span.file)
            piece.answer = self._store.begin(lambda span: read(span.begin, span.bytes), piece.span)
            self.held_bytes += piece.span.bytes

    def _release(self, piece: _Piece) -> None:
        piece.gone = True
        if piece.answer is not None:
            piece.answer.drop()
            self.held_bytes -= piece.span.bytes

    def _remove(self, pieces: list[_Piece]) -> None:
        for piece in pieces:
            self._pieces[piece.span.file].remove(piece)
            self._release(piece)
        self._begin()

    # ---- a reader

    def open(self, name: str, begin: int, end: int) -> File:
        """Opens the file of a segment that has these bytes. It asks `Store.open` only if bytes are read that were not requested."""
        return _Prefetched(self, self._store, name, begin, end) if self._store.is_far else self._store.open(name)

    def reader(self, name: str) -> Callable[[int, int], bytes]:
        """Reads a file as `Store.reader`."""
        return self._readers.get(name) or self._readers.setdefault(name, self._store.reader(name))

    def bytes_at(self, name: str, position: int, least: int, most: int, first: int) -> bytes:
        """The bytes from a position on: at least `least` and at most `most`, or fewer if no more were requested.

        `first` is where the reader's segment begins. Its bytes far before the position are dropped.
        """
        its = self._pieces.get(name, [])
        self._pass(name, first, position - self._behind_bytes)
        found: list[bytes] = []
        at = position
        for piece in its[max(0, _after(its, position) - 1) :]:
            span = piece.span
            if not span.begin <= at < span.end or at >= position + most or (at >= position + least and not _is_there(piece)):
                break
            data = self._data(piece)
            if data is None:
                break
            found.append(data[at - span.begin : position + most - span.begin])
            at += len(found[-1])
        return found[0] if len(found) == 1 else b"".join(found)

    def closed(self, name: str, first: int, position: int) -> None:
        """The reader of a segment has ended at a position. Its bytes are dropped if too many are held: spans came out of their order."""
        if self.held_bytes > self._bytes_max:
            self._pass(name, first, position)

    def _pass(self, name: str, first: int, end: int) -> None:
        its = self._pieces.get(name, ())
        if its and its[0].span.end <= end and (passed := [each for each in its if first <= each.span.begin and each.span.end <= end]):
            self._remove(passed)

    def _data(self, piece: _Piece) -> bytes | None:
        """The bytes of a piece; None if they could not be read, as its reader will find out by itself."""
        if piece.data is None:
            if piece.answer is None:
                self._bound = min(2 * self._bound, self._bytes_max)
                self._request(piece)
                self._begin()
            assert piece.answer
            try:
                piece.data = piece.answer.result()
            except Exception:
                piece.data = b""
            if len(piece.data) < piece.span.bytes:
                self._remove([piece])
                return None
        return piece.data


class _Prefetched(File):
    """A file whose bytes were requested, or are asked for as `Store.open` does."""

    def __init__(self, prefetch: Prefetch, store: Store, name: str, begin: int, end: int) -> None:
        self._prefetch, self._store, self._name, self._first = prefetch, store, name, begin
        self.size = end
        self._reached = begin
        self._file: File | None = None

    def read(self, position: int, count: int) -> bytes:
        return self.some(position, count, count)

    def some(self, position: int, least: int, most: int) -> bytes:
        self._reached = max(self._reached, position + least)
        held = self._prefetch.bytes_at(self._name, position, least, most, self._first)
        if len(held) >= least:
            return held
        if held:
            # The batch is longer than the bytes that were requested. The segment is known to have the rest.
            rest = self._known(position + len(held), least - len(held))
            if rest:
                return held + rest
        return self._opened(position).some(position, least, most)

    def apart(self, position: int, count: int) -> bytes:
        return self._known(position, count) or self._opened(position).read(position, count)

    def _known(self, position: int, count: int) -> bytes:
        """Bytes that the file is known to have; none if they could not be read, as `open` will find out."""
        try:
            found = self._prefetch.reader(self._name)(position, count)
        except Exception:
            found = b""
        return found if len(found) == count else b""

    def _opened(self, position: int) -> File:
        if self._file is None:
            file = self._store.open_at(self._name, position)
            if file.size < self.size:
                file.close()
                raise Damaged(f"the file has {file.size} bytes where it ends at {self.size}")
            self._file = file
        return self._file

    def close(self) -> None:
        self._prefetch.closed(self._name, self._first, self._reached)
        if self._file is not None:
            self._file.close()


def _joined(spans: Iterable[Span]) -> list[Span]:
    """Joins spans that overlap or have a small gap between them. Each result stands where the first of its spans stood."""
    by_file: dict[str, list[tuple[int, int, int]]] = {}
    for number, (file, begin, end) in enumerate(spans):
        by_file.setdefault(file, []).append((begin, end, number))
    found: list[tuple[int, Span]] = []
    for file, its in by_file.items():
        its.sort()
        first, last, number = its[0]
        for begin, end, each in its[1:]:
            if begin <= last + _GAP_BYTES:
                last, number = max(last, end), min(number, each)
            else:
                found.append((number, Span(file, first, last)))
                first, last, number = begin, end, each
        found.append((number, Span(file, first, last)))
    return [span for _, span in sorted(found)]


def _after(pieces: list[_Piece], position: int) -> int:
    """How many of some pieces begin at a position or before it."""
    return bisect_right(pieces, position, key=lambda piece: piece.span.begin)


def _is_there(piece: _Piece) -> bool:
    return piece.data is not None or (piece.answer is not None and piece.answer.is_there())
