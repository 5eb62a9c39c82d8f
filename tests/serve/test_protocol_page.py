"""docs/reference/protocol.md has exactly the APIs and versions that a server names to its clients."""

import re
import socket
import struct
from pathlib import Path

from kafka.protocol.api_key import ApiKey
from serve.serving import RunningServer

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "protocol.md"


def named(address: str) -> dict[str, tuple[int, int]]:
    """The answer to ApiVersions 0, without a client: by name, the lowest and the highest version."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), 60) as connection:
        request = struct.pack(">hhih", 18, 0, 1, -1)
        connection.sendall(struct.pack(">i", len(request)) + request)
        with connection.makefile("rb") as answers:
            answer = answers.read(struct.unpack(">i", answers.read(4))[0])
    correlation, error, count = struct.unpack_from(">ihi", answer)
    assert (correlation, error) == (1, 0)
    versions = [struct.unpack_from(">hhh", answer, 10 + 6 * number) for number in range(count)]
    return {ApiKey(key).name.replace("_", "").lower(): (low, high) for key, low, high in versions}


def test_the_page_of_the_protocol(server: RunningServer) -> None:
    rows = re.findall(r"^\| (\w+) \| (\d+)(?:–(\d+))? \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert {name.lower(): (int(low), int(high or low)) for name, low, high in rows} == named(server.address)
