"""A producer: it sends records to a root through a server in front of the root."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from sparklog import arguments
from sparklog.serve.command import require
from sparklog.serve.shared import SharedServer

_ADDRESSES = re.compile(r"[\w.-]+:[0-9]{1,5}(,[\w.-]+:[0-9]{1,5})*")


class Producer:
    """Sends records to topics, with the calls of kafka-python's `KafkaProducer`.

    Given a root, it starts a server for Kafka's clients in a process of its own, which takes about three seconds. All producers of this
    user and root share the server, which ends a minute after the last of them. Given the address of a server, such as `sparklog serve`
    prints, the producer sends to that server.

    A record is committed when its future is done: each reader sees it then. Records of one partition are committed in the order of `send`.
    A producer may be used by several threads.

    Example:
        >>> with sparklog.Producer("my-log") as producer:
        ...     sent = producer.send("visits", key=b"ann", value=b"1")
        ...     print(sent.get(timeout=30).offset)
        0
    """

    __module__ = "sparklog"

    def __init__(self, place: str | os.PathLike[str], **configs: Any) -> None:
        """Connects to the server of a root, or to a server.

        Args:
            place: The path or URL of a root; or the address of a server, `host:port`, or several with commas. A folder whose name looks
                like an address is given as `./name`.
            **configs: Settings of kafka-python's `KafkaProducer`, such as `value_serializer`, `compression_type` and `linger_ms`.

        Raises:
            CallError: SERVE_EXTRA if the extra `serve` is not installed; STORE_UNSUPPORTED; SERVE_START if the server does not start.
            UpgradeError: JAVA_NEEDED.
            KafkaError: Of kafka-python, such as KafkaConfigurationError for an unknown setting.

        Example:
            >>> producer = sparklog.Producer("my-log", value_serializer=str.encode, compression_type="zstd")
        """
        require("kafka")
        from kafka import KafkaProducer

        self._server: SharedServer | None = None
        if isinstance(place, str) and _ADDRESSES.fullmatch(place):
            configs |= {"bootstrap_servers": place.split(",")}
        else:
            self._server = SharedServer(str(arguments.named_root(place)))
            configs |= self._server.settings
        try:
            self._producer = KafkaProducer(**configs)
        except BaseException:
            self._leave()
            raise

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: Sequence[tuple[str, bytes]] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Any:
        """Sends a record, and returns before it is committed.

        Args:
            topic: The name of the topic.
            value: The value: bytes, None, or a value that `value_serializer` takes.
            key: The key, the same. Records with equal keys go to one partition, by murmur2.
            headers: Names and values of headers.
            partition: The partition, from 0 on; by default, the key decides, and records without a key go to any.
            timestamp_ms: The time of the record, in ms since 1970; by default, now.

        Returns:
            A future of kafka-python. Its `get(timeout=s)` returns when the record is committed, with `partition`, `offset` and
            `timestamp`, or raises a `KafkaError`.

        Raises:
            KafkaError: KafkaTimeoutError if the server does not answer; MessageSizeTooLargeError.
            TypeError: If the key or the value is not bytes, and has no serializer; if a number is not one.

        Example:
            >>> producer.send("visits", value=b"2", key=b"ann").get(timeout=30).partition
            0
        """
        for name, given in (("partition", partition), ("timestamp_ms", timestamp_ms)):
            if given is not None:
                arguments.integer(name, given)
        return self._producer.send(topic, value, key, headers, partition, timestamp_ms)

    def flush(self, timeout: float | None = None) -> None:
        """Returns when all records that were sent are committed, or have failed.

        Args:
            timeout: The longest wait, in seconds; None for no limit.

        Raises:
            KafkaError: KafkaTimeoutError after `timeout`.

        Example:
            >>> producer.flush()
        """
        seconds = None if timeout is None else arguments.duration("timeout", timeout)
        self._producer.flush(seconds)

    def partitions_for(self, topic: str) -> set[int]:
        """The partitions of a topic.

        Args:
            topic: The name of the topic.

        Returns:
            The numbers of the partitions.

        Example:
            >>> producer.partitions_for("visits")
            {0}
        """
        found: set[int] = self._producer.partitions_for(topic)
        return found

    def metrics(self) -> dict[str, Any]:
        """Numbers of the producer, by the names of kafka-python.

        Returns:
            The metrics, in groups.

        Example:
            >>> "producer-metrics" in producer.metrics()
            True
        """
        found: dict[str, Any] = self._producer.metrics()
        return found

    def close(self, timeout: float | None = None) -> None:
        """Sends the records that wait, and ends. A second call does nothing.

        Args:
            timeout: The longest wait for the records, in seconds; None for no limit.

        Example:
            >>> producer.close()
        """
        seconds = None if timeout is None else arguments.duration("timeout", timeout)
        try:
            self._producer.close(seconds)
        finally:
            self._leave()

    def _leave(self) -> None:
        if self._server:
            self._server.close()

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
