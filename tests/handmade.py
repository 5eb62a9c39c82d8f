"""Batches and roots, right ones and wrong ones, built from FORMAT.md without any code of sparklog."""

import hashlib
import json
import os
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import google_crc32c

CONFIG = {
    "partitioner": "murmur3",
    "compression.type": "none",
    "segment.bytes": "1073741824",
    "max.message.bytes": "1048588",
    "message.timestamp.type": "CreateTime",
    "index.interval.bytes": "4096",
}
SEGMENT_FIELDS = [
    *("partition", "file", "position", "bytes", "base", "end", "records", "batches", "minTimestamp", "maxTimestamp"),
    *("offsets", "routed", "ordered", "headerCrc"),
]
"""The fields of a segment, in the order of a checkpoint's line."""
HEADER = struct.Struct(">qiibIhiqqqhii")
TIME = 1_700_000_000_000


def varint(number: int) -> bytes:
    number = number * 2 if number >= 0 else -number * 2 - 1
    octets = bytearray()
    while number > 0x7F:
        octets.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*octets, number])


class Record(NamedTuple):
    value: bytes | None = b"value"
    key: bytes | None = None
    timestamp: int = TIME
    headers: tuple[tuple[bytes, bytes | None], ...] = ()

    def encoded(self, delta: int, base_timestamp: int) -> bytes:
        body = b"\0" + varint(self.timestamp - base_timestamp) + varint(delta) + _sized(self.key) + _sized(self.value)
        body += varint(len(self.headers)) + b"".join(_sized(key) + _sized(value) for key, value in self.headers)
        return varint(len(body)) + body


def _sized(octets: bytes | None) -> bytes:
    return varint(-1) if octets is None else varint(len(octets)) + octets


def records(count: int, tag: str = "r", timestamp: int = TIME) -> list[Record]:
    return [Record(f"{tag}-{number}".encode(), f"k{number % 7}".encode(), timestamp + number) for number in range(count)]


def batch(
    content: list[Record],
    base_offset: int = 0,
    *,
    deltas: list[int] | None = None,
    payload: bytes | None = None,
    **fields: int,
) -> bytes:
    """A batch. Header fields can be given, right or wrong. The checksum is right unless it is given."""
    deltas = list(range(len(content))) if deltas is None else deltas
    base_timestamp = fields.get("base_timestamp", content[0].timestamp if content else -1)
    if payload is None:
        payload = b"".join(record.encoded(delta, base_timestamp) for record, delta in zip(content, deltas, strict=True))
    after_sum = struct.pack(
        ">hiqqqhii",
        fields.get("attributes", 0),
        fields.get("last_offset_delta", deltas[-1] if deltas else 0),
        base_timestamp,
        fields.get("max_timestamp", max((record.timestamp for record in content), default=-1)),
        fields.get("producer_id", -1),
        fields.get("producer_epoch", -1),
        fields.get("base_sequence", -1),
        fields.get("records", len(content)),
    )
    rest = after_sum + payload
    length = fields.get("length", len(rest) + 9)
    return struct.pack(">qiibI", base_offset, length, 0, fields.get("magic", 2), fields.get("crc", google_crc32c.value(rest))) + rest


def identity(seed: object) -> str:
    import base64

    octets = hashlib.sha256(repr(seed).encode()).digest()[:16]
    return "A" + base64.urlsafe_b64encode(octets).decode().rstrip("=")[1:]


def summed(line: bytes) -> bytes:
    return line + b"\n" + f"crc32c:{google_crc32c.value(line):08x}\n".encode()


def split(data: bytes) -> list[bytes]:
    """The batches in a data file, one by one."""
    batches = []
    while data:
        size = 12 + int.from_bytes(data[8:12], "big")
        batches.append(data[:size])
        data = data[size:]
    return batches


def stamped(octets: bytes, *bases: int) -> bytes:
    """The batches, with these base offsets in the first ones."""
    found = split(octets)
    return b"".join(struct.pack(">q", base) + one[8:] for base, one in zip(bases, found, strict=False)) + b"".join(found[len(bases) :])


@dataclass
class Topic:
    """Writes the commit log of a topic, version by version."""

    root: Path
    name: str = "t"
    partitions: int = 1
    config: dict[str, str] = field(default_factory=dict)
    versions: list[dict[str, Any]] = field(default_factory=list)
    live: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    hash: str | None = None
    starts: list[int] = field(default_factory=list)
    """The first offset of each partition; 0 for all if this is empty."""
    features: list[dict[str, str]] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return self.root / "_partlog" / self.name

    def version_file(self, version: int) -> Path:
        return self.folder / f"{version:020d}.json"

    def data_file(self, version: int, number: int = 0) -> Path:
        """The data file of one of the segments that a version added."""
        return self.folder / self.versions[version]["added"][number]["file"]

    def data(
        self, octets: bytes, partition: int = 0, /, *, name: str = "pool.log", offsets: str = "dense", **fields: Any
    ) -> dict[str, Any]:
        """Writes a data file, and returns the segment for `commit`. Its base and end continue the last version."""
        version = len(self.versions)
        file = f"data/{version:020d}-{identity((self.name, version))}/{name}"
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        position = path.stat().st_size if path.exists() else 0
        with path.open("ab") as out:
            out.write(octets)
        headers = [HEADER.unpack_from(one) for one in split(octets)]
        base = self._before()["ends"][partition]
        count = sum(header[12] for header in headers)
        end = base + (count if offsets == "dense" else sum(header[6] + 1 for header in headers))
        crc = 0
        for one in split(octets):
            crc = google_crc32c.extend(crc, one[8:61])
        times = [header[8] for header in headers]
        return {
            "partition": partition,
            "file": file,
            "position": position,
            "bytes": len(octets),
            "base": base,
            "end": end,
            "records": count,
            "batches": len(headers),
            "minTimestamp": min((header[7] for header in headers), default=-1),
            "maxTimestamp": max(times, default=-1),
            "offsets": offsets,
            "routed": True,
            "ordered": False,
            "headerCrc": crc,
        } | fields

    def commit(self, *added: dict[str, Any], removed: list[dict[str, Any]] | None = None, **fields: Any) -> dict[str, Any]:
        """Writes the next version file."""
        content = self.next(*added, removed=removed, **fields)
        self.put(content)
        return content

    def next(self, *added: dict[str, Any], removed: list[dict[str, Any]] | None = None, **fields: Any) -> dict[str, Any]:
        """The content of the next version file. After a deletion, it begins the topic again."""
        version = len(self.versions)
        before = self._before()
        ends = list(before["ends"])
        for segment in added:
            ends[segment["partition"]] = max(ends[segment["partition"]], segment["end"])
        return {
            "format": 1,
            "features": self.features,
            "topic": self.name,
            "topicId": before["topicId"],
            "version": version,
            "txn": identity((self.name, version)),
            "previous": self.hash,
            "time": TIME + version * 1000,
            "operation": "write" if version else "create",
            "writer": "by hand",
            "query": None,
            "horizon": before["horizon"],
            "boundary": before["boundary"],
            "config": {"partitions": str(self.partitions)} | CONFIG | self.config if self._begins() else {},
            "starts": before["starts"],
            "ends": ends,
            "removed": [{key: segment[key] for key in ("partition", "file", "position")} for segment in removed or []],
            "added": list(added),
        } | fields

    def grow(self, partitions: int) -> None:
        """Adds partitions by a first re-route that moves no slot."""
        before, count = self.versions[-1], len(self.versions[-1]["ends"])
        slots, new = count * -(-4096 // count), [0] * (partitions - count)
        table = struct.pack(f"<{slots}H", *(slot % count for slot in range(slots)))
        self.features = featured("routing.slots")
        self.commit(
            operation="reroute",
            config={"partitions": str(partitions)},
            starts=before["starts"] + new,
            ends=before["ends"] + new,
            routing={"epoch": 1, "slots": slots, "weights": [1] * partitions, "moved": [], "table": google_crc32c.value(table)},
        )
        self.partitions = partitions

    def deletion(self, **fields: Any) -> dict[str, Any]:
        """The content of a version that deletes the topic."""
        version, ends = len(self.versions), self.versions[-1]["ends"]
        return self.next(operation="delete", deleted=True, starts=ends, horizon=version + 1, boundary=version, **fields)

    def delete(self) -> None:
        """Deletes the topic, with the marker and the checkpoint."""
        self.put(self.deletion())
        (self.folder / f"{len(self.versions) - 1:020d}.deleted").touch()
        self.checkpoint(deleted=True)

    def _begins(self) -> bool:
        return not self.versions or "deleted" in self.versions[-1]

    def _before(self) -> dict[str, Any]:
        """The content from which the next version goes on."""
        if not self._begins():
            return self.versions[-1]
        starts = self.starts or [0] * self.partitions
        last = self.versions[-1] if self.versions else {"horizon": 0, "boundary": 0}
        return {
            **last,
            "topicId": identity((self.name, len(self.versions)) if self.versions else self.name),
            "starts": starts,
            "ends": starts,
        }

    def on_disk(self, content: dict[str, Any], version: int | None = None) -> dict[str, Any]:
        """The content of a version file, by default the next, as on disk: of lists of starts or ends, the offsets that change."""
        earlier = self.versions[:version]
        known = earlier[-1] if earlier and "deleted" not in earlier[-1] else {}
        changed = {}
        for name in ("starts", "ends"):
            if type(after := content.get(name)) is list:
                before = known.get(name, [])
                before = [*before, *[0] * (len(after) - len(before))]
                pairs = enumerate(zip(before, after, strict=False))
                deleted = "deleted" in content and after == content["ends"]
                changed[name] = {} if deleted else {str(partition): new for partition, (old, new) in pairs if new != old}
        return content | changed

    def _all(self, content: dict[str, Any]) -> dict[str, Any]:
        """The starts and ends of all partitions, where the content names those that change."""
        known = {} if self._begins() else self.versions[-1]
        count = int(content["config"].get("partitions", len(known.get("ends", []))))
        found = {}
        for name in ("starts", "ends"):
            if type(named := content[name]) is dict:
                before = known.get(name, [])
                found[name] = [*before, *[0] * (count - len(before))]
                for partition, offset in named.items():
                    found[name][int(partition)] = offset
        return found

    def octets(self, content: dict[str, Any], version: int | None = None) -> bytes:
        """A version file, by default the next, with this content."""
        return summed(json.dumps(self.on_disk(content, version), separators=(",", ":")).encode())

    def put(self, content: dict[str, Any]) -> None:
        """Writes a version file with this content."""
        self.folder.mkdir(parents=True, exist_ok=True)
        octets = self.octets(content)
        # As a writer puts it: readers never see a part of it.
        path = self.version_file(content["version"])
        path.with_name(f".{path.name}").write_bytes(octets)
        path.with_name(f".{path.name}").replace(path)
        self.hash = hashlib.sha256(octets).hexdigest()
        self.versions.append(content | self._all(content))
        for gone in content["removed"]:
            self.live[gone["partition"]] = [
                segment
                for segment in self.live[gone["partition"]]
                if (segment["file"], segment["position"]) != (gone["file"], gone["position"])
            ]
        if "deleted" in content:
            self.live = {}
        for segment in content["added"]:
            self.live.setdefault(segment["partition"], []).append(segment)
        if content["removed"]:
            for segments in self.live.values():
                segments.sort(key=lambda segment: segment["base"])

    def append(self, content: list[Record], partition: int = 0, **fields: Any) -> dict[str, Any]:
        """Commits one batch as one segment."""
        segment = self.data(batch(content), partition, **fields)
        self.commit(segment)
        return segment

    def checkpoint(self, **fields: Any) -> Path:
        """Writes a checkpoint of the newest version."""
        newest = self.versions[-1]
        head = {
            "format": 1,
            "features": [],
            "topic": self.name,
            "topicId": newest["topicId"],
            "version": newest["version"],
            "hash": self.hash,
            "time": newest["time"],
            "horizon": newest["horizon"],
            "boundary": newest["boundary"],
            "config": {"partitions": str(len(newest["ends"]))} | CONFIG | self.config,
            "starts": newest["starts"],
            "ends": newest["ends"],
            "queries": [],
            "segments": [len(self.live.get(partition, [])) for partition in range(len(newest["ends"]))],
        } | fields
        lines: list[Any] = [head]
        for _, segments in sorted(self.live.items()):
            for segment in segments:
                others = {name: value for name, value in segment.items() if name not in SEGMENT_FIELDS}
                lines.append([segment[name] for name in SEGMENT_FIELDS] + ([others] if others else []))
        return self.put_checkpoint(newest["version"], lines)

    def put_checkpoint(self, version: int, lines: list[Any]) -> Path:
        texts = [json.dumps(line, separators=(",", ":")).encode() for line in lines]
        crc, content = 0, b""
        pieces = []
        for text in texts:
            crc = google_crc32c.extend(crc, text)
            pieces.append(text + f"\t{crc:08x}\n".encode())
        content = b"".join(pieces)
        path = self.folder / f"{version:020d}.checkpoint-{hashlib.sha256(b''.join(texts)).hexdigest()[:16]}.jsonl"
        path.write_bytes(content)
        return path


def featured(*names: str, binds: str = "writers") -> list[dict[str, str]]:
    """The field `features` with these features. All features of routing bind key readers, too."""
    return [{"name": name, "binds": "keyReaders" if name.startswith("routing.") else binds} for name in names]


def batches(*contents: list[Record]) -> bytes:
    """Batches that follow one another, with relative offsets."""
    octets, offset = b"", 0
    for content in contents:
        octets += batch(content, offset)
        offset += len(content)
    return octets


def sample(root: Path) -> Topic:
    """A topic `t` of two partitions, with segments of several batches: offsets 0 to 24 and 0 to 9. VALUES are those of partition 0."""
    topic = Topic(root, partitions=2)
    topic.commit(topic.data(batches(records(5, "a"), records(4, "b"), records(6, "c"))))
    topic.commit(topic.data(batches(records(7, "d", TIME + 1000), records(3, "e", TIME + 2000))), topic.data(batches(records(10, "p")), 1))
    return topic


VALUES = [f"{tag}-{number}".encode() for tag, count in (("a", 5), ("b", 4), ("c", 6), ("d", 7), ("e", 3)) for number in range(count)]


def without(name: str) -> Callable[[dict[str, Any]], None]:
    """A change that removes a field from a JSON object."""

    def change(content: dict[str, Any]) -> None:
        del content[name]

    return change


def given(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """A change that sets a field of a JSON object."""

    def change(content: dict[str, Any]) -> None:
        content[name] = value

    return change


def flipped(data: bytes, bit: int) -> bytes:
    damaged = bytearray(data)
    damaged[bit // 8] ^= 1 << bit % 8
    return bytes(damaged)


def draw_seed() -> int:
    """Where the random numbers of a test begin, which is printed.

    `make test` begins at the same place each time: a failure is then due to what was changed. `make soak` sets SPARKLOG_SEED=new. The
    printed number, in that variable, repeats a test that failed.
    """
    given = os.environ.get("SPARKLOG_SEED", "27")
    found = random.SystemRandom().randrange(2**32) if given == "new" else int(given)
    print(f"seed {found}")
    return found


def seeded() -> random.Random:
    """Random numbers from `draw_seed`."""
    return random.Random(draw_seed())


def either(in_test: int, in_soak: int) -> int:
    """The first number in `make test`, the second in `make soak`: of rounds, or of what else makes a test long."""
    return in_soak if "SPARKLOG_SEED" in os.environ else in_test
