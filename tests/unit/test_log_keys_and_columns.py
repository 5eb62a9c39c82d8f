"""Reading only some columns, and only the records with one key."""

import random
from pathlib import Path

from handmade import TIME, Record, Topic, batch
from unit.answers import failure, values

from sparklog import Log, partition_for

SEED = 11


def test_columns_are_those_that_are_named_in_that_order(log):
    whole = log.read()
    for columns in (["value"], ["offset", "key"], ["headers", "partition", "timestamp"], whole.schema.names[::-1]):
        assert log.read(columns=columns).equals(whole.select(columns))
        assert log.read(1, 3, limit=4, columns=columns).equals(whole.select(columns).slice(28, 4))
        assert log.head(3, columns=columns).equals(whole.select(columns).slice(0, 3))
        assert log.tail(4, columns=columns).equals(log.tail(4).select(columns))


def keyed(root: Path) -> dict[bytes, list[tuple[int, int, bytes]]]:
    """Writes a topic with random keys, routed by murmur2. Returns the partition, offset and value of each record by key."""
    numbers = random.Random(SEED)
    keys = [b"", b"a", b"b", b"ab", b"abc", b"abd", bytes(40), bytes(41), b"k" * 300, "Zürich".encode()]
    topic = Topic(root, "keyed", partitions=3, config={"partitioner": "murmur2"})
    found: dict[bytes, list[tuple[int, int, bytes]]] = {key: [] for key in keys}
    ends = [0] * 3
    for commit in range(6):
        parts: dict[int, list[Record]] = {0: [], 1: [], 2: []}
        for number in range(400):
            key = numbers.choice(keys)
            partition = partition_for(key, 3, "murmur2")
            value = f"{commit}-{number}".encode()
            headers = ((b"h", value),) * numbers.randrange(3)
            found[key].append((partition, ends[partition] + len(parts[partition]), value))
            parts[partition].append(Record(value, key, TIME + 1000 * commit + number, headers))
        added = []
        for partition, content in parts.items():
            half = len(content) // 2
            octets = batch(content[:half]) + batch(content[half:], half)
            added.append(topic.data(octets, partition, name=f"p{partition}-t0-0-0.log"))
            ends[partition] += len(content)
        topic.commit(*added)
    return found


def test_a_key_gives_its_records_and_reads_its_partition(tmp_path):
    found = keyed(tmp_path)
    log = Log(tmp_path)["keyed"]
    whole = log.read().to_pylist()
    for key, wanted in found.items():
        table = log.read(key=key)
        assert list(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), values(table), strict=True)) == wanted
        assert table.to_pylist() == [row for row in whole if row["key"] == key]
        assert log.partition_for(key) == wanted[0][0]
        for n in (0, 1, 7, len(wanted), len(wanted) + 1):
            assert values(log.head(n, key=key)) == [value for _, _, value in wanted[:n]]
            assert values(log.tail(n, key=key)) == [value for _, _, value in wanted[max(0, len(wanted) - n) :]]
            assert values(log.read(key=key, limit=n, columns=["value"])) == [value for _, _, value in wanted[:n]]
        start = wanted[len(wanted) // 2][1]
        assert values(log.read(wanted[0][0], start, key=key)) == [value for _, offset, value in wanted if offset >= start]
    assert log.read(key="Zürich").equals(log.read(key="Zürich".encode())) and log.read(key="Zürich").num_rows
    assert log.read(key="nobody").num_rows == log.read(key="n" * 100_000).num_rows == 0
    # Another partition is read only if it is named. Otherwise only the key's own partition is opened.
    own = log.partition_for("a")
    assert log.read((own + 1) % 3, key="a").num_rows == 0
    for partition in {0, 1, 2} - {own}:
        for file in (tmp_path / "_partlog").rglob(f"p{partition}-*.log"):
            file.unlink()
    assert log.read(key="a").num_rows == len(found[b"a"])
    assert failure(log.read).id == "SEGMENT_MISSING"
