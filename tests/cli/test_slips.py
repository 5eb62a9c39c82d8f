"""Words and options that a command refuses, and what it says to write."""

import json
import re
import sys

import pyarrow as pa
import pytest
import typer.main
from handmade import TIME, Topic, records
from owners import Own

from sparklog import Log
from sparklog.cli.app import _INSTEAD, app
from sparklog.groups import OffsetTable


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["cat", ".", "t", "-p", "0", "-p", "1"], "Invalid value for '--partition' / '-p': It is given 2 times, and takes one value."),
        (["head", ".", "t", "-n", "1", "--max-messages", "2"], "It is given 2 times, and takes one value."),
        (["cat", ".", "t", "--from", "1", "--to", "2", "--from", "3"], "Invalid value for '--from': It is given 2 times"),
        (["cat", ".", "t", "-f", "csv", "--json"], "Option `--format` has the value csv: it is given together with --json"),
        (["-e", "-t", "orders"], "leave it out: `sparklog cat ROOT TOPIC` ends at the end offset"),
        (["cat", ".", "-t", "orders"], "-t is not known here: a command takes root and topic without options"),
        (["cat", ".", "t", "-C"], "kcat's -C is `sparklog cat ROOT TOPIC`"),
        (["cat", ".", "t", "-p", "0,x"], "'0,x' names no partitions; they are numbers from 0 on with commas, as 0,2"),
        (["head", ".", "t", "-p", "-1"], "'-1' names no partitions"),
        (["head", ".", "t", "--partitoin", "1"], "No such option: --partitoin"),
        (["list", "."], "use `sparklog topics ROOT`"),
        (["-C", "-b", "host:9092", "-t", "orders"], "kcat's -C is `sparklog cat ROOT TOPIC`"),
        (["tpoics", "."], "No such command 'tpoics'. Did you mean topics?"),
        (["desc", "."], "No such command 'desc'. Did you mean describe?"),
        (["groups", "."], "PARTLOG_ROOT_WITHOUT_LOG"),
        (["compct", "."], "No such command 'compct'. `sparklog --help` lists the commands."),
        (["compact", "."], "there is no compaction; `sparklog merge ROOT TOPIC` makes few segments of many"),
        (["cat", ".", "--topic", "t"], "--topic is not known here: a command takes root and topic without options"),
        (["topics", "--bootstrap-server", "h:9092"], "there is no broker"),
        (["cat", ".", "t", "--partitoin", "1"], "No such option: --partitoin (Possible options: --partition)"),
        (["cat", ".", "t", "--timeout", "1"], "No such option: --timeout"),
        (["consume", "."], "`sparklog groups consume ROOT GROUP TOPIC` as a member of a group"),
        (["kafka-consumer-groups.sh", "--list"], "kafka-consumer-groups.sh is not known here: use `sparklog groups ROOT`"),
        (["kafka-topics.sh", "--list"], "kafka-topics.sh is not known here: use `sparklog topics ROOT`"),
        (["kafka-topics", "--list"], "kafka-topics is not known here: use `sparklog topics ROOT`"),
        (["truncate", ".", "t"], "use `sparklog delete-records ROOT TOPIC --offsets 0:-1,1:-1 --execute`, which names each partition"),
        (["metrics", ".", "--public"], "Invalid value for --public: it needs --listen"),
        (["metrics", ".", "--allow-host", "h"], "Invalid value for --allow-host: it needs --listen"),
        (["topics", ".", "--list"], "--list is not known here: use `sparklog topics ROOT`"),
        (["lag", ".", "--group", "g"], "a command takes the group without an option, as in `sparklog lag ROOT GROUP`"),
        (["cat", ".", "t", "--from-beginning"], "begins at the first record"),
        (["groups", "lags", ".", "g"], "No such command 'lags'. Did you mean lag?"),
        (["groups", "memebrs", ".", "g"], "No such command 'memebrs'. Did you mean members?"),
        (["-L"], "kcat's -L is `sparklog topics ROOT`"),
    ],
)
def test_words_that_mean_something_else(run, monkeypatch, words, said):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(sys.prefix)
    told = " ".join(run(*words, status=2).replace("│", " ").split())
    assert said in told


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["head", "ROOT", "t", "-n", "ten"], "'ten' is not a whole number."),
        (["head", "ROOT", "t", "-n", "-3"], "'-3': it must be at least 0."),
        (["lag", "ROOT", "g", "--fail-above", "10k"], "'10k' is not a whole number."),
        (["ui", "ROOT", "--port", "70000"], "'70000': it must be at most 65535."),
        (["groups", "doctor", "ROOT", "g", "-t", "x", "--watch", "long"], "'long' is not a number."),
        (["ui", "ROOT", "--host", "0.0.0.0"], "without a password; if that is meant, give `--public` too"),
        (["metrics", "ROOT", "--listen", "99999"], "Option `--listen` has the value 99999"),
        (["metrics", "ROOT", "--listen", "0.0.0.0:9"], "Option `--listen` has the value 0.0.0.0"),
        (["groups", "plan", "ROOT", "g", "--members", "2", "--topic", "t", "--without", "b"], "Option `--without` has the value b"),
        (["groups", "plan", "ROOT", "g", "--members", "2", "--topic", "t", "--assignor", "b"], "Option `--assignor` has the value b"),
        (["reset", "ROOT", "g", "-t", "TABLE", "--to-earliest", "--topic", "t:9"], "`--topic` names partition 9 of topic t"),
        (["reset", "ROOT", "g", "-t", "TABLE", "--topic", "t", "--to-offset", "99"], "asks for offset 99"),
        (["cat", "ROOT", "t", "-p", "9"], "`--partition` names partition 9"),
        (["cat", "ROOT", "t", "-p", "0", "-o", "5000"], "`--offset` asks for offset 5000"),
        (["groups", "ROOT", "-t", "a%41"], "Option `--table` has the value"),
        (["topics", "~/log"], "Option `ROOT` has the value ~/log"),
        (
            ["groups", "consume", "ROOT", "g", "t", "-t", "TABLE", "--session-timeout-ms", "5"],
            "Option `--session-timeout-ms` has the value 5: it must be at least three times `--heartbeat-interval-ms`",
        ),
        (["vacuum", "ROOT", "--older-than", "1m"], "'1m': it must be at least 60m."),
        (["vacuum", "ROOT", "--older-than", "0d"], "'0d': it must be at least 1h."),
        (["vacuum", "ROOT", "--older-than", "5"], "'5': it must be at least 3600000."),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_errors_have_the_words_of_the_shell(run, monkeypatch, topic, tmp_path, words, said):
    """Not the arguments of Python's calls, and not the words of the library that reads numbers."""
    monkeypatch.setenv("COLUMNS", "200")
    Own(OffsetTable(topic.root, tmp_path / "offsets"), "g", {"t": {0: 20, 1: 10}})
    given = [{"ROOT": topic.root, "TABLE": tmp_path / "offsets"}.get(word, word) for word in words]
    told = " ".join(run(*given, status=2).replace("│", " ").split())
    assert said in told


def test_times_the_wrong_way_round_are_not_an_empty_answer(run, topic):
    said = run("cat", topic.root, "t", "--from", TIME + 5, "--to", TIME, status=2)
    assert "--to" in said and "before `--from`" in said
    assert run("cat", topic.root, "t", "--from", TIME, "--to", TIME) == ""


def test_an_option_that_may_be_repeated_may(run, topic):
    assert (run("cat", topic.root, "t", "--json", "-o", f"s@{TIME + 1003}", "-o", f"e@{TIME + 1005}", "-p", 0)) != ""


def test_seconds_are_not_taken_for_milliseconds(run, topic):
    """They would be a time in 1970, from which on a command shows all records."""
    for words in (["cat", "--from", "1700000000"], ["cat", "--to", "1700000000"], ["cat", "-o", "s@1700000000"]):
        said = run(words[0], topic.root, "t", *words[1:], status=2)
        assert "1700000000: it is not a time; a time is milliseconds since 1970-01-01 UTC (a number of ten digits counts seconds" in said
    assert run("cat", topic.root, "t", "--from", "1700000000000") != ""


def test_some_partitions_may_be_named_wherever_one_may(run, tmp_path):
    topic = Topic(tmp_path / "three", partitions=3)
    for partition in (0, 1, 2):
        topic.append(records(4), partition)
    some = Log(topic.root)["t"]

    def shown(*words: object) -> list[tuple[int, int]]:
        found = [json.loads(line) for line in run(*words[:1], topic.root, "t", *words[1:], "-p", "2,0", "--json").splitlines()]
        return [(each["partition"], each["offset"]) for each in found]

    assert shown("cat") == [(partition, offset) for partition in (0, 2) for offset in range(4)]
    assert shown("head", "-n", 6) == shown("cat")[:6]
    assert sorted(shown("tail", "-n", 8)) == shown("cat")
    assert shown("cat", "-o", 2) == [(partition, offset) for partition in (0, 2) for offset in (2, 3)]
    assert shown("cat", "-o", -1) == [(0, 3), (2, 3)]
    assert [each["partition"] for each in json.loads(run("segments", topic.root, "t", "-p", "0,2", "--json"))] == [0, 2]
    stats = json.loads(run("stats", topic.root, "t", "-p", "2,0,2", "--json"))
    assert [each["partition"] for each in stats["partitions"]] == [0, 2]
    dumped = run("dump", topic.root, "t", "-p", "0,2", "--batches")
    assert [f"Dumping t-{number}/" in dumped for number in (0, 1, 2)] == [True, False, True]
    assert "partition 3 of topic t" in run("cat", topic.root, "t", "-p", "0,3", status=2)
    assert some.read([2, 0]).equals(pa.concat_tables([some.read(0), some.read(2)]))
    assert some.read(range(3)).equals(some.read())
    assert [each.partition for each in some.segments([1])] == [1]
    assert some.read([], limit=5).num_rows == 0
    with pytest.raises(TypeError, match="`partition` is '0', of type str"):
        some.read("0")


def test_new_records_of_some_partitions_are_followed(start, tmp_path):
    topic = Topic(tmp_path / "three", partitions=3)
    for partition in (0, 1, 2):
        topic.append(records(1), partition)
    process = start("tail", topic.root, "t", "-f", "-p", "0,2", "-n", "1", "--json")
    try:
        assert json.loads(process.stdout.readline())["offset"] == 0  # by then it knows where to follow from
        for partition in (1, 0, 2):
            topic.append(records(1), partition)
        found = [json.loads(process.stdout.readline()) for _ in range(2)]
        assert sorted((each["partition"], each["offset"]) for each in found) == [(0, 1), (2, 1)]
    finally:
        process.kill()
        process.communicate()


def test_a_root_or_a_table_that_is_none(run, topic, tmp_path):
    """Where there is no table, there are no groups to be listed; and a folder of a root is not one."""
    (tmp_path / "plain").mkdir()
    for table in ("typo", "plain"):
        for words in (["groups", topic.root], ["lag", topic.root, "g"], ["reset", topic.root, "g", "--to-latest"]):
            said = run(*words, "--table", tmp_path / table, status=2)
            assert said.startswith(
                f"[PARTLOG_OFFSETS_TABLE_NOT_FOUND] An offset table was asked for at {tmp_path / table}, but there is no Delta table"
            ), said
            assert "Check --table" in said and "Existing groups" not in said
        assert list((tmp_path / "plain").iterdir()) == [], "looking makes nothing"
    for within in ("_partlog", "_partlog/t"):
        assert f"Give the root, {topic.root}, and select topics" in run("topics", topic.root / within, status=2)
    assert "PARTLOG_TABLE_IN_ROOT" in run("groups", topic.root, "--table", topic.root / "offsets", status=2)


def test_remedies_are_those_of_the_shell(run, topic, tmp_path):
    """Not those of Python, of a Spark read or of a stream."""
    table = OffsetTable(topic.root, tmp_path / "offsets")
    Own(table, "g", {"t": {0: 20, 1: 10}})
    given = ["g", "--table", tmp_path / "offsets"]
    said = run("reset", topic.root, *given, "--to-earliest", "--execute", status=2)
    assert "With --force the group moves now" in said
    beyond = run("reset", topic.root, *given, "--topic", "t", "--to-offset", 500_000, status=2)
    assert beyond.endswith("which holds offsets 0 to 25 (exclusive). Give an offset in that range.\n")
    assert run("cat", topic.root, "t", "-p", 0, "-o", 26, status=2).endswith("(exclusive). Give an offset in that range.\n")
    unknown = run("lag", topic.root, "h", *given[1:], status=2)
    assert "Check the name and --table." in unknown
    (tmp_path / "x.json").write_text("{}")
    file = run("reset", topic.root, *given, "--from-file", tmp_path / "x.json", status=2)
    assert "whose name ends in .json" in file
    topic.delete()
    topic.append(records(3))
    gone = run("lag", topic.root, *given, status=2)
    assert "`sparklog reset`" in gone
    for text in (said, beyond, unknown, file, gone):
        assert not re.search(r"=True|[A-Za-z]\(\)|failOnDataLoss|checkpoint", text), text


def test_a_reset_counts_what_moves(run, topic, tmp_path):
    table = OffsetTable(topic.root, tmp_path / "offsets")
    Own(table, "g", {"t": {0: 25, 1: 4}}).end()

    def said(*words: object) -> str:
        return run("reset", topic.root, "g", "--table", tmp_path / "offsets", *words)

    assert "Group g: 1 partition would be moved" in said("--to-latest")
    assert "1 partition at that offset already" in said("--to-latest")
    assert "Group g: 2 partitions moved\n\n" in said("--to-earliest", "--execute")
    assert "Group g: 0 partitions would be moved" in said("--to-current")
    topic.delete()
    topic.append(records(3))
    assert "Group g: 2 partitions would be moved" in said("--to-earliest"), "the topic is another one, at the same offset"


def test_each_word_of_other_tools_leads_to_commands_that_there_are():
    """The commands that the answers name, and the words themselves, which are not commands."""
    commands = typer.main.get_command(app).commands
    for word, instead in _INSTEAD.items():
        assert word not in commands
        for named in re.findall(r"`sparklog ([a-z -]+?)(?: [A-Z-]|`)", instead):
            first, _, second = named.partition(" ")
            assert first in commands and (not second or second in commands["groups"].commands), (word, named)
