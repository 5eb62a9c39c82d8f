"""Topics whose keys are placed, moved and rebuilt by random calls, and a model that says where each record is. FORMAT.md annex A."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import mmh3
from logtool import LogTool
from slot_tables import modulo, replan
from verifying import faults

from sparklog import Consumer, Log, Placement
from sparklog.errors import RetryError
from sparklog.groups import OffsetTable
from sparklog.router import place

UNBOUND = -1
Row = tuple[int, str | None, str]
"""Routing epoch, key and value of a record."""


@dataclass
class Model:
    """A topic, from its beginning to its end."""

    binds: bool
    weights: list[int]
    table: list[int] = field(default_factory=list)
    """The partition of each slot; empty as long as the topic has no slots."""
    pending: list[int] | None = None
    shares: list[int] | None = None
    """The shares of partitions in slots that get a partition next, if they are not the weights."""
    epoch: int = 0
    rows: list[list[Row]] = field(default_factory=list)
    """By partition and offset."""
    starts: list[int] = field(default_factory=list)
    order: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """By key, the values in the order in which they were written."""

    @classmethod
    def begun(cls, binds: bool, partitions: int) -> Model:
        model = cls(binds, [1] * partitions, [UNBOUND] * 65_536 if binds else [])
        model.grow()
        return model

    def grow(self) -> None:
        while len(self.rows) < len(self.weights):
            self.rows.append([])
            self.starts.append(0)

    @property
    def open(self) -> list[int]:
        return [partition for partition, weight in enumerate(self.weights) if weight]

    def home(self, key: str) -> int:
        """Where the next record of a key goes, if no re-route comes before it."""
        hashed = mmh3.hash(key) & 0x7FFFFFFF
        if not self.table:
            return hashed % len(self.weights)
        slot = hashed % len(self.table)
        return self.table[slot] if self.table[slot] != UNBOUND else place(slot, self.shares or self.weights)

    def write(self, records: list[tuple[str, str]]) -> None:
        for key, value in records:
            partition = self.home(key)
            if self.table:
                self.table[(mmh3.hash(key) & 0x7FFFFFFF) % len(self.table)] = partition
            self.rows[partition].append((self.epoch, key, value))
            self.order[key].append(value)

    def is_right(self, wanted: list[int], balances: bool) -> bool:
        """Whether a re-route to these weights has nothing to do."""
        owned = [self.table.count(partition) for partition in range(len(wanted))] if self.table else [1] * len(wanted)
        above = [count - sum(owned) * weight // sum(wanted) for count, weight in zip(owned, wanted, strict=True)]
        return self.weights == wanted and not (balances and any(each not in (0, 1) for each in above))

    def reroute(self, wanted: list[int]) -> None:
        table = self.table or modulo(len(self.weights))
        bound = [slot for slot, partition in enumerate(table) if partition != UNBOUND]
        after, _ = replan([table[slot] for slot in bound], {partition: weight for partition, weight in enumerate(wanted) if weight})
        for slot, partition in zip(bound, after, strict=True):
            table[slot] = partition
        self.table, self.weights, self.pending, self.shares = table, list(wanted), None, None
        self.epoch += 1
        self.grow()

    def live(self, partition: int) -> list[tuple[int, Row]]:
        start = self.starts[partition]
        return list(enumerate(self.rows[partition]))[start:]

    def left(self) -> dict[str, list[str]]:
        """By key, the values that are still there, in their order."""
        there = {value for partition in range(len(self.rows)) for _, (_, _, value) in self.live(partition)}
        return {key: its for key, values in self.order.items() if (its := [value for value in values if value in there])}


class World:
    """One random history of a topic, under one name after another. Each act asserts what it finds."""

    def __init__(self, tool: LogTool, folder: Path, seed: int) -> None:
        self.tool, self.random = tool, random.Random(seed)
        self.acts: list[str] = []
        self.topics = self.writes = 0
        self.now = 0.0
        self.placement: Placement | None = None
        self.consumer: Consumer | None = None
        self.is_other = False
        """Whether the topic has begun again under the consumer, which has not said so."""
        self.since: tuple[int, int] | None = None
        """The routing epoch and the topic at the last look of `placement`."""
        self.name, self.model = "t0", Model.begun(self.random.random() < 0.8, self.random.randint(1, 4))
        self.read: dict[str, int] = {}
        """By key, how many of its values the group has read or passed."""
        self.committed: dict[str, int] = {}
        self.write()
        self.table = OffsetTable(tool.root, folder / "offsets")

    # ---- acts

    def run(self, acts: int) -> None:
        kinds = {
            self.write: 10,
            self.poll: 6,
            self.share: 3,
            self.tick: 4,
            self.grow: 2,
            self.close: 2,
            self.weigh: 2,
            self.delete_records: 2,
            self.merge: 2,
            self.restart: 2,
            self.rebuild: 1,
            self.begin_again: 1,
        }
        for _ in range(acts):
            act = self.random.choices(list(kinds), list(kinds.values()))[0]
            self.acts.append(act.__name__)
            act()
            self.check(readers=self.random.random() < 0.2)
        self.check(readers=True)
        while self.poll():
            pass
        assert {key: self.read.get(key, 0) for key in self.model.order} == {key: len(its) for key, its in self.model.order.items()}
        self.end()
        assert faults(self.tool.root, unfinished=True) == []

    def end(self) -> None:
        if self.consumer:
            self.consumer.close()
            self.consumer = None
        self.is_other = False

    def write(self) -> None:
        """Keys of before and new ones; the driver first makes the re-route that waits."""
        self.writes += 1
        records, keys = self.random.randint(1, 40), self.random.choice([0, 3, 10, 30, self.writes * 4])
        placement = "on_first_write" if self.model.binds else "modulo"
        config = {"placement": placement, "partitions": len(self.model.weights)}
        tag = f"w{self.writes}"
        self.tool.run("append", topic=self.name, tag=tag, tasks=1, records=records, keys=keys, **config)
        if self.model.pending:
            self.model.reroute(self.model.pending)
        values = [f"{tag}-0:0:{number:06d}" for number in range(records)]
        if keys:
            self.model.write([(f"k{number % keys}", value) for number, value in enumerate(values)])
            return
        found = Log(self.tool.root)[self.name].read(columns=["partition", "offset", "value"]).to_pylist()
        new = {row["value"].decode(): row for row in found if row["offset"] >= len(self.model.rows[row["partition"]])}
        assert sorted(new) == values
        for value in sorted(new, key=lambda value: new[value]["offset"]):
            assert new[value]["partition"] in self.model.open
            self.model.rows[new[value]["partition"]].append((self.model.epoch, None, value))

    def change(self, what: str, wanted: list[int], *, balances: bool = False, **arguments: object) -> None:
        """A re-route, or one that waits or is taken back."""
        when = self.random.choices(["NOW", "NEXT_WRITE", "NEVER"], [6, 3, 1])[0]
        model = self.model
        self.tool.run("change", topic=self.name, what=what, when=when, **arguments)
        if when == "NEVER" or model.is_right(wanted, balances):
            model.pending = None
        elif when == "NEXT_WRITE":
            model.pending = wanted
        else:
            model.reroute(wanted)

    def grow(self) -> None:
        known = list(self.model.weights)
        if len(known) < 9:
            to = self.random.randint(len(known) + 1, len(known) + 3)
            weights = [weight for weight in known if weight]
            mean = max(1, int(sum(weights) / len(weights) + 0.5))
            self.change("partitions", known + [mean] * (to - len(known)), to=to)

    def close(self) -> None:
        known = list(self.model.weights)
        its = self.model.open
        if len(its) > 1:
            closed = self.random.sample(its, self.random.randint(1, len(its) - 1))
            wanted = [0 if partition in closed else weight for partition, weight in enumerate(known)]
            self.change("close", wanted, partitions=",".join(f"{partition}:0" for partition in closed))

    def weigh(self) -> None:
        known = list(self.model.weights)
        its = self.model.open
        weights = {partition: self.random.randint(1, 5) for partition in self.random.sample(its, self.random.randint(1, len(its)))}
        wanted = [weights.get(partition, weight) for partition, weight in enumerate(known)]
        self.change("weights", wanted, balances=True, weights=_listed(weights))

    def share(self) -> None:
        self.set_shares({partition: self.random.randint(0, 4) for partition in self.model.open} | {self.random.choice(self.model.open): 3})

    def set_shares(self, shares: dict[int, int]) -> None:
        by_partition = [shares.get(partition, 0) for partition in range(len(self.model.weights))]
        value = {"placement.shares": f"{self.model.epoch}:{10**17}:{','.join(map(str, by_partition))}"}
        if not self.model.binds:
            assert self.tool.outcome("change", topic=self.name, what="config", **value) == ["OPTION_VALUE"]
            return
        self.tool.run("change", topic=self.name, what="config", **value)
        self.model.shares = by_partition

    def tick(self) -> None:
        """`Placement` finds shares; it compares with its last look, unless the topic or the routing is another one since."""
        if not self.model.binds:
            return
        if self.placement is None:
            self.placement = Placement(self.tool.root, self.name, group="g", table=self.table.path, clock=lambda: self.now)
        self.now += self.random.choice([1, 10, 100])
        shares = self.placement.look()
        assert list(shares) == self.model.open
        if self.since == (self.model.epoch, self.topics):
            assert min(shares.values()) >= 1
            assert max(shares.values()) == 1_000_000
        else:
            assert shares == {partition: self.model.weights[partition] for partition in self.model.open}
        self.since = (self.model.epoch, self.topics)
        self.set_shares(shares)

    def delete_records(self) -> None:
        partition = self.random.randrange(len(self.model.weights))
        offset = self.random.randint(self.model.starts[partition], len(self.model.rows[partition]))
        self.tool.run("change", topic=self.name, what="records", offsets=f"{partition}:{offset}")
        self.model.starts[partition] = offset

    def merge(self) -> None:
        self.tool.run("merge", topic=self.name)

    def begin_again(self) -> None:
        self.tool.run("change", topic=self.name, what="delete")
        self.topics += 1
        binds = self.random.random() < 0.8
        self.model = Model.begun(binds, self.random.randint(1, 4))
        self.read, self.committed = {}, {}
        if not binds:
            self.placement = None
        self.write()
        if self.consumer:
            self.is_other = True
            assert self.consumer.end_offsets([(self.name, 0)]) == {(self.name, 0): len(self.model.rows[0])}

    def rebuild(self) -> None:
        """The group goes over to the new topic, and reads on there where it was, or before that."""
        old, left, name = self.model, self.model.left(), f"t{self.topics + 1}"
        self.topics += 1
        partitions = self.random.randint(1, 6)
        self.tool.run("change", topic=self.name, what="rebuild", into=name, to=partitions)
        new = Model.begun(old.binds, partitions)
        there: dict[str, tuple[int, int, str | None]] = {}
        table = Log(self.tool.root)[name].read(columns=["partition", "offset", "key", "value"]).to_pylist()
        for row in sorted(table, key=lambda row: (row["partition"], row["offset"])):
            key = row["key"] and row["key"].decode()
            value = row["value"].decode()
            assert row["offset"] == len(new.rows[row["partition"]])
            new.rows[row["partition"]].append((0, key, value))
            there[value] = (row["partition"], row["offset"], key)
        keyless = {value for partition in range(len(old.rows)) for _, (_, key, value) in old.live(partition) if key is None}
        assert {value for value, (_, _, key) in there.items() if key is None} == keyless
        assert there.keys() - keyless == {value for values in left.values() for value in values}
        for key, values in left.items():
            places = [there[value] for value in values]
            assert {its for _, _, its in places} == {key}
            assert {partition for partition, _, _ in places} == {new.home(key)}
            assert places == sorted(places), f"the records of {key} are in another order"
            if new.binds:
                new.table[(mmh3.hash(key) & 0x7FFFFFFF) % len(new.table)] = places[0][0]
            new.order[key] = values
        if self.consumer:
            self.consumer.commit()
            self.committed = dict(self.read)
        self.end()
        its = self.table.positions("g", self.name) if self.table.exists() else []
        if any(each.topic_id == Log(self.tool.root)[self.name].describe()["id"] for each in its):
            self.table.carry("g", self.name, name, dry_run=False)
            self.table.delete("g", topics=self.name)
            passed = {key: set(old.order[key][: self.committed.get(key, 0)]) for key in left}
            at = {each.partition: each.offset for each in self.table.positions("g") if each.topic == name}
            self.committed = {key: sum(there[value][1] < at[there[value][0]] for value in values) for key, values in left.items()}
            for key, count in self.committed.items():
                assert set(left[key][:count]) <= passed[key], f"the group misses records of {key}"
        else:
            self.committed = {}
        self.name, self.model, self.placement, self.since = name, new, None, None
        self.read = dict(self.committed)

    # ---- readers

    def opened(self) -> Consumer:
        """A member that finds at its next poll that its topic is another one; by default that takes it some seconds."""
        if self.consumer is None:
            how = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "poll_interval_ms": 1, "heartbeat_interval_ms": 1}
            self.consumer = Consumer(self.tool.root, self.name, group_id="g", table=self.table, **how)
        return self.consumer

    def poll(self) -> int:
        """Each key comes in order; only what was deleted is left out."""
        most = self.random.choice([1, 7, 50])
        try:
            found = self.opened().poll(0, max_records=most)
        except RetryError as error:
            # A member says once that its topic is another one, unless a call of its program asked for the topic first.
            if error.id != "MEMBER_TOPIC_GONE" or not self.is_other:
                raise
            self.is_other = False
            found = self.opened().poll(0, max_records=most)
        left = self.model.left()
        for partition, records in found.items():
            for record in records:
                epoch_, key, value = self.model.rows[partition.partition][record.offset]
                assert (record.key and record.key.decode(), record.value.decode()) == (key, value), f"{partition}:{record.offset}"
                if key is not None:
                    at, its = self.read.get(key, 0), self.model.order[key]
                    index = its.index(value)
                    assert at <= index, f"value {index} of {key}, in epoch {epoch_}, came after {at - 1}"
                    assert not set(its[at:index]) & set(left[key]), f"value {index} of {key} came before {at}"
                    self.read[key] = index + 1
        if not found:
            assert self.opened().waiting() == {}
            # All was read that is there: what is not was deleted unread.
            for key, its in self.model.order.items():
                assert not set(its[self.read.get(key, 0) :]) & set(left.get(key, ())), key
                self.read[key] = len(its)
        if self.random.random() < 0.4:
            self.opened().commit()
            self.committed = dict(self.read)
        return len(found)

    def restart(self) -> None:
        """Another consumer of the group begins where it last committed."""
        self.end()
        self.read = dict(self.committed)

    def check(self, *, readers: bool) -> None:
        model, topic = self.model, Log(self.tool.root)[self.name]
        table = topic.read(columns=["partition", "offset", "key", "value"]).to_pylist()
        found = {(row["partition"], row["offset"]): (row["key"] and row["key"].decode(), row["value"].decode()) for row in table}
        expected = {(p, offset): (key, value) for p in range(len(model.rows)) for offset, (_, key, value) in model.live(p)}
        assert found == expected
        keys = self.random.sample(range(2 * self.writes + 9), 5)
        for key in (f"k{number}" for number in keys):
            assert topic.partition_for(key) == model.home(key), key
        if not readers:
            return
        by_java = {}
        for line in self.tool.run("read", topic=self.name):
            word, *rest = line.split(" ")
            if word not in ("version", "none"):
                by_java[int(word), int(rest[0])] = rest[1]
        assert by_java == {place: value for place, (_, value) in expected.items()}
        left = model.left()
        for key in (f"k{number}" for number in keys):
            its = topic.read(key=key, columns=["value"]).column(0).to_pylist()
            assert sorted(value.decode() for value in its) == sorted(left.get(key, [])), key
        reroutes = (topic.describe()["routing"] or {"reroutes": []})["reroutes"]

        def epoch(partition: int, offset: int) -> int:
            return sum(partition >= len(each["cut"]) or each["cut"][partition] <= offset for each in reroutes)

        ordered = defaultdict(list)
        for partition, offset in sorted(expected, key=lambda place: (epoch(*place), *place)):
            key, value = expected[partition, offset]
            ordered[key].append(value)
        assert {key: its for key, its in ordered.items() if key is not None} == left


def _listed(numbers: dict[int, int]) -> str:
    return ",".join(f"{partition}:{number}" for partition, number in numbers.items())
