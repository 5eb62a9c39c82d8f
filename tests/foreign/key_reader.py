"""A key reader, written from docs/FORMAT.md alone: it has no code of sparklog. The numbers in comments are sections of that page."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any, ClassVar

import google_crc32c
from foreign.batches import Row
from foreign.fields import Test, array, corrupt, decimal, fits, optional, pattern, whole
from foreign.record_reader import RecordReader, State, unknown_of

UNBOUND = 65_535
SLOTS_MAX = 1 << 20
EPOCH = whole(0, 2**31 - 1)
SLOTS = {"slots": whole(1, SLOTS_MAX), "weights": array(whole(0, 1_000_000))}
MOVED = {"moved": array(lambda entry: array(whole())(entry) and len(entry) >= 2), "table": whole(0, 2**32 - 1)}
BINDING = {"binds": lambda value: value is True, **MOVED}
REROUTE = {"epoch": EPOCH, **SLOTS, **MOVED}
IN_CHECKPOINT = {
    "epoch": EPOCH,
    **SLOTS,
    "table": MOVED["table"],
    "first": array(whole(0, UNBOUND)),
    "reroutes": array(lambda value: fits(value, {"version": whole(), "cut": array(whole()), "moved": MOVED["moved"]})),
}


def murmur3(key: bytes) -> int:
    """MurmurHash3 x86 32-bit with seed 0, without a sign."""
    low, found = 0xFFFFFFFF, 0
    for at in range(0, len(key), 4):
        word = int.from_bytes(key[at : at + 4], "little") * 0xCC9E2D51 & low
        found ^= (word << 15 & low | word >> 17) * 0x1B873593 & low
        if at + 4 <= len(key):
            found = ((found << 13 | found >> 19) & low) * 5 + 0xE6546B64 & low
    found ^= len(key)
    found = (found ^ found >> 16) * 0x85EBCA6B & low
    found = (found ^ found >> 13) * 0xC2B2AE35 & low
    return found ^ found >> 16


def murmur2(key: bytes) -> int:
    """Kafka's murmur2, without a sign."""
    low, factor, rest = 0xFFFFFFFF, 0x5BD1E995, len(key) % 4
    found = 0x9747B28C ^ len(key)
    for (word,) in struct.iter_unpack("<I", key[: len(key) - rest]):
        word = word * factor & low
        found = (found * factor ^ (word ^ word >> 24) * factor) & low
    if rest:
        found = (found ^ int.from_bytes(key[-rest:], "little")) * factor & low
    found = (found ^ found >> 13) * factor & low
    return found ^ found >> 15


HASHES = {"murmur3": murmur3, "murmur2": murmur2}


@dataclass
class Reroute:
    version: int
    cut: list[int]
    moved: list[list[int]]


@dataclass
class Routing:
    """A.3: what a state of a topic with slots has."""

    epoch: int
    weights: list[int]
    table: list[int]
    first: list[int]
    """The slot table before the oldest re-route."""
    reroutes: list[Reroute] = field(default_factory=list)

    def epoch_of(self, partition: int, offset: int) -> int:
        """The routing epoch of a record."""
        passed = [n for n, each in enumerate(self.reroutes, 1) if (each.cut[partition] if partition < len(each.cut) else 0) <= offset]
        return self.epoch - len(self.reroutes) + max(passed, default=0)

    def home(self, slot: int, epoch: int) -> int:
        """The partition of a slot in a routing epoch."""
        found = self.first[slot]
        for each in self.reroutes[: epoch - self.epoch + len(self.reroutes)]:
            for partition, *slots in each.moved:
                if slot in slots:
                    found = partition
        return found


def table_sum(table: list[int]) -> int:
    return google_crc32c.value(struct.pack(f"<{len(table)}H", *table))


class KeyReader(RecordReader):
    """Finds the records of a key, and returns the records of keys in the order of their writes."""

    FREE: ClassVar[tuple[str, ...]] = ("writers",)
    WORDS: ClassVar[dict[str, Test]] = {
        "partitioner": pattern("murmur3|murmur2"),
        "placement": optional(pattern("modulo|on_first_write")),
        "placement.slots": optional(decimal(4096, SLOTS_MAX)),
    }

    def partition_for(self, state: State, key: bytes) -> int:
        """13: where a key belongs; 65535 if its slot is unbound."""
        if state.routing is None:
            return self.hash(state, key) % len(state.ends)
        return int(state.routing.table[self.hash(state, key) % len(state.routing.table)])

    def hash(self, state: State, key: bytes) -> int:
        return HASHES[state.config["partitioner"]](key) & 0x7FFFFFFF

    def by_key(self, topic: str, key: bytes) -> list[Row]:
        """The records of a key, in the order of their writes. It skips segments by `routed` (A.8)."""
        state = self.newest(topic)
        hash, found = self.hash(state, key), []
        for partition, live in enumerate(state.live):
            for segment in live:
                if segment["routed"] and self._home(state, hash, segment) != partition:
                    continue
                inside = range(state.starts[partition], state.ends[partition])
                found += [row for row in self.segment(topic, state, segment) if row.key == key and row.offset in inside]
        return self._sorted(state, found)

    def in_order(self, topic: str) -> list[Row]:
        """All records; those of each key are in the order of their writes (A.9)."""
        return self._sorted(self.newest(topic), self.read(topic))

    def _sorted(self, state: State, rows: list[Row]) -> list[Row]:
        routing = state.routing
        return sorted(rows, key=lambda row: (routing.epoch_of(row.partition, row.offset) if routing else 0, row.offset, row.partition))

    def _home(self, state: State, hash: int, segment: dict[str, Any]) -> int:
        routing = state.routing
        if routing is None:
            return hash % len(state.ends)
        return int(routing.home(hash % len(routing.table), routing.epoch_of(segment["partition"], segment["base"])))

    def _routes(self, state: State) -> bool:
        """5.1, 5.2: whether a reader that keeps annex A uses the routing of a state."""
        known = not unknown_of(state.features, KeyReader.FREE)
        return known and all(right(state.config.get(key)) for key, right in KeyReader.WORDS.items())

    # A.2

    def version(self, octets: bytes, topic: str, number: int) -> dict[str, Any]:
        content = super().version(octets, topic, number)
        if "routing" in content and _have_slots({each["name"]: each["binds"] for each in content["features"]}):
            routing = content["routing"]
            binds = isinstance(routing, dict) and "binds" in routing
            corrupt(fits(routing, BINDING if binds else REROUTE), "A.2: a field")
            slots, partitions = (SLOTS_MAX, 10_000) if binds else (routing["slots"], len(routing["weights"]))
            corrupt(binds or (partitions <= 10_000 and any(routing["weights"])), "A.2: weights")
            check_moved(routing["moved"], slots, partitions)
        return content

    # A.3

    def replayed(self, before: State, content: dict[str, Any], hash: str) -> State:
        after = super().replayed(before, content, hash)
        if after.deleted:
            return after
        if not self._routes(after):
            return after
        begins, partitions = before.deleted, len(after.ends)
        routing = content.get("routing") if _have_slots(after.features) else None
        binds = routing is not None and "binds" in routing
        on_first_write = after.config.get("placement") == "on_first_write"
        corrupt(not begins or (binds if on_first_write else routing is None), "A.3, 1")
        corrupt(begins or partitions == len(before.ends) or (routing is not None and not binds), "A.3, 4")
        old = None if begins else before.routing
        if routing is not None:
            if begins:
                slots = int(after.config.get("placement.slots", "65536"))
                old = Routing(0, [1] * partitions, [UNBOUND] * slots, [UNBOUND] * slots)
            elif old is None:
                corrupt(not binds, "A.3, 3: a binding without slots")
                corrupt(routing["slots"] % len(before.ends) == 0, "A.3, 2")
                table = [slot % len(before.ends) for slot in range(routing["slots"])]
                old = Routing(0, [], table, table)
            assert old is not None
            after.routing = self._bound(old, routing) if binds else self._rerouted(old, before, content, partitions)
            corrupt(table_sum(after.routing.table) == routing["table"], "A.3, 3: table")
            corrupt(all(each == UNBOUND or after.routing.weights[each] for each in set(after.routing.table)), "A.3, 3: weight 0")
        elif old is not None:
            after.routing = Routing(old.epoch, old.weights, old.table, old.first, old.reroutes)
        self._check_placement(after)
        if after.routing is not None:
            _check_numbers(after.routing)
            _forget(after)
        return after

    def _bound(self, old: Routing, routing: dict[str, Any]) -> Routing:
        new = Routing(old.epoch, old.weights, list(old.table), list(old.first), old.reroutes)
        for partition, *slots in routing["moved"]:
            corrupt(partition < len(new.weights), "A.2: a partition without a weight")
            for slot in slots:
                corrupt(slot < len(new.table) and new.table[slot] == UNBOUND, "A.3, 3: it is bound")
                new.table[slot] = new.first[slot] = partition
        return new

    def _rerouted(self, old: Routing, before: State, content: dict[str, Any], partitions: int) -> Routing:
        routing = content["routing"]
        corrupt(routing["epoch"] == old.epoch + 1 and routing["slots"] == len(old.table), "A.3, 3: epoch or slots")
        weights, table = routing["weights"], list(old.table)
        corrupt(len(weights) == partitions, "A.2: weights")
        corrupt(all(new == 0 for was, new in zip(old.weights, weights, strict=False) if was == 0), "A.3, 3: a closed partition")
        touched = _moved(table, routing["moved"])
        newest = old.reroutes[-1].cut if old.reroutes else []
        cut = newest + [0] * (partitions - len(newest))
        for partition in touched:
            cut[partition] = before.ends[partition] if partition < len(before.ends) else 0
        reroute = Reroute(content["version"], cut, routing["moved"])
        return Routing(routing["epoch"], weights, table, old.first, [*old.reroutes, reroute])

    def _check_placement(self, state: State) -> None:
        """A.3, 5."""
        unbound = state.config.get("placement") == "on_first_write"
        corrupt(state.routing is None or "routing.slots" in state.features, "A.3, 5: slots without the feature")
        corrupt(not unbound or state.routing is not None, "A.3, 5: no slots")
        corrupt(("routing.unbound" in state.features) == unbound, "A.3, 5: routing.unbound")

    # A.4

    def _checkpoint(self, topic: str, name: str, number: int) -> tuple[dict[str, Any], State]:
        head, state = super()._checkpoint(topic, name, number)
        if state.deleted or not self._routes(state):
            return head, state
        if "routing" in head and _have_slots(state.features):
            routing = head["routing"]
            corrupt(fits(routing, IN_CHECKPOINT), "A.4: a field")
            reroutes = [Reroute(each["version"], each["cut"], each["moved"]) for each in routing["reroutes"]]
            slots, partitions = routing["slots"], len(state.ends)
            corrupt(len(routing["first"]) == slots and len(routing["weights"]) == partitions and any(routing["weights"]), "A.4: lengths")
            corrupt(len(reroutes) <= routing["epoch"], "A.4: more re-routes than the epoch")
            versions = [each.version for each in reroutes]
            corrupt(versions == sorted(set(versions)) and (not versions or versions[-1] <= number), "A.4: versions of re-routes")
            table = list(routing["first"])
            cuts = [*(each.cut for each in reroutes), state.ends]
            for each, later in zip(reroutes, cuts[1:], strict=True):
                corrupt(len(each.cut) <= len(later) and all(map(int.__le__, each.cut, later)), "A.4: a cut")
                check_moved(each.moved, slots, len(each.cut))
                _moved(table, each.moved)
            corrupt(all(each == UNBOUND or each < partitions for each in set(routing["first"])), "A.4: first")
            corrupt(all(each == UNBOUND or routing["weights"][each] for each in set(table)), "A.3, 3: weight 0")
            corrupt(table_sum(table) == routing["table"], "A.4: table")
            corrupt(UNBOUND not in table or "routing.unbound" in state.features, "A.4: an unbound slot")
            state.routing = Routing(routing["epoch"], routing["weights"], table, routing["first"], reroutes)
            _check_numbers(state.routing)
            _forget(state)
        self._check_placement(state)
        return head, state

    def _compare(self, head: dict[str, Any], state: State, content: dict[str, Any]) -> None:
        super()._compare(head, state, content)
        if "routing" in content and _have_slots(state.features) and self._routes(state):
            names = ["table"] if "binds" in content["routing"] else ["table", "epoch", "slots", "weights"]
            corrupt("routing" in head and all(head["routing"][name] == content["routing"][name] for name in names), "A.4: it differs")


def _have_slots(features: dict[str, str]) -> bool:
    return "routing.slots" in features and not unknown_of(features, KeyReader.FREE)


def check_moved(moved: list[list[int]], slots: int, partitions: int) -> None:
    """A.2: partitions rise, and slots within one; no slot is in two entries."""
    to = [partition for partition, *_ in moved]
    corrupt(to == sorted(set(to)) and all(each < partitions for each in to), "A.2: partitions in moved")
    corrupt(all(entry[1:] == sorted(set(entry[1:])) and entry[-1] < slots for entry in moved), "A.2: slots in moved")
    every = [slot for entry in moved for slot in entry[1:]]
    corrupt(len(every) == len(set(every)), "A.2: a slot twice")


def _moved(table: list[int], moved: list[list[int]]) -> set[int]:
    """Moves slots in the table, and returns the partitions that give or get slots."""
    touched = set()
    for partition, *slots in moved:
        for slot in slots:
            corrupt(table[slot] not in (UNBOUND, partition), "A.3, 3: a slot that is unbound, or there already")
            touched |= {partition, table[slot]}
            table[slot] = partition
    return touched


def _check_numbers(routing: Routing) -> None:
    """A.3."""
    corrupt(sum(len(each.cut) + sum(map(len, each.moved)) for each in routing.reroutes) <= 2_000_000, "A.3: too many numbers")


def _forget(state: State) -> None:
    """A.3: the oldest re-route is forgotten as long as its cut is at or below the log start offset of every partition."""
    routing = state.routing
    while routing.reroutes and all(cut <= start for cut, start in zip(routing.reroutes[0].cut, state.starts, strict=False)):
        oldest, *routing.reroutes = routing.reroutes
        routing.first = list(routing.first)
        _moved(routing.first, oldest.moved)
