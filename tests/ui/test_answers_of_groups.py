"""The answers about groups, compared with those of `OffsetTable` on the same root."""

import datetime
import itertools

from coordinated import classic, position, topic_of_groups
from owners import Own
from starlette.testclient import TestClient
from ui.asking import got
from ui.hostile_root import HOSTILE

from sparklog import Consumer, Log
from sparklog.groups import OffsetTable, rows
from sparklog.ui import application, groups


def test_groups_and_their_lag(client_with_groups, table):
    client = client_with_groups
    found = got(client, "groups")
    assert [each["group"] for each in found["groups"]] == table.groups()
    for each in found["groups"]:
        lag = table.lag(each["group"]).to_pylist()
        assert each["records"] == sum(row["records"] for row in lag) == 17
        one = got(client, "group", group=each["group"])
        assert [(row["partition"], row["offset"], row["end"]) for row in one["rows"]] == [
            (row["partition"], row["offset"], row["end"]) for row in lag
        ]
        assert one["rows"][0]["metadata"] == HOSTILE[0]
        assert one["history"][-1][1] == 17
    assert got(client, "group", 404, group="absent")["error"]["condition"] == "PARTLOG_GROUP_NOT_FOUND"


def test_a_request_asks_the_table_once_for_groups_and_once_for_history(client_with_groups, queries):
    queries.clear()  # the fixtures committed
    assert len(got(client_with_groups, "groups")["groups"]) == 2
    assert len(queries) == 1
    got(client_with_groups, "group", group="billing")
    assert len(queries) == 1 + 2


def test_lag_over_time_has_a_point_for_each_commit(root, tmp_path, monkeypatch):
    """The rows of a commit need not have the same time: some milliseconds may lie between them."""
    start = datetime.datetime.now(datetime.timezone.utc)
    ticks = itertools.count()
    monkeypatch.setattr("sparklog.groups.topics.now", lambda: start + datetime.timedelta(milliseconds=next(ticks)))
    table = OffsetTable(root, tmp_path / "ticking")
    own = Own(table, "g")
    for offset in (1, 5, 9):
        own.to({"t": {0: offset, 1: offset}})
    ends = Log(root)["t"].end_offsets()
    client = TestClient(application(root, table.path), base_url="http://127.0.0.1")
    found = got(client, "group", group="g")["history"]
    assert [records for _, records in found] == [ends[0] + ends[1] - 2 * offset for offset in (1, 5, 9)]
    (line, _) = table.plot.lag("g").axes[0].lines
    assert [records for _, records in found] == list(line.get_ydata())


def test_a_group_runs_until_it_says_that_it_ended(root, tmp_path):
    table = OffsetTable(root, tmp_path / "running")
    client = TestClient(application(root, table.path), base_url="http://127.0.0.1")

    def running() -> bool:
        (listed,) = got(client, "groups")["groups"]
        assert got(client, "group", group="g")["running"] == listed["running"] == table.summaries()[0].running
        return bool(listed["running"])

    assert got(client, "groups") == {"table": table.path, "exists": False, "groups": [], "more": 0, "unreadable": []}
    assert got(client, "group", 404, group="g")["error"]["condition"] == "PARTLOG_OFFSETS_TABLE_NOT_FOUND"
    with Consumer(root, "t", group_id="g", table=table, auto_offset_reset="earliest") as consumer:
        consumer.poll()
        consumer.commit()
        assert running()
    assert not running(), "it was closed"
    Own(table, "g", {"t": {0: 1}})
    assert running()
    table.reset("g", "latest", dry_run=False, force=True)
    assert not running(), "it was moved"


def test_members_that_share_a_group(root, tmp_path):
    table = OffsetTable(root, tmp_path / "shared")
    client = TestClient(application(root, table.path), base_url="http://127.0.0.1")
    with Consumer(root, "t", group_id="g", table=table, partition_assignment_strategy="sticky", auto_offset_reset="earliest") as consumer:
        consumer.poll()
        found = got(client, "group", group="g")
        (member,) = found["members"]
        assert member["partitions"] == len(consumer.assignment())
        assert member["lag"] == found["records"] > 0
        assert {(row["owner"], row["waits_for"]) for row in found["rows"]} == {(member["id"], "")}
        assert found["running"]
    assert got(client, "group", group="g")["members"] == []


def test_a_group_with_a_damaged_state_is_an_error_in_its_line_alone(client_with_groups, table):
    own = Own(table, "damaged", {"t": {0: 1}})
    damaged = rows.note("damaged", own.generation, "begin", {"members": [{"id": 7}]})
    assert table.generations.commit("damaged", table.generations.last("damaged") + 1, own.generation, [damaged])
    found = got(client_with_groups, "groups")["groups"]
    errors = {each["group"]: [error["condition"] for error in each["errors"]] for each in found}
    assert errors == {name: ["PARTLOG_GROUP_STATE"] if name == "damaged" else [] for name in table.groups()}


def test_groups_that_it_does_not_come_to_in_time(client_with_groups, table, monkeypatch):
    monkeypatch.setattr(groups, "_LIST_S", 0)
    found = got(client_with_groups, "groups")["groups"]
    assert [(each["group"], each["records"], each["running"]) for each in found] == [(name, None, None) for name in table.groups()]


def test_a_page_without_a_table_says_so(root):
    client = TestClient(application(root), base_url="http://127.0.0.1")
    assert got(client, "groups") == {"table": None, "exists": False, "groups": [], "more": 0, "unreadable": []}
    assert got(client, "group", 404, group="x")["error"]["condition"] == "TABLE_NOT_GIVEN"


def test_groups_of_the_table_are_there_if_the_topic_of_groups_is_damaged(client_with_groups, root, table):
    topic_of_groups(root, position("shop", "t", 0, 2)).version_file(0).write_text("{")
    found = got(client_with_groups, "groups")
    assert [each["group"] for each in found["groups"]] == table.groups()
    (told,) = found["unreadable"]
    assert "__consumer_offsets" in told
    client = TestClient(application(root), base_url="http://127.0.0.1")
    assert got(client, "groups", 500)["error"]["condition"] == "PARTLOG_VERSION_CORRUPT"


def test_groups_of_both_homes(client_with_groups, root, table):
    """A name in both homes is two groups."""
    topic_of_groups(root, position("billing", "t", 0, 3), position("shop", "t", 0, 2))
    found = got(client_with_groups, "groups")["groups"]
    assert [(each["group"], each["home"]) for each in found if each["group"] in ("billing", "shop")] == [
        ("billing", "table"),
        ("billing", "topic"),
        ("shop", "topic"),
    ]
    one = got(client_with_groups, "group", group="billing", home="topic")
    assert (one["rows"][0]["partition"], one["rows"][0]["offset"]) == (0, 3)
    assert got(client_with_groups, "group", group="billing")["rows"] != one["rows"]
    client = TestClient(application(root), base_url="http://127.0.0.1")
    assert [each["group"] for each in got(client, "groups")["groups"]] == ["billing", "shop"]


def test_members_that_are_clients_of_a_server(browser, serve, root):
    topic_of_groups(root, classic("shop", 3, {"a": {"t": [0]}}), position("shop", "t", 0, 2))
    url = serve(root)
    browser.open(f"{url}/group?group=shop&home=topic", "[aria-label=Members] tbody tr")
    assert browser.texts("[aria-label=Members] tbody .clip") == ["a", "client", "/127.0.0.1"]
    assert browser.complaints() == []
