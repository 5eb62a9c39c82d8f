"""A program of a user, with a type at each name: `mypy --strict` passes on it, and a test runs it."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa

import sparklog
from sparklog import Consumer, ConsumerRecord, Log, Producer, Topic, TopicPartition
from sparklog.groups import GroupPlan, OffsetTable, Position, TopicGroups


def send(root: str, names: list[str]) -> dict[int, int]:
    """Sends a visit of each name. The end offset of each partition that got one."""
    with Producer(root, linger_ms=5, compression_type="zstd") as producer:
        sent = [producer.send("visits", value=json.dumps({"name": name}), key=name, headers=[("by", b"web")]) for name in names]
        producer.flush(timeout=60)
    ends: dict[int, int] = {}
    for each in (future.get(timeout=60) for future in sent):
        ends[each.partition] = max(ends.get(each.partition, 0), each.offset + 1)
    return ends


def read(root: str, table: OffsetTable) -> Iterator[ConsumerRecord]:
    """The visits that the group has not read. It commits after each poll."""
    with Consumer(root, "visits", group_id="mail", table=table, auto_offset_reset="earliest", enable_auto_commit=False) as consumer:
        while records := consumer.poll(1_000, max_records=100):
            for of_partition in records.values():
                yield from of_partition
            consumer.commit()
        positions: dict[TopicPartition, int | None] = {each: consumer.committed(each) for each in consumer.assignment()}
        assert positions == {each: consumer.position(each) for each in positions}


def named(topic: Topic) -> Counter[str]:
    """How often each name is in the topic, by Arrow."""
    values: pa.Table = topic.read(columns=["value"])
    return Counter(json.loads(value)["name"] for value in values["value"].to_pylist())


def behind(table: OffsetTable) -> int:
    """The records that the group has not read."""
    lag: pa.Table = table.lag("mail")
    return sum(lag["records"].to_pylist())


def planned(table: OffsetTable) -> dict[str, int]:
    """The number of partitions that each of two members would have."""
    plan: GroupPlan = table.plan("mail", 2)
    return {member: len(partitions) for member, partitions in plan.after.items()}


def main(root: str, path: str) -> None:
    ends = send(root, ["ann", "bob", "ann"])
    topic = Log(root)["visits"]
    assert {partition: end for partition, end in topic.end_offsets().items() if end} == ends
    assert all(topic.partition_for(name) in ends for name in ("ann", "bob"))
    table = OffsetTable(root, path)
    seen = Counter(json.loads(record.value or b"{}")["name"] for record in read(root, table))
    assert seen == named(topic)
    positions: list[Position] = table.positions("mail")
    assert {each.partition: each.offset for each in positions if each.offset} == ends
    assert sum(planned(table).values()) == topic.partitions
    assert TopicGroups(root).groups() == []
    try:
        Log(root).topic("other").describe()
    except sparklog.CallError as error:
        if error.id != "TOPIC_NOT_FOUND":
            raise
    verified = Log(root).verify()
    assert verified.ok, verified
    print(behind(table))


if __name__ == "__main__":
    main(*sys.argv[1:3])
