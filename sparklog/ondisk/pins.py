"""Pins: keys that go to a partition that was chosen for them, whichever slot they have. FORMAT.md sections 5, 6, 10 and 13."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sparklog.ondisk.fields import Fields, integer
from sparklog.store.store import Damaged

PINS_MAX = 10_000
KEY_BYTES_MAX = 1024
_HEX = re.compile("(?:[0-9a-f]{2})*")

Pins = Mapping[bytes, int]
"""The partition of each key that has a pin. It is never changed."""
Changes = Sequence[tuple[bytes, int | None]]
"""The keys to which a re-route gives a pin, each with its partition, and those whose pins it ends, with None; by key."""


def changes_of(fields: Fields, partitions: int) -> Changes:
    """The field of a re-route, after which there are `partitions`; empty if it has none. Damaged if it breaks a rule."""
    if "pins" not in fields:
        return ()
    # As many as can end, and as many as can begin.
    changes = _entries(fields, 2 * PINS_MAX, partitions)
    if not changes:
        raise Damaged("`pins` is there, and has no entry")
    return changes


def pins_of(fields: Fields, partitions: int) -> Pins:
    """The field of a checkpoint: the pins before the oldest re-route that it has. Damaged if it breaks a rule."""
    pins: dict[bytes, int] = {}
    for key, partition in _entries(fields, PINS_MAX, partitions):
        if partition is None:
            raise Damaged("`pins` has a key without a partition")
        pins[key] = partition
    return pins


def change(pins: dict[bytes, int], changes: Changes) -> None:
    """Makes these changes in place. Damaged if one of them changes nothing, or the pins become too many."""
    for key, partition in changes:
        if pins.get(key) == partition:
            raise Damaged(f"it pins the key {_named(key)} where it is pinned already, or ends a pin that it has not")
        if partition is None:
            del pins[key]
        else:
            pins[key] = partition
    if len(pins) > PINS_MAX:
        raise Damaged(f"there are {len(pins)} pins, more than {PINS_MAX}")


def require_open(pins: Pins, weights: Sequence[int]) -> None:
    """Checks that each pin is to a partition that is there and not closed. Damaged if one is not."""
    for key, partition in pins.items():
        if partition >= len(weights) or not weights[partition]:
            raise Damaged(f"the key {_named(key)} is pinned to partition {partition}, which is closed or not there")


def numbers(changes: Changes) -> int:
    """How many numbers they count as, for the limit of section 10."""
    return sum(2 + -(-len(key) // 4) for key, _ in changes)


def _entries(fields: Fields, most: int, partitions: int) -> Changes:
    found: list[tuple[bytes, int | None]] = []
    for entry in fields.array("pins", most):
        if type(entry) is not list or len(entry) != 2:
            raise Damaged("an entry of `pins` is not a key and a partition")
        key = _key(entry[0])
        if found and key <= found[-1][0]:
            raise Damaged(f"the keys in `pins` do not rise, at {_named(key)}")
        found.append((key, None if entry[1] is None else integer(entry[1], "pins", 0, partitions - 1)))
    return tuple(found)


def _key(text: Any) -> bytes:
    if type(text) is not str or not _HEX.fullmatch(text):
        raise Damaged("a key in `pins` is not of hex digits")
    if len(text) > 2 * KEY_BYTES_MAX:
        raise Damaged(f"a key in `pins` has {len(text) // 2} bytes, more than {KEY_BYTES_MAX}")
    return bytes.fromhex(text)


def _named(key: bytes) -> str:
    return repr(key if len(key) <= 40 else key[:40] + b"...")
