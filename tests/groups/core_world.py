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
from collections.abc import Callable, Collection
from types import SimpleNamespace
from typing import Any

from groups.bucket_model import BucketModel
from groups.core_consumer import Consumer
from groups.core_model import Model
from groups.core_parts import NAMES, Beats, Done, Fault, Interrupted, Killed, Table, Topic

from sparklog import SparklogError
from sparklog.errors import GenerationFencedError, RetryError
from sparklog.groups import rows
from sparklog.groups.member import heartbeater, membership
from sparklog.groups.member.heartbeats import Heartbeats
from sparklog.groups.rows import Group, Position
from sparklog.groups.table import generations


class World(Model):
    """One random history of a group, and the model of what it may do."""

    current: World

    def __init__(self, seed: int, *, in_bucket: bool = False) -> None:
        World.current = self
        super().__init__()
        self.random = random.Random(seed)
        self.now, self.ids = 0.0, itertools.count()
        self.reset = self.random.choice(("earliest", "latest"))
        self.lossy = self.random.choice((0.0, 0.0, 0.1))
        self.wild = self.random.choice((0.02, 0.1))
        self.by_pattern = self.random.random() < 0.2
        self.assignor = "sticky"
        self.depth = 0
        self.operator: Callable[[], None] | None = None
        """The operator that is at work: it goes on while members hold their commits."""
        self.soon: Callable[[], None] | None = None
        """The act that comes next, without a draw."""
        self.bucket = BucketModel(seed, 0.03, now=lambda: self.now, step=self.interrupt) if in_bucket else None
        """Where heartbeats are objects in a bucket, whose requests others interrupt, and some of which fail."""
        self.beats: Any = Beats() if self.bucket is None else Heartbeats("table", "g", place=self.bucket)
        self.owners = 0
        """How often the group was taken from its members."""
        self.lives: Counter[str] = Counter()
        self.poison: set[tuple[str, int, int, int]] = set()
        self.topics: dict[str, Topic | None] = {}
        self.table = Table(self)
        self.consumers: list[Consumer] = []
        self.calls: list[Any] = []
        self.acts: list[str] = []
        self.quiet = True
        for name in NAMES:
            self.create(name)
        for _ in range(self.random.randint(1, 3)):
            self.start()
        if self.random.random() < 0.2:
            self.topics["u"] = None  # before anything is read
        self.quiet = False

    def chance(self, probability: float) -> bool:
        return not self.quiet and self.random.random() < probability

    # ---- what others do

    def create(self, name: str) -> None:
        topic = self.topics[name] = Topic(name, self.lives[name], self.random.randint(1, 3), self.has_read(name), self.waiting(name))
        self.lives[name] += 1
        for key in topic.homes:
            topic.append(key, self.random.randrange(4))

    def start(self) -> None:
        if sum(not each.dead for each in self.consumers) < 5:
            self.consumers.append(Consumer(self, f"c{len(self.consumers)}"))
            self.call("subscribe", self.consumers[-1])

    def write(self) -> None:
        topic = self.topics[self.random.choice(NAMES)]
        if topic:
            topic.append(self.random.choice(list(topic.homes)), self.random.randrange(1, 5))

    def reroute(self) -> None:
        topic = self.topics[self.random.choice(NAMES)]
        if topic:
            if self.random.random() < 0.3 and len(topic.records) < 4:
                topic.grow(read_before=self.has_read(topic.name), waiting=self.waiting(topic.name))
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
        if not self.topics[name]:
            self.create(name)
            if self.chance(0.5):  # one that joins finds it before those that wait for it
                self.start()
                self.call("poll", self.consumers[-1])
            return
        self.topics[name] = None
        if free := [each for each in self.consumers if each.is_free] if self.chance(0.5) else []:
            one = self.random.choice(free)
            for call in ("poll", self.random.choice(("resubscribe", "close"))):  # it knows, and the group does not
                self.call(call, one)

    def operate(self, among: Collection[Any] = ()) -> None:
        """An operator moves a partition, one of these if there are any. In a crowd, members commit whenever it has looked."""
        places = [row for row in self.table.newest.positions if (topic := self.topics.get(row.topic)) and topic.id == row.topic_id]
        places = [row for row in places if (row.topic, row.partition) in among] or places
        if not places or self.operator:
            return
        row = self.random.choice(places)
        to = self.random.randint(min(self.topics[row.topic].starts[row.partition], row.offset), row.offset)  # type: ignore[union-attr]
        mark = f"operator {next(self.ids)}"
        self.marks.add(mark)
        in_crowd = self.depth == 0 and not self.lossy and self.chance(0.4)
        tries = itertools.count(1)

        def moved(group: Group) -> list[Position]:
            topic = self.topics[row.topic]
            if self.operator is not claim or topic is None or topic.id != row.topic_id:
                raise Done
            if next(tries) > 10:
                raise Fault(f"an operator found no moment without a commit to move {row}")
            if in_crowd and not self.depth:
                self.crowd()
            at = max(to, topic.starts[row.partition])  # records may have expired meanwhile
            return [dataclasses.replace(row, offset=at, generation=0, seq=None, committed_at=rows.now(), metadata=mark)]

        def claim() -> None:
            with contextlib.suppress(RetryError, Done):
                self.table.claim("g", "reset", moved)
            self.operator = None

        self.operator = claim
        claim()

    def move_and_give_back(self, among: Collection[Any], owner: Consumer) -> None:
        """An operator moves a partition, and the next change of another member gives it to its owner again, which does not know it."""
        self.operate(among)
        for each in list(self.consumers):
            if each is not owner:
                each.beat()
                self.call("poll", each)

    def crowd(self) -> None:
        """All members read and commit."""
        self.depth += 1
        for _ in range(2):
            self.write()
        for each in list(self.consumers):
            for name in ("poll", "commit"):
                self.call(name, each)
        self.depth -= 1

    def pass_time(self) -> None:
        self.now += self.random.choice((0.05, 0.5, 2.0))
        for each in list(self.consumers):
            each.beat()

    def freeze(self, one: Consumer | None = None) -> None:
        """A consumer stands still for longer than its session, wherever it is; the others go on."""
        one = one or self.random.choice(self.consumers)
        one.frozen = True
        for _ in range(8):
            self.now += 2.0
            for each in self.consumers:
                each.beat()
        one.frozen = False

    def long_batch(self) -> None:
        """One joins, takes and dies, while the others work on a batch for longer than its session: they expire it all the same."""
        others = [each for each in self.consumers if each.is_free and each.is_member]
        if self.depth or self.lossy or not others or len(others) > 3:
            return
        self.start()
        one = self.consumers[-1]
        if one not in others:
            self.quiet = True
            self.call("poll", one)
            one.dead = True
            watching = [each for each in others if not each.dead and not each.frozen and each.member.is_live]
            for _ in range(16):
                self.now += 1.0
                for each in others:
                    each.beat()
                watching = [each for each in watching if each.is_member and each.member.is_live]  # heartbeats fail in a bucket
            self.quiet = False
            if one.is_member and watching:
                raise Fault(f"{one.name} died, and nobody expired it")

    def kill(self) -> None:
        one = self.random.choice(self.consumers)
        if not one.dead and not one.core.closed:
            one.dead = True

    def own(self) -> None:
        """A consumer without an assignor takes the group, and ends its members. It reads nothing, and members begin the group again."""
        if self.table.newest.state is not None and not self.lossy:
            self.owners += 1
            self.table.claim("g", rows.RUNNING, lambda _: [])

    def call(self, name: str, one: Consumer | None = None) -> None:
        """A program makes this call: that of this consumer, or of any that is free."""
        free = [each for each in self.consumers if each.is_free and one in (None, each)]
        if not free:
            return
        one = self.random.choice(free)
        try:
            getattr(one, name)()
        except Killed:
            pass
        except Interrupted:
            one.fetched_to = {}
            one.subscribed = one.core.subscription.is_by_topic
        except GenerationFencedError as error:
            if error.id == "GENERATION_FENCED":
                if not self.owners:
                    raise
                with contextlib.suppress(Killed):
                    one.end(in_turn=name in ("poll", "iterate") and one.subscribed)
        except SparklogError as error:
            gone = error.parameters.get("topic")
            if error.id == "MEMBER_TOPIC_GONE" and self.topics[gone] and self.lives[gone] == 1:
                raise
            allowed = ("MEMBER_TOPIC_GONE", "TOPIC_NOT_FOUND", "TOPIC_RECREATED", "OFFSETS_TABLE", *(["HEARTBEAT"] if self.bucket else []))
            if error.id not in allowed:
                raise

    def act(self) -> None:
        choices: list[tuple[float, str, Callable[[], None]]] = [
            (10, "poll", lambda: self.call("poll")),
            (3, "iterate", lambda: self.call("iterate")),
            (2, "commit", lambda: self.call("commit")),
            (1, "go back", lambda: self.call("go_back")),
            (0.5, "close", lambda: self.call("close")),
            (0.4, "resubscribe", lambda: self.call("resubscribe")),
            (4, "write", self.write),
            (2.5, "reroute", self.reroute),
            (2.0, "expire", self.expire),
            (0.3 if all(self.topics.values()) else 1.5, "recreate", self.recreate),
            (1.0 + 3 * self.depth, "operate", self.operate),  # between a look at the group and a take, more often than not
            (4, "time", self.pass_time),
            (0.4, "freeze", self.freeze),
            (0.15, "long batch", self.long_batch),
            (0.3, "kill", self.kill),
            (0.1, "own", self.own),
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
        if self.soon:
            soon, self.soon = self.soon, None
            soon()
        elif self.depth < 2 and self.chance(self.wild):
            self.depth += 1
            try:
                self.act()
            finally:
                self.depth -= 1

    def wait(self, seconds: float) -> None:
        """A member waits, and others act."""
        self.now += seconds
        if self.operator:
            self.operator()
        self.interrupt()

    def back_off(self, attempt: int) -> None:
        """In place of the pauses between attempts at a change."""
        if attempt:
            self.now += 0.1
        if attempt == 100:
            raise Fault("a change is tried for ever")

    # ---- the run

    def run(self, acts: int) -> None:
        for _ in range(acts):
            self.act()
        self.drain()

    def drain(self) -> None:
        """In the end nothing is written any more, and those that live read everything; and again, with keys that move just before."""
        self.quiet, self.depth = True, 2
        if self.bucket:
            self.bucket.settle()
        for name in NAMES:
            if not self.topics[name]:
                self.create(name)
        if self.random.random() < 0.1:
            self.assignor = "range"  # all died, and begin again with another one
            for each in self.consumers:
                each.dead = True
        self.now += 3.0
        for each in self.consumers if self.owners else ():
            each.beat()
            self.call("poll", each)  # members of a group that was taken end
        while sum(not each.dead for each in self.consumers) < 2:
            self.start()
        living = [each for each in self.consumers if not each.dead]
        every = self.random.random() < 0.5 or not all(any(name in each.names for each in living) for name in NAMES)
        for each in self.consumers:
            each.raises = False
            if every:
                self.call("subscribe", each)
        self.read_all()
        for _ in range(2):
            self.reroute()
        self.read_all()
        for each in self.consumers:
            if not each.dead:
                each.close()

    def read_all(self) -> None:
        for _ in range(120):
            self.now += 1.0
            for each in self.consumers:
                each.beat()
            for each in self.consumers:
                self.call("poll", each)
                if self.random.random() < 0.5:
                    self.call("commit", each)
            if not self.unread():
                return
        state = self.table.newest.state
        raise Fault(f"not all is read: {self.unread()}; {state and state.shares}")

    def unread(self) -> list[tuple[str, int, int, int]]:
        at = self.table.newest.at
        return [
            (name, number, row.offset if row and row.topic_id == topic.id else -1, end)
            for name, topic in self.topics.items()
            if topic
            for number, end in enumerate(topic.ends)
            if (row := at.get((name, number))) is None or row.topic_id != topic.id or row.offset < end
        ]


def patched(patch: Any) -> None:
    """Gives members the chance of the world, and its pauses."""
    for each in (membership, heartbeater):
        patch.setattr(each, "pause", lambda seconds: World.current.wait(seconds))
    patch.setattr(generations, "time", SimpleNamespace(monotonic=lambda: World.current.now))
    patch.setattr(membership, "back_off", lambda attempt: World.current.back_off(attempt))
    for each in (membership, generations):
        patch.setattr(each, "uuid", SimpleNamespace(uuid4=lambda: SimpleNamespace(hex=f"{next(World.current.ids):032x}")))


def fault(seed: int, acts: int = 60, *, in_bucket: bool = False) -> str | None:
    """The fault that a seed finds; None if none."""
    world = None
    try:
        world = World(seed, in_bucket=in_bucket)
        world.run(acts)
    except (Fault, SparklogError, AssertionError, KeyError, AttributeError) as error:
        return f"seed {seed}: {type(error).__name__} {error}\n{' '.join(world.acts if world else ())}"
    return None
