"""The help of the command line: all commands at one glance, and words of the shell alone."""

import re
import shlex

import pytest
import typer.main
from coordinated import position, topic_of_groups
from handmade import TIME, Record, Topic
from owners import Own

from sparklog import partition_for
from sparklog.cli import procedures
from sparklog.cli.app import app
from sparklog.groups import OffsetTable

COMMANDS = typer.main.get_command(app).commands
PANELS = ["Look", "Records", "Groups", "Change", "Spark"]
SUBJECTS = re.compile(r"[A-Z][a-z]+s ")
"""A verb in the third person begins a sentence; imperatives do not end so."""
SQL = re.compile(
    r"=>|\bCALL\b|\bSQL\b|\barray\(|\bmap\(|INTERVAL|\bX'|(?<!sparklog\.session)(?<!sparklog\.configure)\(\)|"
    + "|".join(name for name in procedures.declared() if "_" in name)
)


def test_all_commands_are_seen_at_one_glance(run, monkeypatch):
    """In 45 lines of 80 characters, each once, below the name of its panel."""
    monkeypatch.setenv("COLUMNS", "80")
    shown = run("--help")
    lines = shown.splitlines()
    assert len(lines) <= 45 and max(map(len, lines)) <= 80, shown
    rows = [found for line in lines if (found := re.fullmatch(r"(Look|Records|Groups|Change|Spark|)\s+([a-z-]+)\s{2,}(\S.*\.)", line))]
    assert sorted(row[2] for row in rows) == sorted(COMMANDS)
    assert [row[1] for row in rows if row[1]] == PANELS


EVERY = {**COMMANDS, **{f"groups {name}": each for name, each in COMMANDS["groups"].commands.items()}}
"""All commands by name."""
CHANGING = {"create", "produce", "class-archive", "groups carry", *(each.command() for each in procedures.declared().values())}
"""Commands that start Spark, that make a large file, or that need a topic that Spark made."""
ENDLESS = re.compile(r"sparklog (ui|serve|groups consume|tail .*-f|metrics .*--listen)\b|--(add|ms|execute)\b|sparklog move-keys")
"""Examples that run until they are interrupted, and more that start Spark or move the group."""


def examples(command):
    """The lines of the examples of a command."""
    text = command.help if "Example" in command.help else command.epilog
    return re.findall(r"^(?:Example:)?  (\S.*)$", text, re.MULTILINE)


def every_help():
    """The help of each command, and of each of its options, by name."""
    for name, command in EVERY.items():
        yield name, command.help
        yield from ((f"{name} {each.name}", each.help) for each in command.params if getattr(each, "help", None))


def test_help_is_in_words_of_the_shell():
    assert [(name, found[0]) for name, text in every_help() if (found := SQL.search(text))] == []
    assert [text for name, text in every_help() if name in EVERY and SUBJECTS.match(text)] == [], "they begin with the imperative"


def test_a_procedure_has_a_summary():
    """At most ten words, which its command begins with."""
    for each in procedures.declared().values():
        assert len(each.summary.split()) <= 10 and re.fullmatch(r"[A-Z][^.]*\.", each.summary), each.summary
        assert not SUBJECTS.match(each.summary), each.summary


@pytest.mark.parametrize("name", EVERY)
def test_the_help_of_a_command_fits_a_terminal(run, monkeypatch, name):
    """Its summary is a line, and it has an example. No example is broken in two in a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    shown = run(*name.split(), "--help")
    assert max(map(len, shown.splitlines())) <= 80
    summary = EVERY[name].help.split("\n")[0]
    assert summary.endswith(".") and len(summary.split()) <= 10 and len(summary) <= 58, summary
    of_it = f"sparklog {name.removeprefix('groups ') if name == 'groups reset' else name}"
    given = examples(EVERY[name])
    assert given and all(re.search(rf"\b{of_it}\b|\bsparklog (lag|{name})\b", line) for line in given), given
    assert [line for line in given if line not in shown] == []


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A folder with the topic and the group of the guide."""
    monkeypatch.chdir(tmp_path)
    topic = Topic(tmp_path / "my-log", "orders", partitions=2)
    records = [Record(b"{}", b"customer-%d" % (number % 20), TIME + 100 * number) for number in range(40)]
    for partition in range(2):
        topic.append([each for each in records if partition_for(each.key, 2) == partition], partition)
    table = OffsetTable(topic.root, "my-offsets")
    own = Own(table, "billing")
    own.to({"orders": {0: 15, 1: 7}})
    topic_of_groups(topic.root, position("mail", "orders", 0, 12))
    (tmp_path / "billing.csv").write_text("orders,0,15\norders,1,7\n")
    return lambda: own.end()


@pytest.mark.parametrize("name", EVERY)
def test_the_examples_of_a_command_work(run, world, name):
    """In the world of the guide. Commands that start Spark are parsed, and no more."""
    if name.endswith("reset"):  # it is refused while the group runs
        world()
    for line in examples(EVERY[name]):
        words = shlex.split(re.split(r" (?:[|<]|>+) ", line[line.index("sparklog") :])[0])[1:]
        if words[0] not in COMMANDS:  # spark-submit --jars $(sparklog jar) job.py
            continue
        if name in CHANGING or ENDLESS.search(line):
            start = 2 if words[0] == "groups" else 1
            EVERY[" ".join(words[:start])].make_context("sparklog", words[start:])
        else:
            assert run(*words) != "" or "-O" in words
