"""Topics whose records have numbers that rise for each key, and a reader that demands this order, over any re-routes."""

import random
from collections import Counter
from pathlib import Path

from broken_bindings import UNBOUND, Bound
from broken_reroutes import Routed
from handmade import Record, Topic, batch
from mmh3 import hash as murmur3
from slot_tables import replan

from sparklog import Consumer

KEYS = [f"key-{number}".encode() for number in range(25)]


class Written(Routed):
    """A topic of two partitions whose records have numbers that rise for each key."""

    def __init__(self, root: Path, seed: int, *, keys: list[bytes] = KEYS) -> None:
        super().__init__(Topic(root, partitions=2))
        self.random = random.Random(seed)
        self.written: Counter[bytes] = Counter()
        self.write(keys=keys)

    @property
    def open(self) -> list[int]:
        """The partitions that are not closed."""
        return [partition for partition, weight in enumerate(self.weights) if weight]

    def write(self, count: int | None = None, *, keys: list[bytes] = KEYS) -> None:
        """Records of these keys, each where it belongs; those of unbound slots bind them."""
        chosen: dict[int, list[Record]] = {}
        placed: dict[int, int] = {}
        for _ in range(count or self.random.randint(1, 60)):
            key = self.random.choice(keys)
            self.written[key] += 1
            home = self.home(key)
            if home == UNBOUND:
                home = placed.setdefault((murmur3(key) & 0x7FFFFFFF) % len(self.table), self.random.choice(self.open))
            chosen.setdefault(home, []).append(Record(b"%d" % self.written[key], key))
        self.commit([self.topic.data(batch(records), partition) for partition, records in sorted(chosen.items())], placed)

    def commit(self, added: list[dict], placed: dict[int, int]) -> None:
        """Writes the version of a write."""
        assert not placed
        self.topic.commit(*added, features=self.features if self.epoch else [])

    def change(self, weights: list[int]) -> None:
        after, moves = replan(self.table, {partition: weight for partition, weight in enumerate(weights) if weight})
        taken: dict[int, list[int]] = {}
        for move in moves:
            taken.setdefault(move.after, []).append(move.slot)
        self.put(self.reroute(weights, {partition: sorted(taken[partition]) for partition in sorted(taken)}))
        assert self.table == after

    def change_somehow(self) -> None:
        weights = list(self.weights)
        match self.random.randrange(4):
            case 0:
                self.change(weights + [1] * self.random.randint(1, 3))
            case 1:
                weights[self.random.choice(self.open)] = self.random.randint(1, 4)
                self.change(weights)
            case 2 if len(self.open) > 1:
                weights[self.random.choice(self.open)] = 0
                self.change(weights)
            case _:
                self.move_somehow()

    def move_somehow(self) -> None:
        """Moves the slots of some keys, as far as these have a partition."""
        slots = {self.slot(key): self.random.choice(self.open) for key in self.random.sample(KEYS, 4)}
        moves: dict[int, list[int]] = {}
        for slot in sorted(slots):
            if self.table[slot] not in (slots[slot], UNBOUND):
                moves.setdefault(slots[slot], []).append(slot)
        self.put(self.reroute(self.weights, {to: moves[to] for to in sorted(moves)}))


class WrittenUnbound(Written, Bound):
    """The same with slots that are bound when they are first used."""

    def commit(self, added: list[dict], placed: dict[int, int]) -> None:
        """Writes the version of a write, which begins the topic if it is the first one."""
        moves = {to: sorted(slot for slot, its in placed.items() if its == to) for to in sorted(set(placed.values()))}
        if not self.topic.versions:
            self.begin(moves, *added)
        elif moves:
            self.take(self.bind(moves, *added))
        else:
            self.topic.commit(*added, features=self.features)

    def place(self, key: bytes, to: int, count: int) -> None:
        """Records of a key, whose slot they bind to this partition."""
        records = [Record(b"%d" % (self.written[key] + number), key) for number in range(1, count + 1)]
        self.written[key] += count
        self.commit([self.topic.data(batch(records), to)], {(murmur3(key) & 0x7FFFFFFF) % len(self.table): to})

    def change_somehow(self) -> None:
        if self.random.random() < 0.6:
            self.move_somehow()
            return
        bound = [slot for slot, home in enumerate(self.table) if home != UNBOUND]
        weights = [*self.weights, *([1] if self.random.random() < 0.3 else [])]
        moves: dict[int, list[int]] = {}
        for slot in sorted(self.random.sample(bound, min(4, len(bound)))):
            to = self.random.randrange(len(weights))
            if to != self.table[slot]:
                moves.setdefault(to, []).append(slot)
        self.put(self.reroute(weights, {to: moves[to] for to in sorted(moves)}))


class Reader:
    """The records that a consumer has returned, which must be in order."""

    def __init__(self) -> None:
        self.read: Counter[bytes] = Counter()

    def take(self, consumer: Consumer, count: int | None = None) -> int:
        found = consumer.poll(max_records=count)
        for records in found.values():
            for record in records:
                key, number = record.key, int(record.value)
                assert number == self.read[key] + 1, f"key {key!r} at {record.partition}:{record.offset}"
                self.read[key] = number
        return sum(map(len, found.values()))


def read_in_order(written: Written) -> None:
    """Reads a topic with a consumer while it is written and re-routed, in some order that its random numbers choose, up to its end."""
    chance = random.Random(written.random.random())
    reader = Reader()
    with Consumer(written.topic.root, "t", auto_offset_reset="earliest", poll_interval_ms=1) as consumer:
        for _ in range(80):
            match chance.randrange(5):
                case 0 | 1:
                    written.write()
                case 2:
                    written.change_somehow()
                case _:
                    reader.take(consumer, chance.choice([None, 1, 7, 30]))
        while reader.take(consumer):
            pass
        assert reader.read == written.written
        assert consumer.waiting() == {}


def out_of_order(kind: type[Written], folder: Path) -> int:
    """How many of six random histories come out of order: a rule was broken on purpose."""
    found = 0
    for seed in range(6):
        try:
            read_in_order(kind(folder / str(seed), seed))
        except AssertionError as disorder:
            found += "key b'key-" in str(disorder)
    return found
