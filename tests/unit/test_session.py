"""The settings that `configure` makes in a builder. No Spark is started."""

import os
import sys
from pathlib import Path

import pytest
from pyspark.conf import SparkConf
from pyspark.sql import SparkSession

import sparklog
from sparklog.spark import session as module

SETTINGS = {
    "spark.sql.catalog.partlog": "io.sparklog.catalog.PartlogCatalog",
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
}


@pytest.fixture(autouse=True)
def jar(tmp_path, monkeypatch):
    """The jar exists, no session is running, the environment has no settings of Spark, and the defaults are empty."""
    monkeypatch.setattr(module, "running_session", lambda: None)
    for name in ("PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "SPARK_REMOTE", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    # Set here first, so that monkeypatch undoes what configure() sets.
    monkeypatch.setenv("PYSPARK_PYTHON", "")
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.setattr(sys.modules["sparklog.spark.session"], "_chosen_python", None)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    jar = tmp_path / "jars" / "sparklog.jar"
    jar.parent.mkdir()
    jar.touch()
    monkeypatch.setattr(module, "_JAR", jar)
    return str(jar)


def configured(**settings: str) -> dict[str, str]:
    return sparklog.configure(SparkSession.builder.config(map=settings))._options


def test_a_plain_builder(jar):
    options = configured()
    assert options == {
        "spark.jars": jar,
        "spark.pyspark.python": sys.executable,
        **SETTINGS,
    }
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


def test_a_spark_home_without_spark_is_refused(monkeypatch, tmp_path):
    """PySpark would raise a bare FileNotFoundError."""
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "none"))
    with pytest.raises(sparklog.CallError, match=r"\[PARTLOG_SPARK_HOME\] SPARK_HOME is .*/none, .* Unset SPARK_HOME"):
        configured()
    (tmp_path / "none" / "bin").mkdir(parents=True)
    (tmp_path / "none" / "bin" / "spark-submit").touch()
    assert "spark.jars" in configured()


def test_it_returns_the_builder_it_was_given():
    builder = SparkSession.builder
    assert sparklog.configure(builder) is builder


def test_twice_is_once():
    builder = sparklog.configure(SparkSession.builder.config("spark.jars", "/other.jar"))
    once = dict(builder._options)
    assert sparklog.configure(builder)._options == once


class TestJars:
    def test_of_the_builder_stay(self, jar):
        assert configured(**{"spark.jars": "/a.jar, hdfs://host/b.jar"})["spark.jars"] == f"/a.jar,hdfs://host/b.jar,{jar}"

    @pytest.mark.parametrize("prefix", ["", "file:", "file://"])
    def test_ours_is_not_added_again(self, jar, prefix):
        assert configured(**{"spark.jars": f"{prefix}{jar},/a.jar"})["spark.jars"] == f"{prefix}{jar},/a.jar"

    @pytest.mark.parametrize("line", ["spark.jars /a.jar,/b.jar", "spark.jars=/a.jar,/b.jar", "  spark.jars : /a.jar,/b.jar  "])
    def test_of_the_defaults_stay(self, jar, tmp_path, line):
        (tmp_path / "spark-defaults.conf").write_text(f"# spark.jars /no.jar\n\nspark.master local\n{line}\n")
        assert configured()["spark.jars"] == f"/a.jar,/b.jar,{jar}"

    def test_of_the_builder_replace_those_of_the_defaults_as_in_spark(self, jar, tmp_path):
        (tmp_path / "spark-defaults.conf").write_text("spark.jars /default.jar\n")
        assert configured(**{"spark.jars": "/a.jar"})["spark.jars"] == f"/a.jar,{jar}"

    @pytest.mark.parametrize(
        "arguments",
        [
            "--jars /a.jar pyspark-shell",
            "--jars=/a.jar pyspark-shell",
            "--conf spark.jars=/a.jar pyspark-shell",
            "--conf=spark.jars=/a.jar pyspark-shell",
            "-c spark.jars=/a.jar pyspark-shell",
            "--conf spark.jars=/no.jar --jars /no.jar --jars /a.jar pyspark-shell",
        ],
    )
    def test_of_the_submit_arguments_stay(self, jar, monkeypatch, arguments):
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
        assert configured()["spark.jars"] == f"/a.jar,{jar}"
        # PySpark puts them after the builder's settings, so they must name both jars too.
        assert os.environ["PYSPARK_SUBMIT_ARGS"] == f"--jars /a.jar,{jar} pyspark-shell"

    def test_of_the_submit_arguments_and_of_the_builder_come_together(self, jar, monkeypatch):
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--jars /a.jar pyspark-shell")
        assert configured(**{"spark.jars": "/b.jar"})["spark.jars"] == f"/b.jar,/a.jar,{jar}"
        assert configured(**{"spark.jars": "/b.jar"})["spark.jars"] == f"/b.jar,/a.jar,{jar}"

    def test_other_submit_arguments_are_left_alone(self, jar, monkeypatch):
        arguments = "--conf 'spark.driver.extraJavaOptions=-Da=b -Dc=d' --verbose pyspark-shell"
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
        assert configured()["spark.jars"] == jar
        assert os.environ["PYSPARK_SUBMIT_ARGS"] == arguments
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--jars /a.jar {arguments}")
        configured()
        assert os.environ["PYSPARK_SUBMIT_ARGS"] == f"--jars /a.jar,{jar} {arguments}"

    def test_of_a_properties_file_stay(self, jar, tmp_path, monkeypatch):
        (tmp_path / "spark-defaults.conf").write_text("spark.jars /no.jar\n")
        (tmp_path / "mine.conf").write_text("spark.jars /a.jar\n")
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--properties-file {tmp_path}/mine.conf pyspark-shell")
        assert configured()["spark.jars"] == f"/a.jar,{jar}"

    def test_ours_is_missing(self, jar):
        Path(jar).unlink()
        with pytest.raises(sparklog.CallError, match="make jar") as raised:
            configured()
        assert raised.value.condition == "PARTLOG_JAR_MISSING"


class TestPython:
    def test_of_the_builder_is_made_to_count(self):
        assert configured(**{"spark.pyspark.python": "/opt/python"})["spark.pyspark.python"] == "/opt/python"
        assert os.environ["PYSPARK_PYTHON"] == "/opt/python"

    def test_of_an_earlier_session_binds_no_later_one(self):
        configured()
        assert os.environ["PYSPARK_PYTHON"] == sys.executable
        configured(**{"spark.pyspark.python": "/opt/python"})
        assert os.environ["PYSPARK_PYTHON"] == "/opt/python"
        configured()
        assert os.environ["PYSPARK_PYTHON"] == sys.executable

    def test_of_the_environment_stays(self, monkeypatch):
        monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
        assert "spark.pyspark.python" not in configured()
        assert os.environ["PYSPARK_PYTHON"] == "/opt/python"

    def test_of_the_defaults_is_made_to_count(self, tmp_path):
        (tmp_path / "spark-defaults.conf").write_text("spark.pyspark.python /opt/python\n")
        assert "spark.pyspark.python" not in configured()
        assert os.environ["PYSPARK_PYTHON"] == "/opt/python"

    def test_of_the_submit_arguments_is_made_to_count(self, monkeypatch):
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf spark.pyspark.python=/opt/python pyspark-shell")
        assert "spark.pyspark.python" not in configured()
        assert os.environ["PYSPARK_PYTHON"] == "/opt/python"


@pytest.mark.parametrize("name", SETTINGS)
class TestSettings:
    def test_of_the_builder_stay(self, name):
        assert configured(**{name: "mine"})[name] == "mine"

    def test_of_the_submit_arguments_stay(self, name, monkeypatch):
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--conf {name}=mine pyspark-shell")
        assert SETTINGS.keys() - configured().keys() == {name}

    def test_of_the_defaults_stay(self, name, tmp_path):
        (tmp_path / "spark-defaults.conf").write_text(f"{name} mine\n")
        assert SETTINGS.keys() - configured().keys() == {name}


class TestDelta:
    EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
    CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    JAR = "/d/delta-spark_4.2_2.13-4.4.0.jar"

    def asked(self, delta: object = True, **settings: str) -> dict[str, str]:
        builder = sparklog.configure(SparkSession.builder.config(map=settings), delta=delta)
        once = dict(builder._options)
        assert sparklog.configure(builder, delta=delta)._options == once
        return once

    def test_it_comes_from_maven_in_the_version_of_the_wheel(self, jar):
        assert self.asked() == configured() | {
            "spark.sql.extensions": self.EXTENSION,
            "spark.sql.catalog.spark_catalog": self.CATALOG,
            "spark.jars.packages": "io.delta:delta-spark_4.2_2.13:4.4.0",
            "spark.jars.excludes": "com.*:*,commons-*:*,io.airlift:*,javax.*:*,org.*:*",
        }

    def test_extensions_and_packages_of_the_user_stay(self, monkeypatch):
        monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--packages=a:b:1 --conf spark.sql.extensions=com.Mine pyspark-shell")
        given = self.asked(**{"spark.sql.catalog.spark_catalog": "com.MyCatalog", "spark.jars.packages": "c:d:1"})
        assert given["spark.sql.extensions"] == f"com.Mine,{self.EXTENSION}"
        assert given["spark.sql.catalog.spark_catalog"] == "com.MyCatalog"
        assert given["spark.jars.packages"] == "c:d:1,a:b:1,io.delta:delta-spark_4.2_2.13:4.4.0"
        assert "spark.jars.excludes" not in given
        line = "--packages c:d:1,a:b:1,io.delta:delta-spark_4.2_2.13:4.4.0 --conf spark.sql.extensions=com.Mine pyspark-shell"
        assert os.environ["PYSPARK_SUBMIT_ARGS"] == line

    @pytest.mark.parametrize("where", ["builder", "arguments", "defaults", "package"])
    def test_a_jar_that_is_given_is_taken(self, where, tmp_path, monkeypatch):
        if where == "arguments":
            monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--jars {self.JAR} pyspark-shell")
        if where == "defaults":
            (tmp_path / "spark-defaults.conf").write_text(f"spark.jars {self.JAR}\n")
        package = "io.delta:delta-spark_4.2_2.13:4.4.0"
        of_builder = {"builder": {"spark.jars": self.JAR}, "package": {"spark.jars.packages": package}}.get(where, {})
        given = self.asked(**of_builder)
        assert given.get("spark.jars.packages") == (package if where == "package" else None)
        assert given["spark.sql.extensions"] == self.EXTENSION

    def test_a_folder_of_jars_is_taken(self, jar, tmp_path):
        with pytest.raises(sparklog.CallError, match=f"The folder {tmp_path} does not have Delta's jar"):
            self.asked(tmp_path)
        jars = [tmp_path / name for name in ("delta-spark_4.2_2.13-4.4.0.jar", "delta-storage-4.4.0.jar")]
        for each in jars:
            each.touch()
        given = self.asked(tmp_path)
        assert given["spark.jars"] == ",".join(map(str, [*jars, jar]))
        assert "spark.jars.packages" not in given

    def test_another_version_than_that_of_the_wheel_is_refused(self, tmp_path):
        (tmp_path / "io.delta_delta-spark_4.2_2.13-4.3.1.jar").touch()
        with pytest.raises(sparklog.UpgradeError, match=r"delta-spark_4\.2_2\.13-4\.3\.1\.jar, but .* delta-spark has version 4\.4\.0"):
            self.asked(tmp_path)
        with pytest.raises(sparklog.UpgradeError, match=r"io\.delta:delta-spark_4\.2_2\.13:4\.4\.1, but"):
            self.asked(**{"spark.jars.packages": "a:b:1,io.delta:delta-spark_4.2_2.13:4.4.1"})

    def test_without_the_wheel_the_error_says_what_to_install(self, tmp_path, monkeypatch):
        monkeypatch.setattr(sys.modules["sparklog.spark.delta"], "_wheel", lambda: None)
        with pytest.raises(sparklog.CallError, match=r"delta-spark, which is not installed. Run pip install 'sparklog\[delta\]'"):
            self.asked()
        assert "spark.jars.packages" not in self.asked(**{"spark.jars": self.JAR})

    def test_a_connect_server_brings_its_own(self, monkeypatch):
        monkeypatch.setenv("SPARK_REMOTE", "sc://host:15002")
        assert self.asked() == SETTINGS


def test_a_spark_conf_counts():
    builder = SparkSession.builder.config(conf=SparkConf(loadDefaults=False).set("spark.jars", "/a.jar"))
    assert sparklog.configure(builder)._options["spark.jars"].startswith("/a.jar,")


def test_where_a_connect_server_starts_spark_its_jars_and_python_are_left_to_that(jar, monkeypatch):
    Path(jar).unlink()
    monkeypatch.setenv("SPARK_REMOTE", "sc://host:15002")
    assert configured() == SETTINGS
    assert "PYSPARK_PYTHON" not in os.environ


def test_the_jar(jar):
    assert sparklog.jar() == jar
    Path(jar).unlink()
    with pytest.raises(sparklog.CallError, match=f"not at {jar}.*make jar"):
        sparklog.jar()


def test_another_pyspark_is_refused(monkeypatch):
    import pyspark

    monkeypatch.setattr(pyspark, "__version__", "4.20.1")
    with pytest.raises(sparklog.UpgradeError, match=r"PySpark 4\.20\.1 is installed.*pyspark==4\.2\.\*") as raised:
        configured()
    assert raised.value.condition == "PARTLOG_SPARK_VERSION"


def test_a_name_that_is_not_a_setting_of_spark_is_refused():
    with pytest.raises(sparklog.CallError, match="`shuffle_partitions` is not a Spark setting"):
        sparklog.session(conf={"shuffle_partitions": 8})


def test_an_argument_that_is_not_a_builder_is_refused():
    with pytest.raises(TypeError, match=r"SparkSession\.builder, not dict"):
        sparklog.configure({})
