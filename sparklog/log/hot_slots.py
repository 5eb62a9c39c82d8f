"""The busiest slots of each partition, in a sample of its newest records."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from sparklog.log.keys import routing_of
from sparklog.log.newest_keys import newest_keys
from sparklog.ondisk.routing import UNBOUND
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog
from sparklog.router import Router
from sparklog.show.display import SHOWN, Display, Displayed, counted, field, readable

PARTITIONS_MAX = 32
"""The most partitions of a sample."""
_BYTES = 1 << 20
"""The bytes of stored batches that the sample of a partition is meant to have."""
_KEYS = 3
"""So many keys of a slot are named."""
_KEY_SHOWN = 40


@dataclass(frozen=True)
class HotSlot:
    """A slot of a partition, and how many of the partition's newest records have keys in it.

    `share` is its part of the records of the sample that have keys in the partition's slots: above 0 and at most 1. `keys` is the number
    of different keys; `busiest` has the most frequent of them, at most three, each with its records.
    """

    partition: int
    slot: int
    records: int
    share: float
    keys: int
    busiest: list[tuple[bytes, int]]


class HotSlots(Displayed, list[HotSlot]):
    """The busiest slots of a sample, by partition, the busiest first. In a terminal and in a notebook the list shows itself as a table.

    `sampled` says of each partition that was read how many records of the sample have keys in its slots; `partitions` how many have slots.
    """

    def __init__(self, topic: str, partitions: int) -> None:
        super().__init__()
        self.topic = topic
        self.partitions = partitions
        self.sampled: dict[int, int] = {}

    @classmethod
    def of(cls, log: TopicLog, state: State, most: int, records: int) -> HotSlots:
        """At most `most` slots of each partition. `Topic.hot_slots` describes the sample."""
        routing = routing_of(state)
        firsts = {each: _since_reroute(state, each) for each in set(routing.table) - {UNBOUND}}
        found, router = cls(state.topic, len(firsts)), Router(state.partitions, state.config["partitioner"], routing.table)
        for partition in sorted(sorted(firsts, key=lambda each: (firsts[each] - state.ends[each], each))[:PARTITIONS_MAX]):
            keys = newest_keys(log, state, partition, firsts[partition], _BYTES, records)
            slots: dict[int, Counter[bytes]] = {}
            for key, count in keys.items():
                slot = router.slot(key)
                if routing.table[slot] == partition:  # elsewhere it is where a caller put it
                    slots.setdefault(slot, Counter())[key] = count
            found._add(partition, slots, most)
        return found

    def _add(self, partition: int, slots: dict[int, Counter[bytes]], most: int) -> None:
        sums = {slot: keys.total() for slot, keys in slots.items()}
        self.sampled[partition] = total = sum(sums.values())
        for slot in sorted(sums, key=lambda each: (-sums[each], each))[:most]:
            busiest = sorted(slots[slot].items(), key=lambda each: (-each[1], each[0]))[:_KEYS]
            self.append(HotSlot(partition, slot, sums[slot], sums[slot] / total, len(slots[slot]), busiest))

    def as_dict(self) -> dict[str, Any]:
        """The figures as JSON types. A key that is not UTF-8 is in a field `key_base64`."""
        return {
            "partitions": self.partitions,
            "sampled": [{"partition": each, "records": count} for each, count in self.sampled.items()],
            "slots": [
                {
                    **vars(each),
                    "share": round(each.share, 4),
                    "busiest": [{**field("key", key), "records": count} for key, count in each.busiest],
                }
                for each in self
            ],
        }

    def _display(self) -> Display:
        return self.display()

    def display(self, most: int | None = SHOWN) -> Display:
        """The table of the first ones, at most that many."""
        about = [f"A sample: {counted(sum(self.sampled.values()), 'record')} with keys, the newest of each partition since its last cut"]
        if len(self.sampled) < self.partitions:
            about.append(f"of the {len(self.sampled)} partitions with the most of these; {self.partitions:,} have slots")
        rows: list[list[object]] = [
            [
                *(each.partition, each.slot, each.records, f"{each.share:.1%}", each.keys),
                ", ".join(f"{readable(key, _KEY_SHOWN)} ({count:,})" for key, count in each.busiest),
            ]
            for each in self[:most]
        ]
        columns = ["partition", "slot", "records", "share", "different keys", "busiest keys"]
        return Display(f"Topic {self.topic}: busiest slots", about, columns, rows, more=len(self) - len(rows))


def _since_reroute(state: State, partition: int) -> int:
    """The first offset of a partition that the topic's slot table of now has routed."""
    past = state.routing.past if state.routing else ()
    return max(state.starts[partition], past[-1].cut_of(partition) if past else 0)
