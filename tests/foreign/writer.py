"""A writer, written from docs/FORMAT.md alone: it has no code of sparklog. The numbers in comments are sections of that page.

It appends to a topic that exists, on a disk, as a driver with one task. It puts no checkpoint, merges nothing and makes no Kafka view.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import random
import secrets
import struct
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import cramjam
import google_crc32c
import lz4.frame
import zstandard
from foreign.batches import XERIAL, Refused
from foreign.fields import MAX, Test, decimal, identity, optional, pattern
from foreign.key_reader import UNBOUND, KeyReader, murmur3, table_sum
from foreign.record_reader import State

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PUTS = 100
_SHARE = "(1000000|0|[1-9][0-9]{0,5})"
_WISH = f"(0|[1-9][0-9]{{0,9}}):%s{_SHARE}(,{_SHARE})*"


class Record(NamedTuple):
    value: bytes | None
    key: bytes | None = None
    time: int = 1_700_000_000_000
    headers: tuple[tuple[bytes, bytes | None], ...] = ()
    partition: int | None = None


class Writer(KeyReader):
    """Appends records to topics."""

    FREE: ClassVar[tuple[str, ...]] = ()
    WORDS: ClassVar[dict[str, Test]] = {
        **KeyReader.WORDS,
        "segment.bytes": decimal(1024, 2**31 - 1),
        "index.interval.bytes": decimal(0, 2**31 - 1),
        "compression.type": pattern("|".join(CODECS)),
        "message.timestamp.type": pattern("CreateTime|LogAppendTime"),
        "segment.ms": optional(decimal(1, MAX)),
        "retention.ms": optional(decimal(-1, MAX)),
        "retention.bytes": optional(decimal(-1, MAX)),
        "file.delete.delay.ms": optional(decimal(0, MAX)),
        "versions.keep.ms": optional(decimal(0, MAX)),
        "transaction.retention.ms": optional(decimal(-1, MAX)),
        "producer.id.expiration.ms": optional(decimal(1, MAX)),
        "producer.ids.max": optional(decimal(1, 1_000_000)),
        "kafka.view": optional(pattern("all|merged|none")),
        "placement.shares": optional(pattern("none|" + _WISH % "(0|[1-9][0-9]{0,17}):")),
        "routing.pending.weights": optional(pattern("none|" + _WISH % "")),
        "key.type": optional(pattern("binary|string")),
        "value.type": optional(pattern("binary|string")),
    }

    def append(self, topic: str, records: Sequence[Record]) -> int:
        """Commits records, all or none of them; the version that has them."""
        plan = self.newest(topic)  # 7.1
        planned, txn = plan.version + 1, new_identity()
        folder = f"data/{planned:020d}-{txn}"
        by_partition, bound = self._placed(plan, records)
        octets, segments = _task(plan, by_partition, f"{folder}/pool.log")
        path = self.root / "_partlog" / topic / folder
        (path.parent).mkdir(exist_ok=True)
        path.mkdir()
        with (path / "pool.log").open("xb") as file:
            file.write(octets)
            file.flush()
            os.fsync(file.fileno())
        sync(path)
        tried = [False]
        try:
            return self._commit(topic, plan, txn, segments, bound, tried)
        except Refused:
            if not tried[0]:  # 7.7
                (path / "pool.log").unlink(missing_ok=True)
                path.rmdir()
            raise

    def _commit(self, topic: str, plan: State, txn: str, segments: list[dict[str, Any]], bound: dict[int, int], tried: list[bool]) -> int:
        """7.3, from step 2 on."""
        folder = self.root / "_partlog" / topic
        for attempt in range(PUTS):
            try:
                state = self.newest(topic)
            except Refused as error:
                raise Refused("TOPIC_RECREATED", str(error)) if error.id == "TOPIC_NOT_FOUND" else error from None
            if self._txn(topic, state.version) == txn:
                sync(folder)
                return state.version
            _check_plan(plan, state, bound)
            if not (folder / segments[0]["file"]).exists():
                raise Refused("FILE_NOT_SHARED", segments[0]["file"])
            if (folder / segments[0]["file"]).stat().st_size != segments[-1]["position"] + segments[-1]["bytes"]:
                raise Refused("FILE_LENGTH", segments[0]["file"])
            sync(folder / "data")
            sync(folder)
            content = _version(topic, state, txn, segments, bound)
            tried[0] = True
            taken = put(folder, f"{content['version']:020d}.json", summed(content))
            try:
                theirs = not taken and self._txn(topic, content["version"]) != txn
            except Refused as error:
                # A later format or feature is another writer's version. A file that is damaged tells nothing.
                if error.id != "FORMAT_TOO_NEW":
                    raise Refused("COMMIT_UNKNOWN", f"{txn}, version {content['version']}: {error}") from None
                theirs = True
            if theirs:
                time.sleep(random.random() * 0.01 * min(attempt, 10))
                continue
            sync(folder)
            found = self._version_bytes(topic, state.version)
            if found is not None and found[1] == state.tag:
                return state.version + 1
            if self._txn(topic, (newest := self.newest(topic)).version) == txn:
                return newest.version
            raise Refused("COMMIT_UNKNOWN", f"{txn}, version {content['version']}")
        raise Refused("COMMIT_FAILED", f"{PUTS} puts were lost to other writers")

    def _txn(self, topic: str, version: int) -> str | None:
        found = self._version_bytes(topic, version)
        return None if found is None else str(self.version(found[0], topic, version)["txn"])

    def _placed(self, plan: State, records: Sequence[Record]) -> tuple[dict[int, list[tuple[Record, bool]]], dict[int, int]]:
        """13: the records of each partition, and whether each belongs there by its key. Then the slots to bind, and to which partition."""
        bound: dict[int, int] = {}
        found: dict[int, list[tuple[Record, bool]]] = {}
        quiet = _least_loaded(plan)
        for record in records:
            home = None
            if record.key is not None:
                home = self.partition_for(plan, record.key)
                slot = self.hash(plan, record.key) % len(plan.routing.table) if plan.routing else 0
                if home == UNBOUND and record.partition is None:
                    home = bound.setdefault(slot, chosen(_shares(plan), slot))
            partition = record.partition if record.partition is not None else quiet if home is None else home
            if plan.routing and not plan.routing.weights[partition]:
                raise Refused("PARTITION_CLOSED", f"{partition}")
            found.setdefault(partition, []).append((record, home == partition))
        return dict(sorted(found.items())), bound


def _task(plan: State, by_partition: dict[int, list[tuple[Record, bool]]], file: str) -> tuple[bytes, list[dict[str, Any]]]:
    """7.2: one batch for each partition, which is one segment, with base offset 0 until the commit."""
    octets, segments = b"", []
    append_time = int(time.time() * 1000) if plan.config["message.timestamp.type"] == "LogAppendTime" else None
    for partition, placed in by_partition.items():
        batch = encoded([record for record, _ in placed], plan.config["compression.type"], append_time)
        if len(batch) > min(int(plan.config["max.message.bytes"]), int(plan.config["segment.bytes"])):
            raise Refused("RECORD_TOO_LARGE", f"the records of partition {partition} do not fit into one batch")
        times = [record.time if append_time is None else append_time for record, _ in placed]
        segments.append(
            {
                "partition": partition,
                "file": file,
                "position": len(octets),
                "bytes": len(batch),
                "records": len(placed),
                "batches": 1,
                "minTimestamp": min(times),
                "maxTimestamp": max(times),
                "offsets": "dense",
                "routed": all(routed for _, routed in placed),
                "ordered": times == sorted(times),
                "headerCrc": google_crc32c.value(batch[8:61]),
            }
        )
        octets += batch
    return octets, segments


def _version(topic: str, state: State, txn: str, segments: list[dict[str, Any]], bound: dict[int, int]) -> dict[str, Any]:
    """7.4: the content of the version after a state."""
    added = [{**each, "base": (base := state.ends[each["partition"]]), "end": base + each["records"]} for each in segments]
    content = {
        "format": 1,
        "features": state.feature_entries,
        "topic": topic,
        "topicId": state.topic_id,
        "version": state.version + 1,
        "time": int(time.time() * 1000),
        "horizon": state.horizon,
        "boundary": state.boundary,
        "txn": txn,
        "previous": state.hash,
        "operation": "write",
        "writer": "a foreign writer",
        "query": None,
        "config": {},
        "starts": {},
        "ends": {str(each["partition"]): each["end"] for each in added},
        "removed": [],
        "added": added,
    }
    moved: dict[int, list[int]] = {}
    for slot, partition in sorted(bound.items()):
        if state.routing.table[slot] == UNBOUND:
            moved.setdefault(partition, []).append(slot)
    if moved:  # A.5
        table = [
            moved_to if each == UNBOUND and (moved_to := bound.get(slot)) is not None else each
            for slot, each in enumerate(state.routing.table)
        ]
        content["routing"] = {"binds": True, "moved": [[each, *slots] for each, slots in sorted(moved.items())], "table": table_sum(table)}
    return content


def _check_plan(plan: State, state: State, bound: dict[int, int]) -> None:
    """7.3, step 2: what stops a write."""
    if state.topic_id != plan.topic_id:
        raise Refused("TOPIC_RECREATED", state.topic_id)
    keys = ("partitions", "partitioner", "placement")
    same = [state.config.get(key) for key in keys] == [plan.config.get(key) for key in keys] and _epoch(state) == _epoch(plan)
    if not same or any(state.routing.table[slot] not in (UNBOUND, partition) for slot, partition in bound.items()):
        raise Refused("ROUTING_CHANGED", "the topic routes records in another way than when the write was planned")
    if plan.version + 1 < state.horizon:
        raise Refused("WRITE_EXPIRED", f"planned at {plan.version + 1}, the horizon is {state.horizon}")


def _epoch(state: State) -> int:
    return state.routing.epoch if state.routing else 0


def _least_loaded(state: State) -> int:
    """L.1: for a task alone, whose records without a key are one run."""
    weights = state.routing.weights if state.routing else [1] * len(state.ends)
    whole = [each.cut for each in state.routing.reroutes] if state.routing else []
    whole = [cut for n, cut in enumerate(whole) if all(_cuts(state, n, partition) for partition, weight in enumerate(weights) if weight)]
    cut = whole[-1] if whole else []
    loads = []
    for partition, weight in enumerate(weights):
        start = max(state.starts[partition], cut[partition] if partition < len(cut) else 0)
        if weight:
            loads.append(((state.ends[partition] - start) * max(weights) // weight, partition))
    return min(loads)[1]


def _cuts(state: State, number: int, partition: int) -> bool:
    """A.2: whether a re-route of the state gives slots to a partition, or takes some."""
    epoch = state.routing.epoch - len(state.routing.reroutes) + number
    moved = state.routing.reroutes[number].moved
    return any(partition in (to, state.routing.home(slot, epoch)) for to, *slots in moved for slot in slots)


def _shares(state: State) -> list[int]:
    """A.6 and A.7."""
    weights: list[int] = state.routing.weights
    wish = state.config.get("placement.shares", "none")
    if wish != "none":
        epoch, until, listed = wish.split(":")
        shares = [int(each) for each in listed.split(",")]
        fit = (
            len(shares) == len(weights)
            and any(shares)
            and not any(share for share, weight in zip(shares, weights, strict=True) if not weight)
        )
        if fit and int(epoch) == _epoch(state) and time.time() * 1000 < int(until):
            return shares
    return weights


def chosen(shares: Sequence[int], slot: int) -> int:
    """A.7: the partition of an unbound slot, whose share by its L is the greatest."""
    best, best_share, best_length = -1, 0, 1
    for partition, share in enumerate(shares):
        length = _length(slot, partition)
        if share * best_length > best_share * length:
            best, best_share, best_length = partition, share, length
    return best


def _length(slot: int, partition: int) -> int:
    one_more = murmur3(struct.pack("<ii", slot, partition)) + 1
    k = one_more.bit_length() - 1
    m = (one_more << 31) >> k
    for _ in range(24):
        m = m * m >> 31
        b = m >> 32
        k, m = 2 * k + b, m >> b
    return max(1, (1 << 29) - k)


def encoded(records: Sequence[Record], codec: str, append_time: int | None = None) -> bytes:
    """3.4: a batch."""
    if append_time is not None:
        records = [record._replace(time=append_time) for record in records]
    first = records[0].time
    section = b"".join(_record(record, delta, first) for delta, record in enumerate(records))
    if codec == "gzip":
        section = gzip.compress(section)
    elif codec == "snappy":
        block = bytes(cramjam.snappy.compress_raw(section))
        section = XERIAL + struct.pack(">iii", 1, 1, len(block)) + block
    elif codec == "lz4":
        section = lz4.frame.compress(section, block_linked=False)
    elif codec == "zstd":
        section = zstandard.compress(section)
    attributes = CODECS.index(codec) | (0 if append_time is None else 8)
    greatest = max(record.time for record in records)
    count = len(records)
    tail = struct.pack(">hiqqqhii", attributes, count - 1, first, greatest, -1, -1, -1, count) + section
    return struct.pack(">qiibI", 0, len(tail) + 9, 0, 2, google_crc32c.value(tail)) + tail


def _record(record: Record, delta: int, first: int) -> bytes:
    body = b"\0" + _varint(record.time - first) + _varint(delta) + _sized(record.key) + _sized(record.value)
    body += _varint(len(record.headers)) + b"".join(_sized(name) + _sized(text) for name, text in record.headers)
    return _varint(len(body)) + body


def _varint(number: int) -> bytes:
    number = number << 1 if number >= 0 else (-number << 1) - 1
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def _sized(octets: bytes | None) -> bytes:
    return _varint(-1) if octets is None else _varint(len(octets)) + octets


def summed(content: dict[str, Any]) -> bytes:
    """5: the two lines of a version file."""
    line = json.dumps(content, separators=(",", ":")).encode()
    return line + b"\ncrc32c:%08x\n" % google_crc32c.value(line)


def new_identity() -> str:
    """2."""
    while not identity(found := base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")):
        pass
    return found


def sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def put(folder: Path, name: str, octets: bytes) -> bool:
    """Annex H: puts a file if it is absent, and says whether it was."""
    temporary = folder / "tmp" / secrets.token_hex(8)
    temporary.parent.mkdir(exist_ok=True)
    with temporary.open("xb") as file:
        file.write(octets)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(temporary, folder / name)
    except FileExistsError:
        return False
    else:
        sync(folder)
        return True
    finally:
        temporary.unlink()
