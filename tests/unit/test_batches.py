"""The reader in Python on record batches: those of other programs, edge cases and wrong ones."""

import contextlib
import datetime
import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from handmade import HEADER, TIME, Record, batch, flipped, records, seeded
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_batches import BROKEN, CONTENT, RIGHT, WRONG, compressed, lz4_stored, snappy, xerial

from sparklog.batches import header as header_module
from sparklog.batches import record_starts
from sparklog.batches import records as records_module
from sparklog.batches.columns import SCHEMA, arrow_batch
from sparklog.batches.header import CODECS, HEADER_BYTES, Header
from sparklog.batches.records import Payload, locate
from sparklog.store.store import Damaged

UTC = datetime.timezone.utc
LIMIT = 64 * 1024 * 1024
VECTORS = sorted((Path(__file__).parents[1] / "vectors").glob("batches*.json"))


def payloads(*batches: bytes, limit: int = LIMIT):
    headers = [Header.read(each, 0, len(each)) for each in batches]
    return [Payload.of(header, memoryview(each), header.base_offset, limit) for header, each in zip(headers, batches, strict=True)]


def read(*batches: bytes, limit: int = LIMIT) -> pa.Table:
    """The records of some batches, decoded together."""
    parts = [arrow_batch("t", 0, found, 0, len(found.offsets)) for found in locate(payloads(*batches, limit=limit))]
    return pa.Table.from_batches(parts, schema=SCHEMA)


def rows(table: pa.Table) -> list[tuple]:
    millis = table["timestamp"].cast(pa.int64())
    return [
        (row["offset"], stamp.as_py() // 1000, row["key"], row["value"], [(h["key"], h["value"]) for h in row["headers"] or []])
        for row, stamp in zip(table.drop_columns("timestamp").to_pylist(), millis, strict=True)
    ]


def expected(content: list[Record], base_offset: int = 0) -> list[tuple]:
    return [
        (base_offset + delta, each.timestamp, each.key, each.value, [(key.decode(), value) for key, value in each.headers])
        for delta, each in enumerate(content)
    ]


ALL = [vector for file in VECTORS for vector in json.loads(file.read_text())]
RESERVED = [each for each in ALL if each["transactional"] or each["control"] or each["deleteHorizon"]]
"""They have attributes that no batch of this release has."""
OTHERS = {vector["name"]: vector for vector in ALL if vector not in RESERVED}


def test_there_are_vectors_of_every_codec():
    assert {vector["codec"] for vector in OTHERS.values()} == set(CODECS)


@pytest.mark.parametrize("vector", RESERVED, ids=lambda vector: vector["name"])
def test_reserved_attributes_are_refused(vector):
    octets = bytes.fromhex(vector["hex"])
    with pytest.raises(Damaged, match="bits 4 to 15 must be 0"):
        Header.read(octets, 0, len(octets))


@pytest.mark.parametrize("vector", OTHERS.values(), ids=OTHERS)
def test_what_others_wrote(vector):
    octets = bytes.fromhex(vector["hex"])
    header = Header.read(octets, 0, len(octets))
    assert header.total_bytes == len(octets)
    assert (header.base_offset, header.leader_epoch, header.crc) == (vector["baseOffset"], vector["leaderEpoch"], vector["crc"])
    assert CODECS[header.codec] == vector["codec"]
    assert header.log_append_time == vector["logAppendTime"]
    assert header.last_offset_delta == vector["lastOffsetDelta"]
    assert (header.base_timestamp, header.max_timestamp) == (vector["baseTimestamp"], vector["maxTimestamp"])
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == tuple(
        vector[name] for name in ("producerId", "producerEpoch", "baseSequence")
    )

    def octets_of(text):
        return None if text is None else bytes.fromhex(text)

    wanted = [
        (
            record["offset"],
            record["timestamp"],
            octets_of(record["key"]),
            octets_of(record["value"]),
            [(header["key"], octets_of(header["value"])) for header in record["headers"]],
        )
        for record in vector["records"]
    ]
    table = read(octets)
    assert rows(table) == wanted
    assert set(table["timestampType"].to_pylist()) <= {int(vector["logAppendTime"])}


def test_varints_that_others_wrote():
    vectors = json.loads((VECTORS[0].parent / "varints.json").read_text())
    for kind, bytes_max in (("varint", header_module.VARINT_BYTES_MAX), ("varlong", header_module.VARLONG_BYTES_MAX)):
        octets = [bytes.fromhex(vector["hex"]) for vector in vectors[kind]]
        starts = np.cumsum([0, *map(len, octets)])
        data = np.frombuffer(b"".join(octets) + record_starts.PADDING, dtype=np.uint8)
        values, ends = records_module._varints(data, starts[:-1], bytes_max)
        assert values.tolist() == [vector["value"] for vector in vectors[kind]]
        assert ends.tolist() == starts[1:].tolist()


def test_the_header_has_kafkas_layout():
    assert header_module._HEADER.format == HEADER.format
    assert (HEADER_BYTES, header_module.LENGTH_MIN) == (61, 49)
    assert (header_module.LENGTH_FROM, header_module.COUNTED_FROM, header_module.SUMMED_FROM) == (8, 12, 21)


headers = st.lists(st.tuples(st.text(max_size=5).map(str.encode), st.none() | st.binary(max_size=20)), max_size=3).map(tuple)
any_records = st.lists(
    st.builds(
        Record,
        value=st.none() | st.binary(max_size=300),
        key=st.none() | st.binary(max_size=10),
        timestamp=st.integers(0, 253_402_250_399_999),
        headers=headers,
    ),
    min_size=1,
    max_size=20,
)


@given(st.lists(any_records, min_size=1, max_size=5))
@settings(deadline=None)
def test_any_records_come_back(contents):
    bases = [1000 * number for number in range(len(contents))]
    octets = [batch(content, base) for content, base in zip(contents, bases, strict=True)]
    assert rows(read(*octets)) == [row for content, base in zip(contents, bases, strict=True) for row in expected(content, base)]


@pytest.mark.parametrize("sizes", [(1, 300), (100, 100), (0, 0), (60, 70), (8180, 8200), (20_000, 20_000)])
def test_records_of_every_size_are_found_in_each_way(sizes, monkeypatch):
    random = seeded()
    contents = [
        [Record(random.randbytes(random.randint(*sizes)), b"k", TIME + random.choice((number, 10**9))) for number in range(300)]
        for _ in range(3)
    ]
    data = b"".join(bytes(piece) for each in payloads(*map(batch, contents)) for piece in each.pieces) + record_starts.PADDING
    step, wanted = 0, [0]
    while step < len(data) - len(record_starts.PADDING):
        length, step = record_starts.varint(data, step)
        step += length // 2
        wanted.append(step)
    bounds = np.array([wanted[300 * number] for number in range(4)])
    assert record_starts.starts(data, 0, 900).tolist() == wanted
    assert record_starts.starts(data, wanted[100], 200).tolist() == wanted[100:301]
    monkeypatch.setattr(record_starts, "_ABREAST_MIN", 1)
    abreast = record_starts.starts_abreast(data, bounds, np.array([300, 300, 300]))
    assert abreast.tolist() == wanted if max(sizes) < 8000 else abreast is None


def test_batches_of_different_counts_abreast(monkeypatch):
    monkeypatch.setattr(record_starts, "_ABREAST_MIN", 1)
    contents = [records(count, f"b{count}") for count in (5, 1, 9, 9, 2)]
    octets = [batch(content, 100 * number) for number, content in enumerate(contents)]
    empty = batch([], 1000, last_offset_delta=3)
    wanted = [row for number, content in enumerate(contents) for row in expected(content, 100 * number)]
    assert rows(read(*octets[:3], empty, *octets[3:], empty)) == wanted


def test_more_records_than_are_looked_at_at_once(monkeypatch):
    monkeypatch.setattr(records_module, "RECORDS_AT_ONCE", 7)
    contents = [records(count, f"b{count}") for count in (20, 3, 1, 14, 2)]
    octets = [batch(content, 100 * number) for number, content in enumerate(contents)]
    wanted = [row for number, content in enumerate(contents) for row in expected(content, 100 * number)]
    assert rows(read(*octets)) == wanted
    # The falling delta is the first one of a part.
    with pytest.raises(Damaged, match="do not rise"):
        read(batch(records(9), deltas=[0, 1, 2, 3, 4, 5, 6, 6, 8]))
    assert [row[0] for row in rows(read(batch(records(9), deltas=[1, 3, 4, 5, 6, 7, 8, 20, 30])))] == [1, 3, 4, 5, 6, 7, 8, 20, 30]


@pytest.mark.parametrize("count", [1, 63, 64, 65, 200])
def test_many_headers(count):
    many = tuple((f"h{number}".encode(), None if number % 3 else bytes(number)) for number in range(count))
    content = [Record(b"a"), Record(b"b", headers=many), Record(b"c", headers=((b"x", b"y"),)), Record(b"d")]
    table = read(batch(content))
    assert rows(table) == expected(content)
    assert table["headers"].is_null().to_pylist() == [True, False, False, True]


def test_a_header_key_that_is_not_utf8_can_still_be_shown():
    assert rows(read(batch([Record(headers=((b"a\xff", b"v"),))])))[0][4] == [("a�", b"v")]


def test_a_time_beyond_the_years_of_a_datetime_is_the_last_of_them():
    """A client that gives ns in place of ms writes such times."""
    first, last = datetime.datetime(1, 1, 3, tzinfo=UTC), datetime.datetime(9999, 12, 31, 9, 59, 59, 999_000, UTC)
    beyond = [2**63 - 1, 1_790_000_000 * 10**9, 253_402_250_400_000, -(2**63), -62_135_424_000_001]
    within = [253_402_250_399_999, -62_135_424_000_000, 5]
    table = read(*(batch([Record(timestamp=time)], number) for number, time in enumerate(beyond + within)))
    times = [row["timestamp"] for row in table.to_pylist()]
    assert times == [last, last, last, first, first, last, first, datetime.datetime(1970, 1, 1, 0, 0, 0, 5000, UTC)]


def test_a_record_without_a_time():
    assert rows(read(batch([Record(timestamp=-1), Record(timestamp=5)])))[0][1] == -1


# --- wrong batches


@pytest.mark.parametrize("wrong", BROKEN.values(), ids=BROKEN)
def test_what_is_wrong_is_refused(wrong):
    with pytest.raises(Damaged):
        read(batch([Record()], **wrong))
    # The same among many right batches.
    right = [batch(records(5), 100 * number) for number in range(100)]
    with pytest.raises(Damaged):
        read(*right[:50], batch([Record()], 5000, **wrong), *right[50:])


@pytest.mark.parametrize("deltas", [[0, 0], [1, 0], [0, 5], [-1, 0]])
def test_offsets_must_rise_inside_the_batch(deltas):
    with pytest.raises(Damaged, match="do not rise"):
        read(batch(records(2), deltas=deltas, last_offset_delta=4))


def test_two_batches_do_not_make_up_for_each_other():
    """The first batch ends one record too late, and the second begins one record too late. Together their bytes are right."""
    payload = [record.encoded(delta, TIME) for delta, record in enumerate(records(4))]
    with pytest.raises(Damaged):
        read(batch(records(1), payload=payload[0] + payload[1]), batch(records(3), 10, payload=payload[2] + payload[3]))


def test_a_flipped_bit_is_noticed_wherever_the_checksum_covers():
    random = seeded()
    octets = batch(records(20))
    for bit in random.sample(range(17 * 8, len(octets) * 8), 200):
        with pytest.raises(Damaged):
            read(flipped(octets, bit))


def test_any_bytes_are_read_or_refused():
    """Random payloads with right checksums raise Damaged and no other exception."""
    random = seeded()
    template = b"".join(record.encoded(delta, TIME) for delta, record in enumerate(records(30)))
    refused = 0
    for _ in range(1000):
        payload = bytearray(template)
        for _ in range(random.randint(1, 4)):
            payload[random.randrange(len(payload))] = random.choice((0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF, random.randrange(256)))
        octets = batch([], payload=bytes(payload), records=30, last_offset_delta=random.choice((29, 29, 2**31 - 1)), base_timestamp=TIME)
        try:
            read(octets)
        except Damaged:
            refused += 1
    assert 100 < refused < 1000


# --- codecs


@pytest.mark.parametrize(("codec", "payload"), RIGHT.values(), ids=RIGHT)
def test_every_form_of_a_codec(codec, payload):
    assert rows(read(compressed(codec, payload))) == expected(CONTENT)


@pytest.mark.parametrize(("codec", "payload"), RIGHT.values(), ids=RIGHT)
def test_a_stream_that_is_cut_off_or_followed_by_something(codec, payload):
    for cut in (0, 1, 7, len(payload) // 2, len(payload) - 1):
        with pytest.raises(Damaged):
            read(compressed(codec, payload[:cut]))
    for more in (b"\0", b"more of it"):
        with pytest.raises(Damaged):
            read(compressed(codec, payload + more))


@pytest.mark.parametrize(("codec", "payload"), RIGHT.values(), ids=RIGHT)
def test_any_bytes_are_decompressed_or_refused(codec, payload):
    random = seeded()
    for _ in range(300):
        with contextlib.suppress(Damaged):
            read(compressed(codec, flipped(payload, random.randrange(len(payload) * 8))))


@pytest.mark.parametrize(("codec", "payload"), WRONG.values(), ids=WRONG)
def test_what_is_not_the_codecs_form(codec, payload):
    with pytest.raises(Damaged):
        read(compressed(codec, payload))


ZEROS = bytes(1 << 20)
BOMBS = {
    "gzip": gzip.compress(ZEROS * 100),
    "snappy": xerial(*[snappy(ZEROS)] * 100),
    "snappy that lies": xerial(b"\xff\xff\xff\xff\x0f" + bytes(100)),
    "lz4": lz4_stored(ZEROS * 2),
    "zstd": pa.compress(ZEROS * 100, "zstd", asbytes=True),
    "many small members": gzip.compress(b"") * 20_000 + gzip.compress(ZEROS * 2),
}


@pytest.mark.parametrize("name", BOMBS)
def test_nothing_is_decompressed_beyond_the_limit(name):
    codec = "gzip" if name.startswith("many") else name.split()[0]
    with pytest.raises(Damaged, match="more than 1048576 bytes"):
        read(compressed(codec, BOMBS[name], 1), limit=1 << 20)


@pytest.mark.parametrize("codec", CODECS)
def test_an_empty_batch_of_any_codec(codec):
    assert read(batch([], attributes=CODECS.index(codec), last_offset_delta=4)).num_rows == 0
    with pytest.raises(Damaged):
        read(compressed(codec, b"", 1))
