"""Words and options that a command refuses, and what it says to write."""

import sys

import pytest
from handmade import TIME


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["cat", ".", "t", "-p", "0", "-p", "1"], "Invalid value for '--partition' / '-p': It is given 2 times, and takes one value."),
        (["head", ".", "t", "-n", "1", "--max-messages", "2"], "It is given 2 times, and takes one value."),
        (["cat", ".", "t", "--from", "1", "--to", "2", "--from", "3"], "Invalid value for '--from': It is given 2 times"),
        (["cat", ".", "t", "-f", "csv", "--json"], "Option `--format` has the value csv: it is given together with --json"),
        (["create", "."], "the first write to a topic creates it"),
        (["list", "."], "use `sparklog topics ROOT`"),
        (["-C", "-b", "host:9092", "-t", "orders"], "kcat's -C is `sparklog cat ROOT TOPIC`"),
        (["-L"], "kcat's -L is `sparklog topics ROOT`"),
    ],
)
def test_words_that_mean_something_else(run, monkeypatch, words, said):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(sys.prefix)
    told = " ".join(run(*words, status=2).replace("│", " ").split())
    assert said in told


def test_an_option_that_may_be_repeated_may(run, topic):
    assert (run("cat", topic.root, "t", "--json", "-o", f"s@{TIME + 1003}", "-o", f"e@{TIME + 1005}", "-p", 0)) != ""
