"""The wheel is all that a user needs: tested in empty environments, away from the checkout."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import sparklog

pytestmark = pytest.mark.slow

FRONT_PAGE = "spark,cli,serve,ui"
"""The extras that README.md installs."""

WORKER = """
from pyspark.sql import functions as F
print("worker:", log.select(F.udf(lambda _: __import__("sys").executable)("value")).first()[0])
"""
"""The Python of Spark's workers: that of the environment, which is not activated."""

READ = """
import importlib.util, itertools, json
import sparklog

def refused(call):
    try:
        call()
    except sparklog.CallError as error:
        return error.id
    except Exception as error:
        return repr(error)

from sparklog import spark_functions

log = sparklog.Log("root")
topics = {name: {str(number): end for number, end in log[name].end_offsets().items()} for name in log}
with sparklog.Consumer("root", "chosen", auto_offset_reset="earliest") as consumer:
    consumed = len(list(itertools.islice(consumer, sum(topics["chosen"].values()))))
print(json.dumps({
    "package": sparklog.__file__,
    "topics": topics,
    "read": log["chosen"].read().num_rows,
    "consumed": consumed,
    "verified": log.verify().ok,
    "spark": importlib.util.find_spec("pyspark") is not None,
    "refused": [refused(call) for call in (
        sparklog.session,
        lambda: sparklog.configure(None),
        lambda: sparklog.attach(None, "events", "root"),
        lambda: spark_functions.murmur2_partition("key", 8),
        lambda: spark_functions.murmur3_partition("key", 8),
    )],
}))
"""

GROUP = """
import itertools, json, sparklog
ends = sparklog.Log("root")["chosen"].end_offsets()
with sparklog.Consumer("root", "chosen", group_id="g", table="table", auto_offset_reset="earliest") as consumer:
    consumed = len(list(itertools.islice(consumer, sum(ends.values()))))
    consumer.commit()
group = sparklog.groups.OffsetTable("root", "table").group("g")
print(json.dumps({"consumed": consumed, "positions": {str(each.partition): each.offset for each in group.positions()}}))
"""

CLASS_PATH = """
import os
from sparklog.serve.command import command
line = command("root", [])
print(*line[line.index("-cp") + 1].split(os.pathsep), sep="\\n")
"""

PRODUCED = """
import sparklog
with sparklog.Producer("my-log") as producer:
    producer.send("visits", key=b"ann", value=b"1").get(timeout=600)
"""

TYPED = """
import sparklog
from sparklog import Consumer, Log, SparklogError, TopicPartition, groups, spark_functions

reveal_type(Log("root")["events"].end_offsets())  # dict[int, int]
reveal_type(Log("root").topic("events").read(partition=0, limit=9))  # Table
reveal_type(Log("root").verify().ok)  # bool
with Consumer("root", "events", group_id="billing", table="table") as consumer:
    reveal_type(consumer.poll(1000))  # dict[TopicPartition, list[ConsumerRecord]]
    reveal_type(consumer.committed(TopicPartition("events", 0)))  # int | None
reveal_type(groups.OffsetTable("root", "table").group("billing"))  # GroupSnapshot
reveal_type(groups.plan)  # GroupPlan
reveal_type(sparklog.partition_for("user-7", 8))  # int
reveal_type(sparklog.session(app_name="job"))  # SparkSession
reveal_type(spark_functions.murmur2_partition("key", 8))  # Column
reveal_type(SparklogError("TOPIC_NOT_FOUND").parameters)  # dict[str, str]
"""
"""A line of a user's program, and the type that its editor shows."""


class Environment:
    """A virtual environment that is not activated, in a folder of its own, and a shell that knows nothing of the checkout."""

    def __init__(self, folder: Path, repository: Path) -> None:
        self.folder = folder
        self.python = folder / "bin" / "python"
        self._repository = repository
        ours = ("PYTHON", "PYSPARK", "SPARK", "VIRTUAL_ENV", "COV_")
        self._variables = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        paths = os.environ["PATH"].split(os.pathsep)
        self._variables["PATH"] = os.pathsep.join(path for path in paths if not path.startswith(str(repository)))

    def copy(self, folder: Path) -> "Environment":
        shutil.copytree(self.folder, folder, symlinks=True, copy_function=os.link)
        return Environment(folder, self._repository)

    def install(self, *packages: str) -> None:
        # Python would compile all modules of PySpark, pandas and pyarrow, and tests import few.
        # By PEP 517 a wheel of PySpark is made, which pip then has in its cache.
        constraints = self._repository / "tests" / "constraints.txt"
        options = ("--quiet", "--disable-pip-version-check", "--use-pep517", "--no-compile", "--constraint", str(constraints))
        self.run("-m", "pip", "install", *options, *packages)

    def run(self, *words: str, folder: Path | None = None, path: Path | None = None, variables: dict[str, str] | None = None) -> str:
        """Runs its Python, which finds programs in a folder `path` first, and returns the output."""
        done = self.ended(*words, folder=folder, path=path, variables=variables)
        assert done.returncode == 0, done.stdout + done.stderr[-4_000:]
        return done.stdout

    def ended(
        self, *words: str, folder: Path | None = None, path: Path | None = None, variables: dict[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        command = (str(self.python), *words)
        given = self._variables | ({"PATH": f"{path}:{self._variables['PATH']}"} if path else {}) | (variables or {})
        return subprocess.run(command, cwd=folder or self.folder.parent, env=given, capture_output=True, text=True, check=False)

    def packages(self) -> set[str]:
        return {package["name"] for package in json.loads(self.run("-m", "pip", "list", "--format=json"))}


@pytest.fixture(scope="module")
def wheel(repository: Path) -> Path:
    wheels = list((repository / "dist").glob("sparklog-*-py3-none-any.whl"))
    if len(wheels) != 1:
        pytest.fail(f"dist/ holds {len(wheels)} wheels: run `make wheel`")
    return wheels[0]


@pytest.fixture(scope="module")
def core(repository, wheel, tmp_path_factory) -> Environment:
    environment = Environment(tmp_path_factory.mktemp("wheel") / "core", repository)
    subprocess.run([sys.executable, "-m", "venv", environment.folder], check=True)
    environment.install(str(wheel))
    return environment


@pytest.fixture(scope="module")
def installed(core, wheel, tmp_path_factory):
    """Gives the environment of the wheel with extras; the files of the core are hard links."""
    found: dict[str, Environment] = {}

    def made(extras: str) -> Environment:
        if extras not in found:
            found[extras] = core.copy(tmp_path_factory.mktemp("wheel") / extras.replace(",", "-"))  # Spark splits paths of jars at commas
            found[extras].install("--find-links", str(wheel.parent), f"{wheel}[{extras}]")  # the line of the page
        return found[extras]

    return made


@pytest.fixture(scope="module")
def released(repository) -> dict[str, Any]:
    return json.loads((repository / "tests" / "vectors" / "root-0.1.0.json").read_text())["topics"]


@pytest.fixture
def folder(repository, tmp_path) -> Path:
    """A folder with the root that the release wrote."""
    with tarfile.open(repository / "tests" / "vectors" / "root-0.1.0.tar.gz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # which some releases of Python 3.10 and 3.11 do not have
        archive.extractall(tmp_path)
    (tmp_path / "log").rename(tmp_path / "root")
    return tmp_path


def test_the_core_reads_consumes_and_verifies_without_spark(core, folder, released):
    said = json.loads(core.run("-c", READ, folder=folder))
    assert Path(said["package"]).is_relative_to(core.folder)
    assert said["topics"] == {name: topic["ends"] for name, topic in released.items()}
    records = sum(each["records"] for each in released["chosen"]["records"].values())
    assert (said["read"], said["consumed"], said["verified"]) == (records, records, True)
    assert (said["spark"], set(said["refused"])) == (False, {"SPARK_EXTRA"})
    assert core.packages() - {"pip", "setuptools"} == {"sparklog", "pyarrow", "numpy", "mmh3", "google-crc32c"}
    assert "pip install 'sparklog[cli]'" in core.ended("-m", "sparklog", "topics", "root", folder=folder).stderr
    archive = core.ended("-m", "sparklog", "class-archive")
    assert (archive.returncode, "pip install 'sparklog[spark]'" in archive.stderr) == (2, True)


def test_a_group_commits_without_spark(installed, folder, released):
    offsets = installed("offsets")
    said = json.loads(offsets.run("-c", GROUP, folder=folder))
    assert said["positions"] == released["chosen"]["ends"]
    assert "pyspark" not in offsets.packages()


def test_the_command_line_without_spark_says_what_to_install(installed, folder):
    cli = installed("cli")
    shown = [json.loads(line) for line in cli.run("-m", "sparklog", "cat", "root", "chosen", "--json", folder=folder).splitlines()]
    assert len(shown) == 50
    assert "chosen" in cli.run("-m", "sparklog", "stats", "root", "chosen", folder=folder)
    for words, extra in (
        (("produce", "root", "chosen"), "serve"),
        (("create", "root", "fresh"), "spark"),
        (("merge", "root", "chosen"), "spark"),
    ):
        ended = cli.ended("-m", "sparklog", *words, folder=folder)
        assert (ended.returncode, ended.stdout) == (2, ""), words
        assert f"PARTLOG_{extra.upper()}_EXTRA" in ended.stderr, words
        assert f"pip install 'sparklog[{extra}]'" in ended.stderr, words
        assert "Lines" not in ended.stderr, "the command must not read lines that it cannot write"


def test_a_server_has_all_its_jars_from_two_wheels(installed, repository, tmp_path):
    """Without Spark, so that a Spark beside it changes nothing. The fixture of the page, a producer and the command write through it."""
    serve = installed("serve")
    serve.install("pytest")
    assert not serve.packages() & {"pyspark", "pandas"}
    wheels = [Path(line) for line in serve.run("-c", CLASS_PATH).splitlines()]
    assert [jar for jar in wheels if not jar.is_relative_to(serve.folder)] == []

    page = (repository / "docs" / "guide" / "server.md").read_text(encoding="utf-8")
    (fixture,) = (block for block in re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL) if "partlog_broker" in block)
    (tmp_path / "test_page.py").write_text(fixture)
    assert "1 passed" in serve.run("-m", "pytest", "-q", "test_page.py", folder=tmp_path)

    variables = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    serve.run("-c", PRODUCED, folder=tmp_path, variables=variables)
    (tmp_path / "lines").write_text("ann:2\n")
    serve.run("-m", "sparklog", "produce", "my-log", "visits", "lines", "-K", ":", folder=tmp_path, variables=variables)
    assert sorted(sparklog.Log(tmp_path / "my-log")["visits"].read()["value"].to_pylist()) == [b"1", b"2"]
    in_store = serve.ended("-m", "sparklog", "serve", "s3a://bucket/log")
    assert "pip install 'sparklog[serve-stores]'" in in_store.stderr


def test_the_page_needs_its_extra_alone(installed, folder):
    words = (str(installed("ui").python), "-m", "sparklog", "ui", "root", "--port", "0")
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().split()[0]
            with urllib.request.urlopen(url, timeout=600) as answer:
                assert b"<html" in answer.read()
        finally:
            server.terminate()


def test_plots_need_their_extra_alone(installed, folder):
    program = "import sparklog; sparklog.Log('root')['chosen'].plot.segments().savefig('plot.png')"
    installed("notebook").run("-c", program, folder=folder)
    assert (folder / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_the_front_page_pasted_twice(installed, wheel, repository, tmp_path):
    """By a reader who has a Python shell and a terminal in one folder, in the environment that the page installs."""
    page = (repository / "README.md").read_text(encoding="utf-8")
    (_, install), *blocks = re.findall(r"^```(python|bash)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert (
        install
        == f"make wheel\npython3 -m venv venv && . venv/bin/activate\npip install --find-links dist 'dist/{wheel.name}[{FRONT_PAGE}]'\n"
    )
    assert {language for language, _ in blocks} == {"python", "bash"}
    environment = installed(FRONT_PAGE)
    program = tmp_path / "program.py"
    pasted = (block if language == "python" else f"paste({block!r})" for language, block in blocks * 2)
    program.write_text("\n".join(["from terminal import paste", *pasted, WORKER]), encoding="utf-8")
    shutil.copy(repository / "tests" / "spark" / "terminal.py", tmp_path)
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "sparklog"
    # Another page may have the usual port of the web page.
    command.write_text(f'#!/bin/sh\n[ "$1" != ui ] || set -- "$@" --port 0\nexec "{environment.python}" -m sparklog "$@"\n')
    command.chmod(0o755)
    (tmp_path / "folder").mkdir()
    printed = environment.run(str(program), folder=tmp_path / "folder", path=tmp_path / "bin")
    log = sparklog.Log(tmp_path / "folder" / "my-log")
    assert {topic: log[topic].read().num_rows for topic in log.topics()} == {"copy": 2_000, "events": 2_000, "lines": 6, "visits": 2}
    assert printed.splitlines()[-1] == f"worker: {environment.python}"
    assert list((tmp_path / "folder" / "my-log").glob("events-*/*.log")), "the Kafka view holds no log"

    jar = Path(environment.run("-m", "sparklog", "jar").removesuffix("\n"))
    assert jar.is_relative_to(environment.folder)
    assert jar.is_file()
    assert not environment.packages() & {"delta-spark", "deltalake", "grpcio", "obstore"}, (
        "extras are not installed unless they are asked for"
    )
    delta = environment.ended("-c", "import sparklog; sparklog.session(delta=True)")
    assert "pip install 'sparklog[delta]'" in delta.stderr


def test_a_user_s_program_is_typed(installed, tmp_path):
    spark = installed(FRONT_PAGE)
    spark.install("pyarrow-stubs")  # Arrow itself has no types
    program = tmp_path / "program.py"
    program.write_text(TYPED + "sparklog.sesion()\n")
    mypy = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(spark.python), "--cache-dir", str(tmp_path / "cache")]
    lines = subprocess.run([*mypy, program.name], cwd=tmp_path, capture_output=True, text=True, check=False).stdout.splitlines()

    expected = [re.sub(r"\W+", " ", line.partition("#")[2]).split() for line in TYPED.splitlines() if "reveal_type" in line]
    revealed = [line.partition("Revealed type is ")[2] for line in lines if "Revealed type is" in line]
    assert len(revealed) == len(expected), lines
    for shown, names in zip(revealed, expected, strict=True):
        assert set(names) <= set(re.findall(r"\w+", shown)), (shown, names)
    errors = [line for line in lines if ": error: " in line]
    assert len(errors) == 1, errors
    assert 'Module has no attribute "sesion"' in errors[0]
