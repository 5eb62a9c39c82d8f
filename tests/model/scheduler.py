"""A seeded scheduler: it tries the orders in which the processes of a protocol may act, before there is code.

A process is a generator. Each `yield` is a point between two of its atomic acts, and may give the number of steps for which it sleeps.
Between two acts the scheduler lets others act, for up to a thousand steps, or stops the process for ever. One seed always gives one order.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterable
from typing import Any, TypeAlias

Process: TypeAlias = Generator[int | None, None, Any]


class Violation(Exception):
    """A rule of the protocol was broken."""


class Scheduler:
    """The processes of one run, and the chances that it takes. `say` prints what happens if `trace` is set."""

    def __init__(self, seed: int, *, deaths: int = 3, trace: bool = False) -> None:
        self.random = random.Random(seed)
        self.step = 0
        self.deaths = deaths
        self._trace = trace
        self._awake_at: dict[str, int] = {}
        self._processes: dict[str, Process] = {}

    def start(self, name: str, process: Process) -> None:
        """Lets a process act among the others. A name may be used again once its process has ended."""
        assert name not in self._processes, f"{name} still runs"
        self._processes[name] = process
        self._awake_at[name] = self.step

    def is_running(self, name: str) -> bool:
        return name in self._processes

    def chance(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def nap(self) -> int:
        """For how many steps to sleep where it hurts: mostly 0, otherwise 8 to 1,448."""
        return int(2 ** self.random.uniform(3, 10.5)) if self.chance(7) else 0

    def say(self, *words: object) -> None:
        if self._trace:
            print(f"{self.step:6}", *words)

    def run(self, steps: int, between: Callable[[], None] | None = None) -> None:
        """Takes at most `steps` steps, and stops early if all processes have ended. `between` is called after each; it may start others."""
        for _ in range(steps):
            if not self._processes:
                return
            self.step += 1
            self._take()
            if between:
                between()

    def _take(self) -> None:
        awake = [name for name, at in self._awake_at.items() if at <= self.step]
        if not awake:
            return
        name = awake[self.random.randrange(len(awake))]
        if self.chance(25):
            self._awake_at[name] = self.step + int(2 ** self.random.uniform(2, 10.5))
        elif self.deaths and self.chance(500):
            self.deaths -= 1
            self.say(name, "stops for ever")
            self._end(name)
        else:
            try:
                self._awake_at[name] = self.step + (next(self._processes[name]) or 0)
            except StopIteration:
                self._end(name)

    def _end(self, name: str) -> None:
        del self._processes[name], self._awake_at[name]


def alone(process: Process) -> Any:
    """Runs a process to its end, with no other beside it; returns what it returns."""
    while True:
        try:
            next(process)
        except StopIteration as end:
            return end.value


def first_violation(run: Callable[[int], object], seeds: Iterable[int]) -> tuple[int, str] | None:
    """The first of the seeds at which a run breaks a rule, and the rule; None if no run does."""
    for seed in seeds:
        try:
            run(seed)
        except Violation as violation:
            return seed, str(violation)
    return None
