"""Calls of a core without I/O: each is a generator of requests, which a shell replies to."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

R = TypeVar("R")
T = TypeVar("T")


class Request(Generic[R]):
    """A request, which is replied to with an R: `reply = yield from request`."""

    __slots__ = ()

    def __iter__(self) -> Generator[Request[R], R, R]:
        return (yield self)

    def made(self, reply: R) -> R:
        """The reply. A type checker finds a wrong type here."""
        return reply


Steps = Generator[Request[Any], object, T]
"""A call: it yields requests, is sent the replies, and returns its answer."""


def run(steps: Steps[T], reply: Callable[[Request[Any]], object]) -> T:
    """Carries out the requests of a call by `reply`, until the call has its answer."""
    try:
        request = next(steps)
        while True:
            try:
                request = steps.send(reply(request))
            except BaseException as error:
                if steps.gi_frame is None:  # type: ignore[attr-defined]  # the call ended, with its answer or an error
                    raise
                request = steps.throw(error)  # of the request, or an interrupt of the program: the call ends in order
    except StopIteration as done:
        answer: T = done.value
        return answer
