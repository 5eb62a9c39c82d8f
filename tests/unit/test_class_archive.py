"""The archive of classes: its key, where it lies, and which one a session takes. No Spark is started, and no archive is made."""

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import sparklog
from sparklog.__main__ import main
from sparklog.spark import archive
from sparklog.spark import session as module

SETTING = "spark.driver.defaultJavaOptions"


@pytest.fixture(autouse=True)
def jar(tmp_path, monkeypatch):
    """A Java, a Spark and a connector of the test's own, and an environment without settings of them."""
    monkeypatch.setattr(module, "running_session", lambda: None)
    for name in ("PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "SPARK_REMOTE", "SPARKLOG_CLASS_ARCHIVE", "JAVA_TOOL_OPTIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYSPARK_PYTHON", "python")
    for name, variable in (("jdk", "JAVA_HOME"), ("spark", "SPARK_HOME"), ("conf", "SPARK_CONF_DIR"), ("cache", "XDG_CACHE_HOME")):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(variable, str(tmp_path / name))
    for file in ("jdk/bin/java", "spark/jars/spark-core.jar", "spark/bin/spark-submit", "sparklog.jar"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(file)
    (tmp_path / "jdk" / "release").write_text('JAVA_VERSION="17"\n')
    monkeypatch.setattr(module, "_JAR", tmp_path / "sparklog.jar")
    return tmp_path / "sparklog.jar"


@pytest.fixture
def made(jar, tmp_path) -> Path:
    """A file where the archive that fits would be."""
    folder = tmp_path / "cache" / "sparklog"
    folder.mkdir(mode=0o700)
    file = folder / f"spark-{archive._key(jar)}-7.jsa"
    file.write_bytes(b"archive")
    file.chmod(0o600)
    assert archive.find(jar) == file
    return file


def options(**settings: str) -> str | None:
    return sparklog.configure(SparkSession.builder.config(map=settings))._options.get(SETTING)


@pytest.mark.parametrize("changed", ["sparklog.jar", "jdk/release", "jdk/bin/java", "spark/jars/spark-core.jar", "spark/jars/another.jar"])
def test_another_java_spark_or_connector_has_another_archive(changed, jar, made, tmp_path):
    with (tmp_path / changed).open("a") as file:
        file.write("changed")
    assert archive.find(jar) is None
    assert options() is None


def test_a_java_or_spark_that_is_not_there_has_no_archive(jar, made, tmp_path):
    (tmp_path / "jdk" / "bin" / "java").unlink()
    assert archive.find(jar) is None
    (tmp_path / "jdk" / "bin" / "java").write_text("jdk/bin/java")
    (tmp_path / "spark" / "jars").rename(tmp_path / "moved")
    assert archive.find(jar) is None


def test_an_archive_that_others_can_write_to_is_not_used(jar, made):
    for path, mode in ((made, 0o620), (made, 0o602), (made.parent, 0o770), (made.parent, 0o707)):
        before = path.stat().st_mode
        path.chmod(mode)
        assert archive.find(jar) is None, (path, mode)
        path.chmod(before)
    assert archive.find(jar) == made


def test_an_archive_of_another_user_is_not_used(jar, made, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: made.stat().st_uid + 1)
    assert archive.find(jar) is None


def test_a_link_or_a_folder_is_no_archive(jar, made, tmp_path):
    made.rename(tmp_path / "elsewhere.jsa")
    made.symlink_to(tmp_path / "elsewhere.jsa")
    assert archive.find(jar) is None
    made.unlink()
    made.mkdir()
    assert archive.find(jar) is None


def test_an_archive_that_lost_its_end_is_not_used(jar, made):
    os.truncate(made, 6)
    assert archive.find(jar) is None


def test_a_session_is_told_where_its_archive_is(made):
    assert options() == f'"-XX:SharedArchiveFile={made}" -Xshare:auto -Xlog:cds*=off'


def test_twice_is_once(made):
    builder = sparklog.configure(SparkSession.builder)
    once = dict(builder._options)
    assert SETTING in once
    assert sparklog.configure(builder)._options == once


def test_options_of_the_user_stay_and_come_last(made, tmp_path, monkeypatch):
    ours = f'"-XX:SharedArchiveFile={made}" -Xshare:auto -Xlog:cds*=off'
    assert options(**{SETTING: "-Da=b"}) == f"{ours} -Da=b"
    (tmp_path / "conf" / "spark-defaults.conf").write_text(f"{SETTING} -Dc=d -De=f\n")
    assert options() == f"{ours} -Dc=d -De=f"
    arguments = "--conf spark.driver.extraJavaOptions=-Dg=h pyspark-shell"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
    assert options() == f"{ours} -Dc=d -De=f"
    assert os.environ["PYSPARK_SUBMIT_ARGS"] == arguments


@pytest.mark.parametrize("option", ["-XX:SharedArchiveFile=/mine.jsa", "-XX:ArchiveClassesAtExit=/mine.jsa", "-Xshare:off"])
def test_a_user_who_has_an_archive_of_their_own_keeps_it(option, made, monkeypatch):
    assert options(**{"spark.driver.extraJavaOptions": f"-Da=b {option}"}) is None
    assert options(**{SETTING: option}) == option
    for name, value in (("JAVA_TOOL_OPTIONS", option), ("PYSPARK_SUBMIT_ARGS", f"--driver-java-options {option} pyspark-shell")):
        with monkeypatch.context() as environment:
            environment.setenv(name, value)
            assert options() is None


def test_it_can_be_turned_off(made, monkeypatch):
    monkeypatch.setenv("SPARKLOG_CLASS_ARCHIVE", "off")
    assert options() is None


def test_what_something_else_starts_has_no_use_for_it(made, monkeypatch):
    monkeypatch.setenv("SPARK_REMOTE", "sc://host:15002")
    assert options() is None


def test_it_lies_in_the_users_cache(jar, made, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for ignored in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert archive.find(jar) is None
    (tmp_path / "home").mkdir()
    (tmp_path / "cache").rename(tmp_path / "home" / ".cache")
    assert archive.find(jar) == tmp_path / "home" / ".cache" / "sparklog" / made.name


@pytest.mark.parametrize("reason", ["others can write to it", "its path is not absolute, or has a colon", "Not a directory"])
def test_a_folder_that_cannot_keep_it_is_an_error(reason, jar, tmp_path, monkeypatch):
    folder = tmp_path / "cache" / "sparklog"
    if reason.startswith("others"):
        folder.mkdir()
        folder.chmod(0o777)
    elif reason.startswith("its path"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a:b"))
    else:
        (tmp_path / "cache").rmdir()
        (tmp_path / "cache").write_text("a file")
    with pytest.raises(sparklog.CallError, match=reason) as raised:
        archive.make(jar)
    assert raised.value.condition == "PARTLOG_CLASS_ARCHIVE_FOLDER"


def test_it_is_deleted(made, capsys):
    another = made.with_name("spark-0000000000000000-7.jsa")
    another.write_bytes(b"archive")
    for said in (f"Deleted {made}\n", "There is none.\n"):
        assert main(["class-archive", "--delete"]) == 0
        assert capsys.readouterr() == (said, "")
    assert list(made.parent.iterdir()) == [another]


def test_the_newest_stay(made):
    others = [made.with_name(f"spark-{number}-7.jsa") for number in range(4)]
    for number, each in enumerate(others):
        each.write_bytes(b"archive")
        os.utime(each, (number, number))
    archive._tidy(made)
    assert set(made.parent.iterdir()) == {made, *others[2:]}
