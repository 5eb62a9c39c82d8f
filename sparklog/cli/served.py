"""Writes the records of `sparklog produce` through a server for Kafka's clients, without Spark."""

from __future__ import annotations

import contextlib
import importlib.util
import time
from typing import TYPE_CHECKING, Any

from sparklog.errors import SparklogError
from sparklog.options import declared, topic_option
from sparklog.router import partition_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparklog.cli.lines import Record

_PLACED_BY_SPARK = ("placement", "routing.")
"""The beginnings of the options of topics with slots. Spark alone finds the partition of a key there."""
_AS_SPARK = ("partitions", "partitioner")
"""The options that say where a key goes. `produce` puts a key where Spark does, and takes the server's defaults of other options."""
_RECORD_BYTES = 512 << 10
_WAIT_S = 120
_STORAGE_S = 10
"""A server that cannot write, such as to a full disk, is given up after this time."""
_LOOKS_S = 1


def is_sendable(record: Record) -> bool:
    """Whether kafka-python can send the record: it has a key or a value, no header is null, and it is not very large."""
    if (record.key is None and record.value is None) or any(each["value"] is None for each in record.headers):
        return False
    return len(record.key or b"") + len(record.value or b"") + sum(len(each["value"]) for each in record.headers) <= _RECORD_BYTES


class ServedTopic:
    """A topic that gets records through the server that all producers of this user and root share."""

    def __init__(self, root: str, name: str, config: dict[str, str]) -> None:
        """Starts the server, and creates the topic if it does not exist.

        Args:
            root: The path or URL of the root.
            name: The name of the topic.
            config: The options of the topic, if it does not exist.

        Raises:
            CallError: As for `sparklog.Producer`.
            RetryError: SERVE_REFUSED if the server does not create the topic.
        """
        from kafka.errors import KafkaError

        from sparklog.log.log import Log
        from sparklog.producer import Producer
        from sparklog.serve.shared import SharedServer

        self._root, self._name = root, name
        with SharedServer(root) as server:
            try:
                self._create(server.settings, config)
                about = Log(root).topic(name).describe()
                self._partitions, self._partitioner = len(about["partitions"]), about["config"].get("partitioner", "murmur3")
                codec = about["config"].get("compression.type", "none")
                self._producer = Producer(root, compression_type=None if codec == "none" else codec)
            except KafkaError as error:
                raise self._refused(error) from None

    def _create(self, settings: dict[str, Any], config: dict[str, str]) -> None:
        from kafka.admin import KafkaAdminClient, NewTopic
        from kafka.errors import TopicAlreadyExistsError

        given = {key: str(topic_option(key).default) for key in _AS_SPARK} | config
        partitions = int(given.pop("partitions"))
        admin = KafkaAdminClient(**settings)
        try:
            admin.create_topics([NewTopic(self._name, partitions, 1, topic_configs=given)])
        except TopicAlreadyExistsError:
            pass
        finally:
            admin.close()

    def write(self, records: list[Record]) -> list[tuple[int, int]]:
        """Adds records in their order. Returns the partition and the offset of each, when all are committed. RetryError SERVE_REFUSED.

        CallError PARTITION_OUT_OF_RANGE, before a record is sent.
        """
        from kafka.errors import KafkaError

        for record in records:
            if record.partition is not None and record.partition >= self._partitions:
                last = self._partitions - 1
                raise SparklogError("PARTITION_OUT_OF_RANGE", partition=record.partition, topic=self._name, root=self._root, last=last)
        try:
            sent = [self._send(record) for record in records]  # all of them, so that they share commits
            return [(done.partition, done.offset) for done in [self._done(each) for each in sent]]
        except KafkaError as error:
            raise self._refused(error) from None

    def _done(self, sent: Any) -> Any:
        """The outcome of a record. kafka-python sends a record again that the server cannot write, for two minutes, and says nothing."""
        from kafka.errors import KafkaTimeoutError

        from sparklog.producer import storage_fault

        until = time.monotonic() + _WAIT_S
        while not sent.is_done and time.monotonic() < until:
            try:
                return sent.get(_LOOKS_S)
            except KafkaTimeoutError:
                if fault := storage_fault(self._producer, _STORAGE_S):
                    raise self._refused(fault) from None
        if not sent.is_done:
            raise self._refused(f"the server has not answered for {_WAIT_S} s")
        return sent.get(0)

    def _send(self, record: Record) -> Any:
        headers = [(each["key"], each["value"]) for each in record.headers]
        partition = record.partition
        if partition is None and record.key is not None:
            partition = partition_for(record.key, self._partitions, self._partitioner)
        return self._producer.send(self._name, record.value, record.key, headers, partition, record.timestamp)

    def _refused(self, cause: object) -> SparklogError:
        return SparklogError("SERVE_REFUSED", topic=self._name, root=self._root, cause=str(cause).rstrip("."))

    def close(self, wait_s: float = _WAIT_S) -> None:
        """Ends the use of the server. Records that have no answer get one, for at most `wait_s` seconds."""
        from kafka.errors import KafkaTimeoutError

        with contextlib.suppress(KafkaTimeoutError):  # `write` has raised an error for these records
            self._producer.close(wait_s)


def _is_known(entry: tuple[str, str]) -> bool:
    """Whether the server takes an option of a new topic. Spark names the fault of a wrong option."""
    key, value = entry
    return any(
        each.key == key and "topic" in each.scopes and each.problem(value) is None for each in declared().options
    ) and not key.startswith(_PLACED_BY_SPARK)


def opening(root: str, name: str, config: dict[str, str]) -> Callable[[], ServedTopic] | None:
    """How the topic is opened; None if Spark must write it: without the extra `serve`, with slots, or to check options of a topic."""
    from sparklog.log.log import Log

    if any(importlib.util.find_spec(each) is None for each in ("sparklog_serve", "kafka")):
        return None
    try:
        about = Log(root).topic(name).describe()
    except SparklogError as error:
        about = None
        if error.id not in ("ROOT_NOT_FOUND", "TOPIC_NOT_FOUND"):
            return None
    if about is None:
        return (lambda: ServedTopic(root, name, config)) if all(map(_is_known, config.items())) else None
    slots = about["routing"] is not None or about["config"].get("placement", "modulo") != "modulo" or about["pending_weights"] is not None
    return None if slots or config else lambda: ServedTopic(root, name, {})
