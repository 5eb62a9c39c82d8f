"""Other programs read batches that Java wrote, and Java reads theirs: random records in each codec."""

import json
import random
from collections.abc import Iterator
from typing import Any

import aiokafka.record
import aiokafka.record.default_records
import kafka.codec
import kafka.record
import kafka.record.default_records
import pytest
from handmade import draw_seed
from logtool import BatchTool

pytestmark = pytest.mark.slow

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
OUTSIDERS = {"kafka-python": kafka.record, "aiokafka": aiokafka.record}
BATCHES = 30
NOON = 1_700_000_000_000
BATCH_BYTES = 1 << 22  # kafka-python and aiokafka close a batch at this size: larger than any here

Record = dict[str, Any]


@pytest.fixture(scope="module")
def seed() -> int:
    return draw_seed()


def test_the_outsiders_have_every_codec() -> None:
    # Without the codec's module, kafka-python would fail later, with an assertion about the batch.
    assert kafka.codec.has_gzip()
    assert kafka.codec.has_snappy()
    assert kafka.codec.has_lz4()
    assert kafka.codec.has_zstd()


@pytest.mark.parametrize("outsider", OUTSIDERS)
@pytest.mark.parametrize("codec", CODECS)
def test_outsiders_read_what_java_writes(batch_tool: BatchTool, seed: int, codec: str, outsider: str) -> None:
    chance = random.Random(seed)
    orders = []
    for i in range(BATCHES):
        base = chance.choice((0, i, 2**31, 2**53 + 1, 2**62))
        orders.append({"codec": codec, "logAppendTime": i % 10 == 9, "baseOffset": base, "records": random_records(chance, base)})
    written = batch_tool("encode", [json.dumps(order) for order in orders])
    codecs = set()
    for order, line in zip(orders, written, strict=True):
        batch, *rest = outside_batches(outsider, bytes.fromhex(line))
        assert rest == []
        assert batch.validate_crc()
        codecs.add(batch.compression_type)
        assert batch.timestamp_type == int(order["logAppendTime"])
        expected = order["records"]
        if order["logAppendTime"]:
            latest = max(record["timestamp"] for record in expected)
            expected = [record | {"timestamp": latest} for record in expected]
        assert [plain(record) for record in batch] == expected, f"seed {seed}"
    assert codecs == {CODECS.index(codec)}


@pytest.mark.parametrize("outsider", OUTSIDERS)
@pytest.mark.parametrize("codec", CODECS)
def test_java_reads_what_outsiders_write(batch_tool: BatchTool, seed: int, codec: str, outsider: str) -> None:
    chance = random.Random(seed)
    expected = [random_records(chance, 0) for _ in range(BATCHES)]
    lines = [outside_encode(outsider, codec, records).hex() for records in expected]
    codecs = {bytes.fromhex(line)[22] & 7 for line in lines}
    # aiokafka and kafka-python leave a batch uncompressed if compression does not make it smaller.
    assert CODECS.index(codec) in codecs
    assert codecs <= {0, CODECS.index(codec)}
    for records, line in zip(expected, batch_tool("decode", lines), strict=True):
        assert json.loads(line) == {"records": records}, f"seed {seed}"


@pytest.mark.parametrize("outsider", OUTSIDERS)
def test_java_refuses_what_outsiders_wrote_and_a_disk_changed(batch_tool: BatchTool, seed: int, outsider: str) -> None:
    chance = random.Random(seed)
    lines = []
    for i in range(BATCHES):
        content = bytearray(outside_encode(outsider, CODECS[i % len(CODECS)], random_records(chance, 0)))
        at = chance.randrange(17, len(content))
        content[at] ^= 1 << chance.randrange(8)
        lines.append(content.hex())
    for line in batch_tool("decode", lines):
        assert list(json.loads(line)) == ["bad"], f"seed {seed}"


def random_records(chance: random.Random, base_offset: int) -> list[Record]:
    return [
        {
            "offset": base_offset + i,
            "timestamp": NOON + chance.choice((0, i, chance.randrange(-(10**6), 10**6), chance.randrange(10**12))),
            "key": random_bytes(chance),
            "value": random_bytes(chance, large=True),
            "headers": list(random_headers(chance)),
        }
        for i in range(chance.choice((1, 2, 3, 20, 70, 300)))
    ]


def random_bytes(chance: random.Random, large: bool = False) -> str | None:
    kind = chance.randrange(8)
    if kind == 0:
        return None
    if kind == 1:
        return ""
    if kind == 2 and large and chance.random() < 0.1:
        return chance.randbytes(chance.choice((8191, 8192, 70_000))).hex()  # more than one block of lz4 and snappy
    if kind < 5:
        return (b"%d" % chance.randrange(100)).hex() * chance.randrange(1, 60)  # something to compress
    return chance.randbytes(chance.randrange(80)).hex()


def random_headers(chance: random.Random) -> Iterator[dict[str, str | None]]:
    for _ in range(max(0, chance.randrange(-4, 5))):
        key = chance.choice(("", "trace", "trace", "Schlüssel", "日本", "😀", "k" * 64))
        yield {"key": key, "value": random_bytes(chance)}


def outside_batches(outsider: str, content: bytes) -> list[Any]:
    records = OUTSIDERS[outsider].MemoryRecords(content)
    batches = []
    while records.has_next():
        batches.append(records.next_batch())
    return batches


def outside_encode(outsider: str, codec: str, records: list[Record]) -> bytes:
    builder = OUTSIDERS[outsider].default_records.DefaultRecordBatchBuilder(
        magic=2,
        compression_type=CODECS.index(codec),
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=BATCH_BYTES,
    )
    for record in records:
        headers = [(header["key"], from_hex(header["value"])) for header in record["headers"]]
        added = builder.append(record["offset"], record["timestamp"], from_hex(record["key"]), from_hex(record["value"]), headers)
        assert added is not None
    return bytes(builder.build())


def plain(record: Any) -> Record:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": None if record.key is None else bytes(record.key).hex(),
        "value": None if record.value is None else bytes(record.value).hex(),
        "headers": [{"key": key, "value": None if value is None else bytes(value).hex()} for key, value in record.headers],
    }


def from_hex(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)
