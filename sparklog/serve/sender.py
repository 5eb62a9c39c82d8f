"""Sends records to a server, by librdkafka, and follows what becomes of each record.

librdkafka numbers the records of a partition, and a server commits each number once. So a record that is sent again, as after the death of
a server, is committed once. docs/decisions/0018-the-producer-is-librdkafka.md says why it is this client.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import math
import os
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, NamedTuple

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.serve.command import require
from sparklog.serve.own import OwnServer
from sparklog.serve.routes import NoAnswerError, Route, Routes, ask

_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())  # librdkafka reports each attempt to connect
_LOOKS_S = 0.1
_FULL_S = 0.01
_CALLBACK_S = 2
_PURGED_S = 10
_ABANDONED_S = 10
_END_S = 3
"""A server that no record waits for is killed after this time."""
_REFUSALS = {
    "CLUSTER_AUTHORIZATION_FAILED",
    "INVALID_RECORD",
    "INVALID_TIMESTAMP",
    "MSG_SIZE_TOO_LARGE",
    "POLICY_VIOLATION",
    "RECORD_LIST_TOO_LARGE",
    "TOPIC_AUTHORIZATION_FAILED",
    "TOPIC_EXCEPTION",
    "UNSUPPORTED_COMPRESSION_TYPE",
    "_INVALID_ARG",
    "_UNKNOWN_PARTITION",
}
"""Errors of librdkafka after which a record is surely not committed: a refusal by the server, or before the record was sent."""
_inside = threading.local()


class RecordMetadata(NamedTuple):
    """Where a record is committed.

    Example:
        >>> producer.send("visits", b"1").get(timeout=30).topic
        'visits'
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    """The time of the record, in ms since 1970."""


class RecordFuture(Future[RecordMetadata]):
    """A record that was sent: a future of `concurrent.futures`, which is done when the record is committed, or has failed.

    In asyncio, `await asyncio.wrap_future(future)`. A callback of `add_done_callback` runs on the thread of the producer.

    Example:
        >>> future = producer.send("visits", b"1")
        >>> future.get(timeout=30).partition
        0
    """

    __module__ = "sparklog"

    def get(self, timeout: float | None = None) -> RecordMetadata:
        """Waits until the record is committed.

        Args:
            timeout: The longest wait, in seconds; None for no limit. The record fails at the producer's `delivery_timeout_ms` anyway.

        Returns:
            Where the record is.

        Raises:
            CallError: SEND_REFUSED if the record is not committed, since the server, or the client before it, refuses the record;
                PRODUCER_IN_CALLBACK; PRODUCER_FORKED if the parent of this process has sent it.
            UnknownOutcomeError: SEND_FAILED if the record failed after it may have reached the server; SEND_UNANSWERED after `timeout`.

        Example:
            >>> producer.send("visits", b"1").get(timeout=30).offset >= 0
            True
        """
        seconds = None if timeout is None else arguments.duration("timeout", timeout)
        if is_in_callback() and not self.done():
            raise SparklogError("PRODUCER_IN_CALLBACK")
        try:
            return self.result(None if seconds is None else min(seconds, threading.TIMEOUT_MAX))
        except FutureTimeoutError:
            raise _unanswered(1, seconds or 0) from None


RecordMetadata.__module__ = "sparklog"  # which a NamedTuple cannot say itself


class Sender:
    """A client of a server, with a thread. Threads may share it.

    Its own thread alone gets the reports of librdkafka: an interrupt within `flush` of librdkafka loses the report that comes in then.
    """

    def __init__(self, settings: Mapping[str, Any], place: str, server: OwnServer | None = None) -> None:
        """Begins to connect, by settings of librdkafka. The sender owns `server`: it keeps the server running, and ends it.

        Errors name the `place`: the root, or the addresses of servers.
        """
        require("confluent_kafka")
        self._place, self._server = place, server
        self._settings = {
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "queue.buffering.max.messages": 0,
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 1_000,
            "error_cb": self._note,
            "logger": _log,
            **settings,
            **(server.settings if server else {}),
        }
        self._turn, self._over, self._wanted = threading.Lock(), threading.Event(), threading.Event()
        self._hurry, self._answered = threading.Event(), threading.Event()
        """Whether a call waits for the records; whether all records have an answer."""
        self._trouble: object = None
        """The newest error of the connection; None after a record was committed."""
        self._ended: object = None
        """The error after which librdkafka sends nothing any longer. The next record wants another client."""
        self._waiting = set[RecordFuture]()
        """The records without an answer."""
        self._is_closed = self._is_forked = False
        self._routes = Routes(self._ask)
        self._client: Any = self._made()
        """None after the end. It is freed when the last call of a thread has returned."""
        self._thread = threading.Thread(target=self._run, name="sparklog-producer", daemon=True)
        self._thread.start()
        _MADE.add(self)

    def _made(self) -> Any:
        import confluent_kafka

        try:
            return confluent_kafka.Producer(self._settings)
        except confluent_kafka.KafkaException as error:
            raise SparklogError("PRODUCER_SETTINGS", cause=error.args[0].str().rstrip(".")) from None

    @property
    def settings(self) -> dict[str, Any]:
        """The settings by which another client of librdkafka reaches the server."""
        names = ("bootstrap.servers", "security.protocol", "sasl.", "ssl.", "logger")
        return {name: value for name, value in self._settings.items() if name.startswith(names)}

    def partition(self, topic: str, key: bytes, patience_s: float) -> int | None:
        """The partition of a key, by the settings of the topic that the server has; None if librdkafka chooses it.

        RetryError SEND_UNROUTED if no server told it in `patience_s` seconds.
        """
        self._opened("send")
        if is_in_callback():  # this thread may be the thread that starts a server
            patience_s = min(patience_s, _CALLBACK_S)
        try:
            return self._routes.partition(topic, key, patience_s)
        except NoAnswerError:
            seconds, trouble = f"{patience_s:g}", self._more(topic)
            raise SparklogError("SEND_UNROUTED", topic=topic, root=self._place, seconds=seconds, trouble=trouble) from None

    def _ask(self, topic: str, patience_s: float) -> Route | None:
        return ask(self.settings, topic, patience_s, lambda: self._opened("send"))

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: Sequence[tuple[str, bytes | None]],
        partition: int | None,
        timestamp_ms: int | None,
        patience_s: float,
    ) -> RecordFuture:
        """Sends a record. If the memory of records is full, it waits for at most `patience_s` seconds: RetryError SEND_FULL then."""
        future = RecordFuture()
        future.set_running_or_notify_cancel()  # a record cannot be taken back
        record = {
            "topic": topic,
            "value": value,
            "key": key,
            "headers": list(headers),
            "partition": -1 if partition is None else partition,
            "timestamp": timestamp_ms or 0,
            "on_delivery": functools.partial(self._delivered, future),
        }
        self._produce(topic, record, future, time.monotonic() + patience_s)
        return future

    def _produce(self, topic: str, record: dict[str, Any], future: RecordFuture, until: float) -> None:
        from confluent_kafka import KafkaException

        while True:
            try:
                self._queue(record, future)
                return
            except BufferError:
                if is_in_callback() or time.monotonic() > until:  # this thread may be the thread that makes room
                    raise SparklogError("SEND_FULL", topic=topic, root=self._place) from None
                time.sleep(_FULL_S)
            except KafkaException as error:
                has_ended = error.args[0].name() == "_FATAL"
                if not has_ended or is_in_callback() or time.monotonic() > until:
                    future.set_exception(self._error(topic, error.args[0]))
                    return
                self._wanted.set()
                time.sleep(_FULL_S)

    def _queue(self, record: dict[str, Any], future: RecordFuture) -> None:
        self._waiting.add(future)  # before it asks whether the sender is closed, so that `close` waits for it
        try:
            self._opened("send").produce(**record)
        except BaseException:
            self._waiting.discard(future)
            raise

    def cluster(self, timeout_s: float) -> str | None:
        """The id of the cluster that the server tells, with the partitions of all topics; None if no server answers in time."""
        from confluent_kafka import KafkaException

        try:
            return str(self._opened("send").list_topics(timeout=timeout_s).cluster_id)
        except KafkaException:
            return None

    def flush(self, timeout_s: float | None) -> None:
        """Waits until each record that was sent before has an answer. UnknownOutcomeError SEND_UNANSWERED after `timeout_s`."""
        if is_in_callback():
            raise SparklogError("PRODUCER_IN_CALLBACK")
        if self._is_forked:
            raise SparklogError("PRODUCER_FORKED", call="flush")
        if left := self._flushed(timeout_s):
            raise _unanswered(left, timeout_s or 0)

    def close(self, timeout_s: float | None) -> None:
        """Waits as `flush` does, and ends. Records without an answer have failed then: UnknownOutcomeError SEND_UNANSWERED."""
        if self._is_forked:
            return
        if is_in_callback():
            raise SparklogError("PRODUCER_IN_CALLBACK")
        with self._turn:
            was_closed, self._is_closed = self._is_closed, True
        if was_closed:
            return
        left = 0
        try:
            left = self._flushed(timeout_s)
        finally:  # also after Ctrl-C
            self._over.set()
            self._thread.join()
        if left:
            raise _unanswered(left, timeout_s or 0)

    def abandon(self) -> None:
        """Ends without a wait for the records. The garbage collector may call it on any thread, with any lock held."""
        if self._is_forked:
            return
        self._is_closed = True
        self._over.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(_ABANDONED_S)

    def leave_to_parent(self) -> None:
        """Ends the use in a forked process. That process has no thread of librdkafka, so the client is never freed there.

        The futures fail there, so that nothing waits for answers that only the parent gets.
        """
        self._is_forked = True
        error = SparklogError("PRODUCER_FORKED", call="an answer to a record of the parent")
        for future in self._waiting:
            RecordFuture.__init__(future)  # a thread of the parent may have its lock; its callbacks are of the parent
            future.set_exception(error)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._client))
        if self._server:
            self._server.leave_to_parent()

    def _opened(self, call: str) -> Any:
        client = self._client
        if self._is_forked:
            raise SparklogError("PRODUCER_FORKED", call=call)
        if self._is_closed or client is None:
            raise SparklogError("PRODUCER_CLOSED", call=call)
        return client

    def _run(self) -> None:
        while not self._over.is_set():
            self._poll()
            if self._wanted.is_set():
                self._renew()
            if self._server:
                self._server.keep_running(self._over)
        self._purge()
        self._client = None
        if self._server:
            self._server.close(_END_S)

    def _poll(self) -> None:
        """Gets reports for a while. Records leave without their linger while a call waits for them."""
        from confluent_kafka import KafkaException

        client = self._client
        try:
            if self._hurry.is_set():
                self._hurry.clear()
                client.flush(_LOOKS_S)
            else:
                client.poll(_LOOKS_S)
        except KafkaException as error:  # librdkafka has ended
            self._ended = error.args[0].str()
            client.purge()

    def _flushed(self, timeout_s: float | None) -> int:
        """Waits until the records that were sent until now have answers. Returns how many have none."""
        until = math.inf if timeout_s is None else time.monotonic() + timeout_s
        asked = self._waiting.copy()
        while asked and self._thread.is_alive() and (left_s := until - time.monotonic()) > 0:
            self._answered.clear()
            self._hurry.set()
            if self._waiting:
                self._answered.wait(min(_LOOKS_S, left_s))
            asked &= self._waiting
        return len(asked)

    def _purge(self) -> None:
        """Records without an answer fail."""
        self._client.purge()
        until = time.monotonic() + _PURGED_S
        while self._waiting and time.monotonic() < until:
            self._poll()

    def _renew(self) -> None:
        """Takes another client after the first has ended, whose records have failed."""
        self._wanted.clear()
        if self._ended is not None:
            self._purge()
            try:
                self._client, self._ended = self._made(), None
            except SparklogError as error:  # such as without its file of certificates: the next record asks again
                self._ended = error

    def _note(self, error: Any) -> None:
        self._trouble = error.str()

    def _delivered(self, future: RecordFuture, error: Any, message: Any) -> None:
        _inside.callback = True
        try:
            if error is not None:
                self._routes.doubt(message.topic())
                future.set_exception(self._error(message.topic(), error))
            else:
                self._trouble = None
                future.set_result(RecordMetadata(message.topic(), message.partition(), message.offset(), message.timestamp()[1]))
        except BaseException:  # of a callback, such as SystemExit: the thread goes on, as after each Exception
            logging.getLogger("concurrent.futures").exception("exception calling callback for %r", future)
        finally:
            _inside.callback = False
            self._waiting.discard(future)
            if not self._waiting:
                self._answered.set()

    def _error(self, topic: str, error: Any) -> SparklogError:
        cause = error.str().rstrip(".")
        if error.name() in _REFUSALS:
            return SparklogError("SEND_REFUSED", topic=topic, root=self._place, cause=cause)
        return SparklogError("SEND_FAILED", topic=topic, root=self._place, cause=cause + self._more(topic))

    def _more(self, topic: str) -> str:
        """A sentence about the last trouble; nothing if it is not known."""
        trouble = self._ended or (self._server and self._server.problem) or self._trouble or (self._server and self._server.refusal(topic))
        return "" if trouble is None else f". The last trouble of the producer: {trouble}".rstrip(".")


def is_in_callback() -> bool:
    """Whether this is a callback of a future, which must not wait for other records."""
    return getattr(_inside, "callback", False)


def _unanswered(count: int, seconds: float) -> SparklogError:
    return SparklogError("SEND_UNANSWERED", count=count, seconds=f"{seconds:g}")


_MADE: weakref.WeakSet[Sender] = weakref.WeakSet()


def _leave_to_parent() -> None:
    for sender in _MADE:
        sender.leave_to_parent()


os.register_at_fork(after_in_child=_leave_to_parent)
