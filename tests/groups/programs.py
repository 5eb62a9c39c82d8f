"""Programs beside a group: topics, a table and consumers in one process, on real files."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from handmade import Topic, records

from sparklog import Consumer
from sparklog.groups import OffsetTable
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
        self.events: list[tuple[str, list[str]]] = []
        self.told: Any = {each: self._telling(each) for each in EVENTS}

    def _telling(self, event: str) -> Callable[..., None]:
        return lambda _, partitions: self.events.append((event, [f"{topic}-{number}" for topic, number in partitions]))

    def create(self, name: str, count: int = 20) -> Topic:
        topic = self.topics[name] = Topic(self.root, name, partitions=2)
        for number in (0, 1):
            topic.append(records(count), number)
        return topic

    def consumer(self, *names: str, **more: Any) -> Consumer:
        given: dict[str, Any] = {"group_id": "g", "table": self.path, "partition_assignment_strategy": "sticky", "poll_interval_ms": 20}
        given |= {"auto_offset_reset": "earliest", "heartbeat_interval_ms": 100, "session_timeout_ms": 120_000}
        self.opened.append(Consumer(self.root, *names, **{**given, **more}))
        return self.opened[-1]

    def positions(self, topic: str = "t") -> dict[int, int]:
        return {each.partition: each.offset for each in self.table.positions("g") if each.topic == topic}

    def reset(self, to: int) -> None:
        self.table.reset("g", {"t": {0: to, 1: to}}, dry_run=False, force=True)


def count_refreshes(table: OffsetTable, refreshes: Counter[bool]) -> None:
    """Counts the refreshes of groups from now on: under True those that read all rows, under False those that read on."""
    refresh = table._lake.refresh

    def counting(group: str, since: int | None = None) -> Refresh:
        found = refresh(group, since)
        refreshes[found.is_whole] += 1
        return found

    table._lake.refresh = counting  # type: ignore[method-assign]


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
