"""Running sessions and new sessions. A test that needs a fresh start runs in a Python of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import sparklog

DELTA = Path(__file__).resolve().parents[2] / ".tools" / "delta"
JAR = str(Path(sparklog.__file__).parent / "jars" / "sparklog.jar")


def run(script: str, **environment: str) -> dict:
    """The JSON that a script prints in its last line."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "SPARK"))}
    done = subprocess.run([sys.executable, "-c", script], env=inherited | environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_session_that_runs_is_returned(spark):
    jars = spark.conf.get("spark.jars")
    again = sparklog.session()
    assert again is spark
    assert again.conf.get("spark.jars") == jars
    assert sparklog.configure(type(spark).builder).getOrCreate() is spark


def test_settings_are_applied_to_a_session_that_runs(spark):
    before = spark.conf.get("spark.sql.shuffle.partitions")
    try:
        sparklog.session(conf={"spark.sql.shuffle.partitions": 3})
        assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)


def test_settings_that_come_too_late_are_told(spark):
    with pytest.warns(UserWarning, match=r"does not take these settings any more: spark\.driver\.memory, spark\.master\. Give them"):
        again = sparklog.session(conf={"spark.master": "local[7]", "spark.driver.memory": "9g", "spark.ui.enabled": False})
    assert again is spark


def test_another_thread_gets_the_same_session(spark):
    from pyspark import InheritableThread

    got = []
    thread = InheritableThread(target=lambda: got.append(sparklog.session()))
    thread.start()
    thread.join()
    assert [session.sparkContext for session in got] == [spark.sparkContext]
    spark.range(1).count()  # and it still runs


def test_asking_for_the_connector_leaves_no_trace(spark):
    sparklog.session()
    assert not Path(sys.modules["sparklog.spark.session"]._NOWHERE).exists()


@pytest.mark.slow
def test_a_spark_without_the_connector_is_an_error_that_says_what_to_do():
    said = run(
        """
import json, sparklog, traceback
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

def refused(call):
    try:
        call()
    except sparklog.CallError as error:
        return [error.condition, str(error), len("".join(traceback.format_exception(error)).splitlines())]
    except PySparkException as error:
        return [error.getCondition(), str(error), 0]

plain = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
running = [refused(sparklog.session), refused(lambda: sparklog.configure(SparkSession.builder))]
usable = plain.range(3).count()
plain.stop()
# The JVM outlives the session, and a new session in it does not get the jar.
stopped = refused(lambda: sparklog.session(conf={"spark.master": "local[1]", "spark.ui.enabled": "false"}))
nothing_left = SparkSession.getActiveSession() is None

# Spark lets a session have the jar, and then tasks have classes of their own.
plain = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
plain.sql("ADD JAR " + sparklog.jar())
plain.conf.set("spark.sql.catalog.partlog", "io.sparklog.catalog.PartlogCatalog")
rows = plain.range(3).selectExpr("CAST(id AS STRING) AS value")
added = [
    refused(sparklog.session),
    refused(lambda: sparklog.configure(SparkSession.builder)),
    refused(lambda: rows.write.format("partlog").option("topic", "t").mode("append").save("added")),
    refused(lambda: plain.read.format("partlog").load("added").count()),
    refused(lambda: plain.sql("CALL partlog.topics(root => 'added')").collect()),
]
print(json.dumps([[*running, stopped, *added], usable, nothing_left]))
"""
    )
    refusals, usable, nothing_left = said
    assert len(refusals) == 8
    for condition, text, lines in refusals:
        assert condition == "PARTLOG_CONNECTOR_MISSING"
        assert f"without the connector {JAR}" in text
        assert "Start Python (or the notebook's kernel) again, and call sparklog.session()" in text
        assert lines < 15
    assert usable == 3, "a session that is not ours is left running"
    assert nothing_left, "a session that was made in vain is stopped"


@pytest.mark.slow
@pytest.mark.parametrize("java", ["absent", "not at JAVA_HOME", "old"])
def test_a_java_that_cannot_run_spark_is_an_error_that_says_what_to_install(tmp_path, java):
    """A script in place of an old Java prints what Java 11 prints, because machines often have only a newer one."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for folder in ("/usr/bin", "/bin"):
        for tool in Path(folder).iterdir():
            if not tool.name.startswith("java") and not (tools / tool.name).exists():
                (tools / tool.name).symlink_to(tool)
    if java == "old":
        (tools / "java").write_text(
            "#!/bin/sh\necho 'openjdk version \"11.0.22\" 2024-01-16' >&2\n"
            '[ "$1" = -version ] || { echo "java.lang.UnsupportedClassVersionError" >&2; exit 1; }\n'
        )
        (tools / "java").chmod(0o755)
    environment = {"PATH": str(tools), "JAVA_HOME": str(tmp_path) if java == "not at JAVA_HOME" else ""}
    condition, text, lines = run(
        """
import json, sparklog, traceback
try:
    sparklog.session()
except sparklog.CallError as error:
    print(json.dumps([error.condition, str(error), len("".join(traceback.format_exception(error)).splitlines())]))
""",
        **environment,
    )
    problem = {
        "absent": "there is none on the PATH, and JAVA_HOME is not set",
        "not at JAVA_HOME": f"JAVA_HOME is {tmp_path}, but {tmp_path}/bin/java cannot be run",
        "old": f"{tools}/java is of version 11",
    }
    assert condition == "PARTLOG_JAVA_NEEDED"
    assert text.startswith(f"[PARTLOG_JAVA_NEEDED] Spark needs a JDK 17 or later, but {problem[java]}. Install a JDK")
    assert lines < 10


@pytest.mark.soak
@pytest.mark.parametrize("master", ["spark.master", "spark.remote"])
def test_delta_from_a_folder_of_jars(tmp_path, master):
    """The sessions of test_offsets.py and test_offsets_kills.py, one in Spark and one over Connect, get Delta in this way too."""
    said = run(
        f"""
import json, sparklog

few = {{"spark.sql.shuffle.partitions": 1, "spark.databricks.delta.snapshotPartitions": 1}}
spark = sparklog.session(delta={str(DELTA)!r}, **{{{master!r}: "local[1]", "spark.ui.enabled": "false", **few}})
spark.sql("CREATE TABLE delta.`{tmp_path}/t` USING delta AS SELECT CAST(id AS INT) AS a FROM range(3)")
again = sparklog.session(delta=True)
print(json.dumps(again.read.format("delta").load("{tmp_path}/t").count()))
"""
    )
    assert said == 3


def test_a_session_that_runs_without_delta_is_an_error_that_says_what_to_do(spark):
    with pytest.raises(sparklog.CallError) as caught:
        sparklog.session(delta=True)
    assert caught.value.condition == "PARTLOG_DELTA_MISSING"
    text = str(caught.value)
    assert "without Delta: spark.sql.extensions does not name io.delta.sql.DeltaSparkSessionExtension." in text
    assert "call sparklog.session(delta=True) before anything else makes a session" in text
    assert spark.range(3).count() == 3, "the session still runs"


def test_settings_of_a_session_that_runs_stay(spark):
    name = "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled"
    before = spark.conf.get(name)
    assert before == "false"
    try:
        spark.conf.set(name, "true")
        assert sparklog.session().conf.get(name) == "true"
        spark.conf.unset(name)
        assert sparklog.session().conf.get(name) == "false"
    finally:
        spark.conf.set(name, before)


@pytest.mark.slow
def test_other_jars_stay_and_workers_run_this_interpreter(tmp_path):
    other = tmp_path / "other.jar"
    subprocess.run([sys.executable, "-m", "zipfile", "-c", str(other), __file__], check=True)
    said = run(
        """
import json, sys, sparklog
from pyspark.sql import functions as F

spark = sparklog.session(app_name="jars", conf={"spark.master": "local[1]", "spark.ui.enabled": "false"})
worker = F.udf(lambda _: __import__("sys").executable)
said = {
    "jars": spark.sparkContext.getConf().get("spark.jars").split(","),
    "name": spark.sparkContext.appName,
    "worker": spark.range(1).select(worker("id")).first()[0],
    "interpreter": sys.executable,
}
spark.sparkContext.stop()
said["again"] = sparklog.session(conf={"spark.master": "local[1]", "spark.ui.enabled": "false"}).range(3).count()
print(json.dumps(said))
""",
        PYSPARK_SUBMIT_ARGS=f"--jars {other} pyspark-shell",
        PATH="/usr/bin:/bin",
    )
    assert [Path(jar.removeprefix("file:")) for jar in said["jars"]] == [other, Path(JAR)]
    assert said["name"] == "jars"
    assert said["worker"] == said["interpreter"] == sys.executable
    assert said["again"] == 3, "a session whose context was stopped is not one that runs"
