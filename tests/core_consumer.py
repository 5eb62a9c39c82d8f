"""A consumer of `core_world.py`: a core and a membership as they are, and a shell in memory; and the program that calls it."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from sparklog.consumer import TopicPartition
from sparklog.consumer import requests as ask
from sparklog.consumer.beliefs import Settings
from sparklog.consumer.core import Core
from sparklog.consumer.groups import Shared
from sparklog.offsets import MemberSettings, Membership, standing

if TYPE_CHECKING:
    from core_world import World

from core_parts import HEARTBEAT, INTERVAL, NAMES, SESSION, ByProgram, Fault, Killed, Lock, Pulse, Topics, batch_of


class Consumer:
    """A process with one consumer: `call` runs one of its calls."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.busy, self.dead, self.frozen = False, False, False
        self.raises = world.random.random() < 0.2
        self.commits = world.random.random() < 0.8
        settings = Settings(
            "root", "g", "table", True, world.reset, INTERVAL, world.random.choice((3, 1000)), 1.0, 1.0 if self.commits else None
        )
        self.core = Core(settings)
        table: Any = SimpleNamespace(path="table", root="root", generations=world.table, topics=Topics(world))

        self.member = Membership.__new__(Membership)
        pulse, standing.Pulse = standing.Pulse, lambda *_: Pulse(world)  # type: ignore[assignment,misc]
        try:
            timed = MemberSettings(session_s=SESSION, heartbeat_s=HEARTBEAT)
            self.member.__init__(table, "g", timed, self.core.beginning, lambda: world.now)  # type: ignore[misc]
        finally:
            standing.Pulse = pulse  # type: ignore[misc]
        self.member._lock = Lock()  # type: ignore[assignment]
        self.group = Shared(self.member)
        self.told: set[TopicPartition] = set()
        self.next: dict[TopicPartition, tuple[Any, int]] = {}
        """By partition the share from which records were given last, and the offset that must come next."""
        self.subscribed = False
        self.revoked: dict[TopicPartition, object] = {}
        """How it held the partitions of which the program was told that they go."""

    def call(self, steps: Any) -> Any:
        """Runs a call to its end, or to the death of the process."""
        outer, self.busy = self.busy, True
        self.world.calls.append(steps)  # a process that was killed does not even end its generators
        try:
            request = next(steps)
            while True:
                self.world.interrupt(self)
                if self.dead:
                    raise Killed
                try:
                    reply = self.does(request)
                except Exception as error:
                    request = steps.throw(error)
                else:
                    request = steps.send(reply)
        except StopIteration as done:
            return done.value
        finally:
            self.busy = outer

    def does(self, request: Any) -> Any:
        world = self.world
        match request:
            case ask.Now():
                return world.now
            case ask.Wait():
                world.now += request.seconds
            case ask.ListTopics():
                return [name for name, topic in world.topics.items() if topic]
            case ask.Look():
                return {name: world.state_of(name) for name in request.topics}
            case ask.Fetch():
                return self.fetched(request)
            case ask.Tell():
                return self.tell(request.event, request.partitions)
            case ask.LookAtGroup() | ask.Take() | ask.Release():
                try:
                    return self.view(request)
                finally:
                    self.viewed = world.commits
            case ask.Join():
                return self.group.join(request.topics, request.pattern, request.shares, request.ats)
            case ask.Leave():
                return self.group.leave(for_good=request.for_good)
            case ask.IsLive():
                return self.group.is_live()
            case ask.Positions():
                if world.depth < 2 and world.chance(0.3):
                    world.call("commit")  # just before the look
                return self.group.positions()
            case ask.Commit():
                return self.group.commit(request.ats)
            case ask.TellCommits():
                return True
        return None

    def view(self, request: Any) -> Any:
        match request:
            case ask.LookAtGroup():
                return self.group.look()
            case ask.Take():
                return self.group.take()
        return self.group.release(request.shares, request.ats)

    def fetched(self, request: Any) -> ask.Part:
        topic = self.world.topics.get(request.partition.topic)
        if topic is None or topic.id != request.topic_id or request.offset < topic.starts[request.partition.partition]:
            return ask.Part([], request.offset, topic.state if topic else None)
        end = min(len(topic.records[request.partition.partition]), request.offset + request.octets)
        return ask.Part([batch_of(topic.life).slice(request.offset, end - request.offset)], end, topic.state)

    def tell(self, event: str, partitions: list[TopicPartition]) -> BaseException | None:
        for each in partitions:
            if (event == "assigned") == (each in self.told):
                raise Fault(f"{self.name} was told {event} of {each}, and has {sorted(self.told)}")
        if event == "revoked":
            self.revoked |= {each: self.core.shares[each].holding for each in partitions}
        for each in partitions if event == "assigned" else ():
            self.core.shares[each].since = self.viewed  # type: ignore[attr-defined]
        self.told = self.told | set(partitions) if event == "assigned" else self.told - set(partitions)
        if event == "revoked" and self.commits and not self.world.lossy:
            for each in partitions:
                share, row = self.core.shares[each], self.world.table.newest.at.get(each)
                topic = self.world.topics.get(each.topic)
                mine = self.world.owns(self, share) and topic is not None and topic.id == share.topic_id
                if (
                    share.position is not None
                    and mine
                    and (row is None or (row.topic_id == share.topic_id and row.offset < share.position))
                ):
                    raise Fault(f"{self.name}: {each} is revoked at {share.position}, and {row} is committed")
        if event == "revoked" and self.world.depth < 2 and self.world.chance(0.15):
            self.world.operate()  # while the program flushes
        self.world.interrupt(self)
        return ByProgram(event) if self.raises and self.world.chance(0.3) else None

    # ---- calls of the program

    def poll(self) -> None:
        if not self.subscribed:
            self.call(self.core.subscribe(list(NAMES), None))
            self.subscribed = True
        try:
            found = self.call(
                self.core.poll(self.world.random.choice((0, 0, 0.3)), self.world.random.choice((2, 50)), 1 << 30, self.decode)
            )
        except ByProgram:
            self.require_handed_over()
            return
        except Poison as poison:
            share = self.core.shares[poison.partition]
            if share.position != poison.offset:
                raise Fault(f"{poison.partition} stopped at {share.position}, and {poison.offset} cannot be decoded") from None
            self.world.given(self, share, [poison.offset], skipped=True)  # the program skips it
            self.core.seek(share, poison.offset + 1)
            return
        for partition, records in found.items():
            self.world.given(self, self.core.shares[partition], [record.offset for record in records])

    def require_handed_over(self) -> None:
        """A callback that raises keeps no partition."""
        state = self.world.table.newest.state
        if self.world.lossy or state is None:
            return
        mine = state.owned(self.member.id or "").items()
        if kept := [each for each, held in mine if held == self.revoked.get(TopicPartition(*each))]:
            raise Fault(f"{self.name}: a callback raised, and {kept} were not handed over")

    def iterate(self) -> None:
        if not self.subscribed:
            return
        try:
            taken = self.call(self.core.take(0, 50, 1 << 30))
            for record in itertools.islice(self.core.give(taken, self.decode, self.group.is_live), self.world.random.randrange(1, 9)):
                share = self.core.shares.get(TopicPartition(record.topic, record.partition))
                if share is None:
                    raise Fault(f"{self.name} was given {record}, and does not hold it")
                self.world.given(self, share, [record.offset])
                self.world.interrupt(self)
                if self.dead:
                    raise Killed
        except ByProgram:
            return
        except Poison as poison:
            share = self.core.shares[poison.partition]
            self.world.given(self, share, [poison.offset], skipped=True)
            self.core.seek(share, poison.offset + 1)

    def commit(self) -> None:
        if self.subscribed:
            self.call(self.core.commit())

    def close(self) -> None:
        try:
            self.call(self.core.close(autocommit=True))
        except ByProgram:
            pass
        finally:
            self.dead = True

    def beat(self) -> None:
        if not self.dead and not self.frozen:
            self.member._beat()

    def decode(self, partition: TopicPartition, batch: pa.RecordBatch) -> tuple[list[Any], Exception | None]:
        life, records = batch.column("partition")[0].as_py(), []
        for offset in batch.column("offset").to_pylist():
            if (partition.topic, life, partition.partition, offset) in self.world.poison:
                return records, Poison(partition, offset)
            records.append(SimpleNamespace(topic=partition.topic, partition=partition.partition, offset=offset, life=life))
        return records, None


class Poison(Exception):
    """A record that cannot be decoded."""

    def __init__(self, partition: TopicPartition, offset: int) -> None:
        self.partition, self.offset = partition, offset
