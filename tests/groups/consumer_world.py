"""A consumer, driven by random calls beside a writer, upkeep, deletion and re-creation, and a model of where it may be."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from groups.consumer_lookups import lookups
from groups.living_topic import Log
from handmade import TIME
from unit.far_store import FarStore

from sparklog import CallError, Consumer, SparklogError
from sparklog.consumer import TopicPartition
from sparklog.ondisk.root import Root

POLL_MS = (1, 60_000)


class Place(NamedTuple):
    """A position in one of the topics of a name: `life` counts them. `strayed`: it was out of range at some moment since it was set."""

    life: int
    offset: int
    strayed: bool


class World:
    """One random history. `run` raises AssertionError where the consumer returns what it may not."""

    def __init__(self, seed: int, root: Path, table: Path | None, *, far: bool = False) -> None:
        self.random = random.Random(seed)
        self.root: Any = Root(FarStore(str(root))) if far else root
        self.logs = {"t": Log(root, "t", 2), "u": Log(root, "u", 1)}
        self.reset = self.random.choice(("earliest", "latest"))
        self.options: dict[str, Any] = (
            {"group_id": "g", "table": table, "partition_assignment_strategy": "exclusive", "auto_commit_interval_ms": 3_600_000}
            if table
            else {}
        )
        self.options["enable_auto_commit"] = table is not None and self.random.random() < 0.5  # when partitions go, and at its end
        self.options["max_partition_fetch_bytes"] = self.random.choice((1, 150, 1 << 20))
        self.options["max_poll_records"] = self.random.choice((1, 4, 500))
        self.options["metadata_max_age_ms"] = 0
        self.options["poll_interval_ms"] = self.random.choice(POLL_MS)
        if far:
            self.options["idle_look_ms"] = 0
        self.at: dict[TopicPartition, set[Place]] = {}
        self.held: dict[TopicPartition, tuple[int, int]] = {}
        """The position that the group has committed: life and offset."""
        self.paused: set[TopicPartition] = set()
        self.by_pattern = False
        self.wanted: list[str] = []
        self.dropped: set[str] = set()
        """Topics that went while a pattern named them: they come again as new ones, and the model does not know when that is seen."""
        self.acts: list[str] = []
        self.consumer = self._open()

    def _open(self) -> Consumer:
        return Consumer(self.root, auto_offset_reset=self.reset, consumer_timeout_ms=0, **self.options)

    # ---- the model

    def bounds(self, place: Place, tp: TopicPartition) -> tuple[int, int] | None:
        """Log start and end offset of the topic that a place is in; None if that topic is gone."""
        log = self.logs[tp.topic]
        if place.life != log.life or not log.exists:
            return None
        return log.starts[tp.partition][-1], log.ends[tp.partition][-1]

    def stray(self) -> None:
        """To be called after each change of a log or of a position."""
        for tp, places in self.at.items():
            self.at[tp] = {each._replace(strayed=each.strayed or self._is_out(each, tp)) for each in places}

    def _is_out(self, place: Place, tp: TopicPartition) -> bool:
        bounds = self.bounds(place, tp)
        return bounds is not None and not bounds[0] <= place.offset <= bounds[1]

    def put(self, tp: TopicPartition, *places: tuple[int, int]) -> None:
        self.at[tp] = {Place(life, offset, False) for life, offset in places}
        self.stray()

    def nexts(self, tp: TopicPartition) -> set[tuple[int, int]]:
        """Where the consumer may go on: life and offset."""
        log = self.logs[tp.topic]
        found = set()
        for each in self.at[tp]:
            found.add((each.life, each.offset))
            if each.strayed:
                jumps = log.bounds(each.life)[0 if self.reset == "earliest" else 1]
                found |= {(each.life, offset) for offset in jumps[tp.partition]}
            # It reads another topic of the name from its start.
            for life in range(each.life + 1, log.life + 1):
                starts = log.bounds(life)[0][tp.partition]
                found |= {(life, offset) for offset in starts}
                if len(starts) > 1:  # the start where it began may be out of range by now
                    found |= {(life, offset) for offset in log.bounds(life)[self.reset == "latest"][tp.partition]}
        return found

    def take(self, tp: TopicPartition, value: bytes | None, offset: int) -> None:
        assert tp in self.at, f"{tp} is not read"
        assert tp not in self.paused or tp.topic in self.dropped, f"{tp} is paused"
        life, number, named = map(int, (value or b"").split(b":"))
        assert (number, named) == (tp.partition, offset), f"{tp} at {offset} has the value {value!r}"
        assert (life, offset) in self.nexts(tp), f"{tp} returned offset {offset} of life {life}, and was at {self.at[tp]}"
        self.put(tp, (life, offset + 1))

    def know(self, tp: TopicPartition, position: int) -> None:
        """The consumer says that it is here."""
        fitting = {(life, offset) for life, offset in self.nexts(tp) if offset == position}
        assert fitting, f"{tp} says position {position}, and was at {self.at[tp]}"
        self.put(tp, *fitting)

    # ---- calls

    def begin(self, topics: list[str]) -> list[TopicPartition]:
        return [TopicPartition(name, number) for name in topics for number in self.logs[name].starts]

    def _assigned(self, wanted: list[TopicPartition]) -> None:
        """They are read now: as before, from what the group has committed, or from where a reset puts them."""
        self._handed_over()
        before, self.at = self.at, {}
        for tp in wanted:
            log = self.logs[tp.topic]
            first = (log.starts if self.reset == "earliest" else log.ends)[tp.partition][-1]
            committed = self.held.get(tp, (-1, 0))
            if self.reset == "latest" and committed[0] != log.life and self._has_read(tp.topic):
                first = log.starts[tp.partition][-1]
            fresh = {Place(log.life, committed[1] if committed[0] == log.life else first, False)}
            self.at[tp] = fresh if tp not in before else before[tp] | fresh if tp.topic in self.dropped else before[tp]
        again = [tp for tp in wanted if tp.topic in self.dropped]
        self.consumer.resume(*again)  # whether the consumer saw them go, and with them that they were paused, is not known
        self.paused = {tp for tp in self.paused if tp in self.at and tp not in again}
        self.dropped = {name for name, log in self.logs.items() if self.by_pattern and not log.exists}
        self.stray()

    def _has_read(self, topic: str) -> bool:
        """Whether the group has positions in topics of this name, or of a name that its pattern meets: then what is new is read."""
        return topic in (read := {tp.topic for tp in self.held}) or (self.by_pattern and any(name in self.wanted for name in read))

    def subscribe(self) -> None:
        names = sorted(self.random.sample(sorted(self.logs), self.random.choice((1, 2))))
        if self.consumer.subscription() is None:
            self.unsubscribe()
        self.by_pattern = self.random.random() < 0.3
        self.wanted = names
        if self.by_pattern:
            self.consumer.subscribe(pattern="|".join(names))
        else:
            self.consumer.subscribe(names)
        self._assigned(self.begin(names))

    def assign(self) -> None:
        if self.consumer.subscription() is not None:
            self.unsubscribe()
        every = self.begin(sorted(self.logs))
        wanted = self.random.sample(every, self.random.randrange(1, len(every) + 1))
        self.consumer.assign(wanted)
        self.by_pattern = False
        self._assigned(wanted)

    def unsubscribe(self) -> None:
        self.consumer.unsubscribe()
        self._handed_over()
        self.at, self.paused = {}, set()

    def _handed_over(self, committing: bool = True) -> None:
        """The positions that the group has committed, as far as their topics are there. Without `committing`, nothing came to it since."""
        if "group_id" not in self.options:
            return
        for tp in self.at:
            log = self.logs[tp.topic]
            committed = self.consumer.committed(tp) if log.exists else None
            if committed is None or (log.life, committed) == self.held.get(tp):
                continue
            assert committing and self.options["enable_auto_commit"], f"{tp}: nothing committed {committed}"
            assert (log.life, committed) in self.nexts(tp), f"{tp} committed {committed}, and was at {self.at[tp]}"
            self.held[tp] = (log.life, committed)

    def one(self) -> TopicPartition:
        return self.random.choice(sorted(self.at))

    def seek(self) -> None:
        tp = self.one()
        log = self.logs[tp.topic]
        offset = self.random.choice((0, log.starts[tp.partition][-1], log.ends[tp.partition][-1], self.random.randrange(30)))
        self.consumer.seek(tp, offset)
        self.put(tp, *{(life, offset) for life in {log.life, *(each.life for each in self.at[tp])}})

    def seek_to(self, call: str) -> None:
        chosen = [] if self.random.random() < 0.5 else [self.one()]
        getattr(self.consumer, call)(*chosen)
        for tp in chosen or list(self.at):
            log = self.logs[tp.topic]
            to = (log.starts if call == "seek_to_beginning" else log.ends)[tp.partition][-1]
            if chosen or tp.topic not in self.dropped:
                self.put(tp, (log.life, to))
            else:  # it is moved if it is read at this moment
                self.put(tp, (log.life, to), (log.life, 0), *((each.life, each.offset) for each in self.at[tp]))

    def seek_to_time(self) -> None:
        tp = self.one()
        log = self.logs[tp.topic]
        wanted = self.random.randrange(40)
        (found,) = self.consumer.offsets_for_times({tp: TIME + wanted}).values()
        expected = max(wanted, log.starts[tp.partition][-1])
        if expected >= log.ends[tp.partition][-1]:
            assert found is None
            return
        assert found == (expected, TIME + expected)
        self.consumer.seek(tp, expected)
        self.put(tp, *{(life, expected) for life in {log.life, *(each.life for each in self.at[tp])}})

    def pause(self) -> None:
        tp = self.one()
        self.consumer.pause(tp)
        self.paused.add(tp)

    def resume(self) -> None:
        tp = self.one()
        self.consumer.resume(tp)
        self.paused.discard(tp)

    def poll(self) -> None:
        for tp, found in self.consumer.poll(0, self.random.choice((None, 1, 3))).items():
            for record in found:
                self.take(tp, record.value, record.offset)

    def poll_batches(self) -> None:
        for tp, found in self.consumer.poll_batches(0, self.random.choice((None, 1, 3))).items():
            for value, offset in zip(found["value"].to_pylist(), found["offset"].to_pylist(), strict=True):
                self.take(tp, value, offset)

    def iterate(self) -> None:
        for record in itertools.islice(self.consumer, self.random.choice((1, 1, 2, 5, 20))):
            self.take(TopicPartition(record.topic, record.partition), record.value, record.offset)

    def position(self) -> None:
        tp = self.one()
        self.know(tp, self.consumer.position(tp))

    def waiting(self) -> None:
        """No topic is re-routed here."""
        assert self.consumer.waiting() == {}

    def commit(self) -> None:
        if len(self.acts) % 2:  # no random number: those of seeds that found faults stay as they are
            self.consumer.commit()
        else:
            self.consumer.commit_async().result()
        for tp in list(self.at):
            if not self.logs[tp.topic].exists:  # a pattern lets it go, and `committed` refuses to answer
                continue
            committed = self.consumer.committed(tp)
            if committed is not None:
                self.know(tp, committed)
                self.held[tp] = next((each.life, each.offset) for each in self.at[tp])

    def reopen(self, autocommit: bool = False) -> None:
        """Another process goes on for the group; without a group it begins from nothing."""
        assert not self.consumer.metrics()["consumer-fetch-manager-metrics"]["records-lag-max"] < 0  # NaN without partitions
        self.consumer.close(autocommit=autocommit)
        self.consumer = self._open()
        self._handed_over(autocommit)
        self.at, self.paused = {}, set()

    def delete(self, log: Log) -> None:
        log.delete()
        if self.by_pattern:
            self.dropped.add(log.topic.name)

    def act(self) -> None:
        """One call, or one act beside the consumer."""
        log = self.random.choice(list(self.logs.values()))
        number = self.random.choice(sorted(log.starts))
        keep = self.random.random() < 0.5
        beside: list[tuple[int, str, Callable[[], None]]] = [
            (8, f"append {log.topic.name}-{number}", lambda: log.append(number, *self.random.choices((1, 2, 6), k=2))),
            (2, f"merge {log.topic.name}-{number}", lambda: log.merge(number, keep)),
            (2, f"expire {log.topic.name}-{number}", lambda: log.expire(number, keep)),
            (2, f"clean {log.topic.name}", log.clean),
            (1, f"delete {log.topic.name}", lambda: self.delete(log)),
        ]
        if not log.exists:
            beside = [(10, f"recreate {log.topic.name}", log.recreate)]
        calls: list[tuple[int, str, Callable[[], None]]] = [
            (2, "subscribe", self.subscribe),
            (2, "assign", self.assign),
            (1, "reopen", self.reopen),
            (1, "reopen with autocommit", lambda: self.reopen(autocommit=True)),
        ]
        if self.at:
            calls += [
                (6, "seek", self.seek),
                (2, "seek to a time", self.seek_to_time),
                (2, "seek_to_beginning", lambda: self.seek_to("seek_to_beginning")),
                (2, "seek_to_end", lambda: self.seek_to("seek_to_end")),
                (2, "pause", self.pause),
                (3, "resume", self.resume),
                (4, "poll", self.poll),
                (3, "poll_batches", self.poll_batches),
                (12, "iterate", self.iterate),
                (4, "position", self.position),
                (1, "waiting", self.waiting),
                (2, "lookups", lambda: lookups(self)),
                (1, "wakeup", self.consumer.wakeup),
                (1, "unsubscribe", self.unsubscribe),
            ]
            if "group_id" in self.options:
                calls.append((4, "commit", self.commit))
        chosen = beside if self.random.random() < 0.3 else calls
        ((_, name, call),) = self.random.choices(chosen, [weight for weight, _, _ in chosen])
        self.acts.append(name)
        with self._errors_that_may_be():
            call()
        self.stray()

    @contextlib.contextmanager
    def _errors_that_may_be(self) -> Iterator[None]:
        """While a topic is not there, a call may say so. Then the model knows as much as the consumer does: nothing."""
        try:
            yield
        except SparklogError as error:
            gone = [name for name, log in self.logs.items() if not log.exists]
            recreated = isinstance(error, SparklogError) and error.id in ("TOPIC_RECREATED", "TOPIC_NOT_FOUND")
            if error.id == "PARTITION_NOT_ASSIGNED" and self.dropped:
                self.acts[-1] += " (not read)"
                return
            if not (gone and isinstance(error, CallError) and error.id == "TOPIC_NOT_FOUND") and not (
                recreated and self.acts[-1] == "commit"
            ):
                raise
            self.acts[-1] += f" ({error.id})"
            if self.acts[-1].startswith("assign"):
                self._handed_over()  # it commits what is handed over before it looks at what it is to read
            if self.acts[-1].startswith(("subscribe", "assign", "unsubscribe", "reopen", "seek_to", "poll", "iterate")):
                self.reopen()

    def run(self, acts: int) -> None:
        self.subscribe()
        for _ in range(acts):
            self.act()
        self.drain()

    def drain(self) -> None:
        """In the end everything is read to its end."""
        for log in self.logs.values():
            if not log.exists:
                log.recreate()
        if not self.at:
            self.subscribe()
        self.paused = set()
        self.consumer.end_offsets(self.at)
        for _ in range(400):
            self.consumer.resume(*self.consumer.assignment())
            found = self.consumer.poll(0)
            for tp, its in found.items():
                for record in its:
                    self.take(tp, record.value, record.offset)
            if not found and self.at.keys() <= self.consumer.assignment():
                break
        for tp in self.at:
            assert self.consumer.position(tp) == self.logs[tp.topic].ends[tp.partition][-1], f"{tp} is not read to its end"
        self.consumer.close(autocommit=False)


def fault(seed: int, root: Path, *, with_group: bool = False, far: bool = False, acts: int = 25) -> str | None:
    """The fault that a seed finds; None if none. `far`: the root is in a store over a network."""
    world = World(seed, root / "root", root / "offsets" if with_group else None, far=far)
    try:
        world.run(acts)
    except (AssertionError, SparklogError) as error:
        return f"seed {seed}: {error}\n{', '.join(world.acts)}"
    return None
