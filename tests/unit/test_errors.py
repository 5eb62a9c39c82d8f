import pickle
import re

import pytest

import sparklog
from sparklog import errors


def test_the_class_follows_from_the_kind():
    assert type(sparklog.SparklogError("ROOT_REQUIRED")) is sparklog.CallError
    assert type(sparklog.SparklogError("IO", file="f", cause="c")) is sparklog.RetryError
    assert {entry.kind for entry in errors.declared().values()} == errors.CLASSES.keys()


def test_the_text_says_what_where_and_how_to_fix_it():
    error = sparklog.SparklogError("ROOT_NOT_FOUND", root="/data/log")
    assert str(error).startswith("[PARTLOG_ROOT_NOT_FOUND] ")
    assert "/data/log" in str(error)
    assert str(error).endswith(errors.declared()["ROOT_NOT_FOUND"].fix)
    assert error.id == "ROOT_NOT_FOUND"
    assert error.condition == "PARTLOG_ROOT_NOT_FOUND"
    assert error.parameters == {"root": "/data/log"}


def test_a_parameter_is_not_filled_in_twice():
    assert "at <root>." in str(sparklog.SparklogError("ROOT_NOT_FOUND", root="<root>"))


@pytest.mark.parametrize("parameters", [{}, {"root": "r", "more": "m"}, {"file": "f"}])
def test_other_parameters_than_the_declared_are_a_bug(parameters):
    with pytest.raises(ValueError, match="ROOT_NOT_FOUND has the parameters"):
        sparklog.SparklogError("ROOT_NOT_FOUND", **parameters)


def test_an_error_survives_being_sent_to_another_process():
    error = sparklog.SparklogError("ROOT_NOT_FOUND", root="/data/log")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.parameters) == (type(error), str(error), error.parameters)


@pytest.mark.parametrize("id", errors.declared())
def test_a_declared_error_is_a_sentence_and_a_remedy(id):
    entry = errors.declared()[id]
    # If a value is refused, the reason is the remedy: it says what is valid.
    assert entry.text.endswith((".", "<nearest>")) or (entry.text.endswith(":") and entry.fix == "<reason>.")
    assert entry.fix.endswith(".")
    # A process may have many roots: a topic's name alone does not say where to look.
    assert not re.search("<partition>|opic <topic>", entry.text) or re.search("<root>|<file>", entry.text)


VERB = re.compile(
    r"(Add|Append|Call|Check|Choose|Convert|Correct|Delete|Drop|Export|Filter|Fix|Give|Go|Install|Keep|Look|Make|Move|Name|Open|Poll|Put"
    r"|Read|Remove|Repeat|Report|Reset|Restore|Return|Run|Set|Start|Stop|Subscribe|Track|Unset|Upgrade|Use|Write) "
)


def test_a_remedy_begins_with_the_thing_to_do():
    remedies = [remedy for entry in errors.declared().values() for remedy in (entry.fix, entry.shell) if remedy]
    composed = ("<way>.", "<reason>.")
    assert [remedy for remedy in remedies if not VERB.match(remedy) and not remedy.startswith(composed)] == []


def test_a_place_that_cannot_be_reached_is_not_told_to_have_room_first():
    """A read needs no room, and a host that is not found has a wrong address."""
    about = errors.declared()["IO"]
    assert not re.search("host|network", about.text) and "has room" not in about.fix
    assert about.fix.index("address") < about.fix.index("room for a write") < about.fix.index("rights of this user")


def test_what_needs_nothing_but_a_second_run_is_to_be_retried():
    assert {entry.kind for entry in errors.declared().values() if re.match("Run the .* again", entry.fix)} == {"retry"}


def test_no_error_sends_to_a_page_that_is_not_in_the_wheel():
    assert [id for id, entry in errors.declared().items() if "docs/" in entry.text + entry.fix] == []


VALID = r"\b(must|give|leave|take|add|name|write|choose|load|needs?)\b|is not one of|a time is|offsets (from 0 to|begin at 0)"


def test_a_value_that_is_refused_is_told_what_is_valid(repository):
    """The reasons of OPTION_VALUE, as they stand in the sources: each says what to give, since the error says nothing else."""
    reasons = []
    for path in [*(repository / "sparklog").rglob("*.py"), *(repository / "jvm-shim").rglob("src/main/**/*.java")]:
        text = re.sub(r'"\s*\n\s*f?"', "", re.sub(r'"\s*\n?\s*\+ "', "", path.read_text(encoding="utf-8")))
        reasons += re.findall(r'"OPTION_VALUE",[^\n]*reason=(f?".*?)(?:\)|$)', text, re.MULTILINE)
        reasons += re.findall(r"(?:Option\.|^ +throw )(?:invalidValue|bound\.refused|refused)\((.*?)\);", text, re.MULTILINE | re.DOTALL)
    assert len(reasons) > 40
    assert [each for each in reasons if '"' in each and not each.endswith(", reason") and not re.search(VALID, each)] == []


def test_the_command_line_has_remedies_of_its_own():
    error = sparklog.SparklogError("GROUP_RUNNING", group="g", table="t", last="l")
    assert "force=True" in str(error) and "--force" not in str(error)
    assert "--force" in error.in_shell() and "force=True" not in error.in_shell()
    plain = sparklog.SparklogError("ROOT_NOT_FOUND", root="r")
    assert plain.in_shell() == str(plain)
    for id, entry in errors.declared().items():
        if entry.shell is not None:
            assert not re.search(r"[A-Za-z]\(\)|=True", entry.shell), id
            assert set(re.findall("<([a-z]+)>", entry.shell)) <= entry.parameters()
            assert entry.shell.endswith(".")
