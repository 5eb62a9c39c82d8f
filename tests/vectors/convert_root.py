"""Rewrites the root of an unreleased version in the format of today: `python tests/vectors/convert_root.py root-0.1.0.tar.gz`.

* The lines of a checkpoint had true or false where they have the kind of offsets now.
* Version files and checkpoints had one list of features, `features`, where they have `readerFeatures` and `writerFeatures` now.
* Partitions could be added without a re-route. A topic with such a version is left out, here and in `root-<release>.json`.

The files get other bytes. So each version gets another hash, which the next version and a checkpoint name, and a checkpoint another name.
A root that is in the format of today stays as it is.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import sys
import tarfile
from pathlib import Path
from typing import Any

import google_crc32c

_CHECKPOINT = re.compile(r".*/[0-9]{20}\.checkpoint-[0-9a-f]{16}\.jsonl")
_VERSION = re.compile(r".*/_partlog/([^/]+)/[0-9]{20}\.json")
_OFFSETS = 10
_FEATURES = {"slots": "routing.slots", "unbound": "routing.unbound"}


def _bytes(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def converted(text: bytes, hashes: dict[str, str]) -> bytes:
    """The JSON of a version file or of a line of a checkpoint. `hashes` are the hashes of versions now, by their hashes before."""
    value = json.loads(text)
    if isinstance(value, list):
        if isinstance(value[_OFFSETS], bool):
            value[_OFFSETS] = "dense" if value[_OFFSETS] else "stored"
        return _bytes(value)
    fields: dict[str, Any] = {}
    for name, field in value.items():
        if name == "features":
            fields |= {"readerFeatures": [], "writerFeatures": [_FEATURES[feature] for feature in field]}
        else:
            fields[name] = hashes.get(field, field) if name in ("previous", "hash") else field
    return _bytes(fields)


def _grows(data: bytes) -> bool:
    """Whether a version adds partitions to a topic, and is no re-route."""
    fields = json.loads(data.splitlines()[0])
    return fields["operation"] == "alter" and "partitions" in fields["config"] and "routing" not in fields


def version(data: bytes, hashes: dict[str, str]) -> bytes:
    """A version file in the format of today, whose hash is added to `hashes`."""
    line = converted(data.splitlines()[0], hashes)
    now = line + f"\ncrc32c:{google_crc32c.value(line):08x}\n".encode()
    hashes[hashlib.sha256(data).hexdigest()] = hashlib.sha256(now).hexdigest()
    return now


def checkpoint(data: bytes, hashes: dict[str, str]) -> tuple[str, bytes]:
    """The digits in the name of a checkpoint in the format of today, and its bytes."""
    texts = [converted(line.split(b"\t")[0], hashes) for line in data.splitlines()]
    crc, lines = 0, []
    for text in texts:
        crc = google_crc32c.extend(crc, text)
        lines.append(text + f"\t{crc:08x}\n".encode())
    return hashlib.sha256(b"".join(texts)).hexdigest()[:16], b"".join(lines)


def convert(archive: Path) -> None:
    """Converts each version file and checkpoint of a topic in an archive that `make_root.py` wrote. All other files stay byte for byte."""
    with tarfile.open(archive) as source:
        entries = {entry.name: (entry, content.read() if (content := source.extractfile(entry)) else b"") for entry in source}
    grown = {topic for name, (_, data) in entries.items() if (topic := _VERSION.fullmatch(name)) and _grows(data)}
    left_out = [re.compile(rf".*/{each[1]}(-[0-9]+)?(/.*)?") for each in grown]
    entries = {name: entry for name, entry in entries.items() if not any(each.fullmatch(name) for each in left_out)}
    expected = archive.with_name(archive.name.replace("tar.gz", "json"))
    found = json.loads(expected.read_text())
    found["topics"] = {name: topic for name, topic in found["topics"].items() if name not in {each[1] for each in grown}}
    expected.write_text(json.dumps(found, indent=1) + "\n")
    hashes: dict[str, str] = {}
    for name in sorted(filter(_VERSION.fullmatch, entries)):
        entry, data = entries[name]
        entries[name] = entry, version(data, hashes)
    for name in filter(_CHECKPOINT.fullmatch, list(entries)):
        entry, data = entries[name]
        digits, data = checkpoint(data, hashes)
        entry.name = f"{name[: -len(digits) - len('.jsonl')]}{digits}.jsonl"
        entries[name] = entry, data
    with tarfile.open(archive, "w:gz") as target:
        for entry, data in entries.values():
            if entry.isreg():
                entry.size = len(data)
            target.addfile(entry, io.BytesIO(data) if entry.isreg() else None)


if __name__ == "__main__":
    convert(Path(sys.argv[1]))
