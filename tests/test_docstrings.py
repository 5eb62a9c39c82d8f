"""The docstrings of public names: they name each argument, and their examples run. tests/spark/test_documents.py runs those with Spark."""

import inspect
import re
from pathlib import Path
from typing import Any

import docstrings
import pytest

from sparklog import errors

DOCUMENTED = docstrings.documented()
SECTIONS = re.compile(r"^(Args|Attributes|Returns|Raises|Example):\n((?:(?: .*)?\n)+)", re.MULTILINE)


RAISE_NOTHING = {
    *("Consumer.assignment", "Consumer.paused", "Consumer.subscription", "Consumer.wakeup"),
    *("GroupPlan.display", "GroupPlan.lag", "Placement.stop", "SparklogError.in_shell"),
}
"""They look at what is in memory."""


def sections(given: Any) -> dict[str, str]:
    return dict(SECTIONS.findall((inspect.getdoc(given) or "") + "\n"))


def functions() -> dict[str, Any]:
    return {name: each for name, each in DOCUMENTED.items() if inspect.isfunction(each)}


@pytest.mark.parametrize("name", functions())
def test_a_docstring_names_each_argument_and_what_is_returned(name: str) -> None:
    signature = inspect.signature(DOCUMENTED[name])
    given = {str(each).partition(":")[0].partition("=")[0].strip() for each in signature.parameters.values()} - {"self"}
    has = sections(DOCUMENTED[name])
    assert set(re.findall(r"^    (\**\w+): ", has.get("Args", ""), re.MULTILINE)) == given
    assert ("Returns" in has) == (signature.return_annotation not in ("None", None, inspect.Signature.empty))


@pytest.mark.parametrize("name", [name for name, given in DOCUMENTED.items() if not isinstance(given, property)])
def test_a_docstring_has_an_example(name: str) -> None:
    assert ">>> " in sections(DOCUMENTED[name]).get("Example", "")


def test_a_docstring_says_what_can_fail() -> None:
    assert {name for name, given in functions().items() if "Raises" not in sections(given)} == RAISE_NOTHING


def test_errors_that_docstrings_name_are_declared() -> None:
    """With the class that they have."""
    wrong = []
    for name, given in DOCUMENTED.items():
        for kind, text in re.findall(r"^    (\w+): ((?:.*\n(?:     .*\n)*))", sections(given).get("Raises", ""), re.MULTILINE):
            for id in re.findall(r"\b[A-Z]{2,}(?:_[A-Z]+)*\b", text):
                declared = errors.declared().get(id)
                if declared and errors.CLASSES[declared.kind].__name__ != kind:
                    wrong.append((name, kind, id))
                if declared is None and "_" in id:
                    wrong.append((name, kind, id))
    assert wrong == []


@pytest.mark.parametrize("name", [name for name, given in DOCUMENTED.items() if not docstrings.needs_spark(given)])
def test_example(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert docstrings.failures(name) == []
