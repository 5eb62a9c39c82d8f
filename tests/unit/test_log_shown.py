"""How `sparklog.Log`, its topics, commits and records are shown in a terminal and in a notebook."""

import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from handmade import TIME, Record, Topic, batch, records, sample
from in_notebook import html

import sparklog
from sparklog import Log
from sparklog.show.display import Display


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    return sample(tmp_path)


@pytest.fixture
def log(topic: Topic) -> sparklog.Topic:
    return Log(topic.root).topic("t")


def test_what_a_file_says_never_reaches_a_terminal_raw(tmp_path):
    written = Topic(tmp_path, config={"\x1b[31m": "\x07"})
    query = {"id": "\x9b2J", "epoch": 0, "input": "0" * 16}
    written.commit(written.data(batch(records(1))), writer="\x1b]0;w\x07", query=query)
    topic = Log(tmp_path)["t"]
    assert "\\x1b[31m=\\x07" in repr(topic)
    assert "\\x1b]0;w\\x07" in repr(topic.commits())
    for shown in (repr(topic), html(topic), repr(topic.commits()), html(topic.commits())):
        assert not set(shown) & set("\x1b\x07\x9b")


def test_a_topic_and_a_log_in_a_terminal_and_in_a_notebook(topic, log, tmp_path):
    assert repr(log).splitlines()[0] == "Topic t"
    assert repr(log).splitlines()[3] == "35 records in 786 bytes"
    assert repr(log).splitlines()[-3:] == [
        "partition  start  end  offsets  bytes  from (UTC)           to (UTC)",
        "        0      0   25       25    605  2023-11-14 22:13:20  2023-11-14 22:13:22.002",
        "        1      0   10       10    181  2023-11-14 22:13:20  2023-11-14 22:13:20.009",
    ]
    for shown in ('; text-align: right">605</td>', '; text-align: left">2023-11-14 22:13:22.002</td>'):
        assert shown in html(log)
    Topic(tmp_path, "x").append(records(1))
    shutil.copytree(topic.folder, tmp_path / "_partlog" / "copied")
    lines = repr(Log(tmp_path)).splitlines()
    assert lines[1] == "3 topics"
    heads = ["topic", "partitions", "offsets", "bytes", "from (UTC)", "to (UTC)", "version", "committed at (UTC)"]
    assert re.split("  +", lines[3]) == heads
    assert lines[4].split() == ["copied", "PARTLOG_VERSION_CORRUPT"]
    span = ["2023-11-14 22:13:20", "2023-11-14 22:13:22.002"]
    assert re.split("  +", lines[5]) == ["t", "2", "35", "786", *span, "1", "2023-11-14 22:13:21"]
    assert '; text-align: right">786</td>' in html(Log(tmp_path))
    content = topic.versions[0] | {"config": topic.versions[0]["config"] | {"k": "<script>"}}
    topic.versions.clear()
    topic.hash = None
    topic.put(content)
    topic.version_file(1).unlink()
    assert "<script>" not in html(log) and "&lt;script&gt;" in html(log)
    shutil.rmtree(topic.folder)
    assert "PARTLOG_TOPIC_NOT_FOUND" in repr(log)
    assert "PARTLOG_TOPIC_NOT_FOUND" in html(log)


def test_numbers_stand_at_the_right():
    table = Display("t", [], ["key", "records", "seconds"], [["1", 1_234, 4_323.04], ["22", "", 0.0]])
    assert table.numeric == [False, True, True]
    assert table.text().splitlines()[2:] == ["key  records  seconds", "1      1,234  4,323.0", "22                0.0"]


def test_a_table_in_a_notebook_takes_its_colours_from_the_page_and_wraps_only_long_texts():
    page = Display("a <b>", [], ["key", "value", "size"], [["k  1", "v" * 41, 1], ["", "", 22_222]]).html()
    assert "<strong>a &lt;b&gt;</strong>" in page
    assert set(re.findall(r"[\w-]*color[\w-]*", page, re.IGNORECASE)) == {"currentColor"}
    assert not re.search("background|<style", page)
    styles = re.findall(r'<td style="([^"]*)">', page)
    assert styles[:3] == styles[3:]
    assert ["pre-wrap" in style for style in styles[:3]] == [False, True, False]
    assert all("white-space: pre" in style for style in styles), "spaces of a value are kept"
    assert [style.rsplit(" ", 1)[1] for style in styles[:3]] == ["left", "left", "right"]
    assert "tabular-nums" in page and ">k  1</td>" in page and ">22,222</td>" in page


def test_a_topic_of_many_segments_is_shown_without_reading_them_all(tmp_path, monkeypatch):
    monkeypatch.setattr("sparklog.log.log.SEGMENTS_SUMMED", 4)
    monkeypatch.setattr("sparklog.log.topic.SEGMENTS_SUMMED", 4)
    topics = {name: Topic(tmp_path, name, partitions=2) for name in ("a", "b")}
    for topic in topics.values():
        for partition in (0, 1):
            topic.append(records(1), partition)
    log = Log(tmp_path)
    size = topics["a"].versions[0]["added"][0]["bytes"]
    span = ["2023-11-14 22:13:20", "2023-11-14 22:13:20"]
    for name in topics:
        assert repr(log[name]).splitlines()[3] == f"2 records in {2 * size} bytes"
        assert re.split("  +", repr(log[name]).splitlines()[-1].strip()) == ["1", "0", "1", "1", str(size), *span]
    row = ["2", "2", str(2 * size), *span, "1", "2023-11-14 22:13:21"]
    assert [re.split("  +", line) for line in repr(log).splitlines()[4:]] == [["a", *row], ["b", *row]]
    for _ in range(3):
        topics["a"].append(records(1))
    assert repr(log["a"]).splitlines()[3] == "more than 4 segments; describe() sums up their bytes and times"
    assert repr(log["a"]).splitlines()[-1].split() == ["1", "0", "1", "1"]
    assert [re.split("  +", line) for line in repr(log).splitlines()[4:]] == [["a", "2", "5", "4", "2023-11-14 22:13:24"], ["b", *row]]
    assert (log["a"].describe()["bytes"], log["a"].describe()["segments"]) == (5 * size, 5)


def test_records_are_shown_as_text(tmp_path, capsys):
    topic = Topic(tmp_path)
    odd = [Record(None, None), Record(b"line\nnext\x00", b"\xff\x00"), Record(b"", b"")]
    topic.append([Record('{"a": "ü"}'.encode(), b"k", TIME + 1), *odd])
    log = Log(tmp_path)["t"]
    log.show(4)
    assert capsys.readouterr().out.splitlines() == [
        "Topic t, first 4 records",
        "",
        "partition  offset  timestamp (UTC)          key       value",
        '        0       0  2023-11-14 22:13:20.001  k         {"a": "ü"}',
        "        0       1  2023-11-14 22:13:20      null      null",
        "        0       2  2023-11-14 22:13:20      \\xff\\x00  line\\nnext\\x00",
        "        0       3  2023-11-14 22:13:20",
    ]
    topic.append([Record(b"v" * 100, b"k", headers=((b"trace", b"1"), (b"none", None)))])
    log.show(1, last=True)
    assert capsys.readouterr().out.splitlines()[2:] == [
        f"partition  offset  timestamp (UTC)      key  {'value':61}  headers",
        f"        0       4  2023-11-14 22:13:20  k    {'v' * 60}…  trace=1, none=null",
    ]
    log.show(5, key="k", truncate=None)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Topic t, first 2 records with the key k"
    assert [line.split()[1] for line in lines[3:]] == ["0", "4"] and "v" * 100 in lines[4]
    log.show(5, key="nobody", truncate=3)
    assert capsys.readouterr().out == "Topic t, first 0 records with the key nob…\n"
    log.show(1, last=True, truncate=0)
    assert capsys.readouterr().out.splitlines()[-1].split()[4:] == ["…", "…", "…"]
    topic.append([Record(b"v", b"k", 2**62)])
    log.show(1, last=True)
    assert capsys.readouterr().out.splitlines()[-1].split()[2:] == ["9999-12-31", "09:59:59.999", "k", "v"]


def test_a_notebook_shows_records_as_a_table(log, monkeypatch):
    shown = []
    ipython = SimpleNamespace(get_ipython=lambda: True, display=SimpleNamespace(display=shown.append))
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    log.show(1)
    [view] = shown
    assert '; text-align: left">a-0</td>' in html(view)


def test_commits_are_shown_as_a_table(log, topic):
    topic.commit(query={"id": "nightly", "epoch": 0, "input": None})
    lines = repr(log.commits()).splitlines()
    assert lines[0] == "3 commits"
    assert lines[2].split("  ")[0] == "version"
    assert lines[-1].split() == ["2", "2023-11-14", "22:13:22", "write", "0", "0", "0", "0", "by", "hand", "nightly", "0"]
    assert repr(log.commits(1)).splitlines()[0] == "1 commit"
    assert '; text-align: left">nightly</td>' in html(log.commits())
    assert len(str(log.commits()[0])) < 250
    for _ in range(50):
        topic.commit()
    lines = repr(log.commits()).splitlines()
    assert (lines[0], len(lines), lines[-1].split()[0]) == ("53 commits, of which the newest 50", 53, "52")


def test_segments_and_batches_are_shown_as_tables(log, topic):
    lines = repr(log.segments()).splitlines()
    assert (lines[0], len(lines)) == ("3 segments", 6)
    assert lines[3].split()[:4] == ["0", "0", "15", "15"]
    assert "<th" in html(log.segments(1))
    batches = log.batches(0)
    lines = repr(batches).splitlines()
    assert (lines[0], len(lines)) == ("Partition 0, 5 record batches", 8)
    assert lines[3].split()[:4] == ["0", "4", "5", "none"]
    assert "<th" in html(batches)
    assert [batch.base_offset for batch in batches] == [0, 5, 9, 15, 22], "what is shown is not taken"


def test_many_topics_and_partitions_are_cut_short(tmp_path):
    Topic(tmp_path, partitions=200).commit()
    for number in range(60):
        Topic(tmp_path, f"n{number}").commit()
    assert repr(Log(tmp_path)).endswith("\n… and 11 more")
    assert repr(Log(tmp_path).topic("t")).endswith("\n… and 150 more")
