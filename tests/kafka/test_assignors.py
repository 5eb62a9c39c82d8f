"""Random groups, shared out by Kafka's own assignors and by ours."""

import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from logtool import SHORT_LIVED

from sparklog.groups.assignors import Member, Partition, assign, owners_of

FILTER = Path(__file__).parents[1] / "vectors" / "KafkaAssignors.java"
VECTORS = json.loads((FILTER.parent / "assignors.json").read_text(encoding="utf-8"))
SEED = 20_261_125
RACKS = ("r0", "r1", "r2")


def text(partitions: list[Partition]) -> str:
    """Partitions as the vectors have them, as `t0:0,1 t1:2`."""
    by_topic: dict[str, list[int]] = {}
    for topic, number in partitions:
        by_topic.setdefault(topic, []).append(number)
    return " ".join(f"{topic}:{','.join(map(str, numbers))}" for topic, numbers in by_topic.items())


def groups(count: int) -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
    """Groups as the vectors describe them, each with what our assignor gives its members."""
    chance = random.Random(SEED)
    for _ in range(count):
        assignor = chance.choice(["range", "range-848", "roundrobin", "uniform", "uniform"])
        topics = {f"t{number}": chance.randint(1, 12) for number in range(chance.randint(1, 5))}
        alike = chance.random() < 0.4
        members: dict[str, dict[str, Any]] = {}
        for name in sorted(chance.sample("abcdefghijklmnop", chance.randint(1, 8))):
            members[name] = {"topics": sorted(topics) if alike else chance.sample(sorted(topics), chance.randint(1, len(topics)))}
            if assignor == "range" and chance.random() < 0.7:
                members[name]["rack"] = chance.choice(RACKS)
            if assignor != "uniform" and chance.random() < 0.2:
                members[name]["instance"] = f"i{chance.randrange(10**6)}"
        every = [(topic, number) for topic, partitions in topics.items() for number in range(partitions)]
        group: dict[str, Any] = {"assignor": assignor, "topics": topics, "members": members}
        racks: dict[Partition, list[str]] = {}
        if assignor == "range" and chance.random() < 0.8:
            racks = {each: chance.sample(RACKS, chance.randint(0, 3)) for each in every}
            group["replica_racks"] = {topic: [racks[topic, number] for number in range(of)] for topic, of in topics.items()}
        owners: dict[Partition, str] = {}
        if assignor == "uniform":
            for each in every:
                readers: list[str | None] = [name for name, of in members.items() if each[0] in of["topics"]]
                owner = readers[0] if readers and chance.random() < 0.3 else chance.choice([*readers, None])
                if owner is not None:
                    owners[each] = owner
            for name, of in members.items():
                of |= {"owned": text([each for each, owner in owners.items() if owner == name]), "generation": 1}
        crew = [Member(name, of["topics"], of.get("instance"), rack=of.get("rack")) for name, of in members.items()]
        found = assign(assignor.removesuffix("-848"), topics, crew, owners=owners, racks=racks)
        assert owners_of(found).keys() == {each for each in every if any(each[0] in of["topics"] for of in members.values())}
        yield group, {member: text(given) for member, given in found.items()}


@pytest.mark.slow
def test_random_groups_are_shared_out_as_by_kafka(kafka_classpath):
    """And the vectors are what this Kafka answers."""
    wanted = [(each, each["assignment"]) for each in VECTORS] + list(groups(1_500))
    java = ["java", *SHORT_LIVED, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", kafka_classpath, str(FILTER)]
    lines = "\n".join(json.dumps(group) for group, _ in wanted)
    answers = subprocess.run(java, input=lines, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    wrong = [(group, ours, answer) for (group, ours), answer in zip(wanted, map(json.loads, answers), strict=True) if ours != answer]
    assert not wrong, (SEED, len(wrong), wrong[0])
