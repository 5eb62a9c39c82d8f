"""Re-routes that each break one rule of FORMAT.md, in versions and in checkpoints, and right ones. Both readers must tell them apart."""

import struct
from typing import Any

import google_crc32c
from broken_rules import Change, changed
from handmade import Topic, batch, featured, given, records
from mmh3 import hash as murmur3

SLOTS = 4096


def crc_of(table: list[int]) -> int:
    """The checksum of a slot table, as section A.2 defines it."""
    return google_crc32c.value(struct.pack(f"<{len(table)}H", *table))


class Routed:
    """A topic of two partitions that is re-routed by hand: its slot table, its routing epoch and what a checkpoint says of it."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.table = [slot % 2 for slot in range(SLOTS)]
        self.first = list(self.table)
        self.epoch = 0
        self.weights = [1, 1]
        self.past: list[dict[str, Any]] = []
        self.features = featured("routing.slots")

    def home(self, key: bytes) -> int:
        """The partition of a key now."""
        return self.table[self.slot(key)]

    def slot(self, key: bytes) -> int:
        return (murmur3(key) & 0x7FFFFFFF) % len(self.table)

    def move(self, keys: dict[bytes, int]) -> dict[str, Any]:
        """The content of a version that moves the slots of keys to these partitions."""
        moves: dict[int, set[int]] = {}
        for key, partition in keys.items():
            moves.setdefault(partition, set()).add(self.slot(key))
        return self.reroute(self.weights, {partition: sorted(moves[partition]) for partition in sorted(moves)})

    def reroute(self, weights: list[int], moves: dict[int, list[int]]) -> dict[str, Any]:
        """The content of a version that moves these slots, by the partition that takes them."""
        last = self.topic.versions[-1]
        added = [0] * (len(weights) - len(last["ends"]))
        table = list(self.table)
        for partition, slots in moves.items():
            for slot in slots:
                table[slot] = partition
        return self.topic.next(
            features=self.features,
            operation="reroute",
            config={"partitions": str(len(weights))} if added else {},
            starts=last["starts"] + added,
            ends=last["ends"] + added,
            routing={
                "epoch": self.epoch + 1,
                "slots": SLOTS,
                "weights": weights,
                "moved": [[partition, *slots] for partition, slots in moves.items()],
                "table": crc_of(table),
            },
        )

    def put(self, content: dict[str, Any]) -> None:
        """Writes it, and takes it for the newest version."""
        ends = self.topic.versions[-1]["ends"] + [0] * (len(content["ends"]) - len(self.topic.versions[-1]["ends"]))
        before = self.past[-1]["cut"] if self.past else []
        cut = before + [0] * (len(ends) - len(before))
        for partition, *slots in content["routing"]["moved"]:
            for each in {partition, *(self.table[slot] for slot in slots)}:
                cut[each] = ends[each]
        self.topic.put(content)
        for partition, *slots in content["routing"]["moved"]:
            for slot in slots:
                self.table[slot] = partition
        self.epoch, self.weights = content["routing"]["epoch"], content["routing"]["weights"]
        self.past.append({"version": content["version"], "cut": cut, "moved": content["routing"]["moved"]})

    def routing(self) -> dict[str, Any]:
        """The field of a checkpoint."""
        return {
            "epoch": self.epoch,
            "slots": SLOTS,
            "weights": self.weights,
            "first": self.first,
            "reroutes": self.past,
            "table": crc_of(self.table),
        }


def begun(topic: Topic) -> Routed:
    """A topic of two partitions with 5 records in each, before its first re-route."""
    for partition in (0, 1):
        topic.append(records(5), partition)
    return Routed(topic)


def grown(topic: Topic) -> Routed:
    """The same after it got a third partition, with records in each, and then partition 1 was closed."""
    routed = begun(topic)
    routed.put(routed.reroute([1, 1, 1], {2: [*range(2731, 4096)]}))
    topic.commit(*(topic.data(batch(records(2)), partition) for partition in range(3)), features=featured("routing.slots"))
    routed.put(routed.reroute([2, 0, 1], {0: [slot for slot in range(SLOTS) if routed.table[slot] == 1]}))
    return routed


def of_routing(name: str, value: Any) -> Change:
    def change(content: dict[str, Any]) -> None:
        content["routing"][name] = value

    return change


def without_of_routing(name: str) -> Change:
    def change(content: dict[str, Any]) -> None:
        del content["routing"][name]

    return change


FIELDS = ["epoch", "slots", "weights", "moved", "table"]
WRONG: list[Any] = [None, True, 1.5, "1", {}, -1, 2**63]
FIRST: dict[str, Change] = {
    **{f"no {name}": without_of_routing(name) for name in FIELDS},
    **{f"{name} is {value!r}": of_routing(name, value) for name in FIELDS for value in WRONG},
    "routing is null": given("routing", None),
    "routing is true": given("routing", True),
    "routing is an array": given("routing", []),
    "routing epoch 0": of_routing("epoch", 0),
    "routing epoch 2 first": of_routing("epoch", 2),
    "no feature": given("features", []),
    "no feature and no routing": lambda content: (given("features", [])(content), content.pop("routing")),
    "partitions without a re-route": lambda content: content.pop("routing"),
    "an end of an added partition without records": given("ends", [5, 5, 1]),
    "a start of an added partition above its end": given("starts", [0, 0, 1]),
    "a start and an end of an added partition without records": lambda content: content.update(starts=[0, 0, 1], ends=[5, 5, 1]),
    "no configuration": given("config", {}),
    "fewer partitions than before": lambda content: content.update(config={"partitions": "1"}, starts=[0], ends=[5]),
    "no slots": of_routing("slots", 0),
    "slots that the partitions do not divide": of_routing("slots", 4097),
    "more slots than can be": of_routing("slots", 65_538),
    "other slots than the checksum is of": of_routing("slots", 8192),
    "weights of two partitions": of_routing("weights", [1, 1]),
    "weights of four partitions": of_routing("weights", [1, 1, 1, 1]),
    "all partitions closed": of_routing("weights", [0, 0, 0]),
    "a negative weight": of_routing("weights", [1, 1, -1]),
    "a weight that is too large": of_routing("weights", [1, 1, 1_000_001]),
    "a weight that is a fraction": of_routing("weights", [1, 1, 1.0]),
    "a partition is closed, and keeps its slots": of_routing("weights", [1, 0, 1]),
    "slots move to a closed partition": of_routing("weights", [1, 1, 0]),
    "another checksum": lambda content: of_routing("table", content["routing"]["table"] ^ 1)(content),
    "a checksum of 33 bits": of_routing("table", 2**32),
    "nothing moves": of_routing("moved", []),
    "an entry that is a number": of_routing("moved", [2]),
    "an entry without slots": of_routing("moved", [[2]]),
    "an empty entry": of_routing("moved", [[]]),
    "slots of no partition": lambda content: content["routing"]["moved"][0].__setitem__(0, 3),
    "slots of a negative partition": lambda content: content["routing"]["moved"][0].__setitem__(0, -1),
    "a slot twice": lambda content: content["routing"]["moved"][0].append(4095),
    "a slot in two entries": lambda content: content["routing"]["moved"].insert(0, [1, 4094]),
    "slots that fall": lambda content: content["routing"]["moved"][0].append(2),
    "a slot that is not there": lambda content: content["routing"]["moved"][0].append(4096),
    "a negative slot": lambda content: content["routing"]["moved"][0].insert(1, -1),
    "a slot that is a fraction": lambda content: content["routing"]["moved"][0].insert(1, 1.0),
    "a slot that is there already": lambda content: content["routing"]["moved"].insert(0, [1, 1]),
    "partitions that fall": lambda content: content["routing"]["moved"].append([1, 0]),
    "a partition twice": lambda content: content["routing"].update(moved=[[2, 2731], [2, *range(2732, 4096)]]),
    "other partitions in the configuration": given("config", {"partitions": "4"}),
}
"""Changes of a first re-route after which it is corrupt."""

SECOND: dict[str, Change] = {
    "no feature": given("features", []),
    "no feature and no routing": lambda content: (given("features", [])(content), content.pop("routing")),
    "the same routing epoch": of_routing("epoch", 2),
    "a routing epoch is left out": of_routing("epoch", 4),
    "another number of slots": of_routing("slots", 8192),
    "a closed partition is opened": of_routing("weights", [2, 1, 1, 1]),
    "partitions without a re-route": lambda content: content.pop("routing"),
}
"""Changes of a third re-route, which adds a partition where partition 1 is closed, after which it is corrupt."""

RIGHT: dict[str, Change] = {
    "as it should be": lambda content: None,
    "an unknown field": lambda content: content["routing"].update(more=[{}]),
    "an unknown name of the operation": given("operation", "anything"),
    "the largest weight": of_routing("weights", [1_000_000, 1, 1]),
}
"""Changes of a first re-route after which it is still right."""

EPOCHS = [*range(3), 2**31 - 1, 9_999_999_999]
NUMBERS = ["1,0", "1,0,1", "0,1000000", "0,0", "1", "1,1", ",".join(["1"] * 10_000), ",".join(["1"] * 10_001)]
WISHES: dict[str, str] = {
    "none": "routing.pending.weights",
    **{f"{epoch}:{numbers}": "routing.pending.weights" for epoch in EPOCHS for numbers in NUMBERS},
    **{f"{epoch}:{until}:{numbers}": "placement.shares" for epoch in EPOCHS for until in (0, 9, 10**18 - 1) for numbers in NUMBERS},
}
"""Values of the keys that ask for a routing. Each is right, and few have an effect on any topic."""
NO_WISHES = ["", "None", "1,1", ":1,1", "0:", "0:1,", "0:,1", "00:1,1", "-1:1,1", "0:01,1", "0:-1,1", "0:1000001", "0:1.0", "0: 1", "0:1\n"]
NO_WISHES += ["0:1;1", "0:٣", "x:1", "0:1:1:1", "10000000000:1"]
"""Values of a later release for either key; of `placement.shares`, with a time in the middle."""
CONFIGS: dict[str, Change] = {
    **{f"pending {value[:20]!r}": given("config", {"routing.pending.weights": value}) for value in NO_WISHES},
    **{f"shares {value[:20]!r}": given("config", {"placement.shares": value.replace(":", ":1:", 1)}) for value in NO_WISHES},
    "shares without a time": given("config", {"placement.shares": "0:1,1"}),
    "weights with a time": given("config", {"routing.pending.weights": "0:9:1,1"}),
    "shares with a time before 1970": given("config", {"placement.shares": "0:-1:1,1"}),
    "shares with a time that is too late": given("config", {"placement.shares": "0:1000000000000000000:1,1"}),
}
"""Changes of an alteration to values that bind writers alone, and that no program of today knows."""

HEADS: dict[str, Change] = {
    **{f"no {name}": without_of_routing(name) for name in ("epoch", "slots", "weights", "first", "reroutes", "table")},
    **{f"{name} is {value!r}": of_routing(name, value) for name in ("epoch", "slots", "weights", "first", "table") for value in WRONG},
    "routing without the feature": given("features", []),
    "no routing": lambda head: head.pop("routing"),
    "routing is null": given("routing", None),
    "fewer re-routes had": of_routing("epoch", 1),
    "a slot less in the first table": lambda head: head["routing"]["first"].pop(),
    "a partition that is not there in the first table": lambda head: head["routing"]["first"].__setitem__(0, 3),
    "another checksum": lambda head: of_routing("table", head["routing"]["table"] ^ 1)(head),
    "versions that fall": lambda head: head["routing"]["reroutes"].reverse(),
    "a version that is to come": lambda head: head["routing"]["reroutes"][1].update(version=9),
    "a cut that falls": lambda head: head["routing"]["reroutes"][1]["cut"].__setitem__(0, 4),
    "a cut above the end": lambda head: head["routing"]["reroutes"][1]["cut"].__setitem__(0, 8),
    "a cut of more partitions": lambda head: head["routing"]["reroutes"][1]["cut"].append(0),
    "a cut of fewer partitions than the one before": lambda head: head["routing"]["reroutes"][1]["cut"].pop(),
    "a slot moves twice": lambda head: head["routing"]["reroutes"][0]["moved"][0].append(4095),
    "a slot moves where it is": lambda head: head["routing"]["reroutes"][0]["moved"].insert(0, [1, 1]),
    "a closed partition keeps slots": of_routing("weights", [2, 1, 0]),
    "weights of two partitions": of_routing("weights", [2, 1]),
    "all partitions closed": of_routing("weights", [0, 0, 0]),
}
"""Changes of a checkpoint's head after which it is damaged, or does not say what its version says."""


def rerouted(topic: Topic, change: Change) -> None:
    """Writes a first re-route as version 2, with a change."""
    routed = begun(topic)
    _put(topic, changed(routed.reroute([1, 1, 1], {2: [*range(2731, 4096)]}), change))


def altered(topic: Topic, change: Change) -> None:
    """Writes an alteration as version 2, with a change."""
    begun(topic)
    _put(topic, changed(topic.next(operation="alter"), change))


def rerouted_again(topic: Topic, change: Change) -> None:
    """Writes a third re-route, which adds a partition, with a change."""
    routed = grown(topic)
    _put(topic, changed(routed.reroute([2, 0, 1, 1], {3: [0, 2, 4]}), change))


def _put(topic: Topic, content: dict[str, Any]) -> None:

    topic.version_file(content["version"]).write_bytes(topic.octets(content))
