"""Programs beside a group: topics, a table and consumers in one process, on real files."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock
from weakref import WeakKeyDictionary

from handmade import Topic, records

from sparklog import Consumer
from sparklog.groups import OffsetTable
from sparklog.groups.member import membership
from sparklog.groups.member.heartbeat_places import Folder
from sparklog.groups.member.heartbeats import Heartbeats, clock
from sparklog.groups.member.membership import Membership
from sparklog.groups.table.lake import Refresh

EVENTS = ("on_assign", "on_revoke", "on_lost")
WAIT_S = 600


class World:
    """Topics of two partitions with 20 records each, a table beside their root, and consumers of group `g`."""

    def __init__(self, folder: Path) -> None:
        self.root, self.path = folder / "root", folder / "offsets"
        self.topics: dict[str, Topic] = {}
        self.create("t")
        self.table = OffsetTable(self.root, self.path)
        self.opened: list[Consumer] = []
        self.members: WeakKeyDictionary[Consumer, Membership] = WeakKeyDictionary()
        """The member that each consumer is."""
        self.events: list[tuple[str, list[str]]] = []
        self.told: Any = {each: self._telling(each) for each in EVENTS}

    def _telling(self, event: str) -> Callable[..., None]:
        return lambda _, partitions: self.events.append((event, [f"{topic}-{number}" for topic, number in partitions]))

    def create(self, name: str, count: int = 20) -> Topic:
        topic = self.topics[name] = Topic(self.root, name, partitions=2)
        for number in (0, 1):
            topic.append(records(count), number)
        return topic

    def consumer(self, *names: str, clock: Callable[[], float] = clock, **more: Any) -> Consumer:
        """By `clock`, a member measures sessions and the times between polls."""
        given: dict[str, Any] = {"group_id": "g", "table": self.path, "partition_assignment_strategy": "sticky", "poll_interval_ms": 20}
        given |= {"auto_offset_reset": "earliest", "heartbeat_interval_ms": 100, "session_timeout_ms": 120_000}
        with made_members(clock) as made:
            opened = Consumer(self.root, *names, **{**given, **more})
        self.opened.append(opened)
        for each in made:
            self.members[opened] = each
        return opened

    def positions(self, topic: str = "t") -> dict[int, int]:
        return {each.partition: each.offset for each in self.table.positions("g") if each.topic == topic}

    def reset(self, to: int) -> None:
        self.table.reset("g", {"t": {0: to, 1: to}}, dry_run=False, force=True)


@contextmanager
def made_members(clock: Callable[[], float]) -> Iterator[list[Membership]]:
    """The members that consumers become, which are made within. They have this clock."""
    made: list[Membership] = []

    def make(*given: Any) -> Membership:
        made.append(Membership(*given, clock))
        return made[-1]

    with mock.patch.object(membership, "Membership", make):
        yield made


def apart(table: OffsetTable, folder: Path) -> OffsetTable:
    """A table as in a container that has a folder of heartbeats of its own."""
    found = OffsetTable(table.root, table.path)
    found.generations.heartbeats = lambda group: Heartbeats(table.path, group, place=Folder(folder))  # type: ignore[method-assign]
    return found


def count_refreshes(table: OffsetTable, refreshes: Counter[bool]) -> None:
    """Counts the refreshes of groups from now on: under True those that read all rows, under False those that read on."""
    refresh = table.lake.refresh

    def counting(group: str, since: int | None = None) -> Refresh:
        found = refresh(group, since)
        refreshes[found.is_whole] += 1
        return found

    table.lake.refresh = counting  # type: ignore[method-assign]


def read(consumer: Consumer, at_least: int = 0) -> dict[str, list[int]]:
    """All that it can read at once, by partition; it waits for so many records."""
    found: dict[str, list[int]] = {}
    end = time.monotonic() + WAIT_S
    while (polled := consumer.poll(300)) or (sum(map(len, found.values())) < at_least and time.monotonic() < end):
        for (topic, number), its in polled.items():
            found.setdefault(f"{topic}-{number}", []).extend(record.offset for record in its)
    return found


def until(reached: Callable[[], object], *polling: Consumer) -> None:
    end = time.monotonic() + WAIT_S
    while not reached():
        assert time.monotonic() < end
        for each in polling:
            each.poll(20)


def share_out(one: Consumer, two: Consumer) -> None:
    until(lambda: len(one.assignment()) == len(two.assignment()) == 1, one, two)
