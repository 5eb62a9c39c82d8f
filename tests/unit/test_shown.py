"""No message shows a secret that is part of a name."""

import json
import pickle
import re

import pytest

import sparklog
from sparklog import errors, shown

SECRET = re.compile(r"SECRET|SEC/RET|SEC@RET|SE\?CRET")


@pytest.fixture(scope="module")
def names(repository) -> list[tuple[str, str]]:
    """Names, and what is shown of each."""
    vectors = json.loads((repository / "tests/vectors/names_shown.json").read_text(encoding="utf-8"))
    return [(each["name"], each["shown"]) for each in vectors]


def test_a_name_is_shown_without_its_secrets(names):
    assert len(names) > 40
    for name, expected in names:
        assert shown.name(name) == shown.text(name) == expected, name
        assert shown.text(expected) == expected, "once more"
        assert not SECRET.search(expected)


def test_a_name_in_a_text_is_shown_without_its_secrets(names):
    for name, expected in names:
        if re.fullmatch(r"\S+", name):
            assert shown.text(f"opening '{name}' failed") == f"opening '{expected}' failed"
            assert shown.text(f"status of {name} on host") == f"status of {expected} on host"
    for plain in (
        "why? a: b/c?d, e@f:8020 and 12:30/x?y",
        "no NameNode answers at http://127.0.0.1:9870 (http://127.0.0.1:9870: refused, http://[::1]:9870).",
        "Give a URL, as ?webhdfs=host:9870, or hdfs://host:8020.",
    ):
        assert shown.text(plain) == plain


@pytest.mark.parametrize("run", ["x", "x1+", "1", "a:", "a:/", "/", "::", "a:/."])
def test_a_long_text_is_walked_through_once(run):
    """A pattern that begins anew at each character would take hours."""
    text = run * (8_000_000 // len(run))
    assert shown.text(text) == text
    assert shown.text(f"{text} 1.s3a://KEY:SEC@bucket").endswith(" 1.s3a://…@bucket")


def test_a_long_value_is_cut():
    assert shown.value("ä" * 100) == "ä" * 100
    assert shown.value("ä" * 101) == "ä" * 100 + "…"


@pytest.mark.parametrize("id", errors.declared())
def test_no_error_shows_a_secret_of_a_name(id, names):
    """Each parameter may have the name: alone, or in a text, which may repeat that of another parameter."""
    parameters = sorted(errors.declared()[id].parameters())
    texts = ["{}", "{}/_partlog/t", "OSError: {}: no", "'{}' ({})"]
    for one in parameters:
        for name, _ in names:
            for text in texts if re.fullmatch(r"\S+", name) else texts[:2]:
                given = {each: text.format(name, name) if each == one else "a text" for each in parameters}
                require_hidden(sparklog.SparklogError(id, **given))
    if len(parameters) > 1:
        name = "s3a://bucket/a b?secret_key=SECRET"  # a text does not tell where it ends
        given = {each: name if each == parameters[0] else f"opening {name} failed" for each in parameters}
        require_hidden(sparklog.SparklogError(id, **given))


def require_hidden(error: sparklog.SparklogError) -> None:
    again = pickle.loads(pickle.dumps(error))
    for told in (str(error), repr(error), error.in_shell(), repr(error.parameters), str(again), repr(again.parameters)):
        assert not SECRET.search(told), told
