"""Mistakes of callers of an offset table, and odd tables: clear errors, and nothing moved in silence."""

import re
import subprocess
import sys

import pytest
from handmade import TIME, Record, Topic, records
from owners import Own, add

import sparklog
from sparklog.groups import OffsetTable
from sparklog.groups.commits import OffsetCommit
from sparklog.groups.table import owner
from sparklog.groups.table.owner import Owner


def test_a_heartbeat_repeats_the_whole_row(table, topic, monkeypatch):
    own = Owner(table, "g")
    own.commit([OffsetCommit("t", 0, table.topics.state("t").topic_id, 5, "m")], query_id="q", epoch=3)
    monkeypatch.setattr(owner, "_HEARTBEAT_S", 0)
    own.beat()
    (position,) = table.positions("g")
    assert len(table.history("g")) == 2
    assert (position.offset, position.query_id, position.epoch, position.metadata) == (5, "q", 3, "m")


@pytest.mark.parametrize("again", [False, True])
def test_a_group_runs_on_when_a_topic_of_it_is_gone(table, topic, monkeypatch, again):
    own = Owner(table, "g")
    own.commit([OffsetCommit("t", 0, table.topics.state("t").topic_id, 5)])
    topic.delete()
    if again:
        topic.append(records(9))
    before = table.generations.group("g").last
    monkeypatch.setattr(owner, "_HEARTBEAT_S", 0)
    own.beat()
    assert table.generations.group("g").last > before
    assert [each.offset for each in table.positions("g")] == [5]


def test_retain_from_of_one_group_by_its_name(table):
    for group, offset in (("billing", 9), ("b", 3)):
        Own(table, group, {"t": {0: offset, 1: offset}})
    assert table.retain_from("billing") == table.retain_from(["billing"]) == {"t": {0: 9, 1: 9}}
    with pytest.raises(sparklog.CallError, match=r"PARTLOG_GROUP_NOT_FOUND.* Group mail "):
        table.retain_from("mail")


def test_nobody_has_a_generation_below_the_first(table, topic):
    generations = table.generations
    for call in (lambda: add(table, "g", 0, {"t": {0: 1}}), lambda: generations.end("g", 0), lambda: generations.require_newest("g", 0)):
        with pytest.raises(sparklog.GenerationFencedError):
            call()
    assert not (topic.root.parent / "offsets").exists()


def test_numbers_in_a_file_are_those_of_kafka(table):
    for text in ("t,0,1_0\n", "t,٠,5\n", "t,0,+5\n", "t,0, \n"):
        with pytest.raises(sparklog.CallError, match=r"PARTLOG_OFFSETS_FILE.* must be numbers"):
            table.load("g", text, "csv")
    for given in (b"t,0,5\n", None):
        with pytest.raises(TypeError, match="the content of a file"):
            table.load("g", given, "csv")
    assert not table.exists()
    table.load("g", "\ufefft,0,5\r\n", "csv")  # as a spreadsheet saves it
    assert [each.offset for each in table.positions("g")] == [5]


def test_a_shift_is_not_true(table):
    Own(table, "g", {"t": {0: 5}})
    with pytest.raises(TypeError):
        table.reset("g", True)


@pytest.mark.parametrize(
    "call",
    [
        lambda table: table.reset("g", "latest", topics={"t": 0}),
        lambda table: table.reset("g", "latest", topics=5),
        lambda table: table.reset("g", {"t": {0: True}}),
        lambda table: table.retain_from(5),
        lambda table: table.positions("g", topic=5),
        lambda table: table.lag("g", 5),
        lambda table: table.starting_offsets("g", 5),
    ],
)
def test_an_argument_of_a_wrong_type_is_named(table, call):
    Own(table, "g")
    with pytest.raises(TypeError, match=r"`\w+` (is|has) "):
        call(table)


def test_a_name_that_comes_twice_in_a_file_moves_nothing(table):
    with pytest.raises(sparklog.CallError, match=r"PARTLOG_OFFSETS_FILE.*'offset' twice"):
        table.load("g", '{"partitions": [{"topic": "t", "partition": 0, "offset": 1, "offset": 2}]}')
    assert not table.exists()


def test_a_table_has_a_path():
    with pytest.raises(sparklog.CallError, match=r"PARTLOG_OPTION_VALUE.*path"):
        OffsetTable(None, "")


@pytest.mark.parametrize("name", ["%zz 50%", "u#1?2", "a:b", "{x}*", "ü e\u0301 🦀", 'it\'s `the` "<t>"', "~x"])
def test_a_table_is_where_its_path_says(topic, tmp_path, name):
    table = OffsetTable(topic.root, f"file://{tmp_path}/tables/{name}")
    Own(table, "g", {"t": {0: 5}})
    table.maintain()
    assert [each.name for each in (tmp_path / "tables").iterdir()] == [name]
    assert OffsetTable(None, tmp_path / "tables" / name).groups() == ["g"]


@pytest.mark.parametrize("name", ["a%20b", "o%CC%88", "back\\slash", "[br]", "a^b", "a|b", "a\nb"])
def test_a_path_that_deltalake_takes_for_another_one_makes_nothing(tmp_path, name):
    for path in (tmp_path / name, tmp_path / name / "below", f"file:{tmp_path}/{name}"):
        with pytest.raises(sparklog.CallError, match=r"PARTLOG_OPTION_VALUE.*`path`.* deltalake takes"):
            OffsetTable(None, path)
    assert list(tmp_path.iterdir()) == []


def test_the_path_of_a_table_is_read_as_that_of_a_root():
    assert (
        OffsetTable(None, "file:///a%").path
        == OffsetTable(None, "file://localhost//a%").path
        == OffsetTable(None, "/b/../a%").path
        == "/a%"
    )
    assert OffsetTable(None, "s3://bucket/a b").path == "s3://bucket/a b"


@pytest.mark.parametrize(
    "url",
    [
        *(f"s3://bucket/{name}" for name in ("a%20b", "sales%41", "a#b", "a//b", "a/../b", "a/./b", "..", "a/..", "[br]", "a|b", "a\\b")),
        *(f"{scheme}://KEY:SECRET@bucket/table" for scheme in ("s3", "s3a", "gs", "hdfs", "abfss")),
        "s3a://KEY:SEC/RET@bucket/table",
        "s3://bucket/table?secret_key=SECRET",
        "abfss://container@account/table?sig=SECRET",
    ],
)
def test_a_url_of_another_table_or_with_a_secret_is_refused(url):
    """And not shown with it: credentials and settings are given beside it."""
    with pytest.raises(sparklog.CallError, match=r"PARTLOG_OPTION_VALUE.*`path`.*(deltalake takes|storage_options)") as raised:
        OffsetTable(None, url)
    assert not re.search("SECRET|SEC/RET", str(raised.value))


def test_a_url_stays_as_it_is():
    for url in (
        "s3://bucket/a b",
        "S3A://bucket/ü/",
        "hdfs://host:8020/t",
        "abfss://container@account.dfs.core.windows.net/t",
        "gs://bucket",
    ):
        assert OffsetTable(None, url).path == url


FORKS = """
import os, sys
import sparklog
from sparklog.groups import OffsetTable
from sparklog.groups.table.owner import Owner

table = OffsetTable(None, sys.argv[1])
print("before", Owner(table, "g").generation, flush=True)
if child := os.fork():
    print("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
else:
    for each in (table, OffsetTable(None, sys.argv[1])):
        try:
            each.groups()
        except Exception as error:
            print(type(error).__name__, error.id, flush=True)
    os._exit(0)
"""


def test_a_process_that_was_forked_is_told_so(tmp_path):
    ran = subprocess.run([sys.executable, "-c", FORKS, tmp_path / "offsets"], capture_output=True, text=True, timeout=300, check=True)
    assert ran.stdout.splitlines() == ["before 1", "CallError OFFSETS_FORKED", "CallError OFFSETS_FORKED", "ended 0"]
    assert ran.stderr == "", "deltalake's panic, and its trace"


def test_a_table_whose_files_are_gone(table, topic):
    Own(table, "g")
    for file in topic.root.parent.joinpath("offsets").glob("*.parquet"):
        file.unlink()
    with pytest.raises(sparklog.RetryError, match="PARTLOG_OFFSETS_TABLE"):
        OffsetTable(topic.root, table.path).groups()


def test_seconds_of_lag_are_those_of_the_unread_records(tmp_path):
    """Times that fall: neither what is read already counts, nor which records share a segment."""
    topic = Topic(tmp_path / "root")
    times = [[9000, 100, 700, 300], [500, 200]]
    for each in times:
        topic.append([Record(timestamp=TIME + time) for time in each])
    table = OffsetTable(topic.root, tmp_path / "offsets")
    of_all = [time for each in times for time in each]
    for offset in range(6):
        Own(table, "g", {"t": {0: offset}})
        assert table.lag("g")["seconds"].to_pylist() == [(max(of_all[offset:]) - of_all[offset]) / 1000]


def test_a_table_that_is_not_there_has_no_answer(table, tmp_path):
    typo = OffsetTable(table.root, tmp_path / "typo")
    # An empty dict of retain_from would mean that no group needs a record.
    for call in (typo.groups, typo.summaries, typo.retain_from, lambda: typo.positions("g")):
        with pytest.raises(sparklog.CallError, match=r"PARTLOG_OFFSETS_TABLE_NOT_FOUND.*/typo.*Check the path"):
            call()
    assert not typo.exists()
    Own(table, "g", {"t": {0: 0}})
    table.delete("g", force=True)
    assert (table.groups(), list(table.summaries()), table.retain_from()) == ([], [], {})
