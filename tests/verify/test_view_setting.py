"""`kafka.view` says what the Kafka view has, and `verify` and `publish` go by it. FORMAT.md section 8."""

from pathlib import Path

import pytest
from logtool import LogTool

from sparklog import Log

pytestmark = pytest.mark.slow

SIZES = {"tasks": 2, "records": 60, "big": 100_000}
"""Task 0 writes files of its own; what task 1 writes travels to the driver, and is copied into the view."""


def logs(root: Path) -> dict[str, int]:
    """The segments in the view, with the number of names that each file has."""
    return {str(file.relative_to(root)): file.stat().st_nlink for file in sorted(root.glob("t-*/*.log"))}


@pytest.mark.parametrize("setting", ["all", "merged", "none"])
def test_the_view_is_what_the_topic_says(tool: LogTool, setting: str) -> None:
    tool.run("append", tag="A", **SIZES)
    everything = logs(tool.root)
    links = {name: 2 for name, count in everything.items() if count == 2}
    assert 0 < len(links) < len(everything)
    tool.run("change", what="config", **{"kafka.view": setting})
    wanted = {"all": everything, "merged": links, "none": {}}[setting]
    assert logs(tool.root) == wanted
    copies = sum((tool.root / name).stat().st_size for name, count in wanted.items() if count == 1)
    indexes = sum(file.stat().st_size for file in tool.root.glob("t-*/*index"))
    assert (copies > 0, indexes > 0) == (setting == "all", setting != "none")
    assert Log(tool.root)["t"].describe()["view_bytes"] == next(Log(tool.root).summaries()).view_bytes == copies + indexes
    assert list(tool.root.glob("t-*")) == [] or wanted
    report = Log(tool.root).verify()
    assert report.findings == [] and "view" not in {each.what for each in report.waiting}
    assert tool.run("publish") == ["published 0"]

    missing = next(iter(wanted), None)
    if missing:
        (tool.root / missing).unlink()
    stray = tool.root / next((name for name in everything if name not in wanted), "t-0/00000000000000000001.log")
    stray.parent.mkdir(exist_ok=True)
    stray.write_bytes(b"somebody's")
    found = {(each.condition, str(each.file)) for each in Log(tool.root).verify().findings}
    expected = {("VIEW_STRAY", str(stray.relative_to(tool.root)))} | ({("VIEW_MISSING", missing)} if missing else set())
    assert {(condition, file.removeprefix(f"{tool.root}/")) for condition, file in found} == expected
    tool.run("publish")
    assert logs(tool.root) == wanted
    assert Log(tool.root).verify().findings == []
    tool.run("append", tag="B", **SIZES)
    assert Log(tool.root).verify().findings == []
    assert sum(map(len, tool.read().values())) == 2 * 2 * SIZES["records"]


def test_the_setting_is_kept(tool: LogTool) -> None:
    """A topic has it from its first version on, and the checkpoint keeps it."""
    tool.run("append", tag="A", commits=12, pace=5, **{"kafka.view": "none"})
    assert Log(tool.root)["t"].config["kafka.view"] == "none"
    assert [entry.name for entry in tool.root.iterdir()] == ["_partlog"]
    assert Log(tool.root).verify().findings == []
