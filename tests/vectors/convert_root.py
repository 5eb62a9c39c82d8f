"""Rewrites the root of an unreleased version in the format of today: `python tests/vectors/convert_root.py root-0.1.0.tar.gz`.

The lines of a checkpoint had true or false where they have the kind of offsets now. The file gets another name, as its bytes are others.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import sys
import tarfile
from pathlib import Path

import google_crc32c

_CHECKPOINT = re.compile(r"(.*/[0-9]{20}\.checkpoint-)[0-9a-f]{16}\.jsonl")
_OFFSETS = 10


def converted(line: bytes) -> bytes:
    """The JSON of a line of a checkpoint, without its checksum."""
    text = line.split(b"\t")[0]
    values = json.loads(text)
    if isinstance(values, list) and isinstance(values[_OFFSETS], bool):
        values[_OFFSETS] = "dense" if values[_OFFSETS] else "stored"
        return json.dumps(values, separators=(",", ":"), ensure_ascii=False).encode()
    return text


def checkpoint(data: bytes) -> tuple[str, bytes]:
    """The digits in the name of a checkpoint in the format of today, and its bytes."""
    texts = [converted(line) for line in data.splitlines()]
    crc, lines = 0, []
    for text in texts:
        crc = google_crc32c.extend(crc, text)
        lines.append(text + f"\t{crc:08x}\n".encode())
    return hashlib.sha256(b"".join(texts)).hexdigest()[:16], b"".join(lines)


def convert(archive: Path) -> None:
    """Converts each checkpoint of a topic in an archive that `make_root.py` wrote. All other files stay byte for byte."""
    entries = []
    with tarfile.open(archive) as source:
        for entry in source:
            content = source.extractfile(entry)
            data = content.read() if content else b""
            if name := _CHECKPOINT.fullmatch(entry.name):
                digits, data = checkpoint(data)
                entry.name, entry.size = f"{name[1]}{digits}.jsonl", len(data)
            entries.append((entry, data))
    with tarfile.open(archive, "w:gz") as target:
        for entry, data in entries:
            target.addfile(entry, io.BytesIO(data) if entry.isreg() else None)


if __name__ == "__main__":
    convert(Path(sys.argv[1]))
