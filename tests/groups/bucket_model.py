"""A bucket in memory, for members that a seed drives: requests are steps. A PUT without an answer may be done, at once or late."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterable

from sparklog.groups.member.heartbeat_places import HeartbeatPlace, Mark


class BucketModel(HeartbeatPlace):
    """As S3 does: the ETag is a hash of the bytes, times are in whole seconds, and a listing has all that was put before it."""

    name = "s3://bucket/offsets.members/g"
    calls_every_s = 1.0
    remedy = "Give all members one URL."

    def __init__(self, seed: int = 0, lossy: float = 0.0, *, now: Callable[[], float], step: Callable[[], None]) -> None:
        """`lossy` is the share of PUTs without an answer. `step` is called before and after each request is done."""
        self._random, self._lossy = random.Random(seed), lossy
        self._now, self._step = now, step
        self._objects: dict[str, tuple[Mark, str]] = {}
        self._late: list[tuple[str, str]] = []
        self.requests: Counter[str] = Counter()

    def settle(self) -> None:
        """From now on, each PUT has an answer, and those that were late are done."""
        self._lossy = 0.0
        while self._late:
            self._done(*self._late.pop())

    def put(self, name: str, text: str) -> None:
        self._began("PUT")
        fate = self._random.random() / self._lossy if self._lossy else 3.0
        if fate < 1:
            raise OSError("the server has no time")
        if fate < 2:
            self._late.append((name, text))
            raise OSError("no answer came, and the server does it later")
        self._done(name, text)
        self._step()
        if fate < 3 and self._lossy:
            raise OSError("no answer came, and the server did it")

    def touch(self, name: str) -> None:
        self.put(name, str(self._random.random()))

    def mark(self, name: str) -> Mark | None:
        self._began("HEAD")
        found = self._objects.get(name)
        self._step()
        return None if found is None else found[0]

    def marks(self, ending: str) -> dict[str, Mark]:
        self._began("LIST")
        found = {name.removesuffix(ending): mark for name, (mark, _) in self._objects.items() if name.endswith(ending)}
        self._step()
        return found

    def read(self, name: str) -> str | None:
        self._began("GET")
        return self._objects[name][1] if name in self._objects else None

    def remove(self, names: Iterable[str]) -> None:
        self._began("POST")
        for name in names:
            self._objects.pop(name, None)

    def _began(self, kind: str) -> None:
        self.requests[kind] += 1
        self._step()
        if self._late and self._random.random() < 0.2:
            self._done(*self._late.pop(self._random.randrange(len(self._late))))

    def _done(self, name: str, text: str) -> None:
        self._objects[name] = (int(self._now()) * 10**9, hashlib.md5(text.encode()).hexdigest()), text
