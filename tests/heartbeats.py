"""Heartbeats of servers, made by hand. FORMAT.md annex G."""

import json
import os
import time
from pathlib import Path
from typing import Any

import google_crc32c
from handmade import identity


def content(**fields: Any) -> dict[str, Any]:
    """The fields of a right heartbeat, as changed."""
    listeners = {"PLAINTEXT": {"host": "127.0.0.1", "port": 9092, "kind": "PLAINTEXT on box"}}
    client = {"listener": "PLAINTEXT", "name": "till", "software": "librdkafka 2.16", "host": "10.0.0.7", "connections": 2}
    said = {"format": 1, "node": 7, "session": 9_000, "listeners": listeners, "since": 1_700_000_000_000, "program": "sparklog 0.1.0"}
    return said | {"clients": [client], "others": 0} | fields


def written(said: object) -> bytes:
    """A file with this content and its checksum. Bytes stand for themselves."""
    line = said if isinstance(said, bytes) else json.dumps(said).encode()
    return line + b"\ncrc32c:%08x\n" % google_crc32c.value(line)


def put(root: Path, server: str, number: int, said: object, age_s: float = 0, *, keep: bool = False) -> Path:
    """The heartbeat of a server, in place of its earlier heartbeats, unless it keeps them."""
    folder = root / "_servers"
    folder.mkdir(exist_ok=True)
    own = identity(server)
    for earlier in [] if keep else folder.glob(f"{own}-*"):
        earlier.unlink()
    file = folder / f"{own}-{number:020d}.json"
    file.write_bytes(said if isinstance(said, bytes) else written(said))
    os.utime(file, (time.time() - age_s,) * 2)
    return file
