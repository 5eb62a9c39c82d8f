"""The answers of the server, compared with those of `Log` and `OffsetTable` on the same root."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from broken_reroutes import grown
from handmade import TIME, Record, Topic, batch, batches, featured, records, seeded
from shutting import shut
from starlette.testclient import TestClient
from ui.asking import got, places

from sparklog import Log
from sparklog.ui import records as pages
from sparklog.ui.responses import written


def lines(client: TestClient) -> list[dict[str, Any]]:
    return [json.loads(line) for line in client.get("/api/topics").text.splitlines()]


def all_places(root: Path, topic: str, **arguments: Any) -> list[tuple[int, int]]:
    table = Log(root)[topic].read(columns=["partition", "offset"], **arguments)
    return list(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))


def test_all_topics_and_the_damaged_one_among_them(client, root):
    head, *found = lines(client)
    log = Log(root)
    assert head == {"root": str(root), "topics": 5}
    assert [each["topic"] for each in found] == log.topics() == ["broken", "gaps", "hostile", "json", "t"]
    assert found[0]["error"]["condition"] == "PARTLOG_VERSION_CORRUPT"
    assert "00000000000000000001.json" in found[0]["error"]["text"]
    for each in found[1:]:
        about = log[each["topic"]].describe()
        assert (each["partitions"], each["records"], each["bytes"]) == (len(about["partitions"]), about["records"], about["bytes"])
        assert (each["version"], each["segments"]) == (about["version"], about["segments"])


def test_a_topic_is_what_describe_says(client, root):
    about = Log(root)["t"].describe()
    found = got(client, "topics/t")
    assert {"root": str(root), **found} == about
    assert got(client, "topics/broken", 500)["error"]["condition"] == "PARTLOG_VERSION_CORRUPT"
    assert got(client, "topics/absent", 404)["error"]["condition"] == "PARTLOG_TOPIC_NOT_FOUND"


def test_slots_are_those_of_describe_and_hot_slots(client, root):
    routed = grown(Topic(root, "routed", partitions=2))
    content = [Record(key=b"busy")] * 7 + [Record(key=b"k%d" % number) for number in range(20)] + [Record(key=b"x" * 9_000)] * 3
    for partition in (0, 2):
        routed.topic.commit(routed.topic.data(batch(content), partition, routed=False), features=featured("routing.slots"))
    topic = Log(root)["routed"]
    found = got(client, "topics/routed/slots")
    about = topic.describe()["routing"]
    assert found["routing"] == {**about, "reroutes": 2}
    assert [each["version"] for each in found["reroutes"]] == [each["version"] for each in about["reroutes"]][::-1]
    assert found["reroutes"][1] == {"version": 2, "slots": 1365, "partitions": 1, "to": [2]}
    expected = topic.hot_slots(5)
    assert found["sampled"] == [list(each) for each in expected.sampled.items()]
    assert found["with_slots"] == 2
    names = ("partition", "slot", "records", "share", "keys")
    assert [[each[name] for name in names] for each in found["hot"]] == [[getattr(each, name) for name in names] for each in expected]
    keys = [each["busiest"][0] for each in found["hot"] if each["records"] > 2]
    assert sorted(keys, key=lambda each: each[1]) == [[{"size": 9_000, "text": "x" * 512}, 3], [{"size": 4, "text": "busy"}, 7]]
    plain = got(client, "topics/t/slots")
    assert (plain["routing"], plain["reroutes"]) == (None, [])
    assert sum(records for _, records in plain["sampled"]) > 0


@pytest.mark.parametrize("topic", ["t", "gaps", "json"])
@pytest.mark.parametrize("partition", [None, 0])
def test_pages_backwards_and_forwards_have_each_record_once(client, root, topic, partition):
    expected = sorted(all_places(root, topic, partition=partition))
    for first, step, order in (("newest", "older", "before"), ("oldest", "newer", "from")):
        found = got(client, f"topics/{topic}/records", partition=partition, limit=7, order=first)
        assert found["newer" if step == "older" else "older"] is None
        seen = [places(found["rows"])]
        while found[step] is not None:
            found = got(client, f"topics/{topic}/records", partition=partition, limit=7, **{order: found[step]})
            seen.append(places(found["rows"]))
            assert len(seen) < 100
        assert sorted(place for page in seen for place in page) == expected
        if partition is None:
            continue  # the order of partitions among each other is found from the side where a page begins
        # A page back is the page before.
        other = "from" if step == "older" else "before"
        back = got(
            client, f"topics/{topic}/records", partition=partition, limit=7, **{other: found["newer" if step == "older" else "older"]}
        )
        assert places(back["rows"]) == seen[-2]


@pytest.mark.parametrize("name", ["t", "gaps", "json", "late"])
def test_the_newest_page_is_that_of_tail(client, root, name):
    random = seeded()
    late = Topic(root, "late", partitions=3)
    for _ in range(12):
        times = [TIME + random.randrange(40) for _ in range(random.randrange(1, 6))]
        late.append([Record(timestamp=time) for time in times], partition=random.randrange(3))
    for count in (1, 2, 3, 5, 12, 30, 100):
        tail = Log(root)[name].tail(count, columns=["partition", "offset"])
        expected = list(zip(tail["partition"].to_pylist(), tail["offset"].to_pylist(), strict=True))
        assert places(got(client, f"topics/{name}/records", limit=count)["rows"]) == expected


def test_records_from_a_time_until_a_time(client, root):
    expected = all_places(root, "t", since=TIME + 3, until=TIME + 1_004)
    assert 0 < len(expected) < 35
    for since, until in ((TIME + 3, TIME + 1_004), ("2023-11-14T22:13:20.003Z", "2023-11-14 22:13:21.004")):
        found = got(client, "topics/t/records", since=since, until=until, limit=500)
        assert sorted(places(found["rows"])) == sorted(expected)


def test_a_search_finds_what_a_read_finds(client, root, monkeypatch):
    random = seeded()
    topic = Log(root)["t"]
    by_key = [(p, o) for p, o in all_places(root, "t", key="k3")]
    values = topic.read(columns=["partition", "offset", "value", "key"]).to_pylist()
    containing = [(row["partition"], row["offset"]) for row in values if b"-4" in row["value"] or b"-4" in row["key"]]
    assert by_key and containing
    for bounds in ({}, {"_WINDOW": 3, "_SEARCH_S": 1.0}, {"_WINDOW": random.randrange(1, 9), "_SEARCH_S": 0.0}):
        for name, value in bounds.items():
            monkeypatch.setattr(pages, name, value)
        for query, expected in (({"key": "k3"}, by_key), ({"contains": "-4"}, containing), ({"contains": "hex:2d 34"}, containing)):
            for order, cursor in (("oldest", "from"), ("newest", "before")):
                seen, scanned, at = [], 0, None
                for _ in range(200):
                    found = got(client, "topics/t/records", limit=2, order=order, **query, **({cursor: at} if at else {}))
                    seen += places(found["rows"])
                    scanned += found["scanned"]
                    at = found["next"]
                    if at is None:
                        break
                assert seen == (expected if order == "oldest" else expected[::-1])
                assert scanned <= found["offsets"]
                assert query.get("key") or scanned == found["offsets"] == 35


def test_a_key_is_looked_for_where_it_may_be(client, tmp_path, root):
    home = Log(root)["t"].partition_for("k1")
    found = got(client, "topics/t/records", key="k1")
    assert {p for p, _ in places(found["rows"])} == {home} and found["searched"] == 1
    topic = Topic(root, "spread", partitions=3)
    topic.append(records(5, "a"), 0, routed=False)
    topic.append(records(5, "b"), 1, routed=False)
    topic.append(records(5, "c"), 2)
    found = got(client, "topics/spread/records", key="k1")
    assert {p for p, _ in places(found["rows"])} == {0, 1, Log(root)["spread"].partition_for("k1")}
    assert found["searched"] == len(Log(root)["spread"].partitions_holding("k1"))


def test_a_large_value_is_cut_and_can_be_seen_in_parts(client, tmp_path, root):
    value = bytes(seeded().randbytes(200_000)) + "é".encode() * 50_000
    topic = Topic(root, "large", config={"max.message.bytes": str(1 << 30)})
    topic.append([Record(value, None), Record(None, b""), Record("aé".encode() * 1_500, b"k" * 5_000)])
    cut, empty, text = got(client, "topics/large/records", order="oldest")["rows"]
    assert cut["value"]["size"] == 300_000
    assert bytes.fromhex(cut["value"]["hex"]) == value[: len(cut["value"]["hex"]) // 2]
    assert len(cut["value"]["hex"]) < 10_000
    assert cut["key"] is None
    assert empty["value"] is None
    assert empty["key"] == {"size": 0, "text": ""}
    assert text["value"]["size"] == 4_500
    assert ("aé" * 1_500).startswith(text["value"]["text"])
    assert len(text["value"]["text"]) > 1_000
    parts, at = [], 0
    while at < len(value):
        part = got(client, "topics/large/records/0/0", value=at)["value"]
        assert (part["size"], part["from"]) == (300_000, at)
        parts.append(bytes.fromhex(part["hex"]))
        assert len(parts[-1]) <= 65_536
        at += len(parts[-1])
    assert b"".join(parts) == value
    file = client.get("/api/topics/large/records/0/0/bytes")
    assert file.content == value
    assert file.headers["content-disposition"] == 'attachment; filename="large-0-0.value"'
    assert file.headers["content-type"] == "application/octet-stream"
    assert len(client.get("/api/topics/large/records/0/0?bytes=999999999999").content) < 3_000_000


def test_offsets_that_a_browser_could_not_hold_are_texts(client, root):
    start = 2**62 + 1
    topic = Topic(root, "far", starts=[start])
    topic.commit(topic.data(batches(records(3))))
    assert [row["offset"] for row in got(client, "topics/far/records")["rows"]] == [str(start + number) for number in range(3)]
    assert got(client, "topics/far")["partitions"][0]["end"] == str(start + 3)
    assert got(client, f"topics/far/records/0/{start + 1}")["offset"] == str(start + 1)


def test_offsets_that_expired_are_said(client, root):
    topic = Topic(root, "expired", starts=[100])
    topic.append(records(5))
    found = got(client, "topics/expired/records", **{"from": "0:7"})
    assert found["moved"] == [{"partition": 0, "asked": 7, "start": 100, "end": 105}]
    assert places(found["rows"]) == [(0, offset) for offset in range(100, 105)]
    assert got(client, "topics/expired/records/0/7", 400)["error"]["condition"] == "PARTLOG_OFFSETS_OUT_OF_RANGE"
    assert "value" not in got(client, "topics/gaps/records/0/5")


def test_segments_and_commits(client, root):
    topic = Log(root)["t"]
    found = [row for partition in (0, 1) for row in got(client, "topics/t/segments", partition=partition)["segments"]]
    assert [(each["partition"], each["base"], each["end"], each["records"]) for each in found] == [
        (0, 0, 15, 15),
        (0, 15, 25, 10),
        (1, 0, 10, 10),
    ]
    assert sum(each["bytes"] for each in found) == topic.describe()["bytes"]
    assert [each["runs"] for each in got(client, "topics/t/segments")["map"]] == [
        [[row["base"], row["end"], row["bytes"], 1, row["max_timestamp"]] for row in found if row["partition"] == partition]
        for partition in (0, 1)
    ]
    commits = got(client, "topics/gaps/commits", limit=20)
    more = got(client, "topics/gaps/commits", limit=20, before=commits["next"])
    listed = Log(root)["gaps"].commits()[::-1]
    assert [each["version"] for each in commits["commits"] + more["commits"]] == [each.version for each in listed]
    assert [(each["records"], each["bytes"], each["txn"]) for each in commits["commits"]] == [
        (c.records, c.bytes, c.txn) for c in listed[:20]
    ]
    assert more["next"] is None


def test_many_segments_are_joined_for_the_picture(client, root):
    runs = got(client, "topics/gaps/segments")["map"][0]
    assert runs["segments"] == 30 == len(runs["runs"])
    many = Topic(root, "many")
    for _ in range(20):
        many.commit(
            *[
                many.data(batches(records(1)), base=base, end=base + 1)
                for base in range(len(many.versions) * 20, len(many.versions) * 20 + 20)
            ]
        )
    joined = got(client, "topics/many/segments")["map"][0]
    assert joined["segments"] == 400 == sum(run[3] for run in joined["runs"])
    assert len(joined["runs"]) <= 256
    assert [run[0] for run in joined["runs"][1:]] == [run[1] for run in joined["runs"][:-1]]


@pytest.mark.parametrize(
    ("path", "query", "said"),
    [
        ("records", {"partition": 2}, "PARTLOG_PARTITION_NOT_FOUND"),
        ("records", {"partition": "-1"}, "PARTLOG_OPTION_VALUE"),
        ("records", {"from": "0:1,"}, "PARTLOG_OPTION_VALUE"),
        ("records", {"from": "9:1"}, "PARTLOG_OPTION_VALUE"),
        ("records", {"from": f"0:{2**63}"}, "PARTLOG_OPTION_VALUE"),
        ("records", {"limit": "1e3"}, "PARTLOG_OPTION_VALUE"),
        ("records", {"limit": "٣"}, "PARTLOG_OPTION_VALUE"),
        ("records", {"order": "best"}, "PARTLOG_OPTION_VALUE"),
        ("records", {"since": "yesterday"}, "PARTLOG_OPTION_VALUE"),
        ("records", {"key": "hex:0"}, "PARTLOG_OPTION_VALUE"),
        ("records", {"contains": "x" * 5_000}, "PARTLOG_OPTION_VALUE"),
        ("commits", {"before": "x"}, "PARTLOG_OPTION_VALUE"),
        ("segments", {"partition": 7}, "PARTLOG_PARTITION_NOT_FOUND"),
        ("tail", {"partition": 7}, "PARTLOG_PARTITION_NOT_FOUND"),
    ],
)
def test_a_wrong_question_is_answered_with_what_is_wrong(client, path, query, said):
    error = got(client, f"topics/t/{path}", 400 if said == "PARTLOG_OPTION_VALUE" else 404, **query)["error"]
    assert error["condition"] == said
    assert len(error["text"]) < 1_000


def test_a_root_that_disappears(client, root):
    shutil.rmtree(root)
    for path in ("topics", "topics/t", "topics/t/records", "topics/t/tail"):
        assert got(client, path, 404)["error"]["condition"] == "PARTLOG_ROOT_NOT_FOUND"


def test_one_topic_may_not_be_read_and_the_others_are_there(client, root):
    """Another user asks, as an administrator may read everything."""
    with shut(root / "_partlog" / "t"):
        denied = got(client, "topics/t", 503)["error"]
        head, *listed = lines(client)
        absent = got(client, "topics/absent", 404)["error"]
    assert denied["condition"] == "PARTLOG_IO"
    assert "Permission denied" in denied["text"]
    assert head["topics"] == 5
    assert [(each["topic"], each["records"]) for each in listed if each["records"]] == [("gaps", 120), ("hostile", 8), ("json", 180)]
    assert listed[-1]["error"] == {"condition": "PARTLOG_IO", "text": denied["text"]}
    assert absent["condition"] == "PARTLOG_TOPIC_NOT_FOUND"


def test_a_topic_of_many_partitions_needs_a_choice(client, root):
    wide = Topic(root, "wide", partitions=300)
    wide.append(records(3), 299)
    found = got(client, "topics/wide/records")
    assert (found["rows"], found["most"], found["partitions"]) == ([], 256, 300)
    assert len(got(client, "topics/wide/records", partition=299)["rows"]) == 3
    assert len(got(client, "topics/wide/records", contains="r-1")["rows"]) == 1
    assert got(client, "topics/wide/tail", 400)["error"]["condition"] == "PARTLOG_OPTION_VALUE"
    assert len(got(client, "topics/wide/segments")["map"]) == 64


def test_a_record_of_many_headers(client, root):
    headers = tuple((b"h%d-" % number + b"x" * 1_000, b"y" * 1_000) for number in range(10_000))
    Topic(root, "headed", config={"max.message.bytes": str(1 << 30)}).append([Record(headers=headers)])
    (row,) = got(client, "topics/headed/records")["rows"]
    assert row["header_count"] == 10_000
    assert [each["key"]["text"][:3] for each in row["headers"]] == [f"h{number}-"[:3] for number in range(20)]
    assert len(json.dumps(row)) < 4_000
    one = got(client, "topics/headed/records/0/0")
    assert (one["header_count"], len(one["headers"])) == (10_000, 200)
    assert one["headers"][199]["value"] == {"size": 1_000, "text": "y" * 1_000}


def test_times_that_are_none_and_that_no_calendar_has(client, root):
    topic = Topic(root, "times")
    for time in (-1, 0, 2**53 + 1, 2**62):
        topic.commit(topic.data(batch([Record(timestamp=time)])))
    last = 253_402_250_399_999  # of the year 9999
    assert [row["time"] for row in got(client, "topics/times/records", order="oldest")["rows"]] == [-1, 0, last, last]
    found = got(client, "topics/times")
    assert (found["min_timestamp"], found["max_timestamp"]) == (0, str(2**62))


def test_what_is_not_a_number_is_not_written():
    with pytest.raises(ValueError, match="JSON"):
        written({"seconds": float("nan")})
