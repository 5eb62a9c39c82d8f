"""The help of the command line: all commands at one glance, and words of the shell alone."""

import re

import typer.main

from sparklog.cli import procedures
from sparklog.cli.app import app

COMMANDS = typer.main.get_command(app).commands
PANELS = ["Look", "Records", "Groups", "Change", "Spark"]
SUBJECTS = re.compile(r"[A-Z][a-z]+s ")
"""A verb in the third person begins a sentence; imperatives do not end so."""
SQL = re.compile(
    r"=>|\bCALL\b|\bSQL\b|\barray\(|\bmap\(|INTERVAL|\bX'|(?<!sparklog\.session)(?<!sparklog\.configure)\(\)|"
    + "|".join(name for name in procedures.declared() if "_" in name)
)


def test_all_commands_are_seen_at_one_glance(run, monkeypatch):
    """In 50 lines of 80 characters, each once, below the name of its panel."""
    monkeypatch.setenv("COLUMNS", "80")
    shown = run("--help")
    lines = shown.splitlines()
    assert len(lines) <= 50 and max(map(len, lines)) <= 80, shown
    rows = [found for line in lines if (found := re.fullmatch(r"(Look|Records|Groups|Change|Spark|)\s+([a-z-]+)\s{2,}(\S.*\.)", line))]
    assert sorted(row[2] for row in rows) == sorted(COMMANDS)
    assert [row[1] for row in rows if row[1]] == PANELS


def every_help():
    """The help of each command, and of each of its options, by name."""
    for name, command in [*COMMANDS.items(), *((f"groups {name}", each) for name, each in COMMANDS["groups"].commands.items())]:
        yield name, command.help
        yield from ((f"{name} {each.name}", each.help) for each in command.params if getattr(each, "help", None))


def test_help_is_in_words_of_the_shell():
    assert [(name, found[0]) for name, text in every_help() if (found := SQL.search(text))] == []
    assert [text for name, text in every_help() if name in COMMANDS and SUBJECTS.match(text)] == [], "they begin with the imperative"


def test_a_procedure_has_a_summary():
    """At most ten words, which its command begins with."""
    for each in procedures.declared().values():
        assert len(each.summary.split()) <= 10 and re.fullmatch(r"[A-Z][^.]*\.", each.summary), each.summary
        assert not SUBJECTS.match(each.summary), each.summary
