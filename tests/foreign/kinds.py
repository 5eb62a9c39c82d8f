"""A root with a topic of each kind: by the writer of sparklog, and by hand."""

from __future__ import annotations

import shutil
from itertools import count
from pathlib import Path
from typing import Any

import broken_bindings
import broken_reroutes
from handmade import Record, Topic, batch, batches, featured, records, stamped
from logtool import LogTool
from odd_batches import RIGHT, compressed

from sparklog import Log

LATER = [{"name": "ledger", "binds": "writers", "of": {"release": [2]}}]
"""A feature of a later release, with a further field."""
FURTHER: dict[str, Any] = {"bloom": {"bits": "00ff", "of": [1, None]}, "sorted": True}
"""Fields of a later release."""


def by_sparklog(tool: LogTool) -> None:
    """Topics that the writer of sparklog makes."""
    seeds = count()

    def append(topic: str, **arguments: Any) -> None:
        tool.run("append", topic=topic, tag=topic, seed=next(seeds), **{"partitions": 3, "keys": 11, **arguments})

    def change(topic: str, what: str, **arguments: Any) -> None:
        tool.run("change", topic=topic, what=what, **arguments)

    append("plain", commits=2)
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        append(codec, **{"compression.type": codec, "batch": 300})
    append("murmur2", partitioner="murmur2", fall=3)
    append("keyless", keys=0, commits=2)
    append("append-time", **{"message.timestamp.type": "LogAppendTime"})
    append("large", records=200, big=10_000, partitions=2, **{"segment.bytes": 300_000, "batch": 40_000})
    append("merged", commits=4, big=300)
    tool.run("merge", topic="merged")
    append("without-a-view", commits=3, **{"kafka.view": "none"})
    append("checkpointed", commits=13, pace=4, query="q", epoch=3)
    tool.run("vacuum", topic="checkpointed", hours=1, clock=2)
    append("expired", commits=3)
    change("expired", "records", offsets="0:4,1:9")
    append("deleted")
    change("deleted", "delete")
    append("begun-again")
    change("begun-again", "delete")
    append("begun-again", partitions=2, commits=2)
    append("rerouted", commits=2)
    change("rerouted", "partitions", to=5)
    append("rerouted", partitions=5)
    change("rerouted", "weights", weights="0:3,1:1,2:1,3:1,4:1")
    append("rerouted", partitions=5)
    change("rerouted", "keys", keys="k1,k4", to=2)
    change("rerouted", "close", partitions="1:0")
    append("rerouted", partitions=5, commits=6, pace=3)
    tool.run("merge", topic="rerouted")
    append("bound", commits=2, placement="on_first_write")
    change("bound", "partitions", to=4)
    append("bound", commits=5, pace=3, partitions=4, moreKeys=9, placement="on_first_write")
    change("rerouted", "rebuild", into="rebuilt", to=2)
    publish(tool)


def publish(tool: LogTool) -> None:
    """Makes the Kafka view of all topics right, as `verify` expects it."""
    for topic in Log(tool.root).topics():
        tool.run("publish", topic=topic)


def by_hand(root: Path) -> None:
    """Topics that the page allows, and that no writer of sparklog makes."""
    tiled = Topic(root, "tiled", starts=[258])
    gaps = batch(records(2), deltas=[0, 2], last_offset_delta=4) + batch([], 5, last_offset_delta=2) + batch(records(3, "c"), 8)
    tiled.commit(tiled.data(gaps, offsets="tiled", routed=False, records=5))
    half = Topic(root, "half-stamped", starts=[1000])
    half.commit(half.data(stamped(batches(records(5), records(4), records(3)), 1000, 5, 1009)))
    behind = Topic(root, "bytes-behind")
    segment = behind.data(batches(*[records(2)] * 40))
    with (behind.folder / segment["file"]).open("ab") as file:
        file.write(b"\0\0\0\x05\0\0\1\x2c" + b"what a later release puts behind the index")
    behind.commit({**segment, "index": 8})
    shared = Topic(root, "shared")
    segment = shared.append(records(9))
    (root / "_shared" / "7").mkdir(parents=True)
    shutil.move(shared.folder / segment["file"], root / "_shared" / "7" / "a.log")
    shared.commit({**segment, "file": "_shared/7/a.log", "base": 9, "end": 18})
    for file in shared.folder.glob("data/*/*"):
        file.unlink()
    shared.data_file(0).parent.mkdir(exist_ok=True)
    shutil.copy(root / "_shared" / "7" / "a.log", shared.data_file(0))
    (shared.folder / "ext" / "of").mkdir(parents=True)
    (shared.folder / "ext" / "of" / "another.json").write_text("no program of sparklog reads this")
    for number, (codec, payload) in enumerate(RIGHT.values()):
        form = Topic(root, f"form-{number}")
        form.commit(form.data(compressed(codec, payload), maxTimestamp=2**62, routed=False))
    odd = Topic(root, "odd-records")
    headers = ((b"a", b"1"), (b"a", None), ("ü".encode(), b""))
    content = [Record(None, b""), Record(b"", None, 1_600_000_000_000, headers), Record(b"\xff", b"\0" * 300, 0)]
    octets = batch(content, attributes=8, max_timestamp=1_700_000_000_000) + batch(content, 3)
    odd.commit(odd.data(octets, routed=False, minTimestamp=0))
    further = Topic(root, "further", features=LATER)
    for _ in range(3):
        further.commit(further.data(batch(records(4)), routed=False) | FURTHER, ledger=[1], operation="a-later-one")
    further.checkpoint(features=LATER, ledger=[1])
    further.version_file(0).unlink()
    further.commit(further.data(batch(records(4)), routed=False), operation="a-later-one")
    empty = Topic(root, "empty", partitions=2)
    empty.commit()
    for name, made in (("by-hand-rerouted", broken_reroutes.grown), ("by-hand-bound", broken_bindings.rerouted)):
        made(Topic(root, name, partitions=2))
    numbered = Topic(root, "producers", features=featured("producers"))
    for first in (0, 3):
        segment = numbered.data(batch(records(3), producer_id=7, producer_epoch=0, base_sequence=first), routed=False)
        entry = {"partition": 0, "id": 7, "epoch": 0, "first": first, "base": segment["base"], "end": segment["end"]}
        numbered.commit(segment, producers=[entry])
