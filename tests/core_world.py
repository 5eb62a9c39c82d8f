"""Consumers of one group, driven in one thread by a seed: cores and memberships as they are, with topics, a table and a clock in memory.

At each request of a core, and at each look at the table or commit, the world may do something else first: another consumer's call, a
writer, an operator, a death, time. So a call is interrupted at any place, by calls that are themselves interrupted.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

from core_consumer import Consumer
from core_parts import MANY, NAMES, Fault, Killed, Table, Topic

from sparklog import SparklogError
from sparklog.errors import GenerationFenced, RetryError
from sparklog.offsets import rows, standing
from sparklog.offsets.rows import Group, Position


class World:
    """One random history of a group, and the model of what it may do."""

    current: World

    def __init__(self, seed: int) -> None:
        World.current = self
        self.random = random.Random(seed)
        self.now, self.ids = 0.0, itertools.count()
        self.reset = self.random.choice(("earliest", "latest"))
        self.lossy = self.random.choice((0.0, 0.0, 0.1))
        self.wild = self.random.choice((0.02, 0.1))
        self.depth = self.commits = 0
        self.beats: dict[str, tuple[int, int]] = {}
        self.lives: Counter[str] = Counter()
        self.poison: set[tuple[str, int, int, int]] = set()
        self.topics: dict[str, Topic | None] = {}
        self.table = Table(self)
        self.consumers: list[Consumer] = []
        self.given_of: dict[tuple[str, int], dict[int, int]] = {}
        """By topic id and partition the records that were given, each with the number of commits when its share was taken."""
        self.since: dict[tuple[str, int], int] = {}
        """The number of the commit by which an operator moved a position: what was taken before does not count for it."""
        self.base: dict[tuple[str, int], int] = {}
        """Where the group begins: everything from there on must be given before a position passes it."""
        self.ordered: Counter[str] = Counter()
        self.disturbed: set[str] = set()
        """Topics of which positions were moved by hand, or which were not read from their start: their keys may come in another order."""
        self.calls: list[Any] = []
        self.marks: set[str | None] = set()
        """The metadata of the rows of operators."""
        self.acts: list[str] = []
        self.quiet = True
        for name in NAMES:
            self.create(name, read_before=False)
        for _ in range(self.random.randint(1, 3)):
            self.start()
        self.quiet = False

    def chance(self, probability: float) -> bool:
        return not self.quiet and self.random.random() < probability

    # ---- what others do

    def create(self, name: str, *, read_before: bool) -> None:
        topic = self.topics[name] = Topic(name, self.lives[name], self.random.randint(1, 3), read_before)
        self.lives[name] += 1
        for key in topic.homes:
            topic.append(key, self.random.randrange(4))

    def start(self) -> None:
        if sum(not each.dead for each in self.consumers) < 5:
            self.consumers.append(Consumer(self, f"c{len(self.consumers)}"))

    def write(self) -> None:
        topic = self.topics[self.random.choice(NAMES)]
        if topic:
            topic.append(self.random.choice(list(topic.homes)), self.random.randrange(1, 5))

    def reroute(self) -> None:
        topic = self.topics[self.random.choice(NAMES)]
        if topic:
            if self.random.random() < 0.3 and len(topic.records) < 4:
                topic.grow(read_before=self.has_read(topic.name))
            key = self.random.choice(list(topic.homes))
            for _ in range(self.random.choice((1, 1, 2))):
                topic.append(key, self.random.randrange(4))
                topic.move(key, self.random.randrange(len(topic.records)))
            topic.append(key, self.random.randrange(4))

    def expire(self) -> None:
        topic = self.topics[self.random.choice(NAMES)]
        if topic:
            number = self.random.randrange(len(topic.records))
            row = self.table.newest.at.get((topic.name, number))
            # With `latest`, a position that expired would go on at the end.
            committed = row.offset if row and row.topic_id == topic.id else 0
            most = topic.ends[number] if self.reset == "earliest" else committed
            topic.expire(number, self.random.randint(0, most))

    def recreate(self) -> None:
        name = self.random.choice(NAMES)
        if self.topics[name]:
            self.topics[name] = None
        else:
            self.create(name, read_before=self.has_read(name))

    def has_read(self, name: str) -> bool:
        """Whether the group has read a topic of this name, or a member waits for one."""
        group = self.table.newest
        return any(row.topic == name for row in group.positions) or bool(
            group.state and (name in group.state.topics or any(each.reads(name) for each in group.state.members.values()))
        )

    def operate(self) -> None:
        """An operator moves some partitions."""
        group = self.table.newest
        places = [row for row in group.positions if (topic := self.topics.get(row.topic)) and topic.id == row.topic_id]
        if not places:
            return
        row = self.random.choice(places)
        topic = self.topics[row.topic]
        assert topic
        to = self.random.randint(min(topic.starts[row.partition], row.offset), row.offset)

        def moved(group: Group) -> list[Position]:
            return [dataclasses.replace(row, offset=to, generation=0, seq=None, committed_at=rows.now(), metadata=mark)]

        mark = f"operator {next(self.ids)}"
        self.marks.add(mark)
        with contextlib.suppress(RetryError):
            self.table.claim("g", "reset", moved)

    def pass_time(self) -> None:
        self.now += self.random.choice((0.05, 0.5, 2.0))
        for each in list(self.consumers):
            each.beat()

    def freeze(self) -> None:
        """A consumer stands still for longer than its session, wherever it is; the others go on."""
        one = self.random.choice(self.consumers)
        one.frozen = True
        for _ in range(8):
            self.now += 2.0
            for each in self.consumers:
                each.beat()
        one.frozen = False

    def kill(self) -> None:
        one = self.random.choice(self.consumers)
        if not one.dead and not one.core.closed:
            one.dead = True

    def call(self, name: str) -> None:
        free = [each for each in self.consumers if not each.busy and not each.dead and not each.frozen]
        if not free:
            return
        one = self.random.choice(free)
        try:
            getattr(one, name)()
        except Killed:
            pass
        except GenerationFenced as error:
            if error.id == "GENERATION_FENCED":
                raise
        except SparklogError as error:
            if error.id not in ("MEMBER_TOPIC_GONE", "TOPIC_NOT_FOUND", "TOPIC_RECREATED", "OFFSETS_TABLE"):
                raise

    def act(self) -> None:
        choices: list[tuple[float, str, Callable[[], None]]] = [
            (10, "poll", lambda: self.call("poll")),
            (3, "iterate", lambda: self.call("iterate")),
            (2, "commit", lambda: self.call("commit")),
            (0.5, "close", lambda: self.call("close")),
            (4, "write", self.write),
            (2.5, "reroute", self.reroute),
            (1.0, "expire", self.expire),
            (0.3, "recreate", self.recreate),
            (1.0 + 3 * self.depth, "operate", self.operate),  # between a look at the group and a take, more often than not
            (4, "time", self.pass_time),
            (0.4, "freeze", self.freeze),
            (0.3, "kill", self.kill),
            (0.6, "start", self.start),
            (0.3, "poison", self.add_poison),
        ]
        ((_, name, call),) = self.random.choices(choices, [weight for weight, _, _ in choices])
        self.acts.append(name)
        call()

    def add_poison(self) -> None:
        topic = self.topics[self.random.choice(NAMES)]
        if topic:
            number = self.random.randrange(len(topic.records))
            self.poison.add((topic.name, topic.life, number, topic.ends[number]))

    def interrupt(self, by: Consumer | None = None) -> None:
        if self.depth < 2 and self.chance(self.wild):
            self.depth += 1
            try:
                self.act()
            finally:
                self.depth -= 1

    def wait(self, seconds: float) -> None:
        """A member waits, and others act."""
        self.now += seconds
        self.interrupt()

    def pause(self) -> Iterator[int]:
        """In place of the pauses between attempts at a change."""
        for number in range(100):
            yield number
            self.now += 0.1
        raise Fault("a change is tried for ever")

    # ---- the model

    def state_of(self, name: str) -> Any:
        topic = self.topics.get(name)
        return topic.state if topic else SparklogError("TOPIC_NOT_FOUND", topic=name, root="root", topics="")

    def owns(self, one: Consumer, share: Any) -> bool:
        state = self.table.newest.state
        if state is None or one.member.id is None:
            return False
        held = state.owned(one.member.id).get(tuple(share.partition))
        return held is not None and (held.topic_id, held.epoch) == (share.topic_id, share.holding.epoch)

    def given(self, one: Consumer, share: Any, offsets: list[int], *, skipped: bool = False) -> None:
        """Records were returned to the program, or it was told that it cannot have them, and skipped them."""
        if not skipped and not one.member.is_live:
            raise Fault(f"{one.name} returned {offsets} of {share.partition}, and others may have it")
        last, following = one.next.get(share.partition, (None, 0))
        for offset in offsets:
            if last is share and offset < following:
                raise Fault(f"{one.name} returned {offset} of {share.partition} again, after {following}")
            last, following = share, offset + 1
            self._in_order(share, offset)
            its = self.given_of.setdefault((share.topic_id, share.number), {})
            its[offset] = max(its.get(offset, -1), share.since)
        one.next[share.partition] = last, following

    def _in_order(self, share: Any, offset: int) -> None:
        """The records of a key come in the order in which they were written, the first time that they come."""
        topic = self.topics.get(share.partition.topic)
        if topic is None or topic.id != share.topic_id or topic.id in self.disturbed:
            return
        key, number = topic.records[share.number][offset]
        if number > self.ordered[key]:
            left = [
                (partition, at)
                for partition, its in enumerate(topic.records)
                for at, (each, which) in enumerate(its)
                if each == key and self.ordered[key] <= which < number and at >= topic.starts[partition]
            ]
            if any(at not in self.given_of.get((topic.id, partition), {}) for partition, at in left):
                raise Fault(f"{share.partition} returned offset {offset}, {key} number {number}; {left} were not returned before")
        self.ordered[key] = max(self.ordered[key], number + 1)

    def committed(self, added: list[Position], before: Group, after: Group) -> None:
        """Rows were committed: every record below them was returned."""
        self.commits += 1
        for row in added:
            topic = self.topics.get(row.topic)
            if row.partition < 0 or topic is None or topic.id != row.topic_id:
                continue
            place = (row.topic_id, row.partition)
            was = before.at.get((row.topic, row.partition))
            if row.metadata in self.marks and (was is None or (was.metadata, was.offset) != (row.metadata, row.offset)):
                self.since[place] = self.commits
                # A position that has expired meanwhile goes on at the end.
                self.base[place] = MANY if self.reset == "latest" and row.offset < topic.starts[row.partition] else row.offset
                self.disturbed.add(row.topic_id)
                continue
            known = before.at.get((row.topic, row.partition))
            if known is not None and known.topic_id == row.topic_id and known.offset == row.offset:
                continue
            if place not in self.base:
                if topic.must_begin[row.partition] or self.reset == "earliest":
                    self.base[place] = 0
                else:
                    self.base[place] = row.offset
                    self.disturbed.add(row.topic_id)
            its = self.given_of.get(place, {})
            first = max(self.base[place], topic.starts[row.partition])
            missing = [at for at in range(first, row.offset) if its.get(at, -1) < self.since.get(place, 0)]
            if missing:
                raise Fault(f"{place} was committed at {row.offset}, and {missing} were not returned since {self.since.get(place, 0)}")

    # ---- the run

    def run(self, acts: int) -> None:
        for _ in range(acts):
            self.act()
        self.drain()

    def drain(self) -> None:
        """In the end nothing is written any more, and those that live read everything."""
        self.quiet, self.depth = True, 2
        for name in NAMES:
            if not self.topics[name]:
                self.create(name, read_before=self.has_read(name))
        if all(each.dead for each in self.consumers):
            self.start()
        for turn in range(120):
            self.now += 1.0
            for each in list(self.consumers):
                each.beat()
            for each in self.consumers:
                if not each.dead:
                    each.raises = False
                    for call in (each.poll, each.commit):
                        with contextlib.suppress(SparklogError):
                            call()
            if turn > 20 and self.is_read():
                break
        else:
            state = self.table.newest.state
            raise Fault(f"not all is read: {self.unread()}; {state and state.shares}")
        for each in self.consumers:
            if not each.dead:
                each.close()

    def unread(self) -> list[tuple[str, int, int, int]]:
        at = self.table.newest.at
        return [
            (name, number, row.offset if row and row.topic_id == topic.id else -1, end)
            for name, topic in self.topics.items()
            if topic
            for number, end in enumerate(topic.ends)
            if (row := at.get((name, number))) is None or row.topic_id != topic.id or row.offset < end
        ]

    def is_read(self) -> bool:
        return not self.unread()


def patched(patch: Any) -> None:
    """Gives members the clock of the world, its chance, and its pauses."""
    patch.setattr(standing, "clock", lambda: World.current.now)
    patch.setattr(standing, "pause", lambda seconds: World.current.wait(seconds))
    patch.setattr(standing, "attempts", lambda: World.current.pause())
    patch.setattr(standing, "uuid", SimpleNamespace(uuid4=lambda: SimpleNamespace(hex=f"{next(World.current.ids):032x}")))


def fault(seed: int, acts: int = 60) -> str | None:
    """The fault that a seed finds; None if none."""
    world = None
    try:
        world = World(seed)
        world.run(acts)
    except (Fault, SparklogError, AssertionError, KeyError, AttributeError) as error:
        return f"seed {seed}: {type(error).__name__} {error}\n{' '.join(world.acts if world else ())}"
    return None
