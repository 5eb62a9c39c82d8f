"""A server whose disk is full says so at once: in its log, and to its clients."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from disks import formatted, mounted, needs_disk
from kafka import KafkaProducer
from kafka.errors import KafkaStorageError
from serve.serving import RunningServer


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    with mounted("ext4", formatted("ext4", 16, tmp_path / "image"), tmp_path / "disk") as place:
        yield place


@needs_disk("ext4")
def test_a_full_disk_is_told_with_its_file(serve_classpath: str, disk: Path) -> None:
    with RunningServer(serve_classpath, disk) as server:
        producer = KafkaProducer(bootstrap_servers=server.address, retries=0, enable_idempotence=False)
        try:
            producer.send("t", b"1").get(60)
            with (disk / "filler").open("wb", buffering=0) as filler:
                for piece in (1 << 20, 4096, 1):
                    fill(filler.fileno(), piece)
            for _ in range(3):
                with pytest.raises(KafkaStorageError, match=r"No space left on device, file _partlog/t/\S+"):
                    producer.send("t", b"2" * 100_000).get(60)
            told = [line for line in server.log().splitlines() if "for topic t under" in line]
            assert len(told) == 1, "once a minute and topic"
            assert "No space left on device" in told[0]
            assert f"{disk}/_partlog/t/" in told[0]
            (disk / "filler").unlink()
            producer.send("t", b"3").get(60)
        finally:
            producer.close()


def fill(filler: int, piece: int) -> None:
    """Writes pieces until the disk has no room for another."""
    try:
        while os.write(filler, bytes(piece)) == piece:
            pass
    except OSError:
        return
