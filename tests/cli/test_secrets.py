"""Commands are given names with secrets in them: no command shows one."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer.main

from sparklog.cli.app import app

ROOTS = [
    "s3://KEY:SECRET@bucket/x",
    "s3a://KEY:SEC/RET@bucket/x",
    "s3a://buc*ket/x?secret_key=SECRET",
    "s3n://KEY:SECRET@bucket/x",
    "gs://KEY:SECRET@bucket/x",
    "hdfs://user:SECRET@host/x",
    "hdfs://host/x?nonsense=SECRET",
    "abfss://container:SECRET@account/x?sig=SECRET",
]
SECRET = re.compile("SECRET|SEC/RET")
OF_OPTIONS = {
    "partitions": "3", "weights": "0:1", "offsets": "0:1", "moves": "0:1",
    "key": "k", "keys": "k", "partition": "0", "to": "topic",
}  # fmt: skip
MORE = {("reset",): ["--to-earliest"], ("groups", "reset"): ["--to-earliest"]}
"""Options of which one is required."""


def families(command: Any, words: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    inner = getattr(command, "commands", None)
    return [(words, command)] if inner is None else [each for name, found in inner.items() for each in families(found, (*words, name))]


COMMANDS = [(words, command) for words, command in families(typer.main.get_command(app)) if any(p.name == "root" for p in command.params)]


def words_of(command: Any, root: object, table: str) -> list[str]:
    """Arguments and options that the command requires, and the table, if it takes one."""
    words = []
    for each in command.params:
        if each.param_type_name == "argument":
            words += [str(root) if each.name == "root" else "t"] if each.required else []
        elif each.name == "at_table":
            words += [each.opts[0], table]
        elif each.required:
            words += [each.opts[0], OF_OPTIONS[each.name]]
    return words


@pytest.fixture(autouse=True)
def no_spark(monkeypatch):
    """Spark cannot even be imported."""
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setenv("COLUMNS", "200")


def ask(run: Callable[..., str], *words: object) -> str:
    said = run(*words, status=2)
    assert not SECRET.search(said), said
    return said


@pytest.mark.parametrize("number", range(len(COMMANDS)), ids=lambda number: " ".join(COMMANDS[number][0]))
def test_no_command_shows_a_secret_of_a_name(run, topic, tmp_path, monkeypatch, number):
    """As its root, as its table, and where it takes no more words."""
    monkeypatch.chdir(tmp_path)
    Path("t").write_text("{}")  # a command may read a file of this name
    words, command = COMMANDS[number]
    secret, more = ROOTS[number % len(ROOTS)], MORE.get(words, [])
    if words == ("produce",):  # it names the root in the error of a wrong line
        Path("lines").write_text("no JSON\n")
        more = ["lines", "--json"]
    said = ask(run, *words, *words_of(command, secret, "offsets"), *more)
    assert "PARTLOG_" in said and "…" in said, said
    if words != ("keys",):  # which takes any number of keys
        ask(run, *words, *words_of(command, topic.root, "offsets"), *more, *[secret] * 9)
    if any(each.name == "at_table" for each in command.params):
        ask(run, *words, *words_of(command, topic.root, secret), *more)


@pytest.mark.parametrize("secret", ROOTS)
def test_no_name_of_a_store_is_shown_with_its_secret(run, topic, secret):
    for words in (["topics", secret], ["groups", topic.root, "--table", secret], ["lag", secret, "g", "--table", secret]):
        said = ask(run, *words)
        assert "PARTLOG_" in said and "…" in said, said
