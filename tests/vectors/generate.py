"""Writes the vectors that other people's programs make: python generate.py KAFKA_JARS, where KAFKA_JARS is a folder with Kafka's jars.

batches.json is written by hand and not touched. See README.md.
"""

import json
import platform
import struct
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import aiokafka.record.default_records
import kafka.record.default_records
import mmh3

FOLDER = Path(__file__).parent
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
NOON = 1_700_000_000_000

# Published in Kafka's own UtilsTest, and (from the empty key on) made with Kafka's class org.apache.kafka.common.utils.Utils.
MURMUR2 = (
    (b"21", -973932308),
    (b"foobar", -790332482),
    (b"a-little-bit-long-string", -985981536),
    (b"a-little-bit-longer-string", -1486304829),
    (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
    (b"abc", 479470107),
    (b"", 275646681),
    (b"a", -1563381124),
    (b"ab", 316155434),
    (b"key", -1079937367),
    (b"sparklog", 296359901),
    (b"user-42", 1459644460),
    ("éß".encode(), 286301671),
    (b"\x80\xff\x7f", -1765891516),
    (b"\xff" * 5, -363838622),
)

# Timestamp, key, value, headers: nulls, empties, duplicates, text that is not ASCII, times that fall and leap, and something to compress.
RECORDS: tuple[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]], ...] = (
    (NOON, None, b"hello", [("h1", b"v1")]),
    (NOON + 123, b"k", None, []),
    (NOON + 123, b"", b"", [("", b""), ("twice", b"1"), ("twice", b"2"), ("twice", None)]),
    (NOON - 5, b"\x00\xff\x80", "grüße, 日本".encode(), [("schlüssel", "wert ✓".encode()), ("n", None)]),
    (NOON + 86_400_000, b"k" * 16, b"a" * 300, []),
    (NOON + 8191, None, None, []),
    (NOON + 8192, b"k" * 64, b"b" * 700, [("trace", bytes(range(70)))]),
    (NOON + 40_000_000_000, b"", None, []),
)


def hashes() -> dict[str, Any]:
    keys = [(f"len{n}", bytes(range(0x61, 0x61 + n))) for n in range(20)]
    keys += [(f"len{n}-high-bytes", bytes((0xFF - i) & 0xFF for i in range(n))) for n in range(1, 9)]
    keys += [("text", "Größe 日本".encode()), ("user-42", b"user-42"), ("zeros", bytes(7))]
    keys += [("long", bytes(i & 0xFF for i in range(1000)))]
    keys += [(f"id-{i}", str(i).encode()) for i in range(10)]
    return {
        "murmur3": [hashed(name, key, mmh3.hash(key, 0, signed=True)) for name, key in keys],
        "murmur2": [hashed(key.decode("latin-1") if key.isascii() else key.hex(), key, value) for key, value in MURMUR2],
    }


def hashed(name: str, key: bytes, signed: int) -> dict[str, Any]:
    positive = signed & 0x7FFFFFFF
    return {"name": name or "empty", "key": key.hex(), "hash": signed, "partitions": {str(n): positive % n for n in (1, 3, 8, 12, 10_000)}}


def varints() -> dict[str, Any]:
    """Numbers at which the size changes, written by kafka-python."""
    ints = {0, 1, -1, 2, -2, 2**31 - 1, -(2**31)}
    longs = {NOON, -86_400_000, 2**63 - 1, -(2**63)}
    for bits in range(6, 63, 7):
        for number in (2**bits - 1, 2**bits, -(2**bits), -(2**bits) - 1):
            (ints if -(2**31) <= number < 2**31 else longs).add(number)
    return {"varint": [written(n) for n in sorted(ints)], "varlong": [written(n) for n in sorted(ints | longs)]}


def written(number: int) -> dict[str, Any]:
    out = bytearray()
    kafka.record.default_records.encode_varint(number, out.append)
    return {"value": number, "hex": out.hex()}


def expected(records: Any, base_offset: int = 0) -> list[dict[str, Any]]:
    return [
        {
            "offset": base_offset + i,
            "timestamp": timestamp,
            "key": None if key is None else key.hex(),
            "value": None if value is None else value.hex(),
            "headers": [{"key": name, "value": None if content is None else content.hex()} for name, content in headers],
        }
        for i, (timestamp, key, value, headers) in enumerate(records)
    ]


def python_batches(module: Any, writer: str) -> list[dict[str, Any]]:
    batches = []
    for codec_id, codec in enumerate(CODECS):
        builder = module.DefaultRecordBatchBuilder(
            magic=2, compression_type=codec_id, is_transactional=0, producer_id=-1, producer_epoch=-1, base_sequence=-1, batch_size=1 << 16
        )
        for i, (timestamp, key, value, headers) in enumerate(RECORDS):
            assert builder.append(i, timestamp, key, value, headers) is not None
        batches.append(batch(f"{writer}-{codec}", bytes(builder.build()), expected(RECORDS)))
    return batches


def kafka_batches(jars: str) -> list[dict[str, Any]]:
    plain = {"codec": "none", "logAppendTime": False, "maxTimestamp": -1, "transactional": False, "leaderEpoch": 0, "baseOffset": 0}
    plain |= {"producerId": -1, "producerEpoch": -1, "baseSequence": -1, "lastOffsetDelta": len(RECORDS) - 1, "records": expected(RECORDS)}
    wanted = [(f"kafka-{codec}", plain | {"codec": codec}) for codec in CODECS]
    far = 2**40
    appended = [record | {"timestamp": NOON + 999} for record in expected(RECORDS, far)]
    wanted += [
        (
            f"kafka-log-append-time-{codec}",
            plain | {"codec": codec, "logAppendTime": True, "maxTimestamp": NOON + 999, "baseOffset": far, "records": appended},
        )
        for codec in ("none", "zstd")
    ]
    idempotent = {"producerId": 4242, "producerEpoch": 3, "baseSequence": 77, "leaderEpoch": 5}
    wanted.append(("kafka-transactional", plain | idempotent | {"codec": "lz4", "transactional": True}))
    gaps = [record for record in expected(RECORDS, 500) if record["offset"] in (502, 503, 506)]
    wanted.append(("kafka-compacted", plain | idempotent | {"codec": "gzip", "baseOffset": 500, "lastOffsetDelta": 9, "records": gaps}))
    untimed = [record | {"timestamp": -1} for record in expected(RECORDS)]
    wanted.append(("kafka-without-times", plain | {"records": untimed}))
    lines = "\n".join(json.dumps(order) for _, order in wanted)
    command = ["java", "-cp", f"{jars}/*", str(FOLDER / "KafkaBatches.java")]
    out = subprocess.run(command, input=lines, text=True, stdout=subprocess.PIPE, check=True).stdout.split()
    return [batch(name, bytes.fromhex(line), order["records"]) for (name, order), line in zip(wanted, out, strict=True)]


def assignors(jars: str) -> list[dict[str, Any]]:
    """The groups of assignors.json, shared out again by Kafka's classes."""
    groups = json.loads((FOLDER / "assignors.json").read_text(encoding="utf-8"))
    java = ["java", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", f"{jars}/*", str(FOLDER / "KafkaAssignors.java")]
    lines = "\n".join(map(json.dumps, groups))
    out = subprocess.run(java, input=lines, text=True, stdout=subprocess.PIPE, check=True).stdout.splitlines()
    return [group | {"assignment": json.loads(line)} for group, line in zip(groups, out, strict=True)]


def batch(name: str, content: bytes, records: list[dict[str, Any]]) -> dict[str, Any]:
    fields = struct.unpack_from(">qiibIhiqqqhii", content)
    (
        base_offset,
        length,
        epoch,
        magic,
        crc,
        attributes,
        last_delta,
        base_timestamp,
        max_timestamp,
        producer,
        producer_epoch,
        sequence,
        count,
    ) = fields
    assert magic == 2
    assert length + 12 == len(content)
    assert count == len(records)
    return {
        "name": name,
        "hex": content.hex(),
        "baseOffset": base_offset,
        "leaderEpoch": epoch,
        "crc": crc,
        "codec": CODECS[attributes & 7],
        "logAppendTime": bool(attributes & 8),
        "transactional": bool(attributes & 16),
        "control": bool(attributes & 32),
        "deleteHorizon": bool(attributes & 64),
        "lastOffsetDelta": last_delta,
        "baseTimestamp": base_timestamp,
        "maxTimestamp": max_timestamp,
        "producerId": producer,
        "producerEpoch": producer_epoch,
        "baseSequence": sequence,
        "records": records,
    }


def write(name: str, content: Any) -> None:
    # One vector a line, so that a diff shows which one changed.
    def lines(part: Any) -> str:
        return "[\n" + ",\n".join(" " + json.dumps(vector, ensure_ascii=False) for vector in part) + "\n]"

    text = (
        lines(content) if isinstance(content, list) else "{" + ",\n".join(f"{json.dumps(k)}: {lines(v)}" for k, v in content.items()) + "}"
    )
    (FOLDER / name).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    write("hashes.json", hashes())
    write("varints.json", varints())
    write("batches-kafka-python.json", python_batches(kafka.record.default_records, "kafka-python"))
    write("batches-aiokafka.json", python_batches(aiokafka.record.default_records, "aiokafka"))
    write("batches-kafka.json", kafka_batches(sys.argv[1]))
    write("assignors.json", assignors(sys.argv[1]))
    packages = ("mmh3", "kafka-python", "aiokafka", "cramjam", "lz4", "python-snappy", "zstandard")
    print(f"Python {platform.python_version()};", ", ".join(f"{name} {version(name)}" for name in packages))
