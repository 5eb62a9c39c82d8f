"""A new user's mistakes, and what the answer to each is worth. The tables are beside this file; `test_mistakes.py` in tests/ run them.

Grades: A: the mistake is named in the call that makes it, with its place and its remedy, or the call does what was meant. B: clear, but
late, or without a remedy. C: misleading, or silent with little harm. D: silent loss, a wrong result, or a text that leads astray.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Act = Callable[[Any], Any]
GRADES = "ABCD"


@dataclass(frozen=True)
class Mistake:
    """One mistake. `act` takes what the table works on and makes it.

    `error` is the condition of the error, the name of its class if it has no condition, or empty if the call does what was meant: then
    `right` says whether it did. `says` are words of the error: its place and its remedy. `late` is what raises the error if `act` does not;
    it takes what `act` returned. `why` says why a grade is below A; it begins with "Spark" if the answer is not ours to give.
    """

    what: str
    act: Act
    error: str = ""
    says: tuple[str, ...] = ()
    grade: str = "A"
    late: Act | None = None
    right: Act | None = None
    why: str = ""

    @property
    def is_ours(self) -> bool:
        return not self.why.startswith("Spark")


def condition(error: BaseException) -> str:
    """The name by which Spark and sparklog know an error."""
    of_spark = getattr(error, "getCondition", None)
    return (of_spark() if of_spark else getattr(error, "condition", None)) or type(error).__name__


def first_lines(error: BaseException) -> str:
    """The part of an error that people read: its text, up to the plan or the trace that Spark adds."""
    return re.split(r"\n+(?:JVM stacktrace|== SQL|'?\w+ .*\n[+:]-)|\n\tat ", str(error), maxsplit=1)[0]


def files(folder: Path) -> dict[str, tuple[int, int]]:
    """The files on disk: length and time of change of every file, and every folder."""
    return {str(each): (each.stat().st_size, each.stat().st_mtime_ns) if each.is_file() else (0, 0) for each in folder.rglob("*")}


def ACTION(rows: Any) -> None:
    """The first action of a batch read: Spark asks its source nothing before."""
    rows.collect()


def outcome(act: Act, given: Any) -> tuple[Exception | None, Any]:
    """The error that a call raises, and the value that it returns."""
    try:
        return None, act(given)
    except Exception as error:
        return error, None


def check(mistake: Mistake, world: Any, untouched: Path) -> None:
    """Makes the mistake, and asserts that the answer is what the table says, and that no file under `untouched` changed."""
    before = files(untouched)
    if not mistake.error:
        assert mistake.right is not None
        assert mistake.right(mistake.act(world))
        assert files(untouched) == before
        return
    raised, result = outcome(mistake.act, world)
    if mistake.late is not None:
        assert raised is None, f"it is told at once: {raised}"
        raised, _ = outcome(mistake.late, result)
    assert raised is not None, "it was taken without an error"
    said = first_lines(raised)
    assert condition(raised) == mistake.error, said
    assert [words for words in mistake.says if words not in said] == [], said
    assert files(untouched) == before
