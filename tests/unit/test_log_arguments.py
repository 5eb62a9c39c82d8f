"""Arguments that `sparklog.Log` accepts and refuses: roots, names, partitions, offsets, times, columns and keys."""

import datetime
import json
from pathlib import Path

import pytest
from handmade import TIME, Topic, records
from unit.answers import failure

from sparklog import CallError, Log
from sparklog.ondisk.root import Root
from sparklog.store.stores import local


def test_roots_and_topics(tmp_path, topic):
    Topic(tmp_path, "other.topic").append(records(1))
    (tmp_path / "_partlog" / "no topic").mkdir()
    (tmp_path / "_partlog" / "empty").mkdir()
    (tmp_path / "_partlog" / "file").write_text("")
    for root in (tmp_path, str(tmp_path), f"file:{tmp_path}", f"file://{tmp_path}", f"file://localhost{tmp_path}"):
        assert Log(root).topics() == ["other.topic", "t"]
        assert Log(root).topic("t").partitions == 2


# A root by its name → its path, or the condition with which it is refused; `python` is the name under which Python alone reads it.
ROOTS = json.loads((Path(__file__).parents[1] / "vectors" / "roots.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", ROOTS, ids=lambda case: case["root"])
def test_a_root_is_taken_as_it_stands(case):
    """StoresTest has the same cases: both languages must find the same root."""
    if "python" in case:  # which reads it already
        assert str(Root.at(case["root"])) == case["python"]
    elif "path" in case:
        assert local(case["root"]) == case["path"]
    else:
        error = failure(lambda: Log(case["root"]))
        assert error.id == case["refused"]
        assert case["says"] in str(error)


@pytest.mark.parametrize(
    ("root", "says"),
    [
        (
            "s3://bucket/x?nonsense=SECRET&endpoint_override=127.0.0.1:1&region=x",
            "'nonsense' is no setting of a bucket",
        ),
        ("s3://bucket/x?scheme=ftp&endpoint_override=127.0.0.1:1&region=x", "'ftp' is no setting of a bucket"),
        ("hdfs://host/x?nonsense=SECRET", "'nonsense' is no setting of a root in HDFS"),
        ("hdfs://host/a?b", "'b' is no setting of a root in HDFS"),
        ("hdfs://host/x?webhdfs=", "webhdfs is ''; it must be host:port"),
        ("hdfs://host/x?webhdfs=a:1,file:///etc", "webhdfs is 'file:///etc'; it must be host:port"),
    ],
)
def test_a_setting_of_a_store_that_it_does_not_have_is_the_callers(root, says):
    """Running it again would not help, which IO would say. The server is not asked."""
    with pytest.raises(CallError) as raised:
        Log(root)
    assert str(raised.value).startswith(
        f"[PARTLOG_OPTION_VALUE] Option `path` has the value {root.partition('?')[0].replace('s3:', 's3a:')}?…: "
    )
    assert says in str(raised.value)
    assert "SECRET" not in str(raised.value)


def test_a_directory_that_is_not_a_root(tmp_path, topic):
    for folder in ("_partlog/t", "t-1", "broker/t-0", "plain", "plain-7", "t-01"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    (tmp_path / "broker" / "meta.properties").write_text("")
    for folder, condition, says in (
        ("plain", "ROOT_WITHOUT_LOG", "plain exists, but it is not a root"),
        ("plain-7", "ROOT_WITHOUT_LOG", "plain-7 exists"),
        ("t-01", "ROOT_WITHOUT_LOG", "t-01 exists"),
        ("t-1", "PARTITION_DIRECTORY", f"partition 1 of topic t, not a root. Give the directory above it, {tmp_path},"),
        ("_partlog/t", "LOG_DIRECTORY", f"Give the root, {tmp_path}, and select topics by their names."),
        ("_partlog", "LOG_DIRECTORY", f"Give the root, {tmp_path},"),
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
        (lambda: Log("gs://bucket/root"), "STORE_UNSUPPORTED"),
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
        (lambda: log.topic("t").read(start=5, end=2), "OFFSETS_BACKWARDS"),
        (lambda: log.topic("t").scan(start={1: 5}, end={1: 4}), "OFFSETS_BACKWARDS"),
        (lambda: log.topic("t").read(since=TIME + 1, until=TIME), "OPTION_VALUE"),
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
    backwards = str(failure(lambda: log.topic("t").read(start={1: 5}, end={0: 3, 1: 4})))
    assert "topic t, partition 1" in backwards and "`start` gives offset 5, `end` offset 4" in backwards
    assert log.topic("t").read(start=5, end=5).num_rows == log.topic("t").read(since=TIME, until=TIME).num_rows == 0
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
        (
            lambda t: t.offsets_for_time("14.11.2023"),
            "Option `time` has the value 14.11.2023: it is not a time; a time is milliseconds since",
        ),
        (
            lambda t: t.offsets_for_time(datetime.datetime(2024, 1, 1)),  # noqa: DTZ001
            "Option `time` has the value 2024-01-01 00:00:00: it must have a",
        ),
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
