"""A broker serves the segments that the connector published, and its clients are told what the command line prints."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition
from logtool import LogTool

from bench.broker import broker
from sparklog.__main__ import main

PARTITIONS = 3


@pytest.mark.soak
def test_clients_of_a_broker_get_what_commands_print(java_classpath: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    tool = LogTool(java_classpath, tmp_path / "root")
    for tag, codec in (("A", "none"), ("B", "zstd"), ("C", "lz4"), ("D", "snappy"), ("E", "gzip")):
        tool.run("append", tag=tag, compression_type=codec, records=40, big=900, partitions=PARTITIONS, merge=0)

    def said(*words: object) -> str:
        capfd.readouterr()
        assert main([words[0], str(tool.root), "t", *map(str, words[1:])]) == 0
        return capfd.readouterr().out

    def lines(*words: object) -> list[dict[str, Any]]:
        return [json.loads(line) for line in said(*words, "--json").splitlines()]

    with broker(tmp_path / "kafka", "t", PARTITIONS, tool.root) as (address, _):
        places = [TopicPartition("t", number) for number in range(PARTITIONS)]
        consumer = KafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest", enable_auto_commit=False)
        consumer.assign(places)
        starts, ends = consumer.beginning_offsets(places), consumer.end_offsets(places)
        assert sum(ends.values()) == 5 * 2 * 40
        theirs: dict[int, list[tuple[Any, ...]]] = {number: [] for number in range(PARTITIONS)}
        while any(consumer.position(place) < ends[place] for place in places):
            for place, found in consumer.poll(1000).items():
                theirs[place.partition] += [(each.offset, each.timestamp, each.key, each.value, each.headers) for each in found]

        described = json.loads(said("describe", "--json"))["partitions"]
        assert {TopicPartition("t", each["partition"]): (each["start"], each["end"]) for each in described} == {
            place: (starts[place], ends[place]) for place in places
        }
        ours: dict[int, list[tuple[Any, ...]]] = {number: [] for number in range(PARTITIONS)}
        for each in lines("cat"):
            headers = [(header["key"], octets(header, "value")) for header in each.get("headers", ())]
            row = (each["offset"], each["timestamp"], octets(each, "key"), octets(each, "value"), headers)
            ours[each["partition"]].append(row)
        assert ours == theirs

        keys = {key for rows in theirs.values() for _, _, key, _, _ in rows if key is not None}
        assert keys
        for key in keys:
            (found,) = json.loads(said("keys", key.decode(), "--json"))
            held = [(number, row[0]) for number, rows in theirs.items() for row in rows if row[2] == key]
            assert {number for number, _ in held} == {found["partition"]}
            assert (found["records"], found["first"], found["last"]) == (len(held), held[0][1], held[-1][1])

        times = sorted({row[1] for rows in theirs.values() for row in rows})
        for time in (times[0], times[len(times) // 2], times[-1], times[-1] + 1):
            found_at = consumer.offsets_for_times(dict.fromkeys(places, time))
            for place in places:
                first = found_at[place].offset if found_at[place] else ends[place]
                rows = lines("cat", "-p", place.partition, "-o", f"s@{time}")
                assert [each["offset"] for each in rows] == list(range(first, ends[place]))
        consumer.close()


def octets(row: dict[str, Any], name: str) -> bytes | None:
    if f"{name}_base64" in row:
        return base64.b64decode(row[f"{name}_base64"])
    return None if row[name] is None else row[name].encode()
