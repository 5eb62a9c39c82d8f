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

pytestmark = pytest.mark.slow

JOB = """
import json, sys
from pathlib import Path
import sparklog
from pyspark.sql import functions as F

spark = sparklog.session(**{"spark.master": "local[2]", "spark.ui.enabled": "false"})
events = spark.createDataFrame([("a", "1"), ("b", "2"), ("a", "3"), (None, "4")], "key string, value string")
events.write.format("partlog").option("topic", "events").option("partitions", 3).mode("append").save("root")
back = spark.read.format("partlog").option("subscribe", "events").load("root")
rows = back.select(F.col("key").cast("string"), F.col("value").cast("string"), "partition").collect()
worker = F.udf(lambda _: __import__("sys").executable)
print(json.dumps({
    "package": sparklog.__file__,
    "rows": sorted(([row.key, row.value] for row in rows), key=str),
    "routed": all(row.partition == sparklog.partition_for(row.key, 3) for row in rows if row.key),
    "worker": back.select(worker("value")).first()[0],
    "logs": sorted(path.parent.name for path in Path("root").glob("events-*/*.log")),
}))
"""

READ = """
import importlib.util, json, sys
import sparklog

def refused(call):
    try:
        call()
    except sparklog.CallError as error:
        return error.id
    except Exception as error:
        return repr(error)

log = sparklog.Log("root")
topics = {name: {str(number): end for number, end in log[name].end_offsets().items()} for name in log}
with sparklog.Consumer("root", "chosen", auto_offset_reset="earliest", consumer_timeout_ms=2000) as consumer:
    consumed = sum(1 for record in consumer)
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
        lambda: sparklog.murmur2_partition("key", 8),
        lambda: sparklog.murmur3_partition("key", 8),
    )],
}))
"""

GROUP = """
import json, sparklog
with sparklog.Consumer("root", "chosen", group_id="g", table="table", auto_offset_reset="earliest", consumer_timeout_ms=2000) as consumer:
    consumed = sum(1 for record in consumer)
    consumer.commit()
group = sparklog.offsets.OffsetTable("table", "root").group("g")
print(json.dumps({"consumed": consumed, "positions": {str(each.partition): each.offset for each in group.positions()}}))
"""

TYPED = """
import sparklog
from sparklog import Consumer, Log, SparklogError, TopicPartition, offsets

reveal_type(Log("root")["events"].end_offsets())  # dict[int, int]
reveal_type(Log("root").topic("events").read(partition=0, limit=9))  # Table
reveal_type(Log("root").verify().ok)  # bool
with Consumer("root", "events", group_id="billing", table="table") as consumer:
    reveal_type(consumer.poll(1000))  # dict[TopicPartition, list[ConsumerRecord]]
    reveal_type(consumer.committed(TopicPartition("events", 0)))  # int | None
reveal_type(offsets.OffsetTable("table", "root").group("billing"))  # GroupSnapshot
reveal_type(offsets.plan)  # GroupPlan
reveal_type(sparklog.partition_for("user-7", 8))  # int
reveal_type(sparklog.session(app_name="job"))  # SparkSession
reveal_type(sparklog.murmur2_partition("key", 8))  # Column
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

    def run(self, *words: str, folder: Path | None = None, status: int = 0) -> str:
        """Runs its Python, and returns the output."""
        done = self.ended(*words, folder=folder)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    def ended(self, *words: str, folder: Path | None = None) -> "subprocess.CompletedProcess[str]":
        command = (str(self.python), *words)
        return subprocess.run(command, cwd=folder or self.folder.parent, env=self._variables, capture_output=True, text=True, check=False)

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
            found[extras] = core.copy(tmp_path_factory.mktemp("wheel") / extras)
            found[extras].install(f"{wheel}[{extras}]")
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
    for words in (("produce", "root", "chosen"), ("create", "root", "fresh"), ("merge", "root", "chosen")):
        ended = cli.ended("-m", "sparklog", *words, folder=folder)
        assert (ended.returncode, ended.stdout) == (2, ""), words
        assert "PARTLOG_SPARK_EXTRA" in ended.stderr, words
        assert "pip install 'sparklog[spark]'" in ended.stderr, words
        assert "Lines" not in ended.stderr, "the command must not read lines that it cannot write"


def test_the_page_needs_its_extra_alone(installed, folder):
    words = (str(installed("ui").python), "-m", "sparklog", "ui", "root", "--port", "0")
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().split()[0]
            with urllib.request.urlopen(url, timeout=60) as answer:
                assert b"<html" in answer.read()
        finally:
            server.terminate()


def test_plots_need_their_extra_alone(installed, folder):
    program = "import sparklog; sparklog.Log('root')['chosen'].plot.segments().savefig('plot.png')"
    installed("notebook").run("-c", program, folder=folder)
    assert (folder / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_spark_works_in_an_empty_environment(installed, tmp_path):
    spark = installed("spark")
    (tmp_path / "job.py").write_text(JOB)
    said = json.loads(spark.run("job.py", folder=tmp_path).splitlines()[-1])

    package = Path(said["package"])
    assert package.is_relative_to(spark.folder)
    assert said["rows"] == [["a", "1"], ["a", "3"], ["b", "2"], [None, "4"]]
    assert said["routed"]
    assert said["worker"] == str(spark.python)
    assert said["logs"], "the Kafka view holds no log"

    jar = Path(spark.run("-m", "sparklog", "jar").removesuffix("\n"))
    assert jar == package.parent / "jars" / "sparklog.jar"
    assert jar.is_file()
    assert not spark.packages() & {"delta-spark", "deltalake", "grpcio"}, "extras are not installed unless they are asked for"
    delta = spark.ended("-c", "import sparklog; sparklog.session(delta=True)")
    assert "pip install 'sparklog[delta]'" in delta.stderr


def test_a_user_s_program_is_typed(installed, tmp_path):
    spark = installed("spark")
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
