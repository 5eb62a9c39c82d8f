"""Cases of the tests of kafka-python's consumer: a consumer here and one of kafka-python that are called alike."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import kafka
import pytest
from handmade import Topic, records

import sparklog
from sparklog import Consumer, SparklogError

SPEC = Path(sparklog.__file__).parent / "spec" / "kafka_python.json"
DIFFERENCES = {each["case"] for each in json.loads(SPEC.read_text(encoding="utf-8"))["differences"]}
"""The cases that kafka-python answers in another way; the file has the reason of each."""
ERRORS = (SparklogError, kafka.errors.KafkaError, AttributeError, KeyError, RuntimeError, TypeError, ValueError)
"""The errors of calls that are refused: SparklogError here; KafkaError, ValueError, KeyError and others there; TypeError on both sides."""
ALIKE = object()


class World:
    """A root with topic `t` of two partitions with 25 and 10 records, and topic `u` of four with 3 records each."""

    partition: Any = sparklog.TopicPartition
    record: Any = sparklog.ConsumerRecord
    consumer: Any = Consumer

    def __init__(self, folder: Path) -> None:
        self.root, self.table = folder / "root", folder / "offsets"
        self.t, self.u = Topic(self.root, "t", partitions=2), Topic(self.root, "u", partitions=4)
        self.t.append(records(25), 0)
        self.t.append(records(10), 1)
        for number in range(4):
            self.u.append(records(3), number)
        self.opened: list[Any] = []
        self.p0, self.p1 = self.partition("t", 0), self.partition("t", 1)

    def make(self, *topics: str, **options: Any) -> Any:
        given = {"auto_offset_reset": "earliest", "poll_interval_ms": 10} | ({"table": self.table} if "group_id" in options else {})
        self.opened.append(Consumer(self.root, *topics, **(given | options)))
        return self.opened[-1]

    def assigned(self, *partitions: Any, **options: Any) -> Any:
        """A consumer that reads partition 0 of `t`, or these."""
        consumer = self.make(**options)
        consumer.assign(list(partitions) or [self.p0])
        return consumer


class KafkaWorld(World):
    """The same calls to kafka-python, without a broker."""

    partition = kafka.TopicPartition
    record = kafka.consumer.fetcher.ConsumerRecord
    consumer = kafka.KafkaConsumer

    def make(self, *topics: str, **options: Any) -> Any:
        self.opened.append(kafka.KafkaConsumer(*topics, api_version=(2, 8), **({"auto_offset_reset": "earliest"} | options)))
        return self.opened[-1]


class Case(NamedTuple):
    name: str
    calls: Callable[[Any], Any]
    answer: Any
    there: Any
    """The answer of kafka-python."""


class Cases(list[Case]):
    """A table of cases, each a function that is named for its subject."""

    def __call__(self, answer: Any, *, there: Any = ALIKE) -> Callable[[Callable[[Any], Any]], None]:
        def add(calls: Callable[[Any], Any]) -> None:
            self.append(Case(calls.__name__, calls, answer, answer if there is ALIKE else there))

        return add

    def parametrized(self) -> Any:
        return pytest.mark.parametrize("case", self, ids=lambda case: case.name)


def refused(*calls: Callable[[], object]) -> list[bool]:
    """Whether each of these calls raises an error for its caller."""
    found = []
    for call in calls:
        try:
            call()
            found.append(False)
        except ERRORS:
            found.append(True)
    return found


def error(call: Callable[[], object]) -> str:
    """The error that a call raises."""
    with pytest.raises(ERRORS) as raised:
        call()
    return getattr(raised.value, "id", type(raised.value).__name__)


def offsets(polled: dict[Any, list[Any]]) -> dict[int, list[int]]:
    """The offsets of records by partition."""
    return {partition.partition: [record.offset for record in its] for partition, its in polled.items()}
