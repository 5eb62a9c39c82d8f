"""A producer: it sends records to a root through a server in front of the root."""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.serve.command import require
from sparklog.serve.shared import SharedServer

_RECONNECT_MS = 1_000
"""kafka-python waits twice as long after each attempt to reach a server, and a server starts in three seconds."""
_ABORT_S = 10
_OF_GROUPS = "__consumer_offsets"
_PLACE = "give a root, or the address of a server, as the first argument: Producer(root)"
_INSTEAD = {
    "bootstrap_servers": _PLACE,
    "bootstrap.servers": _PLACE,
    "transactional_id": "leave it out: there are no transactions. Without it, a producer commits each record once",
}
_OF_SERVERS = ("sasl_", "security_protocol", "ssl_")
"""How settings begin that say how a server is reached. A producer of a root knows that by itself."""
_ADDRESSES = re.compile(r"[\w.-]+:[0-9]{1,5}(,[\w.-]+:[0-9]{1,5})*")


class Producer:
    """Sends records to topics, with the calls of kafka-python's `KafkaProducer`.

    Given a root, it starts a server for Kafka's clients in a process of its own, which takes about three seconds. All producers of this
    user and root share the server, which ends a minute after the last of them. Given the address of a server, such as `sparklog serve`
    prints, the producer sends to that server.

    A record is committed when its future is done: each reader sees it then. Records of one partition are committed in the order of `send`.
    A producer may be used by several threads.

    If the server of a root dies, the producer starts it again. kafka-python then sends again the records that were not acknowledged, in
    their order, and each of them is committed once, unless `enable_idempotence` is off. There is one exception: if another program has
    taken the address of the dead server, these records fail with kafka-python's IllegalStateError, each of them may be committed, and the
    producer goes on with a new server.

    A server can be silent and not dead: for example, it is stopped, or its disk hangs. The producer keeps such a server. Records then fail
    with KafkaTimeoutError after `delivery_timeout_ms`, which is 120,000 by default, and each of them may be committed. The producer goes
    on when the server answers.

    Example:
        >>> with sparklog.Producer("my-log") as producer:
        ...     sent = producer.send("visits", key=b"ann", value=b"1")
        ...     print(sent.get(timeout=30).offset)
        0
    """

    __module__ = "sparklog"

    def __init__(self, root: str | os.PathLike[str], **configs: Any) -> None:
        """Connects to the server of a root, or to a server.

        Args:
            root: The path or URL of a root; or the address of a server, `host:port`, or several with commas. A folder whose name looks
                like an address is given as `./name`.
            **configs: Settings of kafka-python's `KafkaProducer`, such as `value_serializer`, `compression_type` and `linger_ms`.

        Raises:
            CallError: SERVE_EXTRA if the extra `serve` is not installed; STORE_UNSUPPORTED; JAVA_NEEDED; SERVE_START if the server does
                not start.
            TypeError: For `bootstrap_servers` and `transactional_id`, and for settings of security if a root is given.
            ValueError: Of kafka-python, for an unknown setting.
            KafkaError: Of kafka-python, such as KafkaConfigurationError for settings that contradict each other.

        Example:
            >>> producer = sparklog.Producer("my-log", value_serializer=str.encode, compression_type="zstd")
        """
        is_address = isinstance(root, str) and _ADDRESSES.fullmatch(root) is not None
        _check_settings(root, configs, is_address)
        require("kafka")
        self._topics: set[str] = set()
        """The names that were checked."""
        self._turn, self._closed, self._forked = threading.Lock(), False, False
        self._server: SharedServer | None = None
        self._settings: dict[str, Any] = {}
        if is_address:
            self._configs = configs | {"bootstrap_servers": str(root).split(",")}
        else:
            self._configs = {"reconnect_backoff_max_ms": _RECONNECT_MS, **configs}
            # The thread that follows the server keeps no producer alive that the program has let go.
            follow = weakref.WeakMethod(self._follow)
            self._server = SharedServer(str(arguments.named_root(root)), lambda: (known := follow()) and known())
            self._at_end = weakref.finalize(self, self._server.close)
        _MADE.add(self)
        with self._turn:
            try:
                self._connect()
            except BaseException:
                self._closed = True
                self._leave()
                raise

    def _connect(self) -> None:
        from kafka import KafkaProducer

        settings = self._server.settings if self._server else {}
        self._producer, self._settings = KafkaProducer(**self._configs | settings), settings
        _renew_ids(self._producer)
        self._refused = _keep_answers(self._producer)

    def _connected(self, call: str) -> Any:
        """The producer of kafka-python, which sends to the server that runs now. CallError PRODUCER_FORKED."""
        if self._forked:
            raise SparklogError("PRODUCER_FORKED", call=call)
        if self._server and not _is_in_callback():  # a callback waits for no other thread, as other threads wait for callbacks
            with self._turn:
                if not self._closed and self._server.serving() != self._settings:
                    _abort(self._producer)
                    self._connect()
        return self._producer

    def _follow(self) -> None:
        """The server has died and was started again. Records that wait have failed, if its address is another."""
        from kafka.errors import KafkaError

        with contextlib.suppress(KafkaError, SparklogError):  # the next call tries again, and has the error
            self._connected("send")

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

        In a callback of a future, send to topics that the producer has sent to before: the callback's thread learns the partitions of
        a topic.

        Args:
            topic: The name of the topic.
            value: The value: bytes, None, or a value that `value_serializer` takes.
            key: The key, the same. Records with equal keys go to one partition, by murmur2.
            headers: Names and values of headers.
            partition: The partition, from 0 on; by default, the key decides, and records without a key go to any.
            timestamp_ms: The time of the record, in ms since 1970; by default, now.

        Returns:
            A future of kafka-python. Its `get(timeout=s)` returns when the record is committed, with `partition`, `offset` and
            `timestamp`, or raises a `KafkaError`. The text of a KafkaTimeoutError has the last answer of the server, such as that
            its disk is full.

        Raises:
            CallError: TOPIC_NAME_ILLEGAL; OPTION_VALUE for `__consumer_offsets`, which servers alone write; PRODUCER_FORKED; SERVE_START if
                the server has died, and does not start again.
            KafkaError: KafkaTimeoutError if the server does not answer; MessageSizeTooLargeError; IllegalStateError after `close`.
            TypeError: If the key or the value is not bytes, and has no serializer; if a number is not one.

        Example:
            >>> producer.send("visits", value=b"2", key=b"ann").get(timeout=30).partition
            0
        """
        for name, given in (("partition", partition), ("timestamp_ms", timestamp_ms)):
            if given is not None:
                arguments.integer(name, given)
        if not isinstance(topic, str) or topic not in self._topics:
            _check_topic(topic)
            self._topics.add(topic)
        from kafka.errors import IllegalStateError

        while True:
            producer = self._connected("send")
            try:
                return producer.send(topic, value, key, headers, partition, timestamp_ms)
            except IllegalStateError:
                if producer is self._connected("send"):  # otherwise another thread has connected to another server in between
                    raise

    def flush(self, timeout: float | None = None) -> None:
        """Returns when all records that were sent are committed, or have failed.

        Args:
            timeout: The longest wait, in seconds; None for no limit.

        Raises:
            CallError: PRODUCER_FORKED; PRODUCER_IN_CALLBACK; SERVE_START if the server has died, and does not start again.
            KafkaError: KafkaTimeoutError after `timeout`.

        Example:
            >>> producer.flush()
        """
        seconds = None if timeout is None else arguments.duration("timeout", timeout)
        if _is_in_callback():
            raise SparklogError("PRODUCER_IN_CALLBACK")
        self._connected("flush").flush(seconds)

    def partitions_for(self, topic: str) -> set[int]:
        """The partitions of a topic.

        Args:
            topic: The name of the topic.

        Returns:
            The numbers of the partitions.

        Raises:
            CallError: PRODUCER_FORKED; SERVE_START if the server has died, and does not start again.
            KafkaError: KafkaTimeoutError if the server does not answer.

        Example:
            >>> producer.partitions_for("visits")
            {0}
        """
        found: set[int] = self._connected("partitions_for").partitions_for(topic)
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
        """Sends the records that wait, and ends. A second call does nothing. In a callback of a future, it returns at once.

        In a forked process, it does nothing.

        Args:
            timeout: The longest wait for the records, in seconds; None for no limit. Records that still wait have failed then, with
                kafka-python's IllegalStateError.

        Raises:
            KafkaError: KafkaTimeoutError if records have failed after `timeout`.

        Example:
            >>> producer.close()
        """
        seconds = None if timeout is None else arguments.duration("timeout", timeout)
        if self._forked:
            return
        if _is_in_callback():  # the thread of callbacks is the thread that sends the records
            threading.Thread(target=self.close, args=(seconds,)).start()
            return
        with self._turn:
            self._closed = True
        from kafka.errors import KafkaTimeoutError

        try:
            self._producer.close(seconds)
        except KafkaTimeoutError:
            _abort(self._producer)
            raise
        finally:
            self._leave()

    def _leave_to_parent(self) -> None:
        """In a forked process: its end waits for no thread of the parent, and for no lock that such a thread may have had."""
        self._forked = True
        if inner := getattr(self, "_producer", None):
            inner._unregister_cleanup()
            inner._closed = True
        if self._server:
            self._at_end.detach()
            self._server.leave_to_parent()

    def _leave(self) -> None:
        if self._server:
            self._server.close()

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def storage_fault(producer: Producer, least_s: float) -> str | None:
    """Returns the last answer of the server, if its storage has refused the records of a partition for so long; None otherwise."""
    from kafka.errors import KafkaStorageError

    for code, since, answer in list(producer._refused.values()):
        if code == KafkaStorageError.errno and time.monotonic() - since >= least_s:
            return answer
    return None


def _check_settings(root: object, configs: Mapping[str, Any], is_address: bool) -> None:
    if isinstance(root, Mapping):  # as confluent-kafka takes them; it may have a password
        raise TypeError(f"`root` is of type {type(root).__name__}; {_PLACE}")
    for name in configs:
        instead = _INSTEAD.get(name)
        if instead is None and not is_address and name.startswith(_OF_SERVERS):
            instead = "leave it out: the producer of a root starts its server, and reaches it with a password of its own"
        if instead:
            raise TypeError(f"`{name}` is an argument of Kafka's clients, and Producer() does not take it: {instead}")


def _check_topic(topic: object) -> None:
    arguments.topic(topic, "topic")
    if topic == _OF_GROUPS:
        reason = "give another topic: servers alone write the positions of groups"
        raise SparklogError("OPTION_VALUE", option="topic", value=topic, reason=reason)


_MADE: weakref.WeakSet[Producer] = weakref.WeakSet()


def _leave_to_parent() -> None:
    for producer in _MADE:
        producer._leave_to_parent()


os.register_at_fork(after_in_child=_leave_to_parent)


def _is_in_callback() -> bool:
    from kafka.producer.sender import Sender

    return isinstance(threading.current_thread(), Sender)


def _renew_ids(producer: Any) -> None:
    """Lets a producer of kafka-python send on after a record has failed at its `delivery_timeout_ms`, and lets later records fail in time.

    The record may be committed, so kafka-python 3.0.12 gives up the producer id. The producer then has these faults, also at a broker:

    * kafka-python asks for another id only in the state of a new producer, and so sends nothing any longer.
    * Without an id, or while an epoch waits for its successor, no record fails.
    * The thread that asks for an id waits without a limit for a server that takes the request.
    * If a server takes the request and is silent, all later records fail.
    """
    from kafka.errors import KafkaConnectionError, KafkaError, KafkaTimeoutError, RequestTimedOutError

    manager, sender, client = producer._transaction_manager, producer._sender, producer._sender._client
    if manager is None:  # without idempotence
        return
    states = type(manager._current_state)
    give_up, next_request_handler = manager.reset_producer_id, manager.next_request_handler
    run_once, send_pending_request = sender.run_once, sender._maybe_send_pending_request

    def reset_producer_id() -> None:
        with manager._lock:
            give_up()
            if manager._current_state is states.READY:
                manager._current_state = states.UNINITIALIZED

    def waits_for_id() -> bool:
        return not manager.has_producer_id() or manager.is_bumping_epoch()

    def run_once_and_expire() -> None:
        if waits_for_id():
            for batch in [*producer._accumulator.expired_batches(), *sender._get_expired_inflight_batches()]:
                sender._complete_batch_with_exception(batch, KafkaTimeoutError("No server has given a producer id in delivery_timeout_ms"))
        run_once()

    def send_pending_request_if_ready() -> bool:
        node = client.least_loaded_node() if waits_for_id() else None
        if waits_for_id() and (node is None or not client.is_ready(node)):
            with contextlib.suppress(KafkaError):
                client.maybe_connect(node)
            return False  # the caller polls, and tries again
        sent: bool = send_pending_request()
        return sent

    def handler_that_asks_again(has_incomplete: bool) -> Any:
        handler = next_request_handler(has_incomplete)
        if handler is not None and "on_complete" not in vars(handler):  # a handler comes again if it asks again
            on_complete = handler.on_complete

            def complete(number: int, answer: Any) -> None:
                on_complete(number, KafkaConnectionError(str(answer)) if isinstance(answer, RequestTimedOutError) else answer)

            handler.on_complete = complete
        return handler

    manager.reset_producer_id, manager.next_request_handler = reset_producer_id, handler_that_asks_again
    sender.run_once, sender._maybe_send_pending_request = run_once_and_expire, send_pending_request_if_ready


class _Refused(NamedTuple):
    """A partition whose batches the server refuses, and kafka-python sends again."""

    code: int
    since: float
    answer: str


def _keep_answers(producer: Any) -> dict[Any, _Refused]:
    """Keeps the last answer of the server for each partition that it refuses, and adds it to the error of a batch whose time is over.

    kafka-python's own error has no cause: "Expiring 1 record(s)".
    """
    from kafka.errors import DuplicateSequenceNumberError, KafkaTimeoutError, for_code

    refused: dict[Any, _Refused] = {}
    sender = producer._sender
    complete_batch, complete_batch_with_exception = sender._complete_batch, sender._complete_batch_with_exception

    def complete(batch: Any, answer: Any) -> None:
        code, known = answer.error_code, refused.get(batch.topic_partition)
        if code in (0, DuplicateSequenceNumberError.errno):
            refused.pop(batch.topic_partition, None)
        else:
            since, error = known.since if known and known.code == code else time.monotonic(), for_code(code)
            refused[batch.topic_partition] = _Refused(code, since, str(error(answer.error_message or error.description)))
        complete_batch(batch, answer)

    def complete_with_exception(batch: Any, exception: Any) -> None:
        last = refused.get(batch.topic_partition)
        if last and isinstance(exception, KafkaTimeoutError):
            exception = KafkaTimeoutError(f"{exception.args[0]}. The last answer of the server: {last.answer}")
        complete_batch_with_exception(batch, exception)

    sender._complete_batch, sender._complete_batch_with_exception = complete, complete_with_exception
    return refused


def _abort(producer: Any) -> None:
    """Ends a producer of kafka-python, whose records fail. Its own `close` raises KafkaTimeoutError, and lets its thread send on."""
    from kafka.errors import KafkaTimeoutError

    producer._sender.force_close()
    with contextlib.suppress(KafkaTimeoutError):
        producer.close(_ABORT_S)
