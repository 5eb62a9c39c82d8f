"""A producer: it sends records to a root through a server in front of the root."""

from __future__ import annotations

import contextlib
import os
import re
import threading
import weakref
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.serve.command import require
from sparklog.serve.shared import SharedServer

_RECONNECT_MS = 1_000
"""kafka-python waits twice as long after each attempt to reach a server, and a server starts in three seconds."""
_ABORT_S = 10
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
        self._turn, self._closed, self._forked = threading.Lock(), False, False
        self._server: SharedServer | None = None
        self._settings: dict[str, Any] = {}
        if isinstance(place, str) and _ADDRESSES.fullmatch(place):
            self._configs = configs | {"bootstrap_servers": place.split(",")}
        else:
            self._configs = {"reconnect_backoff_max_ms": _RECONNECT_MS, **configs}
            # The thread that follows the server keeps no producer alive that the program has let go.
            follow = weakref.WeakMethod(self._follow)
            self._server = SharedServer(str(arguments.named_root(place)), lambda: (known := follow()) and known())
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
            `timestamp`, or raises a `KafkaError`.

        Raises:
            CallError: PRODUCER_FORKED; SERVE_START if the server has died, and does not start again.
            KafkaError: KafkaTimeoutError if the server does not answer; MessageSizeTooLargeError; IllegalStateError after `close`.
            TypeError: If the key or the value is not bytes, and has no serializer; if a number is not one.

        Example:
            >>> producer.send("visits", value=b"2", key=b"ann").get(timeout=30).partition
            0
        """
        for name, given in (("partition", partition), ("timestamp_ms", timestamp_ms)):
            if given is not None:
                arguments.integer(name, given)
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

        In a process that was forked from the one of the producer, it does nothing.

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
        """In a forked process: nothing that runs at its end waits for the threads, or for a lock that one of them may have had."""
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


def _abort(producer: Any) -> None:
    """Ends a producer of kafka-python, whose records fail. Its own `close` raises KafkaTimeoutError, and lets its thread send on."""
    from kafka.errors import KafkaTimeoutError

    producer._sender.force_close()
    with contextlib.suppress(KafkaTimeoutError):
        producer.close(_ABORT_S)
