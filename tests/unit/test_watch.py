"""When topics are looked at, and what becomes of looks that are under way: random interleavings beside a model, without a clock."""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from handmade import Topic, draw_seed, records
from unit.far_store import FarStore

from sparklog import SparklogError
from sparklog.ondisk import watch
from sparklog.ondisk.root import Root
from sparklog.ondisk.topic_logs import TopicLogs
from sparklog.ondisk.watch import NewestState, Pace, TopicWatch
from sparklog.store.requests import Answer

NAMES = ("a", "b", "c")
INTERVAL_S, IDLE_S = 0.1, 1.0


class Later(Answer[Any]):
    """A call that is made when the world comes to it, if it is not dropped before. Its answer is there still later."""

    def __init__(self, ask: Callable[[Any], Any], argument: Any) -> None:
        super().__init__(ask, argument)
        self.found: tuple[Any, BaseException | None] | None = None

    def make(self) -> None:
        if self.threads and self.found is None and not self.future.cancelled() and self.future.set_running_or_notify_cancel():
            try:
                self.found = self._call(), None
            except SparklogError as error:
                self.found = None, error

    def end(self) -> None:
        if self.found is not None and not self.future.done():
            state, error = self.found
            self.future.set_exception(error) if error else self.future.set_result(state)


class World:
    """Topics whose versions only rise, a store whose answers come when the seed wants it, and a program that looks."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 100.0
        self.versions = dict.fromkeys(NAMES, 1)
        self.looks: list[Later] = []
        self.asked: Counter[str] = Counter()
        self.seen: dict[str, int] = {}
        self.root: Any = type("Root", (), {"store": self})()
        self.is_far = True
        self.idle_s = self.random.choice((0.0, 0.3, IDLE_S))
        self.watch = TopicWatch(self, Pace(INTERVAL_S, self.idle_s), lambda: self.now)  # type: ignore[arg-type]
        self.topics = {name: NewestState(Log(self, name), lambda: self.now) for name in NAMES}  # type: ignore[arg-type]

    def begin(self, ask: Callable[[Any], Any], argument: Any) -> Later:
        look = Later(ask, argument)
        if self.random.random() < 0.7:
            look.threads = self  # type: ignore[assignment]
        self.looks.append(look)
        return look

    def are_busy(self) -> bool:
        return self.random.random() < 0.5

    def act(self) -> None:
        act = self.random.choice(
            (self.put, self.make, self.make, self.end, self.end, self.ask, self.look, self.news, self.news, self.wait, self.wait)
        )
        act()
        for name, topic in self.topics.items():
            assert topic.state >= self.seen.get(name, 0), f"{name} went back"  # type: ignore[operator]
            self.seen[name] = topic.state  # type: ignore[assignment]

    def put(self) -> None:
        self.versions[self.random.choice(NAMES)] += 1

    def make(self) -> None:
        for look in self.looks:
            if self.random.random() < 0.5:
                look.make()

    def end(self) -> None:
        for look in self.looks:
            if self.random.random() < 0.5:
                look.end()

    def ask(self) -> None:
        self.topics[self.random.choice(NAMES)].ask()

    def look(self) -> None:
        self.topics[self.random.choice(NAMES)].look()

    def news(self) -> None:
        before = {name: topic.state for name, topic in self.topics.items()}
        with pytest.MonkeyPatch.context() as patched:
            # While the program waits, threads go on.
            patched.setattr(watch, "wait", lambda *_: self.random.choice((self.make, self.end))())
            found = self.watch.news(self.topics, idle=self.random.random() < 0.3)
        changed = {name: topic.state for name, topic in self.topics.items() if topic.state != before[name]}
        assert found == changed

    def wait(self) -> None:
        self.now += self.random.choice((0.01, 0.1, 0.5))

    def settle(self) -> None:
        """All looks end, and the program goes on to look: it knows each version after the longest wait between two looks."""
        end = self.now + self.idle_s + 2 * INTERVAL_S
        while self.now < end:
            for look in self.looks:
                look.make()
                look.end()
            self.looks.clear()
            self.watch.news(self.topics, idle=False)
            self.now += 0.05
        for look in self.looks:
            look.make()
            look.end()
        self.watch.news(self.topics, idle=False)
        assert {name: topic.state for name, topic in self.topics.items()} == self.versions


class Log:
    """The log of a topic, whose states are the numbers of versions."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name, self.root = world, name, world.root

    def newest(self) -> int:
        self.world.asked[self.name] += 1
        return self.world.versions[self.name]

    def is_followed(self, state: int) -> bool:
        self.world.asked[self.name] += 1
        return self.world.versions[self.name] > state


def faults(seeds: range) -> list[str]:
    found = []
    for seed in seeds:
        world = World(seed)
        try:
            for _ in range(80):
                world.act()
            world.settle()
        except AssertionError as error:
            found.append(f"seed {seed}: {error}")
    return found


def test_states_never_go_back_and_each_version_is_seen() -> None:
    first = draw_seed()
    assert faults(range(first, first + 400)) == []


def test_a_look_that_an_ask_overtook_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault put back: its state takes the place of the newer one."""

    def ask(self: NewestState) -> None:
        self.state = self._newest()

    monkeypatch.setattr(NewestState, "ask", lambda self: setattr(self, "asks", 0) or ask(self))
    assert faults(range(400))


def test_the_pace_doubles_up_to_its_bound() -> None:
    pace, now, looks = Pace(0.1, 1.0), 0.0, []
    while now < 10:
        if pace.is_due("t", now, idle=True):
            looks.append(round(now, 2))
            pace.looked("t", now, changed=False)
        now += 0.01
    assert looks[:5] == pytest.approx([0, 0.1, 0.3, 0.7, 1.5], abs=0.03)
    assert len(looks) == pytest.approx(13, abs=1)
    pace.looked("t", 20.0, changed=True)
    assert not pace.is_due("t", 20.05, idle=True)
    assert pace.is_due("t", 20.11, idle=True)
    always = Pace(0.1, 0.0)
    always.looked("t", 1.0, changed=False)
    assert always.is_due("t", 1.0, idle=True)
    assert not always.is_due("t", 1.05, idle=False), "with records to work on"


@pytest.mark.parametrize("idle_s", [None, 4.0])
def test_an_idle_process_makes_one_request_a_second_and_topic(tmp_path: Path, idle_s: float | None) -> None:
    """As a consumer of twenty topics does, which polls again and again. A minute passes on a clock of the test."""
    for number in range(20):
        Topic(tmp_path, f"t{number}").append(records(1))
    store = FarStore(str(tmp_path))
    logs = TopicLogs(Root(store))
    now = 1000.0
    topics = {name: NewestState(logs.log(name), lambda: now) for name in (f"t{number}" for number in range(20))}
    watching = TopicWatch(store, Pace.of(store, 0.1, idle_s), lambda: now)
    while now < 1010:
        watching.news(topics, idle=True)
        now += 0.1
    store.asked.clear()
    while now < 1070:
        assert watching.news(topics, idle=True) == {}
        now += 0.1
    per_second = len(store.asked.requests) / 60 / 20
    print(f"{per_second:.3f} requests a second and topic")
    # Once a minute a look takes two requests.
    assert per_second <= 1 / (idle_s or 1) + 1 / 60
    assert per_second >= 0.8 / (idle_s or 1)


def test_news_of_one_topic_do_not_wait_for_looks_at_others(tmp_path: Path) -> None:
    written = {name: Topic(tmp_path, name) for name in NAMES}
    for each in written.values():
        each.append(records(1))
    stuck = threading.Event()

    class Stuck(FarStore):
        def opened(self, name: str) -> Any:
            if stuck.is_set() and "/b/" in name:
                assert done.wait(120)
            return super().opened(name)

    done = threading.Event()
    store = Stuck(str(tmp_path))
    logs = TopicLogs(Root(store))
    topics = {name: NewestState(logs.log(name)) for name in NAMES}
    watching = TopicWatch(store, Pace.of(store, 0.1, 0.0))
    stuck.set()
    written["c"].append(records(1))
    try:
        found = watching.news(topics, idle=True)
        while not found:
            found = watching.news(topics, idle=True)
        assert set(found) == {"c"}
    finally:
        done.set()


def test_looks_that_no_thread_makes_are_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one request at once, and after a fork, which copies looks and no threads."""
    written = Topic(tmp_path, "a")
    written.append(records(1))

    def refuse(*_: object) -> None:
        raise AssertionError("it waits")

    for most in (1, 4):
        store = FarStore(str(tmp_path), max_requests=most)
        store.place = f"{tmp_path} {most}"
        topics = {"a": NewestState(TopicLogs(Root(store)).log("a"))}
        watching = TopicWatch(store, Pace.of(store, 0.1, 0.0))
        written.append(records(1))
        if most > 1:
            watching.news(topics, idle=False)
        with monkeypatch.context() as patched:
            if most > 1:
                patched.setattr(os, "getpid", lambda: -1)
            patched.setattr(watch, "wait", refuse)
            assert set(watching.news(topics, idle=True)) == {"a"}
