"""Users with the rights that the guide gives them, in S3 and in HDFS."""

import getpass
import json
import re
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from logtool import TIMEOUT_S, LogTool
from stores.buckets import environment
from stores.hdfs import Hdfs
from stores.s3 import S3
from verifying import faults

from sparklog import Log, SparklogError

GUIDE = (Path(__file__).parents[2] / "docs" / "guide" / "permissions.md").read_text(encoding="utf-8")
READ, WRITE, _ = map(json.loads, re.findall(r"^```json\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL))
ROOT = "s3a://bucket/logs/orders"
"""The root of the guide."""
USERS = ("reader", "writer", "keeper")


class Accounts(S3):
    """A server with accounts, who may do what the policy of the bucket says."""

    def add(self, user: str, program: Path) -> None:
        here = [str(program), "admin", "-a", self.access_key, "-s", self.secret_key, "--er", self.endpoint]
        subprocess.run([*here, "create-user", "-a", user, "-s", f"{user}-secret", "-r", "user"], check=True, capture_output=True)

    def allow(self, statements: Mapping[str, list[dict[str, Any]]]) -> None:
        """Gives each user these statements, and nothing else."""
        given = [{**each, "Principal": {"AWS": [user]}} for user, of_user in statements.items() for each in of_user]
        policy = json.dumps({"Version": READ["Version"], "Statement": given})
        status, answer = self.ask("PUT", "", policy.encode(), query={"policy": ""})
        assert status in (200, 204), answer

    def tool(self, user: str, classpath: str) -> LogTool:
        keys = {"fs.s3a.access.key": user, "fs.s3a.secret.key": f"{user}-secret"}
        return LogTool(classpath, ROOT, settings={**self.settings(), **keys})


@pytest.fixture
def accounts(s3_program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Accounts]:
    (tmp_path / "accounts").mkdir()
    monkeypatch.setenv("VGW_IAM_DIR", str(tmp_path / "accounts"))
    with Accounts(tmp_path, s3_program) as server:
        for user in USERS:
            server.add(user, s3_program)
        yield server


def refused(tool: LogTool, *words: str, **arguments: object) -> str:
    process = tool.start(*words, **arguments)
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode != 0, out
    return err


def test_the_policies_of_s3(accounts: Accounts, jvm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = READ["Statement"]
    no_list = [each for each in reads if each["Action"] != "s3:ListBucket"]
    no_delete = {**WRITE, "Action": [each for each in WRITE["Action"] if each != "s3:DeleteObject"]}
    accounts.allow({"writer": [*reads, WRITE], "keeper": [*reads, no_delete], "reader": reads})
    reader, writer, keeper = (accounts.tool(user, jvm) for user in ("reader", "writer", "keeper"))
    writer.run("append", tag="A", commits=3)
    writer.run("merge")
    writer.run("vacuum")
    reader.run("read")
    told = refused(reader, "append", tag="R")
    assert "PARTLOG_" in told and "AccessDenied" in told, told
    keeper.run("append", tag="B", commits=2)
    for name, value in {**environment(accounts), "AWS_ACCESS_KEY_ID": "reader", "AWS_SECRET_ACCESS_KEY": "reader-secret"}.items():
        monkeypatch.setenv(name, value)
    assert len(Log(ROOT)["t"].read()) == 100 and faults(ROOT) == []
    with pytest.raises(SparklogError, match="PARTLOG_"):
        Log("s3a://bucket/logs").topics()
    accounts.allow({"reader": no_list})
    with pytest.raises(SparklogError, match="PARTLOG_"):
        Log(ROOT)["t"].read()


class Groups(Hdfs):
    """Users of a cluster, and their groups."""

    def server_settings(self) -> dict[str, str]:
        groups = "one=one,writers;other=other,writers;stranger=stranger"
        return {**super().server_settings(), "hadoop.user.group.static.mapping.overrides": groups}


def test_two_users_of_a_group_write_to_hdfs(hdfs_jars: Path, tmp_path: Path, jvm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands of the guide, as calls of WebHDFS."""
    assert "-chgrp writers /logs/orders" in GUIDE and "-chmod 775 /logs/orders" in GUIDE and "umask-mode=002" in GUIDE
    with Groups(tmp_path, hdfs_jars) as hdfs:

        def ask(folder: str, call: str, user: str) -> None:
            url = f"http://{hdfs.webhdfs[0]}/webhdfs/v1{folder}?op={call}&user.name={user}"
            urllib.request.urlopen(urllib.request.Request(url, method="PUT")).read()

        def tool(user: str, folder: str = "/logs/orders") -> LogTool:
            return LogTool(jvm, f"{hdfs.uri}{folder}", settings=hdfs.settings, prefix=("env", f"HADOOP_USER_NAME={user}"))

        for folder, rights in (("/logs/orders", "775"), ("/logs/usual", "755")):
            for call in ("MKDIRS", "SETOWNER&group=writers", "SETPERMISSION&permission=775"):
                ask(folder, call, getpass.getuser())
            # Spark makes this folder before the first write, with the umask. The folders in it have its rights.
            ask(f"{folder}/_partlog", f"MKDIRS&permission={rights}", "one")
            tool("one", folder).run("append", tag="A", commits=2)
        tool("other").run("append", tag="B", commits=2)
        tool("one").run("merge")
        tool("other").run("change", what="records", offsets="0:1")
        tool("one").run("append", tag="C")
        tool("stranger").run("read")
        assert "Permission denied" in refused(tool("stranger"), "append", tag="D")
        assert "Permission denied" in refused(tool("other", "/logs/usual"), "append", tag="D")
        monkeypatch.setenv("HADOOP_USER_NAME", "stranger")
        seen_as = f"{hdfs.uri}/logs/orders?webhdfs={hdfs.webhdfs[0]}"
        assert len(Log(seen_as)["t"].read()) == 99 and faults(seen_as) == []
