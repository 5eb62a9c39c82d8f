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
    assert str(error).endswith(errors.declared()["ROOT_NOT_FOUND"].mend)
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
    assert entry.text.endswith((".", "<nearest>"))
    assert entry.mend.endswith(".")
    # A process may have many roots: a topic's name alone does not say where to look.
    assert not re.search("<partition>|opic <topic>", entry.text) or re.search("<root>|<file>", entry.text)


def test_what_needs_nothing_but_a_second_run_is_to_be_retried():
    assert {entry.kind for entry in errors.declared().values() if re.match("Run the .* again", entry.mend)} == {"retry"}


def test_no_error_sends_to_a_page_that_is_not_in_the_wheel():
    assert [id for id, entry in errors.declared().items() if "docs/" in entry.text + entry.mend] == []
