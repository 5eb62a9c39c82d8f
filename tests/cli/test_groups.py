"""`sparklog groups` and its commands."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from coordinated import classic, position, topic_of_groups
from handmade import Topic, records
from in_notebook import html
from owners import Own

from sparklog import CallError, Consumer
from sparklog.__main__ import main
from sparklog.groups import OffsetTable, plan
from sparklog.groups.assignors import Member

HOUR_MS = 3_600_000
BEATS = ("--heartbeat-interval-ms", 200)
REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def table(topic, tmp_path, monkeypatch):
    """Group `g` of topic `t`, which has read all of partition 1 and 20 of 25 of partition 0; and topic `u` of six partitions."""
    table = OffsetTable(topic.root, tmp_path / "offsets")
    Own(table, "g", {"t": {0: 20, 1: 10}}).end()
    monkeypatch.setenv("SPARKLOG_OFFSETS", str(tmp_path / "offsets"))
    other = Topic(topic.root, "u", partitions=6)
    for partition in range(6):
        other.append(records(10 * (partition + 1)), partition)
    return table


def test_groups_without_a_word_of_its_own_lists_them(run, topic, table):
    assert run("groups", topic.root) == run("groups", "list", topic.root)
    assert run("groups", "--json", topic.root) == run("groups", "list", topic.root, "--json")
    assert run("groups", "describe", topic.root, "g") == run("lag", topic.root, "g")
    said = run("groups", "--help")
    for command in ("list", "describe", "reset", "plan"):
        assert f" {command} " in said
        assert "Example" in run("groups", command, "--help")
    assert run("groups", "reset", topic.root, "g", "--to-latest", "--execute")
    assert {each.offset for each in table.positions("g")} == {25, 10}


def checked(capfd, *words):
    """The exit status of a command, and its lines on standard output and standard error."""
    capfd.readouterr()
    status = main([str(word) for word in words])
    out, err = capfd.readouterr()
    return status, out.splitlines(), err.splitlines()


def test_an_alert_on_lag_is_an_exit_status_and_a_line(topic, table, capfd):
    """Each partition counts for itself: 5 records of partition 0 are unread."""
    shown = checked(capfd, "groups", "lag", topic.root, "g")
    assert shown == (0, checked(capfd, "lag", topic.root, "g")[1], [])
    assert checked(capfd, "groups", "lag", topic.root, "g", "--fail-above", 5) == shown
    said = "Group g is behind: partition 0 of t (5)"
    assert checked(capfd, "groups", "lag", topic.root, "g", "--fail-above", 4) == (1, shown[1], [said])
    status, out, err = checked(capfd, "lag", topic.root, "g", "--fail-above", 0, "--json")
    assert (status, [row["records"] for row in json.loads(out[0])], err) == (1, [5, 0], [said])
    assert checked(capfd, "groups", "lag", topic.root, "g", "--fail-above", -1)[0] == 2
    assert checked(capfd, "groups", "lag", topic.root, "typo", "--fail-above", 5)[0] == 2


def test_an_alert_counts_partitions_without_a_position(topic, table, capfd):
    """All of their records are unread: partitions 1 to 5 of `u` have 20 to 60."""
    Own(table, "h", {"u": {0: 10}}).end()
    assert checked(capfd, "groups", "lag", topic.root, "h", "--fail-above", 60)[0] == 0
    status, _, err = checked(capfd, "groups", "lag", topic.root, "h", "--fail-above", 45)
    assert (status, err) == (1, ["Group h is behind: partition 5 of u (60), partition 4 of u (50)"])
    err = checked(capfd, "groups", "lag", topic.root, "h", "--fail-above", 0)[2]
    assert err[0].endswith("partition 1 of u (20)")
    wide = Topic(topic.root, "wide", partitions=9)
    for partition in range(9):
        wide.append(records(1), partition)
    Own(table, "i", {"wide": {0: 0}}).end()
    err = checked(capfd, "groups", "lag", topic.root, "i", "--fail-above", 0)[2]
    assert len(err) == 1 and err[0].endswith("partition 4 of wide (1) and 4 more partitions")


def test_an_alert_names_a_topic_of_members_that_was_created_again(topic, table, capfd):
    with Consumer(
        topic.root, "t", group_id="shop", table=table, partition_assignment_strategy="sticky", auto_offset_reset="earliest"
    ) as one:
        while one.poll(500):
            one.commit()
        assert checked(capfd, "groups", "lag", topic.root, "shop", "--fail-above", 0)[0] == 0
        topic.delete()
        topic.append(records(7), 0)
        status, _, err = checked(capfd, "groups", "lag", topic.root, "shop", "--fail-above", 1_000_000)
    assert (status, len(err)) == (1, 1)
    assert "partition 0 of t (the topic was deleted or created again)" in err[0]


def test_an_alert_names_topics_without_members_that_are_gone(topic, table, capfd):
    """Each partition of a topic that was deleted or created again comes before the partitions with the greatest lag."""
    Own(table, "h", {"t": {0: 20, 1: 10}, "u": dict.fromkeys(range(6), 0)}).end()
    topic.delete()
    assert checked(capfd, "groups", "lag", topic.root, "h")[0] == 2
    for recreated in (False, True):
        if recreated:
            topic.append(records(7), 0)
        status, out, err = checked(capfd, "groups", "lag", topic.root, "h", "--fail-above", 1, "--json")
        gone = ", ".join(f"partition {number} of t (the topic was deleted or created again)" for number in (0, 1))
        more = "partition 5 of u (60), partition 4 of u (50), partition 3 of u (40) and 3 more partitions"
        assert (status, err) == (1, [f"Group h is behind: {gone}, {more}"])
        rows = {(row["topic"], row["partition"]): row["records"] for row in json.loads(out[0])}
        assert rows == {("t", 0): None, ("t", 1): None, **{("u", number): 10 * (number + 1) for number in range(6)}}


def test_plan_of_a_new_group(run, topic):
    """Without a table, and without a group: only topics."""
    said = run("groups", "plan", topic.root, "new", "--topic", "t", "--member", "host1", "--member", "host2")
    assert said.splitlines() == [
        "Group new: 2 members (a plan; nothing was changed)",
        "sticky, by count: 2 partitions of t",
        "",
        "consumer-id  #partitions  lag  assignment",
        "host1                  1    0  t(0)",
        "host2                  1    0  t(1)",
    ]


def test_plan_as_members_join_and_leave(run, topic, table):
    given = ["groups", "plan", topic.root, "g", "--topic", "u", "--members", 3]
    found = json.loads(run(*given, "--json"))
    assert {key: found[key] for key in ("group", "assignor", "weight", "moved")} == {
        "group": "g",
        "assignor": "sticky",
        "weight": "count",
        "moved": 0,
    }
    assert found["members"] == [
        {"consumer_id": "consumer-1", "partitions": 2, "lag": 0, "assignment": {"u": [0, 1]}},
        {"consumer_id": "consumer-2", "partitions": 2, "lag": 0, "assignment": {"u": [2, 3]}},
        {"consumer_id": "consumer-3", "partitions": 2, "lag": 0, "assignment": {"u": [4, 5]}},
    ]
    assert found["partitions"][0] == {"topic": "u", "partition": 0, "consumer_id": "consumer-1", "was": None, "lag": None}
    left = json.loads(run(*given, "--without", "consumer-2", "--json"))
    assert [each["assignment"] for each in left["members"]] == [{"u": [0, 1, 2]}, {"u": [3, 4, 5]}]
    assert [(each["partition"], each["was"]) for each in left["partitions"]][2:4] == [(2, "consumer-2"), (3, "consumer-2")]
    assert left["moved"] == 2
    said = run(*given, "--without", "consumer-2", "--with", "consumer-4")
    assert "consumer-2 leaves u(2,3)" in said
    assert "2 partitions would go to another member" in said
    assert "consumer-4" in said
    by_range = json.loads(run(*given, "--with", "consumer-0", "--assignor", "range", "--json"))
    assert [each["assignment"]["u"] for each in by_range["members"]] == [[0, 1], [2, 3], [4], [5]]
    assert by_range["moved"] == 5
    assert table.groups() == ["g"]


def test_plan_by_lag_and_by_rate(run, topic, table):
    """10 to 60 records in `u`: by lag all are unread; by rate nothing, as the records are old."""
    given = ["groups", "plan", topic.root, "g", "--topic", "u", "--members", 2, "--json"]
    by_lag = json.loads(run(*given, "--weight", "lag"))
    sums = [sum(10 * (number + 1) for number in each["assignment"]["u"]) for each in by_lag["members"]]
    assert sorted(sums) == [100, 110]
    assert [each["partitions"] for each in json.loads(run(*given, "--weight", "rate"))["members"]] == [3, 3]
    read = json.loads(run("groups", "plan", topic.root, "g", "--members", 2, "--json"))
    assert [(each["topic"], each["partition"], each["lag"]) for each in read["partitions"]] == [("t", 0, 5), ("t", 1, 0)]
    assert [each["lag"] for each in read["members"]] == [5, 0]


def test_plans_in_python_are_those_of_the_command(run, topic, table):
    found = json.loads(run("groups", "plan", topic.root, "g", "--topic", "u", "--topic", "t", "--members", 4, "--json"))
    planned = table.plan("g", 4, ["t", "u"])
    assert [vars(each) for each in planned.partitions] == found["partitions"]
    assert repr(planned).startswith("Group g: 4 members (a plan; nothing was changed)\nsticky, by count: 8 partitions of t, u\n")
    mixed = plan(topic.root, "g", [Member("a", ["t"]), Member("b", ["t", "u"], capacity=2)])
    assert {id: len(given) for id, given in mixed.after.items()} == {"a": 2, "b": 6}
    assert "<table" in html(mixed)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--members", 2], "PARTLOG_OPTION_VALUE"),
        (["--topic", "t", "--without", "host7"], "is not one of the members"),
        (["--topic", "t", "--members", 2, "--member", "a"], "give --members, a number, or --member"),
        (["--topic", "t", "--members", 0], "--members"),
        (["--topic", "t", "--members", 2, "--assignor", "fair"], "range, roundrobin, sticky"),
        (["--topic", "t", "--members", 2, "--weight", "bytes"], "count, lag, rate"),
        (["--topic", "t", "--members", 2, "--without", "host7"], "consumer-1, consumer-2"),
        (["--topic", "t", "--member", "a", "--member", "a"], "two members have it"),
        (["--topic", "t", "--member", "a", "--with", "a"], "two members have it"),
        (["--topic", "none", "--members", 2], "PARTLOG_TOPIC_NOT_FOUND"),
    ],
)
def test_a_plan_that_cannot_be_made(run, topic, table, words, said):
    assert said in run("groups", "plan", topic.root, "unknown", *words, status=2)


def test_a_plan_without_a_table_needs_topics(run, topic):
    assert "give --topic, or --table" in run("groups", "plan", topic.root, "g", "--members", 2, status=2)
    assert "a number, or --member" in run("groups", "plan", topic.root, "g", "--topic", "t", status=2)
    with pytest.raises(CallError, match="no positions"):
        plan(topic.root, "g", 2)


def test_positions_in_a_topic_that_was_created_again_do_not_count(topic, table):
    topic.delete()
    topic.append(records(7), 0)
    planned = table.plan("g", 1)
    assert {each.lag for each in planned.partitions} == {None}


@pytest.mark.slow
def test_members_of_a_group_are_shown_and_rewound(run, topic, table):
    given = {"group_id": "shop", "table": table, "auto_offset_reset": "earliest"}
    with Consumer(topic.root, "u", **given) as one, Consumer(topic.root, "u", **given) as two:
        while len(one.assignment()) != 3 or len(two.assignment()) != 3:
            one.poll(20)
            two.poll(20)
        one.commit()
        two.commit()
        shown = json.loads(run("groups", "describe", topic.root, "shop", "--json"))
        members = json.loads(run("groups", "members", topic.root, "shop", "--json"))
        assert sorted(each["consumer_id"] for each in members) == sorted({each["consumer_id"] for each in shown})
        assert [len(each["assignment"]["u"]) for each in members] == [3, 3]
        assert "2 owners" in run("groups", "describe", topic.root, "shop")
        gone = json.loads(run("groups", "plan", topic.root, "shop", "--without", members[0]["consumer_id"], "--json"))
        assert gone["moved"] == 3
        assert "PARTLOG_GROUP_RUNNING" in run("groups", "reset", topic.root, "shop", "--to-earliest", "--execute", status=2)
        run("groups", "reset", topic.root, "shop", "--by-duration", "P9999D", "--execute", "--force")
        read = 0
        while read < 210:
            read += sum(map(len, [*one.poll(20).values(), *two.poll(20).values()]))
    history = run("groups", "history", topic.root, "shop")
    assert all(word in history for word in ("joins", "takes", "releases", "reset", "leaves"))
    assert json.loads(run("groups", "members", topic.root, "shop", "--json")) == []
    assert "in 6 partitions deleted" in run("groups", "delete", topic.root, "shop", "--execute")


def test_consume_commits_nothing_that_it_could_not_write(topic, table):
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        command = [sys.executable, "-m", "sparklog", "groups", "consume", topic.root, "shop", "t", "--from-beginning"]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(REPOSITORY)})
    assert (ended.returncode, b"No space left" in ended.stderr) == (5, True)
    assert {each.offset for each in table.positions("shop")} == {0}
    assert table.members("shop") == []


@pytest.mark.parametrize("ends", [signal.SIGINT, signal.SIGTERM])
def test_consume_commits_and_leaves_when_a_service_manager_ends_it(topic, table, start, ends):
    with start("groups", "consume", topic.root, "shop", "t", "--from-beginning") as consumer:
        assert [len(consumer.stdout.readline()) > 1 for _ in range(35)] == [True] * 35
        consumer.send_signal(ends)
        consumer.communicate(timeout=600)
    assert consumer.returncode == 128 + ends
    assert {each.partition: each.offset for each in table.positions("shop")} == {0: 25, 1: 10}
    assert table.members("shop") == []


def test_doctor_says_what_keeps_a_group_from_going_on(topic, table, start, run, capfdbinary):
    """The exit status is 1 for a group that stands still, and 0 for one that is well."""
    assert main(["groups", "doctor", str(topic.root), "g"]) == 1
    said = capfdbinary.readouterr().out.decode()
    assert said.splitlines()[0] == "Group g: 1 error"
    assert "No program runs the group. Records that wait: 5." in said
    table.reset("g", "latest", dry_run=False)
    assert run("groups", "doctor", topic.root, "g") == "Group g is well: nothing keeps it from going on.\n"
    assert json.loads(run("groups", "doctor", topic.root, "g", "--json")) == {"group": "g", "stuck": False, "findings": []}
    with start("groups", "consume", topic.root, "shop", "t", "--from-beginning", "--session-timeout-ms", 1_500, *BEATS) as consumer:
        assert [len(consumer.stdout.readline()) > 1 for _ in range(35)] == [True] * 35
        consumer.kill()
    assert main(["groups", "doctor", str(topic.root), "shop", "--watch", "1", "--json"]) == 1
    (finding,) = json.loads(capfdbinary.readouterr().out)["findings"]
    assert (finding["severity"], finding["rule"]) == ("error", "member-silent")
    assert finding["fix"].startswith("The next consumer that joins will expire it, after its session of 1.5 s")


@pytest.mark.soak
def test_three_consumers_one_killed_and_the_group_rewound(run, topic, table, start, tmp_path):
    """A newcomer's first hour, with the command line alone. The first half of the records is of two hours ago."""
    orders, now = Topic(topic.root, "orders", partitions=6), round(1000 * time.time())
    for partition in range(6):
        orders.append(records(10 * (partition + 1), timestamp=now - 2 * HOUR_MS), partition)
    session = ["--session-timeout-ms", 3_000, "--heartbeat-interval-ms", 200]
    outs = [tmp_path / f"out{number}" for number in range(3)]
    consumers = [start("groups", "consume", topic.root, "shop", "orders", "--from-beginning", "--json", *session) for _ in outs]
    said: list[list[bytes]] = [[] for _ in outs]
    readers = [threading.Thread(target=lambda n=n: said[n].extend(consumers[n].stdout)) for n in range(3)]
    for reader in readers:
        reader.start()

    def owners() -> list[str | None]:
        return [each["consumer_id"] for each in json.loads(run("groups", "describe", topic.root, "shop", "--json"))]

    def printed() -> Counter[tuple[int, int]]:
        """How often each record was printed, by partition and offset."""
        return Counter((record["partition"], record["offset"]) for lines in said for record in map(json.loads, list(lines)))

    def until(reached) -> None:
        end = time.monotonic() + 120
        while True:
            try:
                if reached():
                    return
            except AssertionError:  # there is no table yet
                pass
            assert time.monotonic() < end, run("groups", "history", topic.root, "shop")
            time.sleep(0.2)

    until(lambda: sorted(map(owners().count, set(owners()))) == [2, 2, 2])
    old = {(number, offset) for number in range(6) for offset in range(10 * (number + 1))}
    until(lambda: printed().keys() == old)
    until(lambda: json.loads(run("groups", "plan", topic.root, "shop", "--without", owners()[0], "--json"))["moved"] == 2)
    consumers[1].kill()
    until(lambda: sorted(map(owners().count, set(owners()))) == [3, 3])
    assert "expires" in run("groups", "history", topic.root, "shop")
    for partition in range(6):
        orders.append(records(5, timestamp=now), partition)
    new = {(number, 10 * (number + 1) + offset) for number in range(6) for offset in range(5)}
    until(lambda: printed().keys() == old | new)
    before = printed()
    assert {before[each] for each in new} == {1}
    run("groups", "reset", topic.root, "shop", "--by-duration", "PT1H", "--execute", "--force")
    until(lambda: all(printed()[each] == 2 for each in new))
    assert all(printed()[each] == before[each] for each in old)
    for each in (consumers[0], consumers[2]):
        each.send_signal(signal.SIGINT)
        assert each.wait(60) == 130
    for each, reader in zip(consumers, readers, strict=True):
        each.wait()
        reader.join()
        each.stdout.close()
        each.stderr.close()
    until(lambda: json.loads(run("groups", "members", topic.root, "shop", "--json")) == [])
    assert "3 members" not in run("groups", "list", topic.root)
    assert "in 6 partitions to be deleted" in run("groups", "delete", topic.root, "shop")
    assert "in 6 partitions deleted" in run("groups", "delete", topic.root, "shop", "--execute")
    assert table.groups() == ["g"]


def test_one_topic_is_dropped_from_a_group(run, topic, table):
    Own(table, "g", {"u": {0: 3}})
    for more in ((), ("--execute",)):
        assert "PARTLOG_GROUP_RUNNING" in run("groups", "delete", topic.root, "g", "--topic", "t", *more, status=2)
    assert json.loads(run("groups", "delete", topic.root, "g", "--topic", "t", "--json", "--force"))["partitions"] == 2
    assert len(table.positions("g")) == 3
    run("groups", "delete", topic.root, "g", "--topic", "t", "--execute", "--force")
    assert [(each.topic, each.partition, each.offset) for each in table.positions("g")] == [("u", 0, 3)]


def test_a_group_is_exported_and_imported(run, topic, table, tmp_path):
    text = run("groups", "export", topic.root, "g")
    assert text == table.export("g", "csv")
    for name, words in {"g.csv": [], "g.json": ["--json"]}.items():
        file = tmp_path / name
        file.write_text(run("groups", "export", topic.root, "g", *words))
        new = f"from-{name}"
        assert "would be moved" in run("groups", "import", topic.root, new, file)
        assert new not in table.groups()
        assert "moved" in run("groups", "import", topic.root, new, file, "--execute")
        assert table.export(new, "csv") == text


@pytest.mark.parametrize("words", [[], ["--execute"]], ids=["dry", "execute"])
@pytest.mark.parametrize("command", [["groups", "import"], ["reset", "--from-file"]], ids=["import", "reset"])
def test_a_file_with_offsets_of_expired_records_is_imported_and_each_move_says_so(run, topic, table, tmp_path, command, words):
    file = tmp_path / "g.csv"
    file.write_text("t,0,5\nt,1,2\n")
    topic.commit(starts=[7, 0])
    given = [*command, topic.root, "new", file] if command[0] == "groups" else ["reset", topic.root, "new", "--from-file", file]
    answer = json.loads(run(*given, *words, "--json"))
    assert answer["executed"] == bool(words)
    assert [(each["now"], each["note"]) for each in answer["moves"]] == [(7, "5 is before the log start offset"), (2, None)]
    assert ("new" in table.groups()) == bool(words)
    assert "5 is before the log start offset" in run(*given, *words, "--force")


@pytest.fixture
def served(topic, table):
    """The same, and groups of Kafka's clients: `g` once more, and `mail` with two members."""
    log = topic_of_groups(topic.root, position("g", "t", 0, 3), position("mail", "t", 0, 24), position("mail", "t", 1, 1))
    log.append([classic("mail", 4, {"m1": {"t": [0]}, "m2": {"t": [1]}})], 0)
    return table


def test_groups_of_both_homes_are_listed(run, topic, served, monkeypatch):
    lines = run("groups", topic.root).splitlines()
    assert lines[0] == f"3 groups in {served.path} and topic __consumer_offsets of {topic.root}"
    assert [line.split()[:5] for line in lines[2:6]] == [
        ["group", "home", "topics", "partitions", "lag"],
        ["g", "table", "t", "2", "5"],
        ["g", "topic", "t", "1", "22"],
        ["mail", "topic", "t", "2", "10"],
    ]
    assert lines[-1] == "In the table and in the topic: g. These are two groups, each with positions of its own."
    listed = json.loads(run("groups", topic.root, "--json"))
    assert [(each["group"], each["home"], each["running"]) for each in listed] == [
        ("g", "table", False),
        ("g", "topic", False),
        ("mail", "topic", True),
    ]
    monkeypatch.delenv("SPARKLOG_OFFSETS")
    assert [each["group"] for each in json.loads(run("groups", topic.root, "--json"))] == ["g", "mail"]
    assert "two groups" not in run("groups", topic.root)


def test_a_name_in_both_homes_is_shown_twice(run, topic, served):
    lines = run("lag", topic.root, "g").splitlines()
    titles = [line for line in lines if line.startswith("Group")]
    assert titles == ["Group g", "Group g in the root's topic of groups"]
    assert lines[-1].startswith("In the table and in the topic: g.")
    rows = json.loads(run("lag", topic.root, "g", "--json"))
    assert [(each["home"], each["partition"], each["records"]) for each in rows] == [
        ("table", 0, 5),
        ("table", 1, 0),
        ("topic", 0, 22),
        ("topic", 1, None),
    ]
    assert "partition 0 of t (22)" in run("lag", topic.root, "g", "--fail-above", 21, status=1)
    run("lag", topic.root, "g", "--fail-above", 22)


def test_doctor_and_delete_name_the_group_in_the_root(run, topic, served, monkeypatch):
    said = "In the table and in the topic: g. These are two groups, each with positions of its own."
    served.reset("g", "latest", dry_run=False)
    assert run("groups", "doctor", topic.root, "g").splitlines()[-1] == said
    for more in ((), ("--execute",)):
        said = "The root has another group of this name, of Kafka's clients, which stays."
        assert run("groups", "delete", topic.root, "g", *more).splitlines()[-1] == said
    monkeypatch.delenv("SPARKLOG_OFFSETS")
    for command in ("doctor", "delete"):
        error = " ".join(run("groups", command, topic.root, "mail", status=2).replace("│", "").split())
        assert "Missing option '--table' / '-t'. Group mail is in the root: change it with Kafka's tools" in error
        error = " ".join(run("groups", command, topic.root, "nobody", status=2).replace("│", "").split())
        assert "Missing option '--table' / '-t'. Give the offset table." in error


@pytest.mark.slow
def test_consume_says_that_the_root_has_a_group_of_its_name(topic, served, start):
    for group, said in (("g", 1), ("shop", 0)):
        with start("groups", "consume", topic.root, group, "t") as consumer:
            first = [consumer.stderr.readline().decode() for _ in range(said + 1)]
            consumer.send_signal(signal.SIGINT)
            consumer.communicate(timeout=600)
        line = "In the table and in the topic: g. These are two groups, each with positions of its own.\n"
        assert first[:-1] == [line] * said
        assert first[-1] == "reads t(0,1)\n"
    log = topic.root / "_partlog" / "__consumer_offsets"
    for file in log.glob("*.json"):
        file.write_bytes(b"no version")
    with start("groups", "consume", topic.root, "g", "t") as consumer:
        assert consumer.stderr.readline().startswith(b"reads t"), "it reads although that topic is damaged"
        consumer.send_signal(signal.SIGINT)
        consumer.communicate(timeout=600)


@pytest.mark.parametrize("words", [("groups", "list"), ("lag",), ("groups", "describe"), ("groups", "members")])
def test_groups_of_the_table_are_shown_if_the_topic_of_groups_is_damaged(topic, table, capfd, words):
    """The damage is told on standard error, and by the exit status."""
    of = [] if words[-1] == "list" else ["g"]
    whole = checked(capfd, *words, topic.root, *of, "--json")
    topic_of_groups(topic.root, position("mail", "t", 0, 3)).version_file(0).write_text("{")
    status, out, err = checked(capfd, *words, topic.root, *of, "--json")
    assert (whole[0], out) == (0, whole[1])
    assert status > 2
    assert any("PARTLOG_VERSION_CORRUPT" in line and "__consumer_offsets" in line for line in err)
    if of:
        assert any("GROUP_NOT_FOUND" in line for line in checked(capfd, *words, topic.root, "mail")[2])


def test_a_doctor_of_a_group_of_a_table_names_the_damaged_topic_of_groups(topic, table, capfd):
    words = ["groups", "doctor", topic.root, "g", "--watch", "0", "--json"]
    whole = checked(capfd, *words)
    topic_of_groups(topic.root, position("mail", "t", 0, 3)).version_file(0).write_text("{")
    status, out, err = checked(capfd, *words)
    assert (status, out) == whole[:2]
    assert any("PARTLOG_VERSION_CORRUPT" in line and "__consumer_offsets" in line for line in err)


def test_members_and_owners_of_a_group_of_kafkas_clients(run, topic, served, monkeypatch):
    monkeypatch.delenv("SPARKLOG_OFFSETS")
    described = json.loads(run("groups", "describe", topic.root, "mail", "--json"))
    assert [(each["partition"], each["offset"], each["consumer_id"], each["home"]) for each in described] == [
        (0, 24, "m1", "topic"),
        (1, 1, "m2", "topic"),
    ]
    assert "2 owners, 10 records behind" in run("groups", "describe", topic.root, "mail")
    members = json.loads(run("groups", "members", topic.root, "mail", "--json"))
    assert [(each["consumer_id"], each["assignment"], each["lag"]) for each in members] == [("m1", {"t": [0]}, 1), ("m2", {"t": [1]}, 9)]
    said = run("lag", topic.root, "typo", status=2)
    assert "PARTLOG_TOPIC_GROUP_NOT_FOUND" in said and "Existing groups: g, mail" in said and "--table" in said


def test_without_a_table_and_a_topic_the_table_is_asked_for(run, topic, monkeypatch):
    monkeypatch.delenv("SPARKLOG_OFFSETS", raising=False)
    for words in (("groups", topic.root), ("lag", topic.root, "g"), ("groups", "members", topic.root, "g")):
        assert "Missing option '--table'" in " ".join(run(*words, status=2).replace("│", " ").split())
