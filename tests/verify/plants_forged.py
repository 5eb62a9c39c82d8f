"""Faults whose checksums are right, for `planting`."""

import hashlib
import json
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import google_crc32c
from handmade import split
from mmh3 import hash as murmur3
from planting import (
    DATA,
    VERSION,
    Live,
    Planted,
    Root,
    any_version,
    batch_at,
    flip,
    newest_version,
    plant,
    put_batch,
)

from sparklog import Log, partition_for
from sparklog.arguments import named_root
from sparklog.ondisk.topic_log import TopicLog


@plant
def a_forged_batch(root: Root, some: random.Random) -> Planted | None:
    """Its checksum is right. Only the checksum over the headers of its segment tells."""
    live = some.choice(root.live)
    position, batch = batch_at(root, live, some)
    forged = flip(batch, some.randrange(8 * 21, 8 * len(batch)))
    if forged[8:12] != batch[8:12]:
        return None
    put_batch(root, live, position, forged)
    return Planted(f"a forged batch at {position}", (live.file,), {"damage"}, DATA)


def forged_segment(root: Root, some: random.Random, change: Callable[[bytes], bytes | None]) -> Live | None:
    """Forges a batch of the newest version, and that version file too, with every checksum right."""
    file = newest_version(root, some)
    content = root.content(file)
    segment = some.choice(content["added"])
    topic = file.split("/")[1]
    data = f"_partlog/{topic}/{segment['file']}"
    place = (segment["position"], segment["bytes"], segment["base"], segment["end"])
    live = Live(topic, segment["partition"], data, *place, True)
    position, batch = batch_at(root, live, some)
    forged = change(batch)
    if forged is None:
        return None
    put_batch(root, live, position, forged)
    octets = root.read(data)[live.position : live.position + live.bytes]
    crc = 0
    for each in split(octets):
        crc = google_crc32c.extend(crc, each[8:61])
    segment["headerCrc"] = crc
    root.forge(file, content)
    # The view is made of the forged bytes too, so that it does not tell.
    view = root.path / f"{live.view}.log"
    if not live.own:
        relative, pieces = live.base, []
        for each in split(octets):
            pieces.append(struct.pack(">q", relative) + each[8:])
            relative += struct.unpack_from(">i", each, 57)[0]
        view.write_bytes(b"".join(pieces))
    return live


@plant
def a_forged_key(root: Root, some: random.Random) -> Planted | None:
    """The first record gets another key of the same length, in a partition where the partitioner would not put it."""

    def change(batch: bytes) -> bytes | None:
        at = batch.find(b"\x04k", 61)  # a key of two bytes
        if at < 0 or batch[21:23] != b"\0\0":
            return None
        return batch[: at + 1] + b"\xfe\xfd" + batch[at + 3 :]

    live = forged_segment(root, some, change)
    if live is None:
        return None
    if _home(root, live, b"\xfe\xfd") == live.partition:
        return None
    return Planted("a key of another partition", (live.file,), {"damage"}, {"ROUTE_WRONG"})


def _home(root: Root, live: Live, key: bytes) -> int:
    """The partition of a key when a segment was written."""
    routing = TopicLog(named_root(root.path), live.topic).newest().routing
    if not routing:
        return partition_for(key, Log(root.path)[live.topic].partitions)
    table = routing.table_after(sum(each.cut_of(live.partition) <= live.base for each in routing.past))
    return table[(murmur3(key) & 0x7FFFFFFF) % len(table)]


@plant
def a_forged_time(root: Root, some: random.Random) -> Planted | None:
    """A base timestamp that is later: the records are later than the batch says."""
    moved = some.choice([-(10**7), 10**7])
    live = forged_segment(
        root, some, lambda batch: batch[:27] + struct.pack(">q", struct.unpack_from(">q", batch, 27)[0] + moved) + batch[35:]
    )
    return Planted("other times", (live.file,), {"damage"}, {"TIMES_WRONG", "ORDER_WRONG"}) if live else None


@plant
def a_forged_record(root: Root, some: random.Random) -> Planted | None:
    """A record that is a byte longer than its batch."""
    live = forged_segment(root, some, lambda batch: None if batch[22] else batch[:61] + bytes([batch[61] ^ 2]) + batch[62:])
    return Planted("a record of another length", (live.file,), {"damage"}, {"BATCH_CORRUPT"}) if live else None


@plant
def a_forged_count(root: Root, some: random.Random) -> Planted | None:
    """One record more or less than there are, in the header."""

    def change(batch: bytes) -> bytes:
        count = struct.unpack_from(">i", batch, 57)[0] + some.choice([-1, 1])
        return batch[:23] + struct.pack(">i", count - 1) + batch[27:57] + struct.pack(">i", count) + batch[61:]

    live = forged_segment(root, some, change)
    return Planted("another count", (live.file,), {"damage"}, {"BATCH_CORRUPT", "SEGMENT_CORRUPT"}) if live else None


@plant
def a_forged_version(root: Root, some: random.Random) -> Planted | None:
    """A field of the newest version is another one, and the checksum is right."""
    file = newest_version(root, some)
    content = root.content(file)
    segment = some.choice(content["added"])
    partition = segment["partition"]
    data = f"_partlog/{content['topic']}/{segment['file']}"
    view = f"{content['topic']}-{partition}/{segment['base']:020d}"

    def entry(name: str, by: int) -> Callable[[], None]:
        def change() -> None:
            content[name][str(partition)] = content[name].get(str(partition), 0) + by

        return change

    def of_segment(name: str, value: Any) -> Callable[[], None]:
        def change() -> None:
            segment[name] = value

        return change

    kinds: dict[str, tuple[Callable[[], None], str, set[str]]] = {
        "ends, more": (entry("ends", 1), file, VERSION),
        "ends, less": (entry("ends", -1), file, VERSION),
        "starts": (entry("starts", 1), file, VERSION | {"VERSION_ODD"}),
        "horizon": (lambda: content.update(horizon=content["horizon"] + 100), file, {"VERSION_ODD"}),
        "boundary": (lambda: content.update(boundary=content["version"] + 1), file, VERSION),
        "previous": (lambda: content.update(previous="0" * 64), file, VERSION),
        "topicId": (lambda: content.update(topicId="AAAAAAAAAAAAAAAAAAAAAw"), file, VERSION),
        "version": (lambda: content.update(version=content["version"] + 1), file, VERSION),
        "partition": (of_segment("partition", (partition + 1) % 4), file, VERSION),
        "base": (of_segment("base", segment["base"] + 1), file, VERSION),
        "headerCrc": (of_segment("headerCrc", segment["headerCrc"] ^ 1), data, DATA),
        "batches": (of_segment("batches", segment["batches"] + 1), data, DATA),
        "bytes": (of_segment("bytes", segment["bytes"] - 1), data, DATA),
        "maxTimestamp": (of_segment("maxTimestamp", segment["maxTimestamp"] + 1), data, {"TIMES_WRONG"}),
        "minTimestamp": (of_segment("minTimestamp", segment["maxTimestamp"]), data, {"TIMES_WRONG"}),
        "another file": (of_segment("file", segment["file"].replace("pool", "t0-0")), data.replace("pool", "t0-0"), {"SEGMENT_MISSING"}),
        "added nothing": (lambda: content.update(added=[]), file, VERSION),
        "removed": (lambda: content.update(removed=[{"partition": 0, "file": segment["file"], "position": 7}]), file, VERSION),
        "partitioner": (lambda: content["config"].update(partitioner="murmur2"), file, {"VERSION_ODD"}),
        "partitions": (lambda: content["config"].update(partitions="9"), file, VERSION),
        "an older txn": (lambda: content.update(txn=root.content(root.versions(content["topic"])[-2])["txn"]), file, {"EPOCH_TWICE"}),
        "its records vanish": (
            lambda: content.update(added=[], ends={}),
            f"{view}.log",
            {"COMMIT_LOST"},
        ),
    }
    kind = some.choice(sorted(kinds))
    change, named, conditions = kinds[kind]
    before = json.dumps(content)
    change()
    if json.dumps(content) == before or (
        kind == "minTimestamp" and segment["maxTimestamp"] == json.loads(before)["added"][0]["minTimestamp"]
    ):
        return None
    root.forge(file, content)
    # A version that contradicts itself, say with more batches than records, is refused before its files are read.
    return Planted(f"{kind} of {file}", (named, file), {"damage"}, conditions | VERSION)


@plant
def tiled_with_a_hole(root: Root, some: random.Random) -> Planted | None:
    """The newest version calls a segment tiled, and all batches behind one of its batches are an offset further on than they must be."""
    file = newest_version(root, some)
    content = root.content(file)
    topic = file.split("/")[1]
    segment = some.choice(content["added"])
    data = f"_partlog/{topic}/{segment['file']}"
    place = slice(segment["position"], segment["position"] + segment["bytes"])
    octets = root.read(data)
    batches = split(octets[place])
    if segment["end"] != content["ends"][str(segment["partition"])] or len(batches) < 2:
        return None
    first = some.randrange(1, len(batches))
    moved = [struct.pack(">q", struct.unpack_from(">q", each)[0] + 1) + each[8:] for each in batches[first:]]
    root.write(data, octets[: place.start] + b"".join(batches[:first] + moved) + octets[place.stop :])
    segment["offsets"] = "tiled"
    segment["end"] += 1
    content["ends"][str(segment["partition"])] += 1
    root.forge(file, content)
    hole = segment["position"] + sum(map(len, batches[:first]))
    return Planted(f"a hole at {hole}", (data,), {"damage"}, {"BATCH_CORRUPT"}, (hole, hole + 1))


@plant
def a_forged_version_below(root: Root, some: random.Random) -> Planted | None:
    """A field of a version that is not the newest: the next one has another hash of it."""
    file = any_version(root, some)
    if file == root.versions(file.split("/")[1])[-1] or root.weight(file) == {"garbage"}:
        return None
    content = root.content(file)
    content["writer"] = "somebody else"
    root.forge(file, content)
    return Planted("another writer", (file,), {"damage"}, VERSION)


@plant
def a_forged_checkpoint(root: Root, some: random.Random) -> Planted | None:
    """Its checksums and its name are right, and it says something else than the versions."""
    file = some.choice(root.files("_partlog/*/*.jsonl"))
    head, *lines = [json.loads(line.split(b"\t")[0]) for line in root.read(file).split(b"\n")[:-1]]
    if not lines:
        return None
    line = some.choice(lines)
    kind = some.choice(["end", "routed", "epoch", "hash", "file", "config", "time"])
    if kind == "end":
        head["ends"][line[0]] += 1
    elif kind == "routed":
        line[11] = not line[11]
    elif kind == "epoch":
        head["queries"] = [["somebody", 9, None, 0]]
    elif kind == "hash":
        head["hash"] = "0" * 64
    elif kind == "file":
        line[1] = line[1][:-4].replace("pool", "t0-0") + ".log"
    elif kind == "config":
        head["config"]["retention.ms"] = "1"
    else:
        head["time"] += 1
    texts = [json.dumps(each, separators=(",", ":")).encode() for each in (head, *lines)]
    crc, content = 0, b""
    for text in texts:
        crc = google_crc32c.extend(crc, text)
        content += text + f"\t{crc:08x}\n".encode()
    named = f"{file[: file.index('checkpoint-')]}checkpoint-{hashlib.sha256(b''.join(texts)).hexdigest()[:16]}.jsonl"
    if content == root.read(file):
        return None
    (root.path / file).unlink()
    (root.path / named).write_bytes(content)
    oldest = int(Path(named).name[:20]) != max(int(Path(each).name[:20]) for each in root.files(f"{Path(named).parent}/*.jsonl"))
    if oldest and kind in ("routed", "epoch", "config", "file"):
        return None  # the versions before it are gone: nothing else knows
    return Planted(f"{kind} of a forged checkpoint", (named,), {"damage", "repairable"}, {"CHECKPOINT_WRONG", "CHECKPOINT_DAMAGED"})
