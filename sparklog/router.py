"""From a key to its partition, as the connector routes records: one key, or many at once. FORMAT.md annex A."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import mmh3

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.options import topic_option

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Longs: TypeAlias = npt.NDArray[np.int64]

Word: TypeAlias = Any
"""32 bits without a sign: an int, or an array of numpy's uint32 with one for each key, whose operators mypy does not know."""

_POSITIVE = 0x7FFF_FFFF
_WORD = 0xFFFF_FFFF
_UNBOUND = 0xFFFF
_FRACTION_BITS = 24


class Router:
    """Where the records of a topic with these partitions go by their keys."""

    def __init__(
        self,
        partitions: int,
        partitioner: str,
        table: Sequence[int] | None = None,
        shares: Sequence[int] | None = None,
    ) -> None:
        """`table` has the partition of each slot, if the topic has slots; `shares` say where those go that have none yet, by partition.

        CallError OPTION_VALUE if no topic has these partitions.
        """
        for option, value in (("partitions", partitions), ("partitioner", partitioner)):
            if problem := topic_option(option).problem(str(value)):
                raise SparklogError("OPTION_VALUE", option=option, value=value, reason=problem)
        self._shares = shares
        self._modulo = partitions if table is None else len(table)
        self._table = table
        self._hash_of_key, self._hash_of_keys = _HASHES[partitioner.lower()]

    def of_key(self, key: bytes) -> int:
        """The partition of a key."""
        slot = self.slot(key)
        if self._table is None:
            return slot
        found = self._table[slot]
        return place(slot, self._shares) if found == _UNBOUND and self._shares else found

    def slot(self, key: bytes) -> int:
        """The slot of a key; without slots, its partition."""
        return (self._hash_of_key(key) & _POSITIVE) % self._modulo

    def of_keys(self, data: bytes, at: Longs, sizes: Longs) -> Longs:
        """The partition of each key: the `sizes` bytes of `data` from `at` on. At least three bytes must follow the last key.

        A call for each key would take longer than all other checks of a record.
        """
        import numpy as np  # a program that only configures Spark should not wait for that

        words = np.ndarray(shape=len(data) - 3, dtype="<u4", buffer=data, strides=1)
        hashes = np.empty(at.size, dtype=np.uint32)
        same = not sizes.size or (sizes == sizes[0]).all()
        for size in sizes[:1].tolist() if same else np.unique(sizes).tolist():
            rows = slice(None) if same else np.flatnonzero(sizes == size)
            begins = at[rows]
            tail = words[begins + (size & ~3)] & np.uint32((1 << 8 * (size & 3)) - 1) if size & 3 else 0
            hashes[rows] = self._hash_of_keys((words[begins + word] for word in range(0, size & ~3, 4)), tail, size)
        placed: Longs = ((hashes & np.uint32(_POSITIVE)) % np.uint32(self._modulo)).astype(np.int64)
        if self._table is not None:
            placed = np.asarray(self._table)[placed].astype(np.int64)
        return placed


def place(slot: int, shares: Sequence[int]) -> int:
    """The partition for an unbound slot, by the shares of partitions. At least one share is above 0. FORMAT.md annex A."""
    best, least = -1, 0
    for partition, share in enumerate(shares):
        if share:
            rank = race(slot, partition)
            if best < 0 or rank * shares[best] < least * share:
                best, least = partition, rank
    return best


def race(slot: int, partition: int) -> int:
    """−log₂((h + 1) / 2³²) in units of 2⁻²⁴, at least 1, where h is the hash of both. Integers alone, as Java finds it."""
    share = 1 + (mmh3.hash(slot.to_bytes(4, "little") + partition.to_bytes(4, "little")) & _WORD)
    log = share.bit_length() - 1
    mantissa = share << 31 >> log
    for _ in range(_FRACTION_BITS):
        mantissa = mantissa * mantissa >> 31
        bit = mantissa >> 32
        mantissa >>= bit
        log = log << 1 | bit
    return max(1, (32 << _FRACTION_BITS) - log)


router = functools.lru_cache(maxsize=16)(Router)
"""The router for a number of partitions and a partitioner."""


@overload
def partition_for(key: None, partitions: int, partitioner: str = ...) -> None: ...
@overload
def partition_for(key: bytes | bytearray | memoryview | str, partitions: int, partitioner: str = ...) -> int: ...
def partition_for(key: bytes | bytearray | memoryview | str | None, partitions: int, partitioner: str = "murmur3") -> int | None:
    """Computes the partition of a record with a key, as the connector does.

    A record that was written to an explicit partition can be in another one. `Topic.partition_for` also knows changes of the partitions.

    Args:
        key: The key; a string is encoded as UTF-8. None is a record without a key.
        partitions: The number of partitions of the topic, 1 to 10,000.
        partitioner: `murmur3` or `murmur2`, as Kafka's Java clients do; default `murmur3`.

    Returns:
        The partition, from 0. None without a key: such a record goes to the partition with the fewest records.

    Raises:
        TypeError: If the key has another type.
        CallError: OPTION_VALUE for an impossible number of partitions, or an unknown partitioner.

    Example:
        >>> sparklog.partition_for("user-7", 8), sparklog.partition_for("user-7", 8, "murmur2")
        (0, 4)
    """
    by_key = router(arguments.integer("partitions", partitions), partitioner)
    data = key_bytes(key)
    return None if data is None else by_key.of_key(data)


def key_bytes(key: bytes | bytearray | memoryview | str | None) -> bytes | None:
    """The bytes of a key; a string is encoded as UTF-8. TypeError for any other type."""
    if isinstance(key, str):
        return key.encode()
    if key is not None and not isinstance(key, bytes | bytearray | memoryview):
        # bytes(5) would be five zero bytes, whose partition would be a wrong answer.
        raise TypeError(f"a key is str, bytes or None, not {type(key).__name__}; a log stores what the key was cast to")
    return None if key is None else bytes(key)


def _murmur3(words: Iterable[Word], tail: Word, size: int) -> Word:
    """MurmurHash3 of 32 bits of many keys of one size, by their whole words, and the bytes after these as a little-endian number.

    Only of arrays, which drop bits beyond 32: that saves a third of the time.
    """

    def turned(word: Word, bits: int) -> Word:
        return word << bits | word >> 32 - bits

    def mixed(word: Word) -> Word:
        return turned(word * 0xCC9E_2D51, 15) * 0x1B87_3593

    found: Word = 0
    for word in words:
        found = turned(found ^ mixed(word), 13) * 5 + 0xE654_6B64
    if size & 3:
        found = found ^ mixed(tail)
    found = found ^ size
    found = (found ^ found >> 16) * 0x85EB_CA6B
    found = (found ^ found >> 13) * 0xC2B2_AE35
    return found ^ found >> 16


def _murmur2(words: Iterable[Word], tail: Word, size: int) -> Word:
    """MurmurHash2 of 32 bits with the seed of Kafka's Java clients, of one key or of many keys of one size, as `_murmur3`."""
    multiplier = 0x5BD1_E995
    found: Word = 0x9747_B28C ^ size
    for word in words:
        mixed = word * multiplier & _WORD
        mixed = (mixed ^ mixed >> 24) * multiplier & _WORD
        found = found * multiplier & _WORD ^ mixed
    if size & 3:
        found = (found ^ tail) * multiplier & _WORD
    found = (found ^ found >> 13) * multiplier & _WORD
    return found ^ found >> 15


def _murmur2_of_key(key: bytes) -> int:
    whole = len(key) & ~3
    words = (int.from_bytes(key[at : at + 4], "little") for at in range(0, whole, 4))
    return int(_murmur2(words, int.from_bytes(key[whole:], "little"), len(key)))


_HASHES: dict[str, tuple[Callable[[bytes], int], Callable[[Iterable[Word], Word, int], Word]]] = {
    "murmur3": (mmh3.hash, _murmur3),
    "murmur2": (_murmur2_of_key, _murmur2),
}
