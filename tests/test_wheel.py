"""The wheel is all that a user needs: tested in an empty environment, away from the checkout."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = """
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


@pytest.fixture(scope="module")
def wheel(repository: Path) -> Path:
    wheels = list((repository / "dist").glob("sparklog-*-py3-none-any.whl"))
    if len(wheels) != 1:
        pytest.fail(f"dist/ holds {len(wheels)} wheels: run `make wheel`")
    return wheels[0]


def test_the_wheel_works_in_an_empty_environment(wheel, repository, tmp_path):
    says_nothing_of_ours = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK", "SPARK", "VIRTUAL_ENV", "COV_"))
    }
    # The environment is not activated. The workers must be its Python nevertheless.
    says_nothing_of_ours["PATH"] = os.pathsep.join(
        folder for folder in os.environ["PATH"].split(os.pathsep) if not folder.startswith(str(wheel.parents[1]))
    )

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=tmp_path, env=says_nothing_of_ours, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    python = str(tmp_path / "empty" / "bin" / "python")
    run(sys.executable, "-m", "venv", "empty")
    # Python would compile all modules of PySpark, pandas and pyarrow, and the job imports few.
    constraints = str(repository / "tests" / "constraints.txt")
    # By PEP 517 a wheel of PySpark is made, which pip then has in its cache.
    options = ("--quiet", "--disable-pip-version-check", "--use-pep517", "--no-compile", "--constraint", constraints)
    run(python, "-m", "pip", "install", *options, str(wheel))
    (tmp_path / "job.py").write_text(SCRIPT)
    said = json.loads(run(python, "job.py").splitlines()[-1])

    assert Path(said["package"]).is_relative_to(tmp_path)
    assert said["rows"] == [["a", "1"], ["a", "3"], ["b", "2"], [None, "4"]]
    assert said["routed"]
    assert said["worker"] == python
    assert said["logs"], "the Kafka view holds no log"

    jar = Path(run(python, "-m", "sparklog", "jar").removesuffix("\n"))
    assert jar == Path(said["package"]).parent / "jars" / "sparklog.jar"
    assert jar.is_file()
    installed = {package["name"] for package in json.loads(run(python, "-m", "pip", "list", "--format=json"))}
    assert not installed & {"delta-spark", "grpcio"}, "extras are not installed unless they are asked for"
