"""Topics with pinned keys, right ones and ones that break a rule of FORMAT.md, in versions and in checkpoints. Both readers must agree."""

import json
from typing import Any

from broken_bindings import UNBOUND as UNBOUND_SLOT
from broken_bindings import Bound
from broken_bindings import begun as bound
from broken_reroutes import SLOTS, WRONG, Routed, begun, crc_of, of_routing
from broken_rules import Change, changed
from handmade import Topic, batch, given, records, summed

LONGEST = 1024
MOST = 10_000
LONG = 1023
AT_ONCE = 7751
"""As many keys of that length can be pinned by the first re-route of two partitions: 2 + 7,751 · 258 numbers, of two million."""


def pinned(topic: Topic) -> Routed:
    """A topic of two partitions with five pinned keys, which was re-routed to a third partition; version 5 is the newest."""
    routed = begun(topic)
    routed.put(routed.pin({b"": 0, b"\0": 1, b"a": 1, b"ab": 0}))
    topic.commit(*(topic.data(batch(records(2)), partition) for partition in (0, 1)), features=routed.features)
    routed.put(routed.reroute([1, 1, 1], {2: [*range(2731, 4096)]}))
    routed.put(routed.pin({b"\0": None, b"a": 0, b"z": 1, b"\xff": 2}))
    return routed


def pinned_unbound(topic: Topic) -> Bound:
    """A topic whose slots are bound when they are first used, with a pinned key; version 1 is the newest."""
    its = bound(topic)
    its.take(its.pin({b"a": 1}))
    return its


def of_pins(*entries: Any) -> Change:
    return of_routing("pins", list(entries))


def without_features(*names: str) -> Change:
    return lambda content: content.update(features=[name for name in content["features"] if name not in names])


def _keys(count: int, size: int = 3) -> list[list[Any]]:
    return [[number.to_bytes(size, "big").hex(), 1] for number in range(count)]


def _closing(content: dict[str, Any]) -> None:
    """It closes partition 2, whose slots go to partition 0."""
    table = [slot % 2 if slot < 2731 else 0 for slot in range(SLOTS)]
    content["routing"].update(weights=[1, 1, 0], moved=[[0, *range(2731, SLOTS)]], table=crc_of(table))


def _filling(content: dict[str, Any]) -> None:
    """It is no binding, but a fill."""
    del content["routing"]["binds"]
    content["routing"].update(moved=[], table=content["before"], fill={"until": 1, "shares": [1, 1]})


def _empty(content: dict[str, Any]) -> None:
    """It begins a topic without a slot that is bound."""
    del content["routing"]["binds"]
    content["features"] = ["slots", "unbound", "pins"]
    content["routing"].update(moved=[], table=crc_of([UNBOUND_SLOT] * SLOTS))


def _forgotten(count: int) -> Change:
    """The head of a checkpoint has `count` pins, and no re-route."""

    def change(head: dict[str, Any]) -> None:
        first = [slot % 2 if slot < 2731 else 2 for slot in range(SLOTS)]
        head["routing"].update(first=first, reroutes=[], pins=_keys(count))

    return change


CHANGES: dict[str, Change] = {
    **{f"pins are {value!r}": of_routing("pins", value) for value in [*WRONG, []]},
    **{f"an entry is {value!r}": of_pins(value) for value in [*WRONG, [], ["61"], ["61", 1, 1], "61"]},
    **{f"a key is {value!r}": of_pins([value, 1]) for value in [*WRONG, [], "6", "616", "6G", "0A", "0x61", "61 ", " 61", "é0", "٠٠"]},
    **{f"a partition is {value!r}": of_pins(["61", value]) for value in [*WRONG, [], 1.0, False, 3, 65_535] if value is not None},
    "a key of too many bytes": of_pins(["61" * (LONGEST + 1), 1]),
    "a key twice": of_pins(["61", 1], ["61", 1]),
    "a key that gets a pin and loses it": of_pins(["61", 1], ["61", None]),
    "keys that fall": of_pins(["62", 1], ["61", 1]),
    "keys that fall as bytes without a sign": of_pins(["ff", 1], ["7f", 1]),
    "a key after one that it begins": of_pins(["6161", 1], ["61", 1]),
    "a note": lambda content: content["routing"].update(asked=[1, 1], epoch=0),
    "an empty note": of_routing("asked", []),
    "a binding": of_routing("binds", True),
    "a fill": of_routing("fill", {"until": 1, "shares": [1, 1]}),
    "a closed partition": lambda content: content["routing"].update(
        weights=[1, 0], moved=[[0, *range(1, SLOTS, 2)]], table=crc_of([0] * SLOTS)
    ),
    "the end of a pin that is not there": of_pins(["61", None]),
    "more pins than can be": of_pins(*_keys(MOST + 1)),
    "more entries than can change": of_pins(*_keys(2 * MOST + 1)),
    "more numbers than can be": of_pins(*_keys(AT_ONCE + 1, LONG)),
    "the same routing epoch": of_routing("epoch", 0),
    "another checksum": lambda content: of_routing("table", content["routing"]["table"] ^ 1)(content),
}
"""Changes of the first re-route of a topic, which pins `a` to partition 1, after which it is corrupt."""

RIGHT: dict[str, Change] = {
    "as it should be": lambda content: None,
    "the empty key": of_pins(["", 0]),
    "the longest key": of_pins(["ff" * LONGEST, 1]),
    "keys that rise as bytes without a sign": of_pins(["", 1], ["00", 1], ["0000", 1], ["7f", 1], ["80", 1], ["ff", 1]),
    "as many as there can be": of_pins(*_keys(MOST)),
    "as many numbers as there can be": of_pins(*_keys(AT_ONCE, LONG)),
    "an unknown field": of_routing("more", [["61"]]),
    "slots move, too": lambda content: content["routing"].update(
        moved=[[1, 0]], table=crc_of([1, *(slot % 2 for slot in range(1, SLOTS))])
    ),
    "no pins": lambda content: content["routing"].pop("pins"),
    "no feature pins: the field has no meaning": lambda content: content.update(features=["slots"]) or of_routing("pins", "any")(content),
    "no feature slots: the field has no meaning": lambda content: content.update(features=["pins"], routing=1),
}
"""Changes of that re-route after which it is right."""

LATER: dict[str, Change] = {
    "no feature pins": without_features("pins"),
    "no feature pins and no pins": lambda content: (without_features("pins")(content), content["routing"].pop("pins")),
    "no feature pins in a write": lambda content: (without_features("pins")(content), content.pop("routing")),
    "a key is pinned where it is": of_pins(["6162", 0]),
    "the end of a pin that has ended": of_pins(["00", None]),
    "the end of a pin that is not there": of_pins(["6161", None]),
    "more pins than can be": of_pins(*_keys(MOST - 4)),
    "a partition is closed to which a key is pinned": lambda content: (_closing(content), of_pins(["61", 1])(content)),
    "a note asks to close a partition to which a key is pinned": lambda content: (
        content["routing"].pop("pins"),
        content["routing"].update(asked=[1, 1, 0, 1], epoch=3),
    ),
}
"""Changes of the re-route after `pinned`, after which it is corrupt."""

LATER_RIGHT: dict[str, Change] = {
    "as it should be": lambda content: None,
    "a pin that has ended begins again": of_pins(["00", 1]),
    "all pins end": of_pins(["", None], ["61", None], ["6162", None], ["7a", None], ["ff", None]),
    "a write": lambda content: content.pop("routing"),
    "as many as there can be": of_pins(*_keys(MOST - 5)),
    "a partition is closed whose pins end": lambda content: (_closing(content), of_pins(["ff", None])(content)),
    "a note closes a partition without pins": lambda content: (
        content["routing"].pop("pins"),
        content["routing"].update(asked=[1, 1, 1, 0], epoch=3),
    ),
}
"""Changes of the re-route after `pinned`, after which it is right."""

UNBOUND_RIGHT: dict[str, Change] = {"as it should be": lambda content: None, "a fill": _filling}
"""Changes of a binding after `pinned_unbound`, after which it is right."""

UNBOUND: dict[str, Change] = {
    "a binding without the feature": without_features("pins"),
    "a write without the feature": lambda content: (without_features("pins")(content), content.pop("routing")),
    "a fill without the feature": lambda content: (
        without_features("pins")(content),
        _filling(content),
    ),
    "a fill with pins": lambda content: (_filling(content), of_pins(["62", 1])(content)),
    "a binding with pins": of_pins(["62", 1]),
}
"""Changes of a binding after `pinned_unbound`, after which it is corrupt."""

BEGINS: dict[str, Change] = {
    "pins": lambda content: (given("features", ["slots", "unbound", "pins"])(content), of_pins(["61", 1])(content)),
    "pins and no binding": lambda content: (_empty(content), of_pins(["61", 1])(content)),
}
"""Changes of the version that begins a topic with a binding, after which it is corrupt."""

BEGINS_RIGHT: dict[str, Change] = {"as it should be": lambda content: None, "no binding, and the feature": _empty}
"""Changes of the version that begins a topic with a binding, after which it is right."""

HEADS: dict[str, Change] = {
    **{f"pins are {value!r}": of_routing("pins", value) for value in WRONG},
    **{f"an entry is {value!r}": of_pins(value) for value in [*WRONG, [], ["71"], ["71", 1, 1], ["7", 1], ["7A", 1]]},
    **{f"a partition is {value!r}": of_pins(["71", value]) for value in [*WRONG, 1.0, 3]},
    "no pins": lambda head: head["routing"].pop("pins"),
    "no routing": lambda head: head.pop("routing"),
    "no feature pins": without_features("pins"),
    "a key of too many bytes": of_pins(["71" * (LONGEST + 1), 1]),
    "a key twice": of_pins(["71", 1], ["71", 1]),
    "keys that fall": of_pins(["72", 1], ["71", 1]),
    "more pins than can be": of_pins(*_keys(MOST + 1)),
    "more pins than can be, and no re-route": _forgotten(MOST + 1),
    "more pins than can be after a re-route": of_pins(*_keys(MOST - 2)),
    "a pin that a re-route gives": of_pins(["61", 1]),
    "a re-route with empty pins": lambda head: head["routing"]["reroutes"][1].update(pins=[]),
    "pins of a re-route are null": lambda head: head["routing"]["reroutes"][1].update(pins=None),
    "a re-route ends a pin that is not there": lambda head: head["routing"]["reroutes"][1].update(pins=[["71", None]]),
    "a re-route pins to a partition that is not there yet": lambda head: head["routing"]["reroutes"][0]["pins"].append(["7a", 2]),
    "a re-route pins a key where it is": lambda head: head["routing"]["reroutes"][1].update(pins=[["61", 1]]),
    "a pin that a later re-route ends is not there": lambda head: head["routing"]["reroutes"][0]["pins"].pop(1),
    "its last re-route pins to a partition that is not there": lambda head: head["routing"]["reroutes"][2]["pins"].append(["ffff", 3]),
    "more numbers than can be": lambda head: head["routing"]["reroutes"][0].update(
        pins=sorted([*head["routing"]["reroutes"][0]["pins"], *_keys(AT_ONCE, LONG)])
    ),
}
"""Changes of the head of a checkpoint of `pinned`, after which it is damaged."""

HEADS_RIGHT: dict[str, Change] = {
    "as it should be": lambda head: None,
    "as many pins as there can be, and no re-route": _forgotten(MOST),
    "an older pin": of_pins(["71", 1]),
    "an unknown field": of_routing("more", 1),
}
"""Changes of the head of a checkpoint of `pinned`, after which it is whole."""


def put_pin(topic: Topic, change: Change) -> None:
    """Writes the first re-route, which pins a key, as version 2, with a change."""
    _put(topic, changed(begun(topic).pin({b"a": 1}), change))


def put_later(topic: Topic, change: Change) -> None:
    """Writes another one after `pinned`, with a change."""
    _put(topic, changed(pinned(topic).pin({b"b": 2, b"z": None}), change))


def put_unbound(topic: Topic, change: Change) -> None:
    """Writes a binding after `pinned_unbound`, with a change."""
    its = pinned_unbound(topic)
    content = its.bind({0: [7]})
    _put(topic, changed(content | {"before": its.routing()["table"]}, change))


def put_begins(topic: Topic, change: Change) -> None:
    """Writes the version that begins a topic with a binding, with a change."""
    _put(topic, changed(Bound(topic).bind({0: [0, 1], 1: [2]}), change))


def _put(topic: Topic, content: dict[str, Any]) -> None:
    topic.folder.mkdir(parents=True, exist_ok=True)
    topic.version_file(content["version"]).write_bytes(summed(json.dumps(content).encode()))
