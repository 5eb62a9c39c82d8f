"""`sparklog.Log` over roots made by hand: what it answers, and that it answers nothing else."""

import datetime
import json
import os
import random
import subprocess
import sys
import tracemalloc
from pathlib import Path

import google_crc32c
import pyarrow as pa
import pytest
from handmade import TIME, VALUES, Record, Topic, batch, identity, records, sample, split

import sparklog
from sparklog import CallError, Log, SparklogError, partition_for
from sparklog.ondisk.root import local

UTC = datetime.timezone.utc
SEED = 11


def values(table: pa.Table) -> list[bytes]:
    return table["value"].to_pylist()


def offsets(table: pa.Table) -> list[tuple[int, int]]:
    return list(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    return sample(tmp_path)


@pytest.fixture
def log(topic: Topic) -> sparklog.Topic:
    return Log(topic.root).topic("t")


def failure(ask) -> SparklogError:
    with pytest.raises(SparklogError) as raised:
        ask()
    return raised.value


# --- questions and answers


def test_roots_and_topics(tmp_path, topic):
    Topic(tmp_path, "other.topic").append(records(1))
    (tmp_path / "_partlog" / "no topic").mkdir()
    (tmp_path / "_partlog" / "empty").mkdir()
    (tmp_path / "_partlog" / "file").write_text("")
    for root in (tmp_path, str(tmp_path), f"file:{tmp_path}", f"file://{tmp_path}", f"file://localhost{tmp_path}"):
        assert Log(root).topics() == ["other.topic", "t"]
        assert Log(root).topic("t").partitions == 2


# A root by its name → where it lies, or the condition that it is refused with.
ROOTS = json.loads((Path(__file__).parents[1] / "vectors" / "roots.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", ROOTS, ids=lambda case: case["root"])
def test_a_root_is_taken_as_it_stands(case):
    """StoresTest has the same cases: both halves must go to the same place."""
    if "path" in case:
        assert local(case["root"]) == case["path"]
    else:
        error = failure(lambda: Log(case["root"]))
        assert error.id == case["refused"]
        assert case["says"] in str(error)


def test_a_directory_that_is_not_a_root(tmp_path, topic):
    for folder in ("_partlog/t", "t-1", "broker/t-0", "plain", "plain-7", "t-01"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / "broker" / "meta.properties").write_text("")
    for folder, condition, says in (
        ("plain", "ROOT_WITHOUT_LOG", "plain exists, but it is not a root"),
        ("plain-7", "ROOT_WITHOUT_LOG", "plain-7 exists"),
        ("t-01", "ROOT_WITHOUT_LOG", "t-01 exists"),
        ("t-1", "PARTITION_DIRECTORY", f"partition 1 of topic t, not a root. Give the directory above it, {tmp_path},"),
        ("broker", "BROKER_DIRECTORY", "keeps meta.properties there: reading it is not supported yet."),
        ("broker/t-0", "BROKER_DIRECTORY", "keeps ../meta.properties there: reading it is not supported yet."),
    ):
        error = failure(lambda folder=folder: Log(tmp_path / folder))
        assert error.id == condition, folder
        assert says in str(error)


def test_what_is_not_there(tmp_path, topic):
    (tmp_path / "file").write_text("")
    log = Log(tmp_path)
    for ask, condition in (
        (lambda: Log(tmp_path / "nowhere"), "ROOT_NOT_FOUND"),
        (lambda: Log(""), "ROOT_REQUIRED"),
        (lambda: Log(tmp_path / "file"), "ROOT_NOT_A_DIRECTORY"),
        (lambda: Log("s3a://bucket/root"), "STORE_UNSUPPORTED"),
        (lambda: Log("file://host/root"), "STORE_UNSUPPORTED"),
        (lambda: log.topic("other"), "TOPIC_NOT_FOUND"),
        (lambda: log.topic("no topic"), "TOPIC_NAME_ILLEGAL"),
        (lambda: log.topic(".."), "TOPIC_NAME_ILLEGAL"),
        (lambda: log.topic("x/../t"), "TOPIC_NAME_ILLEGAL"),
        (lambda: log.topic("t").read(2), "PARTITION_NOT_FOUND"),
        (lambda: log.topic("t").batches(-1), "PARTITION_NOT_FOUND"),
        (lambda: log.topic("t").read(0, start=26), "OFFSETS_OUT_OF_RANGE"),
        (lambda: log.topic("t").read(start={2: 0}), "PARTITION_NOT_FOUND"),
        (lambda: log.topic("t").read(0, start=-3), "OFFSETS_OUT_OF_RANGE"),
        (lambda: log.topic("t").read(0, end=26), "OFFSETS_OUT_OF_RANGE"),
        (lambda: log.topic("t").read(end=20), "OFFSETS_OUT_OF_RANGE"),
        (lambda: log.topic("t").head(-1), "OPTION_VALUE"),
        (lambda: log.topic("t").tail(-1), "OPTION_VALUE"),
        (lambda: log.topic("t").commits(-1), "OPTION_VALUE"),
        (lambda: log["other"], "TOPIC_NOT_FOUND"),
        (lambda: log.topic("t").read(key="k1", partition=2), "PARTITION_NOT_FOUND"),
    ):
        error = failure(ask)
        assert error.id == condition
        assert isinstance(error, CallError)
    assert "`start` names partition 2" in str(failure(lambda: log.topic("t").read(start={2: 0})))
    assert "`n` has the value -1" in str(failure(lambda: log.topic("t").head(-1)))
    assert "Existing topics: t." in str(failure(lambda: log.topic("other")))
    for number in range(30):
        Topic(tmp_path, f"n{number:02}").commit()
    assert "n18, n19 and 11 more." in str(failure(lambda: log.topic("other")))


@pytest.mark.parametrize(
    ("ask", "named"),
    [
        (lambda t: t.read(start=-1), "Option `start` has the value -1: offsets begin at 0; leave `start` out for the earliest offset"),
        (lambda t: t.read(end={0: -2}), "Option `end` has the value -2: offsets begin at 0; leave `start` out for the earliest offset"),
        (lambda t: t.offsets_for_time("2023-11-14"), "Option `time` has the value 2023-11-14: it must have a time zone"),
        (lambda t: t.offsets_for_time("14.11.2023"), "Option `time` has the value 14.11.2023: it is not a time in ISO 8601"),
        (lambda t: t.offsets_for_time(datetime.datetime(2024, 1, 1)), "Option `time` has the value 2024-01-01 00:00:00: it must have a"),  # noqa: DTZ001
        (lambda t: t.read(columns=["offset", "k"]), "Option `columns` has the value ['offset', 'k']: 'k' is not one of key, value, topic"),
        (lambda t: t.read(columns=[]), "Option `columns` has the value []: it must name one column or more"),
        (lambda t: t.read(columns=["key", "key"]), "Option `columns` has the value ['key', 'key']: it must name one column or more"),
    ],
)
def test_values_that_do_not_fit(log, ask, named):
    error = failure(lambda: ask(log))
    assert isinstance(error, CallError) and str(error).startswith(f"[PARTLOG_OPTION_VALUE] {named}")


@pytest.mark.parametrize(
    ("ask", "named"),
    [
        (lambda t: t.read("0"), "`partition` is '0', of type str; it must be an integer"),
        (lambda t: t.batches(None), "`partition` is None, of type NoneType; it must be an integer"),
        (lambda t: t.read(start="earliest"), "`start` is 'earliest', of type str; it must be an integer, or a dict of such by partition"),
        (lambda t: t.read(end={0: 1.0}), "`end` is 1.0, of type float; it must be an integer, or a dict of such by partition"),
        (lambda t: t.head(2.0), "`n` is 2.0, of type float; it must be an integer"),
        (lambda t: t.read(limit="3"), "`limit` is '3', of type str; it must be an integer"),
        (lambda t: t.offsets_for_time(1.7e12), "`time` is 1700000000000.0, of type float; it must be an integer (milliseconds since"),
        (lambda t: t.offsets_for_time(datetime.date(2024, 1, 1)), "`time` is datetime.date(2024, 1, 1), of type date; it must be an"),
        (lambda t: t.read(columns="key"), "`columns` is 'key', of type str; it must be a list of names"),
        (lambda t: t.read(key=7), "a key is str, bytes or None, not int"),
        (lambda t: t.partition_for(None), "`key` is None; records without a key are in any partition"),
        (lambda t: Log(t.root)[0], "`name` is 0, of type int; it must be a string"),
    ],
)
def test_types_that_do_not_fit(log, ask, named):
    with pytest.raises(TypeError) as raised:
        ask(log)
    assert str(raised.value).startswith(named)


def test_a_log_is_like_a_dict_of_topics(tmp_path, topic):
    Topic(tmp_path, "other").append(records(1))
    log = Log(tmp_path)
    assert (list(log), len(log)) == (["other", "t"], 2)
    assert "t" in log and "u" not in log and 3 not in log
    assert offsets(log["t"].read(1)) == [(1, offset) for offset in range(10)]
    assert log


def test_offsets_and_configuration(log):
    assert (log.name, log.partitions) == ("t", 2)
    assert log.config["partitioner"] == "murmur3"
    assert (log.start_offsets(), log.end_offsets()) == ({0: 0, 1: 0}, {0: 25, 1: 10})


def test_read_gives_sparks_columns(log):
    table = log.read()
    assert table.schema.names == ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]
    types = [pa.binary(), pa.binary(), pa.string(), pa.int32(), pa.int64(), pa.timestamp("us", "UTC"), pa.int32()]
    assert table.schema.types == [*types, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))]
    assert offsets(table) == [(0, offset) for offset in range(25)] + [(1, offset) for offset in range(10)]
    assert values(table)[:25] == VALUES
    assert table.slice(16, 1).to_pylist() == [
        {
            "key": b"k1",
            "value": b"d-1",
            "topic": "t",
            "partition": 0,
            "offset": 16,
            "timestamp": datetime.datetime.fromtimestamp((TIME + 1001) / 1000, UTC),
            "timestampType": 0,
            "headers": None,
        }
    ]


def test_every_range_gives_what_it_names(log):
    for start in range(26):
        for end in range(start, 26):
            table = log.read(0, start, end)
            assert offsets(table) == [(0, offset) for offset in range(start, end)]
            assert values(table) == VALUES[start:end]
    assert log.read(0, 7, 3).num_rows == 0


def test_ranges_and_limits_by_partition(log):
    assert offsets(log.read(start={0: 23, 1: 8})) == [(0, 23), (0, 24), (1, 8), (1, 9)]
    assert offsets(log.read(end={0: 1}, limit=3)) == [(0, 0), (1, 0), (1, 1)]
    for limit in range(40):
        assert offsets(log.read(limit=limit)) == offsets(log.read())[:limit]
        assert values(log.read(0, 6, limit=limit)) == VALUES[6 : 6 + limit]


def test_head_and_tail(log):
    everything = offsets(log.read())
    for n in range(40):
        assert offsets(log.head(n)) == everything[:n]
        assert offsets(log.head(n, partition=1)) == [(1, offset) for offset in range(min(n, 10))]
        assert offsets(log.tail(n, partition=1)) == [(1, offset) for offset in range(max(0, 10 - n), 10)]
        assert log.tail(n).num_rows == min(n, 35)
    assert offsets(log.tail(4)) == [(0, 21), (0, 22), (0, 23), (0, 24)]


def test_tail_merges_partitions_by_time_and_keeps_their_order(tmp_path):
    topic = Topic(tmp_path, partitions=2)
    topic.commit(
        topic.data(batch([Record(timestamp=TIME + at) for at in (1, 9, 3, 10)])),
        topic.data(batch([Record(timestamp=TIME + at) for at in (2, 4, 8, 9)]), 1),
    )
    log = Log(tmp_path).topic("t")
    # 0:1 has time 9, but 0:2 with time 3 comes after it.
    assert offsets(log.tail(8)) == [(0, 0), (1, 0), (0, 1), (0, 2), (1, 1), (1, 2), (1, 3), (0, 3)]
    assert offsets(log.tail(3)) == [(1, 2), (1, 3), (0, 3)]


def test_offsets_for_time(log):
    def at(time):
        return log.offsets_for_time(time)

    assert at(0) == at(-1) == at(-(2**80)) == {0: 0, 1: 0}
    assert at(2**80) == {0: 25, 1: 10}
    assert at(TIME + 3) == {0: 3, 1: 3}
    # Each batch of the first segment begins at TIME again: the first record as late as that counts, in order of offsets.
    assert at(TIME + 5) == {0: 14, 1: 5}
    assert at(TIME + 6) == {0: 15, 1: 6}
    assert at(TIME + 1003) == {0: 18, 1: 10}
    assert at(TIME + 2002) == {0: 24, 1: 10}
    assert at(TIME + 2003) == {0: 25, 1: 10}
    moment = datetime.datetime.fromtimestamp(TIME / 1000, UTC)
    assert at(moment + datetime.timedelta(milliseconds=3)) == {0: 3, 1: 3}
    assert at("2023-11-14T22:13:20.003Z") == at("2023-11-14T23:13:20.003+01:00") == {0: 3, 1: 3}
    assert at(moment + datetime.timedelta(milliseconds=2, microseconds=1)) == {0: 3, 1: 3}


def test_offsets_for_time_looks_at_what_is_still_there(topic, log):
    topic.commit(starts=[16, 4])
    assert log.offsets_for_time(TIME) == {0: 16, 1: 4}
    assert log.offsets_for_time(TIME + 2) == {0: 16, 1: 4}
    assert offsets(log.read())[0] == (0, 16)
    assert failure(lambda: log.read(0, start=15)).id == "OFFSETS_OUT_OF_RANGE"


def test_scan_is_of_the_moment_it_was_called(topic, log):
    scan = log.scan()
    topic.append(records(1, "later"))
    assert sum(part.num_rows for part in scan) == 35
    assert log.read().num_rows == 36


def test_batches(log, topic):
    found = list(log.batches(0))
    assert [(each.base_offset, each.last_offset, each.records) for each in found] == [
        (0, 4, 5),
        (5, 8, 4),
        (9, 14, 6),
        (15, 21, 7),
        (22, 24, 3),
    ]
    for each in found:
        octets = Path(each.file).read_bytes()[each.position :][: each.bytes]
        assert split(octets) == [octets]
        assert each.crc == google_crc32c.value(octets[21:])
    assert (found[3].codec, found[3].base_timestamp, found[3].max_timestamp) == ("none", TIME + 1000, TIME + 1006)
    assert (found[3].producer_id, found[3].producer_epoch, found[3].base_sequence) == (-1, -1, -1)


def test_commits(log, topic):
    topic.commit(query={"id": "q", "epoch": 4})
    first, second, third = log.commits()
    assert (first.version, first.operation, first.records, first.segments, first.end_offsets) == (0, "create", 15, 1, {0: 15, 1: 0})
    assert (second.version, second.writer, second.records, second.bytes) == (
        1,
        "by hand",
        20,
        sum(segment["bytes"] for segment in topic.versions[1]["added"]),
    )
    assert (third.query, third.epoch, third.records) == ("q", 4, 0)
    assert second.time == datetime.datetime.fromtimestamp(TIME / 1000 + 1, UTC)
    assert log.commits(1) == [third]


def test_describe(log, topic):
    about = json.loads(json.dumps(log.describe()))
    assert (about["topic"], about["version"], about["records"], about["segments"]) == ("t", 1, 35, 3)
    assert about["bytes"] == sum(segment["bytes"] for version in topic.versions for segment in version["added"])
    assert about["partitions"][1] | {"bytes": 0} == {
        "partition": 1,
        "start": 0,
        "end": 10,
        "records": 10,
        "batches": 1,
        "bytes": 0,
        "segments": 1,
        "min_timestamp": TIME,
        "max_timestamp": TIME + 9,
    }


def test_a_topic_without_records(tmp_path):
    Topic(tmp_path, partitions=3).commit()
    log = Log(tmp_path).topic("t")
    for table in (log.head(), log.tail(), log.read()):
        assert table.num_rows == 0 and table.schema.names[0] == "key"
    assert log.offsets_for_time(0) == {0: 0, 1: 0, 2: 0}
    assert list(log.batches(1)) == []
    assert log.describe()["partitions"][0]["max_timestamp"] is None


# --- columns and keys


def test_columns_are_those_that_are_named_in_that_order(log):
    whole = log.read()
    for columns in (["value"], ["offset", "key"], ["headers", "partition", "timestamp"], whole.schema.names[::-1]):
        assert log.read(columns=columns).equals(whole.select(columns))
        assert log.read(1, 3, limit=4, columns=columns).equals(whole.select(columns).slice(28, 4))
        assert log.head(3, columns=columns).equals(whole.select(columns).slice(0, 3))
        assert log.tail(4, columns=columns).equals(log.tail(4).select(columns))


def keyed(root: Path) -> dict[bytes, list[tuple[int, int, bytes]]]:
    """A topic of records with random keys where murmur2 puts them; gives for each key where its records are, and their values."""
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
    # Another partition is read if it is named; and without that, only the key's own is opened.
    own = log.partition_for("a")
    assert log.read((own + 1) % 3, key="a").num_rows == 0
    for partition in {0, 1, 2} - {own}:
        for file in (tmp_path / "_partlog").rglob(f"p{partition}-*.log"):
            file.unlink()
    assert log.read(key="a").num_rows == len(found[b"a"])
    assert failure(log.read).id == "SEGMENT_MISSING"


# --- other libraries


def test_others_take_a_topic_as_it_is(log):
    import duckdb
    import polars

    table = log.read()
    assert pa.table(log).equals(table)
    assert pa.RecordBatchReader.from_stream(log).read_all().equals(table)
    assert polars.DataFrame(log).to_dict(as_series=False) == table.to_pydict()
    sums = 'SELECT count(*), sum(partition), sum("offset"), max(value) FROM '
    assert duckdb.sql(sums + "log").fetchall() == [(35, 10, 300 + 45, b"p-9")]
    part = log.scan(1, 3, columns=["value", "offset", "partition"])  # noqa: F841 # DuckDB finds it by its name
    assert duckdb.sql(sums + "part").fetchall() == [(7, 7, sum(range(3, 10)), b"p-9")]


def test_others_are_told_what_is_wrong(topic, log):
    import polars

    file = topic.folder / topic.versions[0]["added"][0]["file"]
    octets = bytearray(file.read_bytes())
    octets[-1] ^= 1
    file.write_bytes(octets)
    for take in (pa.table, polars.DataFrame):
        with pytest.raises(Exception, match=r"PARTLOG_BATCH_CORRUPT\] Topic t, partition 0"):
            take(log)


# --- what it costs


def test_memory_does_not_grow_with_the_topic(tmp_path):
    topic = Topic(tmp_path)
    octets = b"".join(batch([Record(bytes(1000)) for _ in range(100)], 100 * number) for number in range(10))
    for _ in range(60):
        topic.commit(topic.data(octets))
    log = Log(tmp_path).topic("t")
    peaks = []
    for limit in (2_000, 60_000):
        tracemalloc.start()
        before = pa.total_allocated_bytes()
        arrow = rows = 0
        for part in log.scan(limit=limit):
            rows += part.num_rows
            arrow = max(arrow, pa.total_allocated_bytes() - before)
        peaks.append(tracemalloc.get_traced_memory()[1] + arrow)
        tracemalloc.stop()
        assert rows == limit
    assert peaks[1] < peaks[0] * 1.5 + 8_000_000, peaks


def test_a_process_without_java_and_without_spark_can_do_all_of_it(topic):
    script = """
import sys
class Never:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pyspark", "py4j", "pandas", "delta"):
            raise ImportError(name)
sys.meta_path.insert(0, Never())
import sparklog
log = sparklog.Log(sys.argv[1])
topic = log.topic(log.topics()[0])
print(topic.head(1).num_rows, topic.tail(1).num_rows, topic.read().num_rows, len(list(topic.batches(0))), len(topic.commits()))
topic.show(1), topic.show(1, key="k1", last=True), repr(topic.commits())
topic.describe(), topic.offsets_for_time(0), repr(log), repr(topic), log._repr_html_(), topic._repr_html_()
"""
    environment = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"} | {"PATH": "/nowhere"}
    ended = subprocess.run([sys.executable, "-c", script, str(topic.root)], env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[0] == "1 1 35 5 2"


@pytest.mark.slow
def test_head_of_a_large_topic_takes_less_than_half_a_second(tmp_path):
    """10 GB in 10,000 commits to 8 partitions, most of it holes that no answer may need."""
    topic = Topic(tmp_path, partitions=8)
    octets = batch(records(100))
    for version in range(10_000):
        if version < 20:
            segments = [topic.data(octets, partition) for partition in range(8)]
        else:
            file = f"data/{version:020d}-{identity(version)}/pool.log"
            ends = topic.versions[-1]["ends"]
            segments = [old | {"base": end, "end": end + 100, "file": file} for old, end in zip(segments, ends, strict=True)]
            if version % 100 == 99:
                (topic.folder / file).parent.mkdir()
                (topic.folder / file).touch()
                os.truncate(topic.folder / file, 100_000_000)
        topic.commit(*segments)
        if version == 9_949:
            topic.checkpoint()
    script = """
import sys, time
begun = time.perf_counter()
import sparklog
table = sparklog.Log(sys.argv[1]).topic("t").head(10)
print(time.perf_counter() - begun, table.num_rows, "pandas" in sys.modules)
"""
    command = [sys.executable, "-c", script, str(tmp_path)]
    times = []
    for _ in range(5):
        seconds, *rest = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        assert rest == ["10", "False"]
        times.append(float(seconds))
    print(f"import and head(10): {min(times):.3f} s")
    assert min(times) < 0.5, times
