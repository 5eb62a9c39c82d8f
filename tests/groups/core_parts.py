"""The parts of `core_world.py`: topics, a table, heartbeats and consumers, in memory and on the clock of a world."""

from __future__ import annotations

import functools
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow as pa

from sparklog import SparklogError
from sparklog.batches.columns import SCHEMA
from sparklog.groups import rows
from sparklog.groups.commits import OffsetCommit
from sparklog.groups.member import heartbeater, membership
from sparklog.groups.member.heartbeats import Mark
from sparklog.groups.member.membership import Membership
from sparklog.groups.member.standing import Begin
from sparklog.groups.member.state import GroupState, MemberSettings, SharedTopic
from sparklog.groups.rows import Group, Position
from sparklog.groups.table.generations import Generations

if TYPE_CHECKING:
    from groups.core_world import World

SESSION, HEARTBEAT, INTERVAL = 10.0, 2.0, 0.1
MANY = 200
NAMES = ("t", "u")


@functools.cache
def batch_of(life: int) -> pa.RecordBatch:
    """Offsets 0 to `MANY`, of which the column `partition` has the life of the topic."""
    known = {"offset": range(MANY), "partition": [life] * MANY}
    columns = [pa.array(known.get(name, [None] * MANY), SCHEMA.field(name).type) for name in SCHEMA.names]
    return pa.RecordBatch.from_arrays(columns, names=SCHEMA.names)


class Killed(BaseException):
    """The process of a consumer ends where it is."""


class Fault(AssertionError):
    """A rule was broken."""


class Done(Exception):
    """The change of an operator was made while members held their commits."""


class ByProgram(Exception):
    """A callback of the program raised."""


class Interrupted(BaseException):
    """A signal came while the program was in a call, which it may repeat."""


class Topic:
    """One life of a topic, with keys that move among its partitions."""

    def __init__(self, name: str, life: int, partitions: int, read_before: bool, waiting: set[str]) -> None:
        self.name, self.life, self.id = name, life, f"{name}{life}"
        self.starts, self.records = [0] * partitions, [list[tuple[str, int]]() for _ in range(partitions)]
        self.homes = {f"{self.id}-{number}": number % partitions for number in range(3)}
        self.sequence: Counter[str] = Counter()
        self.past: list[Any] = []
        self.donors: list[dict[int, set[int]]] = []
        self.routing: Any = None
        self.must_begin: dict[int, bool] = dict.fromkeys(range(partitions), read_before)
        """The partitions that are to be read from their first record, since the group read the topic before they came to be."""
        self.waiting = dict.fromkeys(range(partitions), waiting)
        """The members that were there before the partitions."""
        self.state: Any = None
        self.changed()

    @property
    def ends(self) -> list[int]:
        return [len(its) for its in self.records]

    def changed(self) -> None:
        config = {"partitioner": "murmur3"}
        fields = {"starts": tuple(self.starts), "ends": tuple(self.ends), "partitions": len(self.records), "routing": self.routing}
        self.state = SimpleNamespace(topic=self.name, topic_id=self.id, config=config, **fields)

    def append(self, key: str, count: int) -> None:
        its = self.records[self.homes[key]]
        for _ in range(min(count, MANY - 1 - len(its))):
            its.append((key, self.sequence[key]))
            self.sequence[key] += 1
        self.changed()

    def move(self, key: str, to: int) -> None:
        donor, cut = self.homes[key], tuple(self.ends)
        if donor != to:
            self.homes[key] = to
            self.past.append(SimpleNamespace(cut=cut, cut_of=lambda number: cut[number] if number < len(cut) else 0))
            self.donors.append({to: {donor}})
            donors = list(self.donors)
            self.routing = SimpleNamespace(past=list(self.past), table=array("H", [0]), donors=lambda: donors)
            self.changed()

    def grow(self, *, read_before: bool, waiting: set[str]) -> None:
        self.starts.append(0)
        self.records.append([])
        self.must_begin[len(self.records) - 1] = read_before
        self.waiting[len(self.records) - 1] = waiting
        self.changed()

    def expire(self, number: int, to: int) -> None:
        self.starts[number] = max(self.starts[number], to)
        self.changed()


class Table(Generations):
    """The rows of a group in memory. `Generations` decides; here is what its lake does."""

    def __init__(self, world: World) -> None:
        lake: Any = SimpleNamespace(
            last=lambda _: self.look(self.number), versions=lambda members: {each: self.of[each] for each in members}
        )
        super().__init__("table", lake)
        self.world = world
        self.number = 0
        self.of: Counter[str] = Counter()
        self.rows: dict[tuple[str, int], Position] = {}
        self.newest = Group("g", [])

    def look(self, found: Any) -> Any:
        self.world.interrupt()
        return found

    def group(self, name: str) -> Group:
        self.world.interrupt()
        return self.newest

    def state(self, name: str) -> tuple[int, int, GroupState | None]:
        self.world.interrupt()
        return self.number, self.newest.generation, self.newest.state

    def last(self, name: str) -> int:
        return self.number

    def heartbeats(self, name: str) -> Any:
        return self.world.beats

    def version(self, member: str) -> int:
        return self.of[member]

    def _append(self, added: list[Position], name: str, number: int | None, versions: Any, seen: int | None = None) -> bool:
        self.world.interrupt()
        if seen not in (None, self.number):
            return False
        if (number is not None and number <= self.number) or any(self.of[each] != seen for each, seen in versions.items()):
            return False
        if self.world.chance(self.world.lossy):
            raise SparklogError("OFFSETS_TABLE", table="table", cause="the disk is full")
        before = self.newest
        self.number = self.number if number is None else number
        self.of.update(dict.fromkeys(versions, 1))
        for row in added:
            known = self.rows.get((row.topic, row.partition))
            if known is None or (row.generation, row.offset) >= (known.generation, known.offset):
                self.rows[row.topic, row.partition] = row
        self.newest = Group("g", self.rows.values())
        self.world.committed(added, before, self.newest)
        return not self.world.chance(self.world.lossy)  # the answer may be lost


class Topics:
    """The topics as members see them."""

    def __init__(self, world: World) -> None:
        self.world = world

    def find_state(self, name: str) -> Any:
        topic = self.world.topics.get(name)
        return topic.state if topic else None

    def state(self, name: str) -> Any:
        found = self.world.state_of(name)
        if isinstance(found, SparklogError):
            raise found
        return found

    def shared(self, members: Any) -> dict[str, SharedTopic]:
        readers = list(members)
        return {
            name: SharedTopic(topic.id, len(topic.records))
            for name, topic in sorted(self.world.topics.items())
            if topic and any(each.reads(name) for each in readers)
        }

    def rows(self, group: str, commits: Iterable[OffsetCommit], known: Any = ()) -> list[Position]:
        found = []
        for each in commits:
            state = self.find_state(each.topic)
            if state is None or each.topic_id != state.topic_id:
                raise SparklogError("TOPIC_RECREATED", topic=each.topic, root="root", expected=each.topic_id, found="another")
            at = (each.topic, each.topic_id, each.partition, each.offset)
            found.append(Position(group, 0, *at, rows.now(), metadata=each.metadata))
        return found


class Beats:
    """The heartbeats of a group, on a disk that never fails."""

    table, group, folder = "table", "g", "folder"
    place = SimpleNamespace(calls_every_s=0.1, remedy="")

    def __init__(self) -> None:
        self.written: dict[str, Mark] = {}
        self.calls: Counter[str] = Counter()

    def write(self, member: str, counter: int, state: int) -> None:
        self.written[member] = counter, state

    def marks(self) -> dict[str, Mark]:
        return dict(self.written)

    def call(self, member: str) -> None:
        self.calls[member] += 1

    def called(self, member: str) -> int | None:
        return self.calls[member] or None

    def remove(self, members: Iterable[str]) -> None:
        for each in members:
            self.written.pop(each, None)


class Heartbeater(heartbeater.Heartbeater):
    """The heartbeats of a member by the world's clock, with heartbeats in the world, and without a thread."""

    def __init__(self, world: World, commits: Callable[[Iterable[str]], Mapping[str, int]]) -> None:
        super().__init__(world.beats, SESSION, commits, lambda: world.now)
        self._lock: Any = Lock()  # one thread makes the requests of all threads
        self.since = world.now
        """When it was live last, by its own heartbeats."""

    def live(self, since: float) -> None:
        super().live(since)
        self.since = since

    def start(self, *_: Any) -> None:
        pass

    def stop(self, *_: Any) -> None:
        pass


def membership_in(world: World, begin: Begin, assignor: str = "sticky") -> Membership:
    """A membership as it is, with the table, the topics, the heartbeats and the clock of a world."""
    table: Any = SimpleNamespace(path="table", root="root", generations=world.table, topics=Topics(world))
    settings = MemberSettings(assignor, session_s=SESSION, heartbeat_s=HEARTBEAT)
    with mock.patch.object(membership, "Heartbeater", lambda *given: Heartbeater(world, given[2])):
        made = membership.Membership(table, "g", settings, begin, lambda: world.now)
    made.lock = Lock()  # type: ignore[assignment]
    return made


class Lock:
    """The lock of a member, which one thread takes again, and the thread of heartbeats does not wait for."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> None:
        self.count += 1

    def __exit__(self, *_: object) -> None:
        self.count -= 1

    def acquire(self, timeout: float) -> bool:
        if self.count:
            return False
        self.count += 1
        return True

    def release(self) -> None:
        self.count -= 1
