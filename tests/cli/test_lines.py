"""Lines that `produce` makes records of, and lines that it refuses, before a server starts."""

import json
import os
import threading

import pytest

from sparklog.cli import producer
from sparklog.cli.lines import Record, as_json, delimiter, plain


def test_a_value_or_a_key_and_a_value():
    assert plain(None, null=False)(b"a:b\r\xff") == Record(b"a:b\r\xff")
    keyed = plain(b":", null=False)
    assert (keyed(b"a:b:c"), keyed(b":"), keyed(b"b")) == (Record(b"b:c", b"a"), Record(b"", b""), Record(b"b"))
    nulls = plain(b":", null=True)
    assert (nulls(b"a:"), nulls(b":b"), nulls(b"")) == (Record(None, b"a"), Record(b"b", None), Record(None))
    assert [delimiter(each) for each in (r"\t", r"\x1e", "::", r"\\", "\udcff")] == [b"\t", b"\x1e", b"::", b"\\", b"\xff"]


def test_what_cat_prints_is_read_back(run, hostile, topic):
    for of, expected in ((hostile, None), (topic, 35)):
        lines = run("cat", of.root, of.name, "--json").encode().splitlines()
        assert expected in (None, len(lines))
        printed = [json.loads(line) for line in lines]
        for line, given in zip(map(as_json, lines), printed, strict=True):
            assert (line.partition, line.timestamp) == (given["partition"], given["timestamp"])
    read = [as_json(line) for line in run("cat", hostile.root, "h", "--json").encode().splitlines()]
    assert [(each.key, each.value) for each in read[:3]] == [
        (b"\x1b[31mred\x1b[0m\r\n\x00\xc2\x9b2J", b"\x1b]0;title\x07"),
        (b"\x80\x81", b"\xff\xfe"),
        (None, None),
    ]
    assert read[3].headers == [{"key": "\x1b]0;h\x07", "value": b"\x1b[31m"}]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"value", "it is not JSON"),
        (b"\xff", "it is not JSON"),
        (b"[" * 100_000, "it is not JSON"),
        (b"[1]", "it is not an object"),
        (b'{"key":"a"}', "no field 'value'"),
        (b'{"value":"a","kye":"b"}', "a field 'kye'"),
        (b'{"value":{"a":1}}', "'value' must be text or null"),
        (b'{"value":1}', "'value' must be text or null"),
        (b'{"value":"a","value_base64":"YQ=="}', "both 'value' and 'value_base64'"),
        (b'{"value_base64":"a"}', "is not base64"),
        (b'{"value":"\\ud800"}', "surrogate"),
        (b'{"value":"a","partition":-1}', "'partition' must be a whole number from 0 to 2147483647"),
        (b'{"value":"a","partition":true}', "'partition' must be"),
        (b'{"value":"a","timestamp":1.5}', "'timestamp' must be"),
        (b'{"value":"a","timestamp":0}', "'timestamp' must be a whole number from 1"),
        (b'{"value":"a","headers":{"a":"b"}}', "'headers' must be a list"),
        (b'{"value":"a","headers":[{"value":"b"}]}', "a header must have a 'key'"),
        (b'{"value":"a","headers":[{"key":"\\udfff"}]}', "surrogate"),
        (b'{"value":"a","headers":[{"key":"a\\u0000b"}]}', "NUL"),
    ],
)
def test_a_line_that_is_no_record(run, monkeypatch, tmp_path, line, said):
    monkeypatch.setenv("JAVA_HOME", "/nowhere")  # a refused line starts no server
    with pytest.raises(ValueError, match=said.replace("[", r"\[")):
        as_json(line)
    (tmp_path / "lines").write_bytes(b"\n" + line + b"\n")
    told = run("produce", tmp_path / "root", "t", tmp_path / "lines", "--json", status=2)
    assert told.startswith(f"[PARTLOG_LINE] Line 2 of {tmp_path}/lines is not a record for topic t under {tmp_path}/root: ")
    assert said in told and "committed: 0 records." in told
    assert not (tmp_path / "root").exists()


def test_a_line_that_is_too_long_is_not_held(run, monkeypatch, tmp_path):
    monkeypatch.setattr(producer, "_LINE_BYTES", 1 << 20)
    (tmp_path / "lines").write_bytes(b"x" * (3 << 20))
    assert "Line 1 of" in run("produce", tmp_path / "root", "t", tmp_path / "lines", status=2)
    read, write = os.pipe()
    end = threading.Event()

    def endless() -> None:
        while not end.is_set():
            try:
                os.write(write, b"x" * 65_536)
            except BrokenPipeError:
                return

    writer = threading.Thread(target=endless)
    writer.start()
    found = [len(line) for piece in producer._pieces(read, lambda: False) for line in piece]
    end.set()
    os.close(read)
    writer.join()
    os.close(write)
    assert len(found) == 1 and (1 << 20) < found[0] <= (1 << 20) + 65_536


def test_lines_come_as_they_are_written():
    read, write = os.pipe()
    pieces = producer._pieces(read, lambda: False)
    os.write(write, b"a\nb\nc")
    assert next(pieces) == [b"a", b"b"]
    assert next(pieces) == []
    os.write(write, b"d\n")
    assert next(pieces) == [b"cd"]
    os.write(write, b"\n\xff\xfe\r\n")
    assert next(pieces) == [b"", b"\xff\xfe\r"]
    os.write(write, b"last")
    os.close(write)
    assert list(pieces) == [[b"last"]]
    os.close(read)


def test_half_a_line_is_none_when_an_interrupt_ends_it():
    read, write = os.pipe()
    os.write(write, b"a\nhal")
    os.close(write)
    assert list(producer._pieces(read, lambda: True)) == [[b"a"]]
    os.close(read)


def test_arguments_that_contradict_each_other(run, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "lines").write_bytes(b"")
    for words, said in (
        (["--json", "-K", ":"], "--json goes without -K and -Z"),
        (["-K", ""], "is empty"),
        (["-X", "partitions"], "KEY=VALUE"),
    ):
        assert said in run("produce", tmp_path / "root", "t", tmp_path / "lines", *words, status=2)
    assert not (tmp_path / "root").exists()


def test_an_input_without_lines_leaves_a_topic_that_is_there(run, topic, tmp_path):
    (tmp_path / "lines").write_bytes(b"")
    assert run("produce", topic.root, "t", tmp_path / "lines") == "0 records to t\n"
    assert "PARTLOG_TOPIC_NAME_ILLEGAL" in run("produce", topic.root, "bad topic", tmp_path / "lines", status=2)
    assert not (topic.root / "_partlog" / "bad topic").exists()
