"""Programs that write their records by `DeltaOutput`, in the world of `core_world.py`, and the model of the table that they write."""

from __future__ import annotations

from collections import Counter
from typing import Any

import deltalake
import pyarrow as pa
from groups.core_consumer import Consumer
from groups.core_parts import ByProgram, Fault, Killed
from groups.core_world import World

from sparklog import SparklogError
from sparklog.consumer import DeltaOutput, TopicPartition
from sparklog.groups.rows import Group, Position

Place = tuple[str, int]
"""The id of a topic, and the number of a partition."""


class Output(DeltaOutput):
    """The output of one consumer, whose table is in its world."""

    def __init__(self, consumer: OutputConsumer) -> None:
        self.path, self._group, self._read = "output", "g", {}
        self._consumer: Any = consumer

    def _table(self) -> Any:
        return self._consumer.looks_at_table()

    def _created(self, schema: pa.Schema) -> Any:
        return self._table()

    def _append(self, table: Any, rows: pa.Table, versions: Any) -> None:
        self._consumer.appends(table, rows, versions)


class Snapshot:
    """The versions of applications at one moment."""

    def __init__(self, versions: dict[str, int]) -> None:
        self._versions = dict(versions)

    def transaction_version(self, application: str) -> int | None:
        return self._versions.get(application)


class OutputConsumer(Consumer):
    """A process that polls, seeks, pauses, commits and writes, in any order. It has the calls of a consumer that `DeltaOutput` makes."""

    world: OutputWorld
    root = "root"
    may_commit = False

    def __init__(self, world: OutputWorld, name: str) -> None:
        super().__init__(world, name)
        self.flushes = world.random.random() < 0.5
        self._core, self._shell = self.core, self
        self.run = self.call
        self.output = Output(self)
        self.hand: pa.Table | None = None
        """The rows of the last poll that were not written."""

    def _require_open(self, call: str) -> None:
        if self.core.closed:
            raise SparklogError("CONSUMER_CLOSED", call=call)

    def poll_batches(self, timeout_ms: float, max_records: int | None) -> Any:
        return self.call(self.core.poll_batches(timeout_ms / 1000, max_records or 50, 1 << 30))

    def fetched(self, request: Any) -> Any:
        """Records are fetched again if they were not written."""
        self.fetched_to = {}
        return super().fetched(request)

    # ---- its table

    def looks_at_table(self) -> Snapshot:
        self.disturbed()
        if self.world.chance(self.world.lossy):
            raise OSError("the table cannot be read")
        return Snapshot(self.world.versions)

    def appends(self, table: Snapshot, rows: pa.Table, versions: dict[str, int]) -> None:
        self.disturbed()
        if self.world.chance(self.world.lossy):
            raise OSError("the table cannot be written")
        if any(table.transaction_version(each) != self.world.versions.get(each) for each in versions):
            raise deltalake.exceptions.CommitFailedError("a concurrent transaction")
        self.world.written(rows, versions)
        self.disturbed()
        if self.world.chance(self.world.lossy):
            raise OSError("the answer was lost")

    def disturbed(self) -> None:
        outer, self.busy = self.busy, True
        if not self.world.depth and self.world.chance(0.03):
            self.overtaken()
        self.world.interrupt(self)
        self.busy = outer
        if self.dead:
            raise Killed

    def overtaken(self) -> None:
        """It stands still for longer than its session, and others read on and write."""
        self.world.depth += 1
        self.world.freeze(self)
        for each in [*self.world.consumers] * 2:
            self.world.call("poll", each)
        self.world.depth -= 1

    # ---- calls of the program

    def read(self) -> None:
        try:
            found = self.output.poll(self.world.random.choice((0, 0, 300)), self.world.random.choice((2, 50)))
        except (ByProgram, OSError):
            return
        except SparklogError as error:
            self.require_output_fenced(error)
            return
        self.hand = self.rows_of(found) if found else None
        if self.world.quiet or self.world.random.random() < 0.7:
            self.write()

    def rows_of(self, found: Any) -> pa.Table:
        rows = [
            (self.core.shares.held[partition].topic_id, partition.partition, offset)
            for partition, batch in found.items()
            for offset in batch.column("offset").to_pylist()
        ]
        return pa.table({name: [row[at] for row in rows] for at, name in enumerate(("id", "partition", "offset"))})

    def write(self) -> None:
        """Writes the rows in hand, and again if that failed."""
        for _ in range(3):
            if self.hand is None or self.core.closed:  # by a callback
                return
            try:
                self.output.write(self.hand)
                self.hand = None
            except OSError:
                continue
            except SparklogError as error:
                self.require_output_fenced(error)
                self.hand = None

    def require_output_fenced(self, error: SparklogError) -> None:
        if error.id == "OUTPUT_NOT_READ":
            raise Fault(f"{self.name}: {error}")
        if error.id != "OUTPUT_FENCED":
            raise error

    def iterate(self) -> None:
        """Moves itself, or stands still for a while, between two polls."""
        alive = sorted(self.core.shares.assigned().items())
        if not alive:
            return
        partition, share = self.world.random.choice(alive)
        topic = self.world.topics.get(partition.topic)
        if self.world.random.random() < 0.5:
            self.core.shares.pause([partition]) if not share.paused else self.core.shares.resume([partition])
        elif topic and topic.id == share.topic_id and share.position is not None:
            row = self.world.table.newest.at.get(partition)
            lowest = row.offset if row and row.topic_id == topic.id else share.position
            to = self.world.random.randint(min(lowest, topic.ends[share.number]), topic.ends[share.number])
            self.world.excused.setdefault((topic.id, share.number), set()).update(range(share.position, to))
            self.core.shares.seek(share, to)

    def commit(self) -> None:
        """Resumes all partitions, and commits: not the positions after records in hand."""
        if self.subscribed:
            self.core.shares.resume(list(self.core.shares.assigned()))
            self.call(self.core.commits.commit())

    def tell(self, event: str, partitions: list[TopicPartition]) -> BaseException | None:
        raised = super().tell(event, partitions)
        if event == "revoked" and self.flushes and self.hand is not None:
            try:
                self.write()
            except SparklogError as error:
                return error
        return raised

    def close(self) -> None:
        try:
            self.call(self.core.close(autocommit=True))
        except ByProgram:
            pass
        finally:
            self.dead = True


class OutputWorld(World):
    """The table that all consumers write, and what must hold of it: each record is in it once, in the order of its partition."""

    def __init__(self, seed: int) -> None:
        self.versions: dict[str, int] = {}
        self.rows: dict[Place, list[int]] = {}
        self.excused: dict[Place, set[int]] = {}
        """Records over which a program has sought."""
        super().__init__(seed)

    def start(self) -> None:
        if sum(not each.dead for each in self.consumers) < 4:
            self.consumers.append(OutputConsumer(self, f"c{len(self.consumers)}"))

    def written(self, rows: pa.Table, versions: dict[str, int]) -> None:
        for id, number, offset in zip(*(rows.column(name).to_pylist() for name in ("id", "partition", "offset")), strict=True):
            its = self.rows.setdefault((id, number), [])
            if its and offset <= its[-1]:
                raise Fault(f"offset {offset} of {id}-{number} is written after {its[-1]}")
            its.append(offset)
        self.versions |= versions
        for application, version in versions.items():
            _, id, number = application.split("/")
            if (last := self.rows.get((id, int(number)), [-1])[-1]) != version - 1:
                raise Fault(f"the table says that it has {id}-{number} up to {version}, and has it up to {last + 1}")

    def given(self, one: Consumer, share: Any, offsets: list[int], *, skipped: bool = False) -> None:
        raise AssertionError

    def committed(self, added: list[Position], before: Group, after: Group) -> None:
        """Positions follow the table: those of members are not beyond it, but where a program has sought."""
        self.commits += 1
        for row in added:
            topic = self.topics.get(row.topic)
            if row.partition < 0 or topic is None or topic.id != row.topic_id or row.metadata in self.marks:
                continue
            place = (row.topic_id, row.partition)
            if place not in self.base:
                self.base[place] = 0 if topic.must_begin[row.partition] or self.reset == "earliest" else row.offset
            if missing := self.missing(place, row.offset, topic.starts[row.partition]):
                raise Fault(f"{place} is committed at {row.offset}, and {missing} are not in the table")

    def missing(self, place: Place, end: int, start: int) -> list[int]:
        """The records that must be in the table, and are not."""
        its = Counter(self.rows.get(place, ()))
        return [at for at in range(max(self.base.get(place, 0), start), end) if at not in its and at not in self.excused.get(place, ())]

    def drain(self) -> None:
        super().drain()
        for topic in filter(None, self.topics.values()):
            for number, end in enumerate(topic.ends):
                if missing := self.missing((topic.id, number), end, topic.starts[number]):
                    raise Fault(f"{missing} of {topic.id}-{number} are not in the table in the end")


def output_fault(seed: int, acts: int = 60) -> str | None:
    """The fault that a seed finds; None if none."""
    world = None
    try:
        world = OutputWorld(seed)
        world.run(acts)
    except (Fault, SparklogError, AssertionError, KeyError, AttributeError, OSError, deltalake.exceptions.DeltaError) as error:
        return f"seed {seed}: {type(error).__name__} {error}\n{' '.join(world.acts if world else ())}"
    return None
