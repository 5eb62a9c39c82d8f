"""A producer: it sends records to a root, through a server in front of the root."""

from __future__ import annotations

import os
import re
import ssl
import weakref
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Literal

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.serve.command import require
from sparklog.serve.own import OwnServer
from sparklog.serve.sender import RecordFuture, RecordMetadata, Sender

__all__ = ["Producer", "RecordFuture", "RecordMetadata"]

_OF_GROUPS = "__consumer_offsets"
_ADDRESSES = re.compile(r"[\w.-]+:[0-9]{1,5}(,[\w.-]+:[0-9]{1,5})*")
_BATCH_BYTES = 1_000_000
_INT_MAX, _LONG_MAX = 2**31 - 1, 2**63 - 1
_COMPRESSIONS = ("gzip", "snappy", "lz4", "zstd")
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class Producer:
    """Sends records to topics, with names of kafka-python's `KafkaProducer`.

    The producer of a root starts a server for Kafka's clients in a process of its own, which takes about three seconds, and ends it. For
    many programs, run `sparklog serve`, and give its address as `bootstrap_servers`.

    A record is committed when its future is done: each reader sees it then. Records of one partition are committed in the order of `send`.
    A producer may be used by several threads. A producer that is not closed loses the records that wait when its program ends.

    If the server of a root dies, the producer starts it again, and sends again the records that were not acknowledged. The server commits
    each of them once, in their order. If a server is silent, records fail after `delivery_timeout_ms`, each of them may be committed, and
    the producer goes on when the server answers. If a root is deleted, the next record begins a new root there, with offset 0.

    Example:
        >>> with sparklog.Producer("my-log") as producer:
        ...     sent = producer.send("visits", key="ann", value="1")
        ...     print(sent.get(timeout=30).offset)
        0
    """

    __module__ = "sparklog"

    def __init__(
        self,
        root: str | os.PathLike[str] | None = None,
        *,
        bootstrap_servers: str | Sequence[str] | None = None,
        client_id: str = "sparklog",
        compression_type: Literal["gzip", "snappy", "lz4", "zstd"] | None = None,
        linger_ms: int = 0,
        max_request_size: int = 1 << 20,
        buffer_memory: int = 32 << 20,
        max_block_ms: int = 60_000,
        delivery_timeout_ms: int = 120_000,
        security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT",
        sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None,
        sasl_plain_username: str | None = None,
        sasl_plain_password: str | None = None,
        ssl_cafile: str | os.PathLike[str] | None = None,
    ) -> None:
        """Starts the server of a root, or begins to connect to servers.

        Args:
            root: The path or URL of a root. A folder whose name looks like an address is given as `./name`.
            bootstrap_servers: The address of a server, `host:port`, or several, in place of a root.
            client_id: The name of the producer, which servers show.
            compression_type: How batches are compressed; by default they are not.
            linger_ms: How long a record waits for others to share a request, at most 900,000; default 0.
            max_request_size: The most bytes of a record, and of a batch before it is compressed, from 1,000 to 1,000,000,000; default
                1 MiB. The topic has a limit too, `max.message.bytes`.
            buffer_memory: The most bytes of records that wait, at least 1 KiB; default 32 MiB.
            max_block_ms: How long `send` waits for such memory, and with the first key of a topic for the server; default 60,000.
            delivery_timeout_ms: A record without an answer fails after this time. It must be more than `linger_ms`, or 0 for no limit;
                default 120,000.
            security_protocol: How servers are reached; default `PLAINTEXT`.
            sasl_mechanism: How the producer proves its name.
            sasl_plain_username: The name.
            sasl_plain_password: The password.
            ssl_cafile: The file of the certificates that servers must have; by default the system knows them.

        Raises:
            CallError: SERVE_EXTRA if the extra `serve` is not installed; OPTION_VALUE; OPTION_CONFLICT for a root with settings of other
                servers; PRODUCER_SETTINGS for settings that contradict each other; STORE_UNSUPPORTED; JAVA_NEEDED; SERVE_START if the
                server does not start.
            TypeError: For an unknown setting, and without a root and an address.

        Example:
            >>> with sparklog.Producer("my-log", compression_type="zstd") as producer:
            ...     _ = producer.send("visits", "1")
        """
        most = arguments.between("max_request_size", max_request_size, 1_000, 1_000_000_000)
        linger = arguments.between("linger_ms", linger_ms, 0, 900_000)
        delivery = arguments.count("delivery_timeout_ms", delivery_timeout_ms, _INT_MAX)
        if 0 < delivery <= linger:
            reason = f"it must be more than `linger_ms`, which is {linger}, or 0 for no limit"
            raise SparklogError("OPTION_VALUE", option="delivery_timeout_ms", value=delivery, reason=reason)
        if compression_type is not None:
            arguments.choice("compression_type", compression_type, _COMPRESSIONS)
        settings: dict[str, object] = {
            "client.id": arguments.text("client_id", client_id),
            "compression.type": compression_type or "none",
            "linger.ms": linger,
            "message.max.bytes": most,
            "batch.size": min(most, _BATCH_BYTES),
            "queue.buffering.max.kbytes": max(1, arguments.between("buffer_memory", buffer_memory, 1, _INT_MAX << 10) >> 10),
            "message.timeout.ms": delivery,
        }
        self._patience_s = arguments.count("max_block_ms", max_block_ms, _INT_MAX) / 1000
        self._topics: set[str] = set()
        """The names that were checked."""
        access = {
            "bootstrap_servers": None if bootstrap_servers is None else _addresses(bootstrap_servers),
            "security_protocol": None if security_protocol == "PLAINTEXT" else security_protocol,
            "sasl_mechanism": sasl_mechanism,
            "sasl_plain_username": None if sasl_plain_username is None else arguments.text("sasl_plain_username", sasl_plain_username),
            "sasl_plain_password": None if sasl_plain_password is None else _password(sasl_plain_password),
            "ssl_cafile": None if ssl_cafile is None else _certificates(ssl_cafile),
        }
        _check_access(access)
        given = {_OF_SERVERS[name]: value for name, value in access.items() if value is not None}
        require("confluent_kafka")
        server = None
        if root is None:
            if bootstrap_servers is None:
                raise TypeError("Producer() needs a root: Producer(root), or addresses of servers: Producer(bootstrap_servers=…)")
            settings |= given
            place = given["bootstrap.servers"]
        else:
            if given:
                option = next(name for name, value in access.items() if value is not None)
                reason = "the producer of a root starts a server of its own"
                raise SparklogError("OPTION_CONFLICT", options=f"root and {option}", reason=reason)
            if isinstance(root, str) and _ADDRESSES.fullmatch(root):
                reason = f"it looks like an address: give bootstrap_servers=, or the folder as ./{root}"
                raise SparklogError("OPTION_VALUE", option="root", value=root, reason=reason)
            place = str(arguments.named_root(root))
            server = OwnServer(place)
        try:
            self._sender = Sender(settings, place, server)
        except BaseException:
            if server:
                server.close(0)
            raise
        weakref.finalize(self, self._sender.abandon)

    def send(
        self,
        topic: str,
        value: bytes | str | None = None,
        key: bytes | str | None = None,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> RecordFuture:
        """Sends a record, and returns before it is committed.

        Args:
            topic: The name of the topic.
            value: The value; a string is encoded as UTF-8.
            key: The key, the same. Records with equal keys go to one partition, as Spark routes them to the topic: by the topic's
                `partitioner`. The first key of a topic waits for the server, which tells it.
            headers: Names and values of headers.
            partition: The partition, from 0 on; by default, the key decides, and records without a key go to any.
            timestamp_ms: The time of the record, in ms since 1970, 1 or more; by default, now.

        Returns:
            The future of the record: `send(…).get(timeout=30)` waits until it is committed.

        Raises:
            CallError: TOPIC_NAME_ILLEGAL; OPTION_VALUE for `__consumer_offsets`, which servers alone write, for a number out of range, and
                for text that is not UTF-8; PRODUCER_CLOSED; PRODUCER_FORKED.
            RetryError: SEND_FULL if the memory for records is full for `max_block_ms`; SEND_UNROUTED if no server answers for so long
                about the keys of the topic.
            TypeError: If an argument has another type.

        Example:
            >>> producer.send("visits", value="2", key="ann").get(timeout=30).partition
            0
        """
        if not isinstance(topic, str) or topic not in self._topics:
            _check_topic(topic)
            self._topics.add(topic)
        data, of_key, named = _bytes("value", value), _bytes("key", key), [] if headers is None else _headers(headers)
        time = None if timestamp_ms is None else arguments.between("timestamp_ms", timestamp_ms, 1, _LONG_MAX)
        if partition is not None:
            partition = arguments.count("partition", partition, _INT_MAX)
        elif of_key is not None:
            partition = self._sender.partition(topic, of_key, self._patience_s)
        return self._sender.send(topic, data, of_key, named, partition, time, self._patience_s)

    def flush(self, timeout: float | None = None) -> None:
        """Returns when all records that were sent before are committed, or have failed.

        Args:
            timeout: The longest wait, in seconds; None for no limit.

        Raises:
            CallError: PRODUCER_FORKED; PRODUCER_IN_CALLBACK.
            UnknownOutcomeError: SEND_UNANSWERED after `timeout`. The records still wait.

        Example:
            >>> producer.flush()
        """
        self._sender.flush(None if timeout is None else arguments.duration("timeout", timeout))

    def close(self, timeout: float | None = None) -> None:
        """Sends the records that wait, and ends. A second call, and a call in a forked process, do nothing.

        Args:
            timeout: The longest wait for the records, in seconds; None for no limit. Records without an answer have failed then.

        Raises:
            CallError: PRODUCER_IN_CALLBACK.
            UnknownOutcomeError: SEND_UNANSWERED if records have failed after `timeout`.

        Example:
            >>> producer.close()
        """
        self._sender.close(None if timeout is None else arguments.duration("timeout", timeout))

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


_OF_SERVERS = {
    "bootstrap_servers": "bootstrap.servers",
    "security_protocol": "security.protocol",
    "sasl_mechanism": "sasl.mechanism",
    "sasl_plain_username": "sasl.username",
    "sasl_plain_password": "sasl.password",
    "ssl_cafile": "ssl.ca.location",
}
"""The settings that say how servers are reached, by their names in librdkafka."""


def _addresses(given: object) -> str:
    found = arguments.texts("bootstrap_servers", given)
    if not found or not all(found):
        raise SparklogError("OPTION_VALUE", option="bootstrap_servers", value=given, reason="give an address, host:port, or several")
    return ",".join(found)


def _check_topic(topic: object) -> None:
    arguments.topic(topic, "topic")
    if topic == _OF_GROUPS:
        reason = "give another topic: servers alone write the positions of groups"
        raise SparklogError("OPTION_VALUE", option="topic", value=topic, reason=reason)


def _check_access(access: Mapping[str, object]) -> None:
    protocol = access["security_protocol"] or "PLAINTEXT"
    arguments.choice("security_protocol", protocol, _PROTOCOLS)
    if access["sasl_mechanism"] is not None:
        arguments.choice("sasl_mechanism", access["sasl_mechanism"], _MECHANISMS)
    missing = next((name for name in ("sasl_mechanism", "sasl_plain_username", "sasl_plain_password") if not access[name]), None)
    if str(protocol).startswith("SASL") and missing:
        raise SparklogError("PRODUCER_SETTINGS", cause=f"`security_protocol` is {protocol}, and `{missing}` is not given")


def _password(given: object) -> str:
    try:
        return arguments.text("sasl_plain_password", given)
    except (TypeError, SparklogError):  # whose texts have the value
        reason = "it must be a string that UTF-8 can encode"
        raise SparklogError("OPTION_VALUE", option="sasl_plain_password", value="…", reason=reason) from None


def _certificates(given: str | os.PathLike[str]) -> str:
    path = arguments.text("ssl_cafile", arguments.path("ssl_cafile", given))
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except OSError as error:  # as an SSLError is
        reason = f"give a file of certificates in PEM: {error}"
        raise SparklogError("OPTION_VALUE", option="ssl_cafile", value=path, reason=reason) from None
    return path


def _headers(given: Iterable[object]) -> list[tuple[str, bytes | None]]:
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise TypeError(f"`headers` is of type {type(given).__name__}; it must be a list of tuples of a name and a value")
    return [_header(each) for each in given]


def _header(given: object) -> tuple[str, bytes | None]:
    if not isinstance(given, tuple) or len(given) != 2:
        raise TypeError(f"`headers` has {repr(given)[:200]}; each header must be a tuple of a name and a value")
    name = arguments.text("name in headers", given[0])
    if "\0" in name:  # librdkafka would cut it there
        raise SparklogError("OPTION_VALUE", option="name in headers", value=repr(name[:200]), reason="it must not have a NUL character")
    return name, _bytes("value in headers", given[1])


def _bytes(name: str, given: bytes | str | None) -> bytes | None:
    if isinstance(given, str):
        return arguments.text(name, given).encode()
    if given is not None and not isinstance(given, bytes):
        raise TypeError(f"`{name}` is of type {type(given).__name__}; it must be bytes, a string or None")
    return given
