"""The wheel is all that a user needs: tested in empty environments, away from the checkout."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

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
        self._constraints = repository / "tests" / "constraints.txt"
        ours = ("PYTHON", "PYSPARK", "SPARK", "VIRTUAL_ENV", "COV_")
        self._variables = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        paths = os.environ["PATH"].split(os.pathsep)
        self._variables["PATH"] = os.pathsep.join(path for path in paths if not path.startswith(str(repository)))

    def install(self, *packages: str) -> None:
        # Python would compile all modules of PySpark, pandas and pyarrow, and tests import few.
        # By PEP 517 a wheel of PySpark is made, which pip then has in its cache.
        options = ("--quiet", "--disable-pip-version-check", "--use-pep517", "--no-compile", "--constraint", str(self._constraints))
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
def empty(repository, tmp_path_factory) -> Environment:
    environment = Environment(tmp_path_factory.mktemp("wheel") / "empty", repository)
    subprocess.run([sys.executable, "-m", "venv", environment.folder], check=True)
    return environment


@pytest.fixture(scope="module")
def spark(empty, wheel) -> Environment:
    empty.install(str(wheel))
    return empty


def test_the_wheel_works_in_an_empty_environment(spark, tmp_path):
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
    assert not spark.packages() & {"delta-spark", "grpcio"}, "extras are not installed unless they are asked for"


def test_a_user_s_program_is_typed(spark, tmp_path):
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
