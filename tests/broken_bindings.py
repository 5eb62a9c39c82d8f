"""Topics whose slots are bound when they are first used, right ones and ones that break a rule of FORMAT.md. Both readers must agree."""

from typing import Any

from broken_reroutes import WRONG, Routed, crc_of, of_routing, without_of_routing
from broken_rules import Change, changed
from handmade import Topic, batch, featured, given, records

UNBOUND = 65_535
FEATURES = featured("routing.slots", "routing.unbound")
SLOTS = 4096


class Bound(Routed):
    """Such a topic of two partitions, written by hand."""

    def __init__(self, topic: Topic) -> None:
        super().__init__(topic)
        self.topic.config |= {"placement": "on_first_write", "placement.slots": str(SLOTS)}
        self.table = [UNBOUND] * SLOTS
        self.first = list(self.table)
        self.features = FEATURES

    def begin(self, moves: dict[int, list[int]], *added: dict[str, Any]) -> None:
        """Writes the version that begins the topic, and binds these slots."""
        content = self.topic.next(*added, features=FEATURES)
        self._take(content | {"routing": self._routing(moves)})

    def bind(self, moves: dict[int, list[int]], *added: dict[str, Any]) -> dict[str, Any]:
        """The content of a version that binds these slots, by partition."""
        return self.topic.next(*added, features=self.features, routing=self._routing(moves))

    def _routing(self, moves: dict[int, list[int]]) -> dict[str, Any]:
        table = list(self.table)
        for partition, slots in moves.items():
            for slot in slots:
                table[slot] = partition
        return {"binds": True, "moved": [[partition, *slots] for partition, slots in moves.items()], "table": crc_of(table)}

    def take(self, content: dict[str, Any]) -> None:
        """Writes it, and takes it for the newest version."""
        self._take(content)

    def _take(self, content: dict[str, Any]) -> None:
        routing = content["routing"]
        if "binds" not in routing:
            self.put(content)
            return
        self.topic.put(content)
        for partition, *slots in routing["moved"]:
            for slot in slots:
                self.table[slot] = self.first[slot] = partition


def begun(topic: Topic) -> Bound:
    """Slots 0 to 4 are bound."""
    bound = Bound(topic)
    bound.begin({0: [0, 1], 1: [2, 3, 4]}, *(topic.data(batch(records(2)), partition) for partition in (0, 1)))
    return bound


def rerouted(topic: Topic) -> Bound:
    """The same with a third partition that took slot 4, and a slot that is bound after that."""
    bound = begun(topic)
    bound.take(bound.reroute([1, 1, 1], {2: [4]}))
    bound.take(bound.bind({2: [9]}))
    return bound


BEGINS: dict[str, Change] = {
    "no routing": lambda content: content.pop("routing"),
    "no feature unbound": given("features", featured("routing.slots")),
    "no feature slots": given("features", featured("routing.unbound")),
    "no features": given("features", []),
    "placement modulo": lambda content: content["config"].update(placement="modulo"),
    "no placement": lambda content: content["config"].pop("placement"),
    "a re-route": lambda content: (content["routing"].pop("binds"), content["routing"].update(epoch=1, slots=SLOTS, weights=[1, 1])),
    "neither a binding nor a re-route": lambda content: content["routing"].pop("binds"),
    "another checksum": lambda content: of_routing("table", content["routing"]["table"] ^ 1)(content),
    "other slots than the checksum is of": lambda content: content["config"].update({"placement.slots": "8192"}),
    "a slot that is not there": lambda content: content["routing"]["moved"][0].append(4096),
}
"""Changes of the version that begins the topic after which it is corrupt."""

BINDINGS: dict[str, Change] = {
    **{f"binds is {value!r}": of_routing("binds", value) for value in [*WRONG, False] if value is not True},
    **{f"no {name}": without_of_routing(name) for name in ("moved", "table")},
    "a slot that is bound": lambda content: content["routing"].update(moved=[[0, 2]], table=0),
    "a slot that is bound already there": lambda content: content["routing"]["moved"].insert(0, [0, 1]),
    "a slot that is not there": lambda content: content["routing"]["moved"][0].append(4096),
    "a slot beyond all limits": lambda content: content["routing"]["moved"][0].append(2**20),
    "another checksum": lambda content: of_routing("table", content["routing"]["table"] ^ 1)(content),
    "nothing is bound": of_routing("moved", []),
    "it adds a partition": lambda content: content.update(config={"partitions": "3"}, starts=[0, 0, 0], ends=[2, 2, 0]),
    "neither a binding nor a re-route": lambda content: content["routing"].pop("binds"),
    "a re-route of unbound slots": lambda content: (
        content["routing"].pop("binds"),
        content["routing"].update(epoch=1, slots=SLOTS, weights=[1, 1]),
    ),
    "no feature unbound": given("features", featured("routing.slots")),
    "no features": lambda content: (content.update(features=[]), content.pop("routing")),
}
"""Changes of a binding after which it is corrupt."""

RIGHT: dict[str, Change] = {
    "as it should be": lambda content: None,
    "fields that count in a re-route": lambda content: content["routing"].update(epoch=7, slots="many", weights=None),
}
"""Changes of a binding after which it is still right."""

HEADS: dict[str, Change] = {
    "no feature unbound": given("features", featured("routing.slots")),
    "no features": given("features", []),
    "no routing": lambda head: head.pop("routing"),
    "placement modulo": lambda head: head["config"].update(placement="modulo"),
    "no placement": lambda head: head["config"].pop("placement"),
    "a partition that is not there": lambda head: head["routing"]["first"].__setitem__(9, 65_534),
    "a slot that is bound": lambda head: head["routing"]["first"].__setitem__(10, 0),
    "a slot that is unbound": lambda head: head["routing"]["first"].__setitem__(0, UNBOUND),
    "a re-route of an unbound slot": lambda head: head["routing"]["reroutes"][0]["moved"].append([2, 10]),
}
"""Changes of a checkpoint's head after which it is damaged, or does not say what its version says."""


def put_begun(topic: Topic, change: Change) -> None:
    """Writes the version that begins a topic, with a change."""
    bound = Bound(topic)
    _put(topic, changed(bound.bind({0: [0, 1], 1: [2]}), change))


def put_binding(topic: Topic, change: Change) -> None:
    """Writes a binding as version 1, with a change."""
    _put(topic, changed(begun(topic).bind({0: [7], 1: [8, 9]}), change))


def _put(topic: Topic, content: dict[str, Any]) -> None:
    topic.folder.mkdir(parents=True, exist_ok=True)
    topic.version_file(content["version"]).write_bytes(topic.octets(content))
