"""A consumer of `core_world.py`: a core and a membership as they are, and a shell in memory; and the program that calls it."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sparklog import SparklogError
from sparklog.consumer import TopicPartition
from sparklog.consumer import requests as ask
from sparklog.consumer.core import Core
from sparklog.consumer.groups import Shared
from sparklog.consumer.settings import Settings
from sparklog.groups.commits import OffsetCommit
from sparklog.groups.member.state import Hold

if TYPE_CHECKING:
    from groups.core_world import World

from groups.core_parts import (
    INTERVAL,
    NAMES,
    ByProgram,
    Fault,
    Interrupted,
    Killed,
    batch_of,
    membership_in,
)


class Consumer:
    """A process with one consumer: `call` runs one of its calls."""

    may_commit = True
    """Whether it may commit without being asked."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.busy, self.dead, self.frozen = False, False, False
        self.raises = world.random.random() < 0.2
        self.commits = world.random.random() < 0.8 and self.may_commit
        self.is_interrupted = world.random.random() < 0.25
        self.was_interrupted = False
        """Whether a signal came in the present call: there is one at most."""
        self.fell_silent = False
        """Whether a signal came as it was to leave: others expire it after its session."""
        self.waits = int(name[1:]) % 3 > 0
        """Whether some polls of its program wait for records."""
        settings = Settings(
            "root", "g", "table", True, world.reset, INTERVAL, world.random.choice((3, 1000)), 1.0, 1.0 if self.commits else None
        )
        self.far = int(name[1:]) % 2 > 0
        """Whether its store is behind a network."""
        self.core = Core(dataclasses.replace(settings, far=self.far))
        self.expected: set[tuple[TopicPartition, int]] = set()
        """The partitions and offsets of the fetches whose bytes were requested."""
        self.member = membership_in(world, self.core.subscription.beginning, world.assignor)
        self.group = Shared(self.member)
        self.core.shares.is_committed = self.group.is_committed
        self.told: dict[TopicPartition, Any] = {}
        """The shares that the program was told to have."""
        self.next: dict[TopicPartition, tuple[Any, int]] = {}
        """By partition the share from which records were given last, and the offset that must come next."""
        self.subscribed, self.names = False, tuple[str, ...]()
        self.fetched_to: dict[Any, int] = {}
        """The shares of which records were fetched, each with the offset after those; without those of which some were dropped rightly."""
        self.asked: list[list[OffsetCommit]] = []
        """The commits that were begun beside the program, and are not made yet."""
        self.ended: list[SparklogError | None] = []
        """Commits that have ended, and that the core does not know yet."""
        self.revoked: dict[TopicPartition, Hold] = {}
        """How it held the partitions of which the program was told that they go."""

    @property
    def is_free(self) -> bool:
        """Whether its program may make a call."""
        return not self.busy and not self.dead and not self.frozen

    @property
    def is_member(self) -> bool:
        state = self.world.table.newest.state
        return state is not None and self.member.id in state.members

    def call(self, steps: Any) -> Any:
        """Runs a call to its end, or to the death of the process."""
        outer, self.busy = self.busy, True
        self.was_interrupted = self.was_interrupted and outer
        self.world.calls.append(steps)  # a process that was killed does not even end its generators
        try:
            request = next(steps)
            while True:
                self.world.interrupt(self)
                if self.dead:
                    raise Killed
                try:
                    reply = self.interrupted(request)
                except (Exception, Interrupted) as error:
                    request = steps.throw(error)
                else:
                    request = steps.send(reply)
        except StopIteration as done:
            return done.value
        finally:
            self.busy = outer

    def interrupted(self, request: Any) -> Any:
        """The reply to a request. A signal may interrupt the program before it has it; a callback that it interrupts has raised."""
        comes = self.is_interrupted and not self.was_interrupted and self.world.chance(0.3 if isinstance(request, ask.Join) else 0.03)
        self.was_interrupted |= comes
        if comes and self.world.random.random() < 0.5 and not isinstance(request, ask.Notify):
            self.fell_silent |= isinstance(request, ask.Leave)
            self.expected = set() if self.core.closed else self.expected
            raise Interrupted
        reply = self.does(request)
        if comes and isinstance(request, ask.Notify):
            return Interrupted()
        if comes:
            raise Interrupted
        return reply

    def does(self, request: Any) -> Any:
        world = self.world
        match request:
            case ask.Now():
                return world.now
            case ask.Wait():
                world.now += request.seconds
            case ask.ListTopics():
                return [name for name, topic in world.topics.items() if topic and request.wanted(name)]
            case ask.RefreshTopics():
                return {name: world.state_of(name) for name in request.topics}
            case ask.News():
                if self.far and not request.idle and world.random.random() < 0.5:
                    return {}  # no look has ended
                return {name: world.state_of(name) for name in request.topics}
            case ask.Fetch():
                return self.fetched(request)
            case ask.Expect():
                self.expect(request.fetches)
            case ask.Notify():
                return self.tell(request.event, request.partitions)
            case ask.PollGroup() | ask.Take() | ask.Release():
                try:
                    return self.view(request)
                finally:
                    self.viewed = world.commits
            case ask.Join():
                self.operate_soon(request.commits)
                return self.group.join(request.topics, request.pattern, request.shares, request.commits)
            case ask.Leave():
                return self.group.leave(for_good=request.for_good)
            case ask.IsLive():
                if not self.group.is_live():
                    self.fetched_to = {}
                    return False
                return True
            case ask.ReadCommitted():
                if (world.quiet or world.depth < 2) and world.random.random() < 0.3:
                    world.call("commit")  # just before the look
                return self.group.positions()
            case ask.CommitSync():
                if world.lossy and world.chance(0.2):
                    raise SparklogError("OFFSETS_TABLE", table="table", cause="the disk is full")
                return self.group.commit(request.commits)
            case ask.CommitAsync():
                self.asked.append(request.commits)
            case ask.AwaitCommits():
                self.commit_async()
                return self.tell_commits()
            case ask.NotifyCommits():
                return self.tell_commits()
        return None

    def commit_async(self) -> None:
        """Makes the commits that were begun, as their thread does; it waits while the program holds the lock."""
        while self.asked and not self.dead and not self.frozen and not self.member.lock.count:  # type: ignore[attr-defined]
            try:
                self.group.commit(self.asked.pop(0))
                self.ended.append(None)
            except SparklogError as error:
                self.ended.append(error)

    def tell_commits(self) -> list[BaseException]:
        """Calls the callbacks of commits that have ended."""
        raised: list[BaseException] = []
        while self.ended:
            self.core.commits.ended(self.ended.pop(0))
            if self.raises and self.world.chance(0.6):
                raised.append(ByProgram("commit"))
        return raised

    def view(self, request: Any) -> Any:
        match request:
            case ask.PollGroup():
                return self.group.poll()
            case ask.Take():
                return self.group.take()
        self.operate_soon(request.commits)
        return self.group.release(request.shares, request.commits)

    def operate_soon(self, commits: list[OffsetCommit]) -> None:
        """An operator moves one of these shares before they are given up."""
        if commits and self.world.depth < 2 and self.world.chance(0.7):
            self.world.soon = lambda: self.world.operate([each.place for each in commits])

    def expect(self, fetches: list[ask.Fetch]) -> None:
        for each in fetches:
            share = self.core.shares.held.get(each.partition)
            if share is None or share.topic_id != each.topic_id or share.paused or share.is_going:
                raise Fault(f"{self.name} requests {each}, and does not read that")
        self.expected = {(each.partition, each.offset) for each in fetches}

    def fetched(self, request: Any) -> ask.FetchReply:
        if self.far and (request.partition, request.offset) not in self.expected:
            raise Fault(f"{self.name} fetches {request.partition} at {request.offset}, and requested only {self.expected} before")
        topic = self.world.topics.get(request.partition.topic)
        if topic is None or topic.id != request.topic_id or request.offset < topic.starts[request.partition.partition]:
            return ask.FetchReply([], request.offset, topic.state if topic else None)
        end = min(len(topic.records[request.partition.partition]), request.offset + request.bytes_max)
        share = self.core.shares.held[request.partition]
        if topic.starts[share.number] < request.offset < self.fetched_to.get(share, 0):
            raise Fault(f"{self.name} fetched {request.partition} at {request.offset} again, after {self.fetched_to[share]}")
        if self.core.subscription.states.get(topic.name) is topic.state:
            self.fetched_to[share] = end
        return ask.FetchReply([batch_of(topic.life).slice(request.offset, end - request.offset)], end, topic.state)

    def tell(self, event: str, partitions: list[TopicPartition]) -> BaseException | None:
        for each in partitions:
            if (event == "assigned") == (each in self.told) or (event == "assigned" and self.core.closed):
                raise Fault(f"{self.name} was told {event} of {each}, and has {sorted(self.told)}")
        if event == "assigned":  # one that was to go may stay, since the plan has changed
            self.revoked = {each: held for each, held in self.revoked.items() if each not in partitions}
        if event == "revoked":
            self.revoked |= {each: self.core.shares.held[each].holding for each in partitions}
        for each in partitions if event == "assigned" else ():
            self.core.shares.held[each].since = self.viewed  # type: ignore[attr-defined]
            self.told[each] = self.core.shares.held[each]
        for each in partitions if event != "assigned" else ():
            share = self.told.pop(each)
            if event == "lost" and self.world.owns(self, share) and (topic := self.world.topics[each.topic]) and topic.id == share.topic_id:
                raise Fault(f"{self.name} was told that {each} is lost, and has it")
        if event == "revoked" and self.commits and not self.world.lossy:
            for each in partitions:
                share, row = self.core.shares.held[each], self.world.table.newest.at.get(each)
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
        if self.world.chance(0.3 if event == "lost" else 0.15):
            self.call_within()
        return ByProgram(event) if self.raises and self.world.chance(0.3) else None

    def call_within(self) -> None:
        """The callback calls the consumer."""
        name = self.world.random.choice(("poll", "commit", "commit", "close"))
        steps: Any = {"poll": lambda: self.core.poll(0, 1, 1, self.decode), "commit": self.core.commits.commit}.get(name)
        try:
            self.call(steps() if steps else self.core.close(autocommit=True))
        except ByProgram:
            pass
        except SparklogError as error:
            if (not self.world.owners and error.id == "GENERATION_FENCED") or (name == "poll") != (error.id == "CONSUMER_IN_CALLBACK"):
                raise
        else:
            if name == "poll":
                raise Fault(f"{self.name} polled in a callback")

    # ---- calls of the program

    def subscribe(self, names: Sequence[str] = NAMES) -> None:
        pattern = re.compile("[TU]", re.IGNORECASE) if self.world.by_pattern else None
        self.subscribed = False
        with contextlib.suppress(ByProgram):
            self.call(self.core.subscribe([] if pattern else names, pattern))
        self.require_left_if_closed()
        self.world.subscribed(names)
        its = self.core.subscription
        if not self.core.closed and (its.names, its.pattern) != (None if pattern else frozenset(names), pattern):
            raise Fault(f"{self.name} subscribed to {names}, and is subscribed to {its.names}, {its.pattern}")
        self.subscribed, self.names = True, NAMES if pattern else tuple(names)

    def resubscribe(self) -> None:
        """Subscribes, and sometimes changes its mind before it polls, beside partitions that were just added."""
        for _ in range(self.world.random.choice((1, 2))):
            if not self.core.closed:
                self.subscribe(self.world.random.choice((NAMES[:1], NAMES[1:], NAMES)))
                if self.world.chance(0.5):
                    self.world.reroute()

    def require_left_if_closed(self) -> None:
        """A consumer that a callback closed is no member, unless its process was killed as it closed."""
        if self.core.closed and not self.dead:
            self.dead = True
            if self.expected:
                raise Fault(f"{self.name} is closed, and holds {self.expected}")
            if ((self.is_member and not self.fell_silent) or self.told) and not self.world.lossy:
                raise Fault(f"{self.name} is closed, {'' if self.is_member else 'not '}a member, and was told to have {sorted(self.told)}")

    def poll(self) -> None:
        if not self.subscribed:
            self.subscribe()
        if self.dead:
            return
        try:
            self.read()
        finally:
            self.require_left_if_closed()

    def read(self) -> None:
        timeout_s, records_max = self.world.random.choice((0, 0, 0.3 * self.waits)), self.world.random.choice((2, 50))
        if not timeout_s and self.core.finds_nothing(self.world.now, self.world.state_of):
            return
        self.core.shares.last = []
        try:
            found = self.call(self.core.poll(timeout_s, records_max, 1 << 30, self.decode))
            if self.is_interrupted and self.world.chance(0.05):
                self.core.shares.take_back()
                raise Interrupted
        except ByProgram:
            self.require_handed_over()
            return
        except Poison as poison:
            share = self.core.shares.held[poison.partition]
            if share.position != poison.offset:
                raise Fault(f"{poison.partition} stopped at {share.position}, and {poison.offset} cannot be decoded") from None
            self.world.given(self, share, [poison.offset], skipped=True)  # the program skips it
            self.core.shares.seek(share, poison.offset + 1)
            return
        for partition, records in found.items():
            self.world.given(self, self.core.shares.held[partition], [record.offset for record in records])

    def end(self, *, in_turn: bool) -> None:
        """Its group is another's. The program has learned in a turn that its partitions are lost, or learns it as it ends the consumer."""
        if in_turn and (self.told or self.core.shares.assigned()):
            raise Fault(f"{self.name} is fenced, was told to have {sorted(self.told)}, and has {self.core.shares.assigned()}")
        self.revoked = {}
        self.close()
        if self.revoked:
            raise Fault(f"{self.name} was fenced, and told that {self.revoked} go")

    def require_handed_over(self) -> None:
        """A callback that raises keeps no partition."""
        state = self.world.table.newest.state
        if self.world.lossy or state is None:
            return
        mine = state.owned(self.member.id or "").items()
        if kept := [each for each, held in mine if (hold := self.revoked.get(TopicPartition(*each))) and held == hold.held]:
            raise Fault(f"{self.name}: a callback raised, and {kept} were not handed over")

    def iterate(self) -> None:
        if not self.subscribed:
            return
        try:
            taken = self.call(self.core.take(0, 50, 1 << 30))
            self.fetched_to = {}  # the loop may end within these, or call `poll`
            self.core.shares.last = []
            given = self.core.fetching.one_by_one(taken, self.decode, self.group.is_live)
            for record in itertools.islice(given, self.world.random.randrange(1, 9)):
                if self.is_interrupted and self.world.chance(0.05):
                    self.core.shares.take_back()
                    raise Interrupted
                share = self.core.shares.held.get(TopicPartition(record.topic, record.partition))
                if share is None:
                    raise Fault(f"{self.name} was given {record}, and does not hold it")
                self.core.shares.last = []
                self.world.given(self, share, [record.offset])
                self.world.interrupt(self)
                if self.world.depth < 2 and self.world.chance(0.02):
                    self.world.freeze(self)
                if self.dead:
                    raise Killed
        except ByProgram:
            return
        except Poison as poison:
            share = self.core.shares.held[poison.partition]
            self.world.given(self, share, [poison.offset], skipped=True)
            self.core.shares.seek(share, poison.offset + 1)
        finally:
            self.require_left_if_closed()

    def commit(self) -> None:
        if self.subscribed:
            with contextlib.suppress(ByProgram):
                self.call(self.core.commits.commit_async(None, None) if len(self.world.acts) % 3 == 0 else self.core.commits.commit())

    def go_back(self) -> None:
        """The program commits an offset below the committed one. An operator may move the partition first, and others give it back."""
        if self.world.reset == "latest":  # an offset that has expired would go on at the end
            return
        at = self.world.table.newest.at
        lower = [
            share.commit(row.offset - 1)
            for partition, share in self.core.shares.held.items()
            if (row := at.get(partition)) and row.topic_id == share.topic_id and row.offset > 1
        ]
        if self.subscribed and lower:
            if self.world.depth < 2 and self.world.chance(0.7):
                self.world.soon = lambda: self.world.move_and_give_back([each.place for each in lower], self)
            with contextlib.suppress(ByProgram):
                self.call(self.core.commits.commit(lower))
            self.require_gone_back(lower)

    def require_gone_back(self, lower: list[OffsetCommit]) -> None:
        """The group is where the program went back to, or lower by an operator, in the shares that this consumer still has.

        A member that lost the answer to a commit does not know that a later commit goes back.
        """
        for each in lower if not self.world.lossy else ():
            share, row = self.core.shares.held.get(TopicPartition(*each.place)), self.world.table.newest.at.get(each.place)
            if share and share.holding == each.holding and self.world.owns(self, share) and row and row.offset > each.offset:
                raise Fault(f"{self.name} went back to {each}, and {row} is committed")

    def close(self) -> None:
        try:
            self.call(self.core.close(autocommit=True))
        except (ByProgram, Interrupted):
            pass
        except SparklogError:
            self.dead = True
            raise
        self.require_left_if_closed()

    def beat(self) -> None:
        if not self.dead and not self.frozen:
            self.member.heartbeat()
            self.commit_async()

    def decode(self, partition: TopicPartition, batch: pa.RecordBatch) -> tuple[list[Any], Exception | None]:
        life, records = batch.column("partition")[0].as_py(), []
        if self.is_interrupted and self.world.chance(0.05):
            raise Interrupted
        for offset in batch.column("offset").to_pylist():
            if (partition.topic, life, partition.partition, offset) in self.world.poison:
                self.fetched_to = {}
                return records, Poison(partition, offset)
            records.append(SimpleNamespace(topic=partition.topic, partition=partition.partition, offset=offset, life=life))
        return records, None


class Poison(Exception):
    """A record that cannot be decoded."""

    def __init__(self, partition: TopicPartition, offset: int) -> None:
        self.partition, self.offset = partition, offset
