"""Versions that do more than add records, each with changes that break a rule of FORMAT.md section 5. Both readers must find these."""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

from broken_rules import Change, of_segment, times
from handmade import Topic, batch, given, identity, records


class Kind(NamedTuple):
    """A kind of version. `prepare` writes the versions before it and returns a right one; each change of `wrong` breaks a rule."""

    prepare: Callable[[Topic], dict[str, Any]]
    wrong: dict[str, Change]
    right: dict[str, Change]


def _segments(topic: Topic) -> list[dict[str, Any]]:
    """Segments of 5, 3 and 2 records in partition 0, and one of 4 in partition 1."""
    return [topic.append(records(count, tag), partition) for count, tag, partition in [(5, "a", 0), (3, "b", 0), (2, "c", 0), (4, "p", 1)]]


def _names(*segments: dict[str, Any]) -> list[dict[str, Any]]:
    return [{key: segment[key] for key in ("partition", "file", "position")} for segment in segments]


def _whole(topic: Topic, base: int, end: int, **fields: Any) -> dict[str, Any]:
    return topic.data(batch(records(end - base, "m")), 0, name="p0-t0-0-0.log", base=base, end=end, **fields)


def _deletion(topic: Topic) -> dict[str, Any]:
    _segments(topic)
    return topic.deletion()


def _beginning(topic: Topic) -> dict[str, Any]:
    _segments(topic)
    topic.put(topic.deletion())
    return topic.next(topic.data(batch(records(3))), query={"id": "q", "epoch": 0, "input": None})


def _rebuilt(topic: Topic) -> dict[str, Any]:
    return {**_beginning(topic), "rebuilt": copy.deepcopy(REBUILT)}


def _origin(**fields: Any) -> Change:
    return lambda content: content["rebuilt"].update(fields)


def _without_origin(name: str) -> Change:
    def change(content: dict[str, Any]) -> None:
        del content["rebuilt"][name]

    return change


def _passed(number: int, side: int, offsets: Any) -> Change:
    def change(content: dict[str, Any]) -> None:
        content["rebuilt"]["passed"][number][side] = offsets

    return change


def _merge(topic: Topic) -> dict[str, Any]:
    first, second, *_ = _segments(topic)
    return topic.next(_whole(topic, 0, 8), operation="merge", removed=[first, second])


def _deleted_records(topic: Topic) -> dict[str, Any]:
    first, *_ = _segments(topic)
    topic.commit(operation="delete-records", starts=[2, 1])
    return topic.next(operation="delete-records", starts=[6, 1], removed=[first])


def _more(*changes: Change) -> Change:
    def change(content: dict[str, Any]) -> None:
        for each in changes:
            each(content)

    return change


def _removed(*numbers: int) -> Change:
    """Removes these of the first segments, in partition 0, whose data files are those of versions 0, 1 and 2."""

    def change(content: dict[str, Any]) -> None:
        names = [f"data/{number:020d}-{identity((content['topic'], number))}/pool.log" for number in numbers]
        content["removed"] = [{"partition": 0, "file": name, "position": 0} for name in names]

    return change


def _without_key(content: dict[str, Any]) -> None:
    del content["config"]["max.message.bytes"]


def _same_id(content: dict[str, Any]) -> None:
    content["topicId"] = identity(content["topic"])


def _between(base: int, end: int) -> Change:
    return _more(of_segment("base", base), of_segment("end", end), of_segment("records", end - base))


SEGMENT: dict[str, Any] = {
    "partition": 0,
    "file": f"data/{4:020d}-{identity(4)}/pool.log",
    "position": 0,
    "bytes": 70,
    "base": 10,
    "end": 11,
    "records": 1,
    "batches": 1,
    "minTimestamp": 0,
    "maxTimestamp": 0,
    "offsets": "dense",
    "routed": True,
    "ordered": True,
    "headerCrc": 0,
}
"""One more record in partition 0."""
REBUILT: dict[str, Any] = {
    "topic": "old",
    "topicId": identity("old"),
    "version": 7,
    "passed": [[[4, 0, 1], [0, 0]], [[5, 0, 1], [1, 0]], [[5, 2, 1], [1, 0]], [[9, 2, 1], [3, 0]]],
}
"""Three records of a topic of three partitions, in one of two."""

KINDS = {
    "a deletion": Kind(
        _deletion,
        {
            **{f"deleted is {value!r}": given("deleted", value) for value in (False, None, 1, "true", [], {})},
            "a horizon that is its own version": given("horizon", 4),
            "a horizon above": given("horizon", 6),
            "a boundary below": given("boundary", 3),
            "a boundary above": given("boundary", 5),
            "starts": given("starts", {"0": 10}),
            "a start that stays": given("starts", {"1": 0}),
            "ends": given("ends", {"0": 11}),
            "ends that stay": given("ends", {"0": 10}),
            "records": _more(given("added", [SEGMENT]), given("starts", [11, 4]), given("ends", [11, 4])),
            "segments that it removes": _removed(0, 1, 2),
            "a configuration": given("config", {"retention.ms": "1"}),
            "a query": given("query", {"id": "q", "epoch": 0, "input": None}),
            "another topic id": given("topicId", identity("other")),
        },
        {"another operation": given("operation", "write")},
    ),
    "a topic that begins again": Kind(
        _beginning,
        {
            "the same topic id": _same_id,
            "another previous version": given("previous", "0" * 64),
            "no configuration": given("config", {}),
            "a configuration without a key": _without_key,
            "a horizon that falls": given("horizon", 4),
            "a boundary that falls": given("boundary", 3),
            "a segment after the start": _more(_between(1, 4), given("ends", [4, 0])),
            "a start without records below": _more(given("starts", [1, 0]), given("ends", [3, 0])),
            "ends of the topic before": given("ends", [10, 4]),
            "a segment of the topic before": _removed(0),
            "a deletion at once": _more(given("deleted", True), given("starts", [3, 0]), given("horizon", 6), given("boundary", 5)),
        },
        {
            "fewer partitions": lambda content: content.update(starts=[0], ends=[3], config={**content["config"], "partitions": "1"}),
            "other first offsets": _more(_between(70, 73), given("starts", [70, 9]), given("ends", [73, 9])),
            "no records": _more(given("added", []), given("ends", [0, 0])),
        },
    ),
    "a rebuilt topic": Kind(
        _rebuilt,
        {
            **{f"rebuilt is {value!r}": given("rebuilt", value) for value in (None, True, 1, "old", [], {})},
            **{f"no {name} of the origin": _without_origin(name) for name in ("topic", "topicId", "version", "passed")},
            **{f"the origin is {value!r}": _origin(topic=value) for value in (None, 1, "", ".", "a/b", "a" * 250)},
            **{f"the id of the origin is {value!r}": _origin(topicId=value) for value in (None, 1, "", "A" * 22, "B" * 22)},
            "its own id": lambda content: content["rebuilt"].update(topicId=content["topicId"]),
            **{f"the version of the origin is {value!r}": _origin(version=value) for value in (None, -1, 1.0, "7", 2**63)},
            **{
                f"passed is {value!r}": _origin(passed=value)
                for value in (
                    None,
                    {},
                    [],
                    [1],
                    [[]],
                    [[[1], [0, 0]], [[1]]],
                    [[[1], [0, 0], []], [[1], [3, 0]]],
                    [[[1], {}], [[1], [3, 0]]],
                )
            },
            "no partition of the origin": _origin(passed=[[[], [0, 0]], [[], [3, 0]]]),
            "an offset of the origin falls": _passed(1, 0, [3, 0, 1]),
            "an offset of the topic falls": _passed(2, 1, [0, 0]),
            "a partition of the origin more": _passed(3, 0, [9, 2, 1, 0]),
            "a partition of the origin less": _passed(0, 0, [4, 0]),
            "a partition of the topic more": _passed(1, 1, [1, 0, 0]),
            "a partition of the topic less": _passed(3, 1, [3]),
            "another start": _passed(0, 1, [1, 0]),
            "another end": _passed(3, 1, [3, 1]),
            **{f"an offset is {value!r}": _passed(0, 0, [0, value, 1]) for value in (None, -1, 0.0, "0", True)},
            "too many numbers": _origin(passed=[[[0] * 7, [0, 0]]] * 111_111 + [[[1] * 7, [3, 0]]]),
            "too many partitions": _origin(passed=[[[0] * 10_001, [0, 0]], [[1] * 10_001, [3, 0]]]),
        },
        {
            "unknown fields": _origin(more=[1], other=None),
            "as many partitions as there can be": _origin(passed=[[[0] * 10_000, [0, 0]], [[1] * 10_000, [3, 0]]]),
            "as many numbers as there can be": _origin(passed=[[[0] * 6, [0, 0]]] * 124_999 + [[[1] * 6, [3, 0]]]),
            "frontiers that are equal": _passed(2, 0, [5, 0, 1]),
        },
    ),
    "a merge": Kind(
        _merge,
        {
            "it ends too early": _between(0, 7),
            "it begins too late": _between(1, 8),
            "it goes on into the next": _between(0, 9),
            "only the first is removed": _removed(0),
            "only the second is removed": _removed(1),
            "the next is removed too": _removed(0, 1, 2),
            "one is removed twice": _removed(0, 1, 1),
            "one that was never there is removed": _removed(0, 1, 3),
            "nothing is removed": given("removed", []),
            "nothing is added": times(0),
            "it is added twice": times(2),
            "it is added to another partition": of_segment("partition", 1),
            "a start beyond its end": given("starts", [11, 0]),
            "an end that falls": given("ends", [8, 4]),
            "an end that rises": given("ends", [11, 4]),
        },
        {
            "another operation": given("operation", "write"),
            "not routed": of_segment("routed", False),
            "a log start offset within it": given("starts", [7, 0]),
            "records in the same version": lambda content: content.update(
                added=[{**SEGMENT, "file": content["added"][0]["file"], "position": 5000}, *content["added"]], ends=[11, 4]
            ),
        },
    ),
    "deleted records": Kind(
        _deleted_records,
        {
            "a start that falls": given("starts", [1, 1]),
            "another start that falls": given("starts", [6, 0]),
            "a start beyond its end": given("starts", [11, 1]),
            "a segment that the start cuts": _removed(0, 1),
            "a segment above the start": _removed(0, 2),
            "the field of a rebuilt topic": given("rebuilt", {**REBUILT, "passed": [[[0], [6, 1]], [[9], [10, 4]]]}),
            "a segment of the log start offset": given("starts", [4, 1]),
        },
        {
            "nothing removed": given("removed", []),
            "up to a segment": given("starts", [5, 1]),
            "everything": _more(given("starts", [10, 4]), _removed(0, 1, 2)),
            "everything, but not removed": given("starts", [10, 4]),
        },
    ),
}
