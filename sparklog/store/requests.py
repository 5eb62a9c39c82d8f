"""Requests to a store over a network that are under way at the same time."""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, Generic, TypeVar

A = TypeVar("A")
B = TypeVar("B")

AT_ONCE = 16
"""How many requests a process has under way at a store, unless the setting `max_requests` has another number."""
AT_ONCE_MAX = 1_000
_IDLE_S = 5.0
"""A thread without work ends after this time."""
_END_S = 1.0
"""The end of the process waits this long for requests that are under way: a thread that is stopped within a library may abort it.

pyarrow then waits by itself for the requests to S3 that it has begun, without a bound.
"""


class Answer(Generic[B]):
    """The answer of one call. A thread of the store makes the call; if no thread has begun it, the thread that asks for the answer does."""

    def __init__(self, ask: Callable[[A], B], argument: A) -> None:
        self._call, self._process = partial(ask, argument), os.getpid()
        self.future: Future[B] = Future()
        self.threads: Requests | None = None
        """The threads that have been asked to make the call."""

    def result(self) -> B:
        """The answer, or the exception of the call. It is asked for once."""
        return self._call() if self.drop() else self.future.result()

    def has_thread(self) -> bool:
        """Whether a thread of this process has made the call, or makes it as soon as one is free."""
        return os.getpid() == self._process and self.threads is not None

    def waits_for_others(self) -> bool:
        """Whether no thread has begun the call, and all threads are busy. A thread that has yet to start is free."""
        return not self.is_begun() and (self.threads is None or self.threads.are_busy())

    def is_begun(self) -> bool:
        """Whether a thread of this process makes the call, or has made it."""
        return os.getpid() == self._process and (self.future.running() or self.future.done())

    def is_there(self) -> bool:
        """Whether the call has ended."""
        return self.is_begun() and self.future.done()

    def drop(self) -> bool:
        """The call is not made, unless a thread has begun it. Whether none has."""
        return os.getpid() != self._process or self.future.cancel()

    def work(self) -> None:
        """Makes the call on this thread, which belongs to the store."""
        if self.future.set_running_or_notify_cancel():
            try:
                self.future.set_result(self._call())
            except BaseException as error:
                self.future.set_exception(error)


class Requests:
    """The threads that ask one store: `most - 1`, since the thread that waits for the answers asks too.

    Threads start when they are needed, and do not keep the process from ending. A forked process starts its own threads.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.forget()

    def forget(self) -> None:
        """Begins without threads. A fork copies no thread, and may copy a lock that a thread holds."""
        self._change = threading.Condition()
        self._waiting: deque[Answer[Any]] = deque()
        self._threads = self._idle = 0
        """The count of threads, and of threads without a call. A thread that has yet to start is without a call."""

    def in_order(self, ask: Callable[[A], B], each: Iterable[A]) -> Iterator[B]:
        """`ask` of each, in the order of `each`. Up to `most` calls are made at once, and up to `most` answers wait for the caller.

        An exception of a call is raised in its turn, and ends the iteration. Calls that did not begin until then are not made.
        A call may itself use these threads: if no thread has begun a call, the thread that waits for its answer makes the call.
        """
        arguments = iter(each)
        begun: deque[Answer[B]] = deque()

        def begin(count: int) -> None:
            begun.extend(self.begin(ask, argument) for argument in islice(arguments, count))

        try:
            for first in arguments:
                begin(self.most - 1)
                yield ask(first)
                while begun:
                    answer = begun.popleft()
                    begin(1)
                    yield answer.result()
        finally:
            for answer in begun:
                answer.drop()

    def begin(self, ask: Callable[[A], B], argument: A) -> Answer[B]:
        """One call, which a thread makes as soon as one is free. Without threads, the thread that waits makes the call."""
        answer = Answer(ask, argument)
        with self._change:
            if self._idle > len(self._waiting):
                self._change.notify()
            elif self._threads < self.most - 1:
                # At the end of the process, no thread can start.
                with suppress(RuntimeError):
                    threading.Thread(target=self._work, name="sparklog-requests", daemon=True).start()
                    self._threads += 1
                    self._idle += 1
            if self._threads:
                answer.threads = self
                self._waiting.append(answer)
        return answer

    def are_busy(self) -> bool:
        """Whether more calls wait than threads are free."""
        with self._change:
            return len(self._waiting) > self._idle

    def _work(self) -> None:
        while True:
            with self._change:
                found = self._change.wait_for(lambda: self._waiting, _IDLE_S)
                self._idle -= 1
                if not found:
                    self._threads -= 1
                    self._change.notify_all()
                    return
                answer = self._waiting.popleft()
            answer.work()
            # A thread that waits for work must not keep the last answer in memory.
            del answer
            with self._change:
                self._idle += 1

    def end(self, deadline: float) -> None:
        """Begins no further call, and waits until all threads are idle, but not beyond the deadline (`time.monotonic`)."""
        with self._change:
            while self._waiting:
                self._waiting.popleft().drop()
        while self._idle < self._threads and time.monotonic() < deadline:
            time.sleep(0.005)


_of: dict[tuple[str, int], Requests] = {}
_lock = threading.Lock()


def requests_of(place: str, most: int) -> Requests:
    """The threads of this process for a place, such as a bucket. All stores in this place share them."""
    with _lock:
        return _of.setdefault((place, most), Requests(most))


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    for each in _of.values():
        each.forget()


@atexit.register
def _at_end() -> None:
    deadline = time.monotonic() + _END_S
    for each in list(_of.values()):
        each.end(deadline)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
