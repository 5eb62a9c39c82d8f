"""The page on starting Spark: every section is executed literally, with the tools that come with PySpark.

A block of Python that begins with `# name.py` is that file; `bash` is run; a block of Python, Scala or SQL right after that is typed
into what it starts; each line of `text` must have been printed. Only addresses are replaced: ports that are free here.
"""

import contextlib
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from ports import free_port

import sparklog

HERE = Path(__file__).resolve().parents[2]
PAGE = (HERE / "docs" / "guide" / "starting-spark.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECTIONS = {
    title: [(kind, text) for kind, text in BLOCK.findall(body)]
    for title, body in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    if BLOCK.search(body)
}
PROMPT = re.compile(rb"(>>> |scala> |spark-sql \(\w+\)> )(\x1b\[\d*m)*$")
PATIENCE = 600
"""The seconds that a command may take. Starting Spark takes several times as long on a busy machine."""

SHOWN_ELSEWHERE = {"Plain Python", "Plain Python with your own builder", "spark-shell", "spark-sql"}
"""The soak runs these sections. Other tests start Spark by `sparklog.session()` and `sparklog.configure()`, by a shell with `--jars`, and
by spark-sql with the settings of the guide to SQL."""

pytestmark = pytest.mark.slow


@pytest.fixture
def environment() -> dict[str, str]:
    """The environment after `source .venv/bin/activate`, without settings of Spark."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "SPARK", "COV_"))}
    binaries = [Path(sys.executable).parent, Path(pyspark.__file__).parent / "bin"]
    return inherited | {
        "PATH": os.pathsep.join([*map(str, binaries), inherited["PATH"]]),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_HOSTNAME": "localhost",
    }


class Shell:
    """Runs commands in a folder. At the end it stops the processes that they left running."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder, self._environment = folder, environment
        self._left: list[subprocess.Popen[bytes]] = []

    def run(self, command: str, typed: str | None) -> str:
        """The output of commands. One that ends in `&` is left running. Typed input comes from a terminal."""
        if command.rstrip().endswith("&"):
            return self.leave(command.rstrip().removesuffix("&"))
        process = self._start(command, typed is not None)
        try:
            printed, _ = process.communicate(timeout=PATIENCE) if typed is None else (self._converse(process, typed), None)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        text = printed.decode()
        assert process.wait(PATIENCE) == 0, f"{command}\n{text[-4_000:]}"
        return text

    def leave(self, command: str) -> str:
        self._left.append(self._start(f"exec {command}", False, subprocess.DEVNULL))
        return ""

    def stop(self) -> None:
        for process in self._left:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(PATIENCE)

    def _start(self, command: str, terminal: bool, output: int = subprocess.PIPE) -> "subprocess.Popen[bytes]":
        ours, theirs = pty.openpty() if terminal else (-1, subprocess.DEVNULL)
        process = subprocess.Popen(
            ["bash", "-euc", command],
            cwd=self._folder,
            env=self._environment | ({"TERM": "dumb"} if terminal else {}),
            stdin=theirs,
            stdout=theirs if terminal else output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        if terminal:
            os.close(theirs)
            process.stdin = os.fdopen(ours, "r+b", buffering=0)  # type: ignore[assignment]
        return process

    def _converse(self, process: "subprocess.Popen[bytes]", typed: str) -> bytes:
        """Types at each prompt, and then closes the input."""
        terminal = process.stdin
        assert terminal is not None
        printed = b""
        ends = time.monotonic() + PATIENCE
        killer = threading.Timer(PATIENCE, lambda: os.killpg(process.pid, signal.SIGKILL))
        killer.start()
        try:
            lines = [*typed.encode().splitlines(keepends=True), b"\x04"]
            with contextlib.suppress(OSError):  # the terminal is closed
                while chunk := os.read(terminal.fileno(), 65_536):
                    printed += chunk
                    if lines and PROMPT.search(printed):
                        os.write(terminal.fileno(), lines.pop(0))
            assert time.monotonic() < ends, printed.decode()[-4_000:]
        finally:
            killer.cancel()
            terminal.close()
        return printed


@pytest.fixture
def shell(tmp_path: Path, environment: dict[str, str]) -> Iterator[Shell]:
    shell = Shell(tmp_path, environment)
    yield shell
    shell.stop()


def carry_out(blocks: list[tuple[str, str]], folder: Path, shell: Shell) -> None:
    printed = ""
    for number, (kind, text) in enumerate(blocks):
        following = blocks[number + 1] if number + 1 < len(blocks) else ("", "")
        if name := re.match(r"# (\w+\.py)\n", text):
            (folder / name[1]).write_text(text, encoding="utf-8")
        elif kind == "bash":
            typed = following[1] if following[0] in ("python", "scala", "sql") and not following[1].startswith("# ") else None
            printed = shell.run(text, typed)
        elif kind == "text":
            missing = [line for line in text.splitlines() if line not in (said.strip() for said in printed.splitlines())]
            assert not missing, printed[-4_000:]


@pytest.mark.parametrize(
    "title",
    [
        pytest.param(title, marks=[pytest.mark.soak] if title in SHOWN_ELSEWHERE else [])
        for title in SECTIONS
        if title not in ("A Connect server", "A cluster")
    ],
)
def test_section(title: str, tmp_path: Path, shell: Shell) -> None:
    carry_out(SECTIONS[title], tmp_path, shell)
    assert any((tmp_path / "log").rglob("*.log"))


def test_a_connect_server(tmp_path: Path, shell: Shell) -> None:
    port = free_port()
    blocks = [(kind, text.replace("15002", str(port))) for kind, text in SECTIONS["A Connect server"]]
    carry_out(blocks[:1], tmp_path, shell)
    wait_for(port)
    carry_out(blocks[1:], tmp_path, shell)
    assert any((tmp_path / "log").rglob("*.log"))


@pytest.mark.soak  # tests/stores has a cluster too
def test_a_cluster(tmp_path: Path, shell: Shell) -> None:
    """A master and a worker of Spark's own cluster; executors are processes of their own."""
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    shell.leave(f"spark-class org.apache.spark.deploy.master.Master --host 127.0.0.1 --port {port} --webui-port 0")
    shell.leave(
        f"spark-class org.apache.spark.deploy.worker.Worker --host 127.0.0.1 --webui-port 0 --cores 2 --memory 1g --work-dir work {master}"
    )
    wait_for(port)
    carry_out(SECTIONS["spark-submit"][:1], tmp_path, shell)
    carry_out([(kind, text.replace("spark://master:7077", master)) for kind, text in SECTIONS["A cluster"]], tmp_path, shell)
    assert any((tmp_path / "log").rglob("*.log"))
    assert any((tmp_path / "work").glob("app-*/*/sparklog.jar")), "an executor has the jar"


def wait_for(port: int) -> None:
    ends = time.monotonic() + PATIENCE
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert time.monotonic() < ends, f"nothing listens at port {port}"
            time.sleep(0.2)


@pytest.mark.parametrize(
    ("command", "typed"),
    [
        ("spark-submit --master 'local[1]' job.py", None),
        pytest.param("pyspark --master 'local[1]'", "import job\n", marks=pytest.mark.soak),
    ],
    ids=["spark-submit", "pyspark"],
)
def test_without_the_jar_the_error_says_jars(command: str, typed: str | None, tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "job.py").write_text(
        "import sparklog\ntry:\n    sparklog.session()\nexcept sparklog.CallError as error:\n    print(error)\n"
    )
    printed = " ".join(shell.run(command, typed).split())
    assert "[PARTLOG_CONNECTOR_NOT_GIVEN] Spark was started without the connector, by spark-submit, a shell" in printed
    assert "Start Spark with --jars " in printed


def test_settings_given_to_spark_submit_stay(tmp_path: Path, shell: Shell) -> None:
    name = "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"
    (tmp_path / "job.py").write_text(
        "import sparklog\nfrom pyspark.sql import SparkSession\n"
        f"spark = sparklog.configure(SparkSession.builder).getOrCreate()\nprint('it is', spark.conf.get('{name}'))\n"
    )
    submit = "spark-submit --master 'local[1]' --jars \"$(python -m sparklog jar)\""
    assert "it is true" in shell.run(f"{submit} --conf {name}=true job.py", None)


def test_spark_sql_has_both_catalogs_by_settings(tmp_path: Path, shell: Shell) -> None:
    """As the guide to SQL begins: no Python, and no setting but these."""
    page = (HERE / "docs" / "guide" / "sql.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^```\n(spark-sql .*?)\n```$", page, re.MULTILINE | re.DOTALL)
    statements = [
        "CREATE TABLE events.orders (key STRING, value STRING) TBLPROPERTIES ('partitions' = '2')",
        "INSERT INTO events.orders (key, value) VALUES ('ann', 'tea'), ('bob', 'rice')",
        "SELECT key, value FROM events.orders ORDER BY key",
        "SHOW TABLES IN events",
        f"CALL partlog.topics('{tmp_path}/log')",
        f"SELECT concat('by path: ', count(*)) FROM partlog.\\`{tmp_path}/log\\`.orders",
        "USE events",
        "SELECT count(*) AS orders FROM orders VERSION AS OF 0",
        "SHOW NAMESPACES",
        "DROP TABLE orders",
    ]
    command = command.replace("/data/log", str(tmp_path / "log"))
    printed = [line.split() for line in shell.run(f"{command} --master 'local[1]' -e \"{'; '.join(statements)}\"", None).splitlines()]
    for row in (["ann", "tea"], ["bob", "rice"], ["orders"], ["by", "path:", "2"], ["0"], ["topics"]):
        assert row in printed, printed[-40:]
    assert any(row[0] == "orders" and len(row) > 2 for row in printed if row), "the row of CALL partlog.topics"
    assert sparklog.Log(tmp_path / "log").topics() == []
