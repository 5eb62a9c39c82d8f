"""A member of a group, as a program that a test can kill or freeze. It prints what it sees and does, one JSON array a line.

Its arguments are the addresses of servers, the group, the protocol of the group (`classic` or `consumer`), a seed and the topics.
"""

import json
import random
import signal
import sys
import time
from itertools import groupby

from confluent_kafka import Consumer, KafkaException, TopicPartition

SESSION_MS = 6_000


def tell(what: str, *words: object) -> None:
    print(json.dumps([what, *words]), flush=True)


def assigned(_: Consumer, partitions: list[TopicPartition]) -> None:
    at = time.monotonic()
    for each in partitions:
        tell("assign", each.topic, each.partition, at)


def main() -> None:
    addresses, group, protocol, seed, *topics = sys.argv[1:]
    chance = random.Random(int(seed))
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    settings = {"bootstrap.servers": addresses, "group.id": group, "group.protocol": protocol, "socket.timeout.ms": 10_000}
    settings |= {
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "check.crcs": True,
        "topic.metadata.refresh.interval.ms": 2000,
    }
    consumer = Consumer(settings | ({"session.timeout.ms": SESSION_MS} if protocol == "classic" else {}))
    consumer.subscribe(topics, on_assign=assigned)
    commits = 0
    while not ended:
        found = consumer.consume(500, 0.2)
        at = time.monotonic()
        ends: dict[tuple[str, int], int] = {}
        for each in found:
            if each.error() is not None:
                tell("error", str(each.error()))
        good = [each for each in found if each.error() is None]
        for (topic, partition), records in groupby(good, key=lambda each: (each.topic(), each.partition())):
            told = [(each.offset(), each.value().decode()) for each in records]
            tell("poll", topic, partition, at, told)
            ends[topic, partition] = told[-1][0] + 1
        if not ends or chance.random() < 0.3:
            continue
        places = [TopicPartition(topic, partition, position) for (topic, partition), position in ends.items()]
        commits += 1
        for each in places:
            tell("begin", commits, each.topic, each.partition, each.offset, time.monotonic())
        try:
            answers = consumer.commit(offsets=places, asynchronous=False)
        except KafkaException as e:
            tell("error", f"a commit failed: {e}")
            continue
        at = time.monotonic()
        for each in answers:
            if each.error is None:
                tell("done", commits, each.topic, each.partition, at)
            else:
                tell("error", f"a commit failed: {each.error}")
    consumer.close()


if __name__ == "__main__":
    main()
