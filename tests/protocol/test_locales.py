"""JVMs with a locale that has other digits write the same file names as all others."""

from dataclasses import replace

import pytest
from logtool import LogTool, commits

from sparklog import Log

pytestmark = pytest.mark.slow

LOCALES = ["ar-EG", "fa-IR", "my-MM"]


@pytest.mark.parametrize("locale", LOCALES)
def test_a_root_is_the_same_in_every_locale(tool: LogTool, locale: str) -> None:
    """I1: such a JVM and another one write, publish and read in turn; also an epoch without records, which commits nothing."""
    language, country = locale.split("-")
    foreign = replace(tool, java=(f"-Duser.language={language}", f"-Duser.country={country}"))
    large = {"records": 300, "big": 10_000}
    assert foreign.run("append", tag="A", query="q", epoch=0, **large) == ["done A-0 0"]
    assert foreign.run("append", tag="B", query="q", epoch=1, records=0) == ["done B-0 0"]
    assert tool.run("append", tag="C", commits=100, records=2) == [f"done C-{n} {n + 1}" for n in range(100)]
    assert foreign.run("append", tag="D", **large) == ["done D-0 101"]
    assert foreign.run("publish") == ["published 0"]
    expected = {"A-0": 600, **{f"C-{n}": 4 for n in range(100)}, "D-0": 600}
    assert commits(foreign.read()) == commits(tool.read()) == expected
    assert len(Log(tool.root).topic("t").read()) == sum(expected.values())
    assert all(path.name.isascii() for path in tool.root.rglob("*"))
