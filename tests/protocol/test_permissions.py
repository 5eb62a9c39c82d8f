"""A root that several users of a machine write and read, with the commands of the guide."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from logtool import TIMEOUT_S, LogTool, archive_classes
from verifying import faults

from sparklog import Consumer, Log, SparklogError
from sparklog.errors import declared

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="only root runs programs as other users")]

GUIDE = (Path(__file__).parents[2] / "docs" / "guide" / "permissions.md").read_text(encoding="utf-8")
WRITERS = 4100
"""The group of the guide."""


@dataclass(frozen=True)
class User:
    number: int
    groups: tuple[int, ...] = ()

    def tool(self, classpath: str, root: Path, umask: int) -> LogTool:
        """The log, in processes of this user."""
        groups = ("--groups", ",".join(map(str, self.groups))) if self.groups else ("--clear-groups",)
        who = ("setpriv", f"--reuid={self.number}", f"--regid={self.number}", *groups)
        return LogTool(classpath, root, prefix=(*who, "sh", "-c", f'umask {umask:03o}; exec "$@"', "sh"))

    @contextmanager
    def acting(self, umask: int = 0o022) -> Iterator[None]:
        """This process is one of the user. It has imported all modules and read all errors before, since the user may not read them."""
        declared()
        before = os.geteuid(), os.getegid(), os.getgroups(), os.umask(umask)
        os.setgroups(self.groups)
        os.setegid(self.number)
        os.seteuid(self.number)
        try:
            yield
        finally:
            os.seteuid(before[0])
            os.setegid(before[1])
            os.setgroups(before[2])
            os.umask(before[3])


ONE, OTHER, STRANGER = User(4001, (WRITERS,)), User(4002, (WRITERS,)), User(4003)


@pytest.fixture(scope="module")
def java_classpath(java_classpath: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A copy of the classes that every user may read, wherever this checkout is."""
    with tempfile.TemporaryDirectory(prefix="classes-") as name:
        Path(name).chmod(0o755)
        copies = []
        for number, given in enumerate(map(Path, java_classpath.split(os.pathsep))):
            copy = Path(name, str(number), given.name)
            copy.parent.mkdir()
            copies.append(str(shutil.copy(given, copy)))
        classpath = os.pathsep.join(copies)
        archive_classes(classpath, tmp_path_factory.mktemp("archive") / "root")
        yield classpath


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user may enter. Each pytest shuts the folders of `tmp_path` again as it starts."""
    with tempfile.TemporaryDirectory(prefix="permissions-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def carry_out(begins: str, path: Path) -> int:
    """Carries out the guide's commands that begin so, for a folder. Returns the umask that they set."""
    [block] = re.findall(rf"^```sh\n({begins} .*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    here = block.replace("/data/log", str(path)).replace(" writers ", f" {WRITERS} ")
    ran = subprocess.run(["sh", "-eu", "-c", f"{here}\numask"], capture_output=True, text=True, check=True)
    return int(ran.stdout, 8)


def refused(tool: LogTool, *words: str, **arguments: object) -> str:
    process = tool.start(*words, **arguments)
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode != 0, out
    return err


def test_two_users_of_a_group_write(folder: Path, java_classpath: str) -> None:
    root = folder / "log"
    umask = carry_out("mkdir", root)
    one, other = (user.tool(java_classpath, root, umask) for user in (ONE, OTHER))
    one.run("append", tag="A", commits=2)
    other.run("append", tag="B", commits=2)
    one.run("append", tag="C", commits=2)
    # Each merges, deletes and publishes files of the other.
    assert re.fullmatch(r"merged [1-9]\d* into .*", other.run("merge")[-1])
    one.run("append", tag="D", commits=2)
    other.run("change", what="records", offsets="0:1")
    one.run("vacuum")
    other.run("publish")
    one.run("change", what="delete")
    other.run("append", tag="E")
    assert {file.stat().st_gid for file in root.rglob("*")} == {WRITERS}
    assert faults(root) == []


def test_a_process_of_another_user_links_the_files_of_one_that_died(folder: Path, java_classpath: str) -> None:
    """A kernel that protects hard links lets a user link only files that the user may write."""
    root = folder / "log"
    umask = carry_out("mkdir", root)
    one, other = (user.tool(java_classpath, root, umask) for user in (ONE, OTHER))
    large = {"tasks": 1, "big": 3_000_000, "records": 2, "merge": 0, "max_message_bytes": 4 << 20}
    one.run("append", tag="A", status=42, stop="commit.done:halt", **large)
    other.run("append", tag="B", **large)
    linked = [file for file in root.glob("t-*/*.log") if file.stat().st_nlink > 1 and file.stat().st_uid == ONE.number]
    assert linked and faults(root) == []


def test_the_usual_umask_shuts_the_second_writer_out(folder: Path, java_classpath: str) -> None:
    root = folder / "log"
    carry_out("mkdir", root)
    ONE.tool(java_classpath, root, 0o022).run("append", tag="A")
    told = refused(OTHER.tool(java_classpath, root, 0o002), "append", tag="B")
    assert "PARTLOG_COMMIT_FAILED" in told and "AccessDenied" in told and f"{root}/_partlog/t/data/" in told
    carry_out("chgrp", root)
    OTHER.tool(java_classpath, root, 0o002).run("append", tag="B")
    assert len(Log(root)["t"].read()) == 40 and faults(root) == []


def test_without_the_bit_of_the_group_the_second_writer_is_shut_out(folder: Path, java_classpath: str) -> None:
    root = folder / "log"
    umask = carry_out("mkdir", root)
    root.chmod(0o775)
    ONE.tool(java_classpath, root, umask).run("append", tag="A")
    assert "AccessDenied" in refused(OTHER.tool(java_classpath, root, umask), "append", tag="B")


def test_readers_need_no_write_access(folder: Path, java_classpath: str) -> None:
    root = folder / "log"
    umask = carry_out("mkdir", root)
    ONE.tool(java_classpath, root, umask).run("append", tag="A")
    before = {file: file.stat().st_mtime_ns for file in root.rglob("*")}
    assert len(Log(root)["t"].read()) == 20 and faults(root) == []  # which imports all that it needs
    with STRANGER.acting():
        assert len(Log(root)["t"].read()) == 20 and faults(root) == []
        assert sum(map(len, Consumer(str(root), "t", auto_offset_reset="earliest").poll(1_000).values())) == 20
    STRANGER.tool(java_classpath, root, 0o022).run("read")
    assert "AccessDenied" in refused(STRANGER.tool(java_classpath, root, 0o022), "append", tag="B")
    assert {file: file.stat().st_mtime_ns for file in root.rglob("*")} == before


def test_a_root_without_rights_for_others(folder: Path, java_classpath: str) -> None:
    root = folder / "log"
    carry_out("mkdir", root)
    root.chmod(0o2770)
    ONE.tool(java_classpath, root, 0o007).run("append", tag="A")
    OTHER.tool(java_classpath, root, 0o007).run("append", tag="B")
    assert len(Log(root)["t"].read()) == 40
    with STRANGER.acting(), pytest.raises(SparklogError, match="PARTLOG_IO"):
        Log(root)["t"].read()


def test_members_of_two_users(folder: Path, java_classpath: str) -> None:
    """Members of a group write the offset table and the heartbeats beside it."""
    root, offsets = folder / "log", folder / "offsets"
    umask = carry_out("mkdir", root)
    carry_out("mkdir", offsets)
    ONE.tool(java_classpath, root, umask).run("append", tag="A")

    def consume(table: Path) -> int:
        options = {"group_id": "billing", "table": str(table), "auto_offset_reset": "earliest"}
        with Consumer(str(root), "t", **options) as consumer:
            return sum(map(len, consumer.poll(5_000, max_records=5).values()))

    consume(folder / "imported")  # which imports all that it needs
    for user in (ONE, OTHER):
        with user.acting(umask):
            assert consume(offsets / "table") == 5
    with STRANGER.acting(umask), pytest.raises(SparklogError):
        consume(offsets / "table")
