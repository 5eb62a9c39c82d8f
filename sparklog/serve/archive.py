"""The archive of the classes of a server, with which it starts faster."""

from __future__ import annotations

import contextlib
from pathlib import Path

from sparklog.serve.command import keep_archive, require
from sparklog.serve.own import OwnServer

_PATIENCE_S = 60
_LINES = 8


def make_archive() -> Path:
    """Uses a server once, and keeps the classes that it loaded in an archive, in place of an earlier one. It takes some seconds.

    CallError if a package of the extra `serve` is not installed, if the archive cannot be written, or if the JVM makes no archives.
    """
    require("confluent_kafka")
    return keep_archive(_use)


def _use(scratch: Path, archive: Path) -> str:
    """A producer and a consumer use a server. Its JVM writes the archive when the server ends."""
    from confluent_kafka import Consumer, KafkaException, Producer

    server = OwnServer(str(scratch / "root"), [f"-XX:ArchiveClassesAtExit={archive}", "-Xlog:cds*=off"])
    try:
        producer = Producer({**server.settings, "enable.idempotence": True})
        producer.produce("t", b"value", b"key")
        producer.flush(_PATIENCE_S)
        consumer = Consumer({**server.settings, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["t"])
        with contextlib.suppress(KafkaException), contextlib.closing(consumer):  # the archive has the classes that were loaded until then
            consumer.poll(_PATIENCE_S)
            consumer.commit(asynchronous=False)
    finally:
        output = server.close(_PATIENCE_S)
    return " | ".join(output.splitlines()[-_LINES:]).rstrip(".")
