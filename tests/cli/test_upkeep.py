"""Commands that change a log, as far as they need no Spark: what they take, what they show, and what they refuse before it starts."""

import json
import re
import sys

import pytest
import typer.main
from handmade import Topic, records

import sparklog
from sparklog import options
from sparklog.cli import procedures
from sparklog.cli.app import app

COMMANDS = typer.main.get_command(app).commands
OF_OTHER_KINDS = {"topics": "topics", "segments": "segments", "set_config": "config"}
# The root that it asks about need not exist, as that of a command must.
WITHOUT_A_COMMAND = {"check_store"}
"""Procedures whose command is not made from the declaration: two only read, and one takes pairs."""


@pytest.fixture(autouse=True)
def no_spark(monkeypatch):
    """Spark cannot even be imported."""
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setenv("COLUMNS", "200")


def plain(text: str) -> str:
    return re.sub(r"\[(.+?)\]\(.*?\)", r"\1", text).replace("`", "")


@pytest.mark.parametrize(
    "procedure", [each for each in procedures.declared().values() if each.name not in WITHOUT_A_COMMAND], ids=lambda each: each.name
)
def test_a_procedure_has_its_command_and_a_parameter_its_option(procedure):
    command = COMMANDS[OF_OTHER_KINDS.get(procedure.name, procedure.name.replace("_", "-"))]
    if procedure.name in OF_OTHER_KINDS:
        return
    assert command.help.startswith(f"{procedure.summary}\n\n{procedure.in_shell()}")
    assert f"sparklog {command.name} my-log" in command.help
    found = {each.name: each for each in command.params}
    for parameter in procedure.parameters:
        option = found[parameter.name]
        assert option.required == (parameter.default is None)
        if parameter.name in ("root", "topic"):
            assert option.param_type_name == "argument"
            continue
        assert option.opts == ["--" + parameter.name.replace("_", "-")]
        assert option.help == parameter.in_shell() == plain(parameter.shell or parameter.text)
        # An argument that is not given is not passed on: the default is that of the procedure, and is shown.
        assert option.default in (None, False)
        intervals = {"INTERVAL '7' DAY": "7d", "INTERVAL '1' MINUTE": "1m"}
        shown = {"NULL": False, "false": False, None: False, "'now'": "now", "true": False} | intervals
        assert option.show_default == shown[parameter.default]
    deletes = procedure.name in ("delete_records", "delete_topic", "expire", "vacuum")
    assert found.keys() - {each.name for each in procedure.parameters} == {"as_json"} | ({"execute"} if deletes else set())


def test_the_configuration_is_shown_without_spark(run, topic):
    found = {each["key"]: each for each in json.loads(run("config", topic.root, "t", "--json"))}
    assert found.keys() == {each.key for each in options.declared().options if "topic" in each.scopes}
    assert found["partitions"] == {"key": "partitions", "value": "2", "default": "8"}
    assert found["retention.ms"] == {"key": "retention.ms", "value": "-1", "default": "-1"}
    assert "retention.ms" in run("config", topic.root, "t")
    set_ = Topic(topic.root, "set", config={"retention.ms": "86400000"})
    set_.append(records(1))
    assert json.loads(run("retention", topic.root, "set", "--json")) == [
        {"key": "retention.ms", "value": "86400000", "default": "-1"},
        {"key": "retention.bytes", "value": "-1", "default": "-1"},
    ]
    assert "does not count" not in run("retention", topic.root, "set")
    Topic(topic.root, "compacted", config={**set_.config, "cleanup.policy": "compact"}).append(records(1))
    assert "Retention does not count: cleanup.policy is compact, without delete\n" in run("retention", topic.root, "compacted")
    told = json.loads(run("retention", topic.root, "compacted", "--json"))
    assert told[-1] == {"key": "cleanup.policy", "value": "compact", "default": None}


def test_moves_are_suggested_without_spark(run, topic):
    told = json.loads(run("suggest-moves", topic.root, "t", "--json"))
    assert told == {"executed": False, **sparklog.Log(topic.root)["t"].suggest_moves().as_dict()}
    shown = run("suggest-moves", topic.root, "t")
    assert f"Topic t: {len(told['moves'])} slots to move" in shown
    assert "Nothing was changed (add --execute to do it)" in shown
    shown = run("suggest-moves", topic.root, "t", "--max-moves", "0")
    assert "Topic t: 0 slots to move" in shown
    assert "Nothing was changed" not in shown
    assert "Topic t: 0 slots moved" in run("suggest-moves", topic.root, "t", "--max-moves", "0", "--execute")


def test_what_is_refused_before_spark_starts(run, topic):
    for words, said in (
        (["config", topic.root, "u"], "PARTLOG_TOPIC_NOT_FOUND"),
        (["config", topic.root, "u", "--add", "retention.ms=1"], "PARTLOG_TOPIC_NOT_FOUND"),
        (["config", topic.root, "t", "--add", "retention.ms"], "KEY=VALUE"),
        (["config", topic.root, "t", "--add", "retention.ms=7x"], "'7x' is not a whole number, or one with a unit: ms, s, m, min, h, d"),
        (["retention", topic.root, "t", "--bytes", "7d"], "'7d' is not a whole number, or one with a unit: k, m, g, t"),
        (["expire", topic.root, "u"], "PARTLOG_TOPIC_NOT_FOUND"),
        (["expire", topic.root / "no"], "PARTLOG_ROOT_NOT_FOUND"),
        (["expire", topic.root, "t", "--retention-ms", "-2"], "it must be at least -1"),
        (["vacuum", topic.root, "--older-than", "59min"], "it must be at least 60min"),
        (["vacuum", topic.root, "--execute", "--dry-run"], "contradict"),
        (["add-partitions", topic.root, "t"], "--partitions"),
        (["add-partitions", topic.root, "t", "--partitions", "10001"], "at most 10000"),
        (["delete-records", topic.root, "t"], "--offsets"),
        (["delete-topic", topic.root], "TOPIC"),
        (["delete-topic", topic.root / "no", "t"], "PARTLOG_ROOT_NOT_FOUND"),
        (["merge", topic.root, "t", "--batch-size", "2g"], "at most 1g."),
        (["delete-records", topic.root, "t", "--offsets", "0-10"], "'0-10' does not name partitions, each with a number, such as 0:100"),
        (["delete-records", topic.root, "t", "--offsets", "[0]"], "'[0]' does not name partitions"),
        (["delete-records", topic.root, "t", "--offsets", "[" * 100_000], "does not name partitions"),
        (["reroute", topic.root, "t", "--weights", "0=2"], "'0=2' does not name partitions"),
        (["reroute", topic.root, "t", "--weights", "0:2,0:3"], "'0:2,0:3' names partition 0 twice."),
        (["delete-records", topic.root, "t", "--offsets", "0:5,00:7"], "'0:5,00:7' names partition 0 twice."),
        (["suggest-moves", topic.root, "t", "--max-moves", "-1"], "--max-moves"),
        (["suggest-moves", topic.root, "t", "--max-moves", "65537"], "--max-moves"),
        (["move-slots", topic.root, "t", "--moves", "17:3,17:4"], "'17:3,17:4' names slot 17 twice."),
        (["-P"], "sparklog produce ROOT TOPIC"),
        (["create", topic.root], "TOPIC"),
        (["create", topic.root, "t"], "PARTLOG_TOPIC_EXISTS"),
        (["create", topic.root, "bad topic"], "PARTLOG_TOPIC_NAME_ILLEGAL"),
        (["create", topic.root, "u", "-X", "partitions"], "-X is given as KEY=VALUE"),
        (["create", topic.root, "u", "--partitions", "3", "-X", "partitions=4"], "contradict"),
        (["create", topic.root, "u", "-X", "retention.ms=7x"], "'7x' is not a whole number"),
    ):
        told = " ".join(run(*words, status=2).replace("│", " ").split())
        assert said in told, words
    assert sparklog.Log(topic.root)["t"].describe()["version"] == 1
