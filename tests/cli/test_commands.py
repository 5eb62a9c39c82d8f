"""Commands: their output, and how they end, compared with the answers of Python."""

import csv
import io
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from handmade import TIME, VALUES, Record, Topic, records, split
from owners import Own

import sparklog
from sparklog.__main__ import main
from sparklog.cli.parameters import _topics
from sparklog.groups import OffsetTable
from sparklog.show.display import Display


def lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_help_lists_every_command_and_examples(run):
    said = run("--help")
    readers = ["topics", "describe", "head", "tail", "cat", "dump", "segments", "commits", "groups", "lag", "reset", "keys", "stats"]
    commands = [*readers, "jar", "conf", "options", "class-archive"]
    for command in commands:
        assert f" {command} " in said
        about = run(command, "--help")
        assert "Example" in about or command in ("jar", "conf", "options"), command


def test_topics(run, topic, tmp_path):
    broken = Topic(topic.root, "broken")
    broken.append(records(3))
    broken.version_file(0).write_bytes(b"{}")
    found = json.loads(run("topics", topic.root, "--json"))
    assert [each["topic"] for each in found] == ["broken", "t"]
    assert found[0]["error"].startswith("[PARTLOG_VERSION_CORRUPT]")
    assert found[1] == {**found[1], "partitions": 2, "offsets": 35, "records": 35, "segments": 3, "version": 1, "error": None}
    said = run("topics", topic.root)
    assert "PARTLOG_VERSION_CORRUPT" in said
    assert "35" in said
    both = json.loads(run("describe", topic.root, "t", "--json"))
    assert both == sparklog.Log(topic.root)["t"].describe()
    assert "PARTLOG_VERSION_CORRUPT" in run("describe", topic.root, status=3)
    assert "35 records" in run("describe", topic.root, "t")
    assert "wait for their deletion" not in run("describe", topic.root, "t")
    expired = Topic(topic.root, "expired", partitions=1)
    segment = expired.append(records(5))
    expired.commit(removed=[segment], starts=[5])
    assert f"; {segment['bytes']:,} bytes in 1 replaced file wait for their deletion" in run("describe", topic.root, "expired")


def test_a_topic_that_cannot_be_listed_hides_no_other(run, topic, tmp_path, capfdbinary):
    (topic.root / "_partlog" / "linked").symlink_to(tmp_path)
    found = json.loads(run("topics", topic.root, "--json"))
    assert [(each["topic"], each["records"]) for each in found] == [("linked", None), ("t", 35)]
    assert found[0]["error"].startswith("[PARTLOG_IO] ") and "symbolic link" in found[0]["error"]
    for names in ([], ["linked", "t"]):
        assert main(["describe", str(topic.root), *names]) == 5
        said = capfdbinary.readouterr()
        assert b"35 records" in said.out and b"[PARTLOG_IO]" in said.err
    assert "PARTLOG_TOPIC_NOT_FOUND" in run("describe", topic.root, "t", "u", status=2)


def test_segments_commits_and_keys(run, topic):
    log = sparklog.Log(topic.root)["t"]
    assert json.loads(run("segments", topic.root, "t", "--json")) == [each._asdict() for each in log.segments()]
    assert [(each.base, each.end) for each in log.segments(0)] == [(0, 15), (15, 25)]
    assert run("segments", topic.root, "t", "-p", 1).count("data/") == 1
    found = lines(run("commits", topic.root, "t", "--json"))
    assert [(each["version"], each["records"], each["end_offsets"]) for each in found] == [
        (0, 15, {"0": 15}),
        (1, 20, {"0": 25, "1": 10}),
    ]
    assert len(lines(run("commits", topic.root, "t", "-n", 1, "--json"))) == 1
    (key,) = json.loads(run("keys", topic.root, "t", "k1", "--json"))
    held = log.read(key="k1")
    assert (key["partition"], key["records"]) == (log.partition_for("k1"), held.num_rows)
    assert key["first"] == held["offset"][0].as_py()
    assert key["timestamp"] * 1000 == held["timestamp"].cast(pa.int64())[-1].as_py()
    assert [each["time"] for each in found] == [TIME + 1000 * number for number in range(2)]


def test_a_key_is_shown_from_every_partition(run, tmp_path):
    """The records of the key k are in partitions that a caller chose."""
    topic = Topic(tmp_path / "root", "t", partitions=3)
    for partition in range(3):
        topic.append([Record(b"v%d" % partition, b"k"), Record(b"w", b"other")], partition, routed=False)
    assert run("cat", topic.root, "t", "-k", "k") == "v0\nv1\nv2\n"
    assert run("cat", topic.root, "t", "-k", "k", "-p", "0,2") == "v0\nv2\n"


def test_stats(run, tmp_path):
    topic = Topic(tmp_path / "root", "t", partitions=2)
    topic.append([Record(b"x" * size, b"hot" if size % 2 else b"%d" % size) for size in range(1, 101)])
    topic.append([Record(None, None), Record(b"yy", None)], 1)
    found = json.loads(run("stats", topic.root, "t", "--json"))
    zero, one = found["partitions"]
    assert (found["records"], found["skew"]) == (102, round(100 * 2 / 102, 3))
    assert (zero["records"], zero["keys"], zero["null_keys"], zero["value_min"], zero["value_max"]) == (100, 51, 0, 1, 100)
    assert zero["raw"] == sum(range(1, 101)) + sum(3 if size % 2 else len(str(size)) for size in range(1, 101))
    assert 48 <= zero["value_median"] <= 53
    assert (one["null_keys"], one["null_values"], one["value_min"], one["value_median"]) == (2, 1, 2, 2)
    assert found["hot_keys"][0] == {"key": "hot", "partition": 0, "at_least": 50, "at_most": 50}
    assert len(found["hot_keys"]) == 10
    assert "hot" in run("stats", topic.root, "t", "-p", 0)
    odd = Topic(tmp_path / "root", "odd")
    odd.append([Record(b"", b"\xff", TIME), Record(b"", b"\xff", -1), Record(b"", b"\xff", TIME + 5)])
    found = json.loads(run("stats", topic.root, "odd", "--json"))
    assert found["hot_keys"] == [{"key_base64": "/w==", "partition": 0, "at_least": 3, "at_most": 3}]
    assert (found["partitions"][0]["min_timestamp"], found["partitions"][0]["max_timestamp"]) == (TIME, TIME + 5)
    Topic(tmp_path / "root", "empty").commit()
    assert "Most frequent" not in run("stats", topic.root, "empty")


def test_head_and_tail(run, topic):
    assert [each["offset"] for each in lines(run("head", topic.root, "t", "-n", 3, "--json"))] == [0, 1, 2]
    last = lines(run("tail", topic.root, "t", "-n", 3, "-p", 1, "--json"))
    assert [(each["partition"], each["offset"], each["value"]) for each in last] == [(1, 7, "p-7"), (1, 8, "p-8"), (1, 9, "p-9")]
    assert "a-0" in run("head", topic.root, "t", "-n", 1)
    assert "first 1 record\n" in run("head", topic.root, "t", "-n", 1)
    Topic(topic.root, "one").append(records(1))
    assert "\n1 record in 73 bytes, 1 segment\n" in run("describe", topic.root, "one")


@pytest.mark.parametrize(
    ("words", "offsets"),
    [
        (["-p", 0], range(25)),
        (["-p", 0, "-o", "beginning"], range(25)),
        (["-p", 0, "-o", "end"], ()),
        (["-p", 0, "-o", 7, "-c", 3], range(7, 10)),
        (["-p", 0, "-o", -4], range(21, 25)),
        (["-p", 0, "-o", f"s@{TIME + 1002}"], range(17, 25)),
        (["-p", 0, "-o", f"e@{TIME + 1002}"], range(17)),
        (["-p", 0, "-o", f"s@{TIME + 2000}", "-o", f"e@{TIME + 1000}"], ()),
        (["-p", 0, "--from", "2023-11-14T22:13:21.000Z", "--to", str(TIME + 1003)], range(15, 18)),
        (["-p", 0, "--from", TIME + 1000, "-n", 2], range(15, 17)),
        (["-p", 0, "-o", 25], ()),
    ],
)
def test_cat_prints_the_records_that_were_asked_for(run, topic, words, offsets):
    assert run("cat", topic.root, "t", *words) == "".join(f"{VALUES[offset].decode()}\n" for offset in offsets)
    assert [each["offset"] for each in lines(run("cat", topic.root, "t", *words, "--json"))] == list(offsets)


def test_cat_formats(run, hostile, tmp_path, topic):
    found = lines(run("cat", hostile.root, "h", "--json"))
    assert (found[0]["offset"], found[0]["timestamp"], found[0]["value"]) == (0, TIME, "\x1b]0;title\x07")
    assert found[0]["key"] == "\x1b[31mred\x1b[0m\r\n\x00\x9b2J"
    assert found[1]["value_base64"] == "//4="
    assert (found[2]["key"], found[2]["value"]) == (None, None)
    assert found[3]["value"] == "schlüssel"
    assert run("cat", topic.root, "t", "-p", 1, "-c", 2, "-f", r"%t:%p:%o %k=%s %K %S %T\t%%\n") == (
        f"t:1:0 k0=p-0 2 3 {TIME}\t%\nt:1:1 k1=p-1 2 3 {TIME + 1}\t%\n"
    )
    assert run("cat", topic.root, "t", "-c", 1, "-f", r"\x41\xc3\xbc\x9%s" + "\udcc3\udcbc") == "Aü\ta-0ü"
    rows = list(csv.DictReader(io.StringIO(run("cat", topic.root, "t", "-f", "csv"))))
    assert [(row["partition"], row["offset"], row["key"], row["value"]) for row in rows[-2:]] == [
        ("1", "8", "k1", "p-8"),
        ("1", "9", "k2", "p-9"),
    ]
    assert rows[0]["timestamp"] == "2023-11-14T22:13:20.000Z"
    expected = sparklog.Log(topic.root)["t"].read()
    assert run("cat", topic.root, "t", "-f", "parquet", "-O", tmp_path / "x.parquet") == ""
    assert pq.read_table(tmp_path / "x.parquet").equals(expected)
    assert run("cat", topic.root, "t", "-f", "arrow", "-O", tmp_path / "x.arrow") == ""
    with pa.ipc.open_stream(tmp_path / "x.arrow") as stream:
        assert stream.read_all().equals(expected)
    headers = Topic(tmp_path / "root", "u")
    headers.append([Record(b"v", None, TIME, ((b"a", b"1"), (b"b", None)))])
    assert run("cat", headers.root, "u", "-f", "%h|%K %S\n") == "a=1,b=NULL|-1 1\n"
    assert lines(run("cat", headers.root, "u", "--json"))[0]["headers"] == [{"key": "a", "value": "1"}, {"key": "b", "value": None}]


def test_groups_lag_and_reset(run, topic, tmp_path, monkeypatch):
    table = OffsetTable(topic.root, tmp_path / "offsets")
    Own(table, "g", {"t": {0: 20, 1: 4}}).end()
    given = ["--table", tmp_path / "offsets"]
    (group,) = json.loads(run("groups", topic.root, *given, "--json"))
    assert (group["group"], group["lag"], group["topics"]) == ("g", 11, ["t"])
    assert json.loads(run("lag", topic.root, "g", *given, "--json")) == [each | {"home": "table"} for each in table.lag("g").to_pylist()]
    monkeypatch.setenv("SPARKLOG_OFFSETS", str(tmp_path / "offsets"))
    assert "behind by 11 records" in run("lag", topic.root, "g")

    def moved(*words: object, status: int = 0) -> dict[int, int]:
        run("reset", topic.root, "g", *words, status=status)
        return {each.partition: each.offset for each in table.positions("g")}

    assert moved("--to-earliest") == {0: 20, 1: 4}
    assert moved("--to-earliest", "--execute") == {0: 0, 1: 0}
    assert moved("--to-latest", "--execute", "--dry-run", status=2) == {0: 0, 1: 0}
    assert moved("--to-latest", "--execute") == {0: 25, 1: 10}
    assert moved("--shift-by", -3, "--execute") == {0: 22, 1: 7}
    assert moved("--to-datetime", "2023-11-14T22:13:21Z", "--execute") == {0: 15, 1: 10}
    assert moved("--to-offset", 3, "--topic", "t", "--execute") == {0: 3, 1: 3}
    assert moved("--to-offset", 3, "--execute", status=2) == {0: 3, 1: 3}
    assert moved("--to-latest", "--topic", "t:1", "--execute") == {0: 3, 1: 10}
    assert moved("--to-offset", 4, "--topic", "t:0,1", "--execute") == {0: 4, 1: 4}
    assert moved("--to-current", "--all-topics", "--execute") == {0: 4, 1: 4}
    assert moved("--by-duration", "P99999DT1H", "--execute") == {0: 0, 1: 0}
    assert moved("--by-duration", "PT1M", "--execute") == {0: 25, 1: 10}
    for wrong in (["--by-duration", "1h"], ["--to-latest", "--topic", "t:"], ["--to-latest", "--topic", "t:2"], ["--all-topics"]):
        assert moved(*wrong, "--execute", status=2) == {0: 25, 1: 10}
    (tmp_path / "x.csv").write_text("t,0,9\n")
    assert moved("--to-offset", 3, "--topic", "t", "--execute") == {0: 3, 1: 3}
    assert moved("--from-file", tmp_path / "x.csv", "--execute") == {0: 9, 1: 3}
    assert moved(status=2) == moved("--to-earliest", "--to-latest", status=2) == {0: 9, 1: 3}
    Own(table, "g")
    assert "PARTLOG_GROUP_RUNNING" in run("reset", topic.root, "g", "--to-latest", "--execute", status=2)
    assert moved("--to-latest", "--execute", "--force") == {0: 25, 1: 10}
    assert "PARTLOG_GROUP_NOT_FOUND" in run("lag", topic.root, "h", status=2)


def test_bad_input(run, topic, tmp_path):
    for words, condition in [
        (["topics", tmp_path / "nothing"], "PARTLOG_ROOT_NOT_FOUND"),
        (["head", topic.root, "tt"], "PARTLOG_TOPIC_NOT_FOUND"),
        (["head", topic.root, "../t"], "PARTLOG_TOPIC_NAME_ILLEGAL"),
        (["head", topic.root, "t", "-p", 2], "PARTLOG_PARTITION_NOT_FOUND"),
        (["cat", topic.root, "t", "-p", 0, "-o", 26], "PARTLOG_OFFSETS_OUT_OF_RANGE"),
        (["cat", topic.root, "t", "-p", 0, "-o", 999, "-o", f"e@{TIME}"], "PARTLOG_OFFSETS_OUT_OF_RANGE"),
        (["cat", topic.root, "t", "-o", 5], "add -p"),
        (["cat", topic.root, "t", "-o", "middle"], "middle"),
        (["cat", topic.root, "t", "--from", "yesterday"], "yesterday"),
        (["cat", topic.root, "t", "-f", "%z"], "%z"),
        (["cat", topic.root, "t", "-f", "ndjson"], "text, json, csv, arrow, parquet"),
        (["cat", topic.root, "t", "-O", tmp_path], "it must be a file, and is a directory"),
        (["commits", topic.root, "t", "-n", "-1"], "--max"),
        (["cat", topic.root, "t", "--from", "--5"], "--5"),
        (["cat", topic.root, "t", "--from", "9" * 20], "99999"),
        (["cat", topic.root, "t", "-O", tmp_path / "no" / "x"], "it must be in a directory that exists"),
        (["reset", topic.root, "g", "-t", tmp_path / "o", "--from-file", tmp_path / "no.csv"], "no.csv"),
        (["cat", topic.root, "t", "-f", "parquet"], "--output"),
        (["head", topic.root], "TOPIC"),
        (["nothing"], "nothing"),
        (["head", topic.root, "t", "-n", "-1"], "-n"),
    ]:
        assert condition in run(*words, status=2)
    data = topic.data_file(0)
    octets = bytearray(data.read_bytes())
    octets[-1] ^= 1
    data.write_bytes(octets)
    assert "PARTLOG_BATCH_CORRUPT" in run("cat", topic.root, "t", "-f", "parquet", "-O", tmp_path / "x.parquet", status=3)
    assert not list(tmp_path.glob("*x.parquet*"))


def test_keys_are_found_where_they_are(run, topic):
    """The partition of a key is that of the topic's partitioner; its records can be in others too."""
    placed = sparklog.Log(topic.root)["t"].partition_for("k0")
    topic.append([Record(b"here", b"k0", TIME + 9), Record(b"other", b"kx", TIME)], placed)
    topic.append([Record(b"there", b"k0", TIME + 8)], 1 - placed, routed=False)
    found = json.loads(run("keys", topic.root, "t", "k0", "--json"))
    everything = sparklog.Log(topic.root)["t"].read()
    for row, partition in zip(found, (placed, 1 - placed), strict=True):
        its = [each for each in everything.to_pylist() if (each["key"], each["partition"]) == (b"k0", partition)]
        offsets = [each["offset"] for each in its]
        assert row == {
            "key": "k0",
            "partition": partition,
            "routed": partition == placed,
            "records": len(its),
            "first": offsets[0],
            "last": offsets[-1],
            "timestamp": round(its[-1]["timestamp"].timestamp() * 1000),
        }
    assert "elsewhere" in run("keys", topic.root, "t", "k0")
    topic.append([Record(b"odd", b"\xff", TIME)], sparklog.Log(topic.root)["t"].partition_for(b"\xff"))
    (odd,) = (each for each in json.loads(run("keys", topic.root, "t", "\udcff", "--json")) if each["records"])
    assert (odd["key_base64"], odd["records"]) == ("/w==", 1)
    assert "\n\\xff " in run("keys", topic.root, "t", "\udcff")


def test_dump_goes_on_after_damage(run, topic, capfdbinary):
    file = topic.data_file(0)
    octets = file.read_bytes()
    first, second, _ = split(octets)
    file.write_bytes(first + second[:-1] + b"?" + octets[len(first + second) :])
    said = run("dump", topic.root, "t", status=3)
    assert said.count("PARTLOG_BATCH_CORRUPT") == 1 and f"byte {len(first)}" in said
    main(["dump", str(topic.root), "t"])
    lines_ = capfdbinary.readouterr().out.decode().splitlines()
    batches = [line for line in lines_ if line.startswith("baseOffset: ")]
    assert [line.rsplit(": ", 1)[1] for line in batches] == ["true", "false", "true", "true", "true", "true"]
    assert sum(line.startswith("| offset: ") for line in lines_) == 35 - 4
    main(["dump", str(topic.root), "t", "--json"])
    found = lines(capfdbinary.readouterr().out.decode())
    assert [(each["base_offset"], each["valid"], len(each["contents"])) for each in found[:3]] == [
        (0, True, 5),
        (5, False, 0),
        (9, True, 6),
    ]


def test_it_starts_quickly():
    """Without what it does not need: the sum of imports is what takes time."""
    code = "import sys; from sparklog.__main__ import main; main(['topics', sys.argv[1]]); print(*sorted(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code, str(Path(__file__).parent)], capture_output=True, text=True)
    loaded = set(ran.stdout.split())
    assert "sparklog.cli.app" in loaded
    assert not loaded & {"pyspark", "pandas", "deltalake", "matplotlib", "duckdb", "polars", "starlette", "datasketches"}


def test_times_beyond_those_of_python(run, tmp_path):
    """They are shown as the end of year 9999. And one of which a floating-point number would lose a millisecond."""
    topic = Topic(tmp_path / "root")
    topic.append([Record(b"v", b"k", 2**52)])
    topic.append([Record(b"v", b"k", 1_073_746_000_001)])
    for words in (["head", "--json"], ["cat", "--json"], ["tail", "--json"]):
        times = [each["timestamp"] for each in lines(run(words[0], topic.root, "t", *words[1:]))]
        assert sorted(times) == [1_073_746_000_001, 253_402_250_399_999]
    contents = [each["contents"] for each in lines(run("dump", topic.root, "t", "--json"))]
    assert [each["timestamp"] for content in contents for each in content] == [253_402_250_399_999, 1_073_746_000_001]
    assert json.loads(run("keys", topic.root, "t", "k", "--json"))[0]["timestamp"] == 1_073_746_000_001
    for command in ("head", "dump", "stats"):
        run(command, topic.root, "t")
    assert len(lines(run("cat", topic.root, "t", "--json", "--to", 10**17))) == 2


def test_a_topic_that_is_named_like_an_option(run, tmp_path):
    Topic(tmp_path / "root", "--help").append(records(3))
    for words in (["describe"], ["head", "-n", "1"], ["cat"], ["config"], ["verify"]):
        assert "Usage:" not in run(words[0], tmp_path / "root", *words[1:], "--", "--help")
    assert run("cat", tmp_path / "root", "-p", "0", "-o", "2", "--", "--help") == "r-2\n"


def test_version_and_completion(run):
    assert run("--version") == f"sparklog {sparklog.__version__}\n"
    # The shell that it is for is the one that started it: these tests need not have been started by one.
    command = ["bash", "-c", f"{shlex.quote(sys.executable)} -m sparklog --show-completion; exit $?"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "complete -o default" in ran.stdout


@pytest.mark.slow
def test_topics_and_groups_complete(topic, tmp_path):
    Topic(topic.root, "two").append(records(1))
    Topic(topic.root, "other").append(records(1))
    table = OffsetTable(topic.root, tmp_path / "offsets")
    for group in ("billing", "mail"):
        Own(table, group).end()

    def offered(line: str, **environment: str) -> list[str]:
        """The words that the completion of bash offers for the last word of a line."""
        words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1), "_SPARKLOG_COMPLETE": "complete_bash", **environment}
        command = [sys.executable, "-m", "sparklog"]
        path = str(Path(__file__).parents[2])
        ran = subprocess.run(command, env={**os.environ, "PYTHONPATH": path, **words}, capture_output=True, text=True, check=False)
        return ran.stdout.split()

    assert offered(f"sparklog head {topic.root} t") == ["t", "two"]
    assert offered(f"sparklog describe {topic.root} t o") == ["other"]
    assert offered(f"sparklog lag {topic.root} b", SPARKLOG_OFFSETS=table.path) == ["billing"]
    assert offered(f"sparklog lag {topic.root} b") == offered(f"sparklog head {tmp_path} t") == []
    assert _topics(SimpleNamespace(params={"root": None}), "t") == []  # as typer calls it for a root that cannot be read
    assert "topics" in offered("sparklog t")


@pytest.mark.parametrize(
    "words", [["topics"], ["segments", "t"], ["keys", "t", "k"], ["suggest-moves", "t"], ["config", "t"]], ids=" ".join
)
def test_json_builds_no_table(run, topic, monkeypatch, words):
    def built(*given, **named):
        raise AssertionError("a table")

    monkeypatch.setattr(Display, "__init__", built)
    assert json.loads(run(words[0], topic.root, *words[1:], "--json"))
