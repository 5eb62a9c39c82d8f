"""The jars that the wheels of the server bring, and the class path that is made of them."""

import os
import re
from pathlib import Path

import pytest
import sparklog_serve

from sparklog import CallError
from sparklog.serve.command import command

SERVER = Path(__file__).resolve().parents[2] / "jvm-shim" / "serve"
NOTICES = {sparklog_serve.JARS: SERVER / "NOTICE", sparklog_serve.STORES: SERVER / "stores" / "NOTICE"}
NAME = re.compile(r"(.+?)-(\d[\d.]*(?:[A-Z]\w*)?(?:-\d+)?)\.jar")
OF_AWS = "2.35.4"
"""The NOTICE names the modules of this SDK by their version."""


def versions(folder: Path) -> dict[str, str]:
    """The version of each library in a folder."""
    found = [NAME.fullmatch(jar.name) for jar in folder.glob("*.jar")]
    return {name[1]: name[2] for name in found if name}


def class_path(root: str) -> list[str]:
    line = command(root, [], ())
    return line[line.index("-cp") + 1].split(os.pathsep)


@pytest.mark.parametrize("folder", NOTICES, ids=lambda folder: folder.name)
def test_the_notice_of_a_wheel_names_each_library(folder: Path) -> None:
    notice = " ".join(NOTICES[folder].read_text(encoding="utf-8").split())
    assert versions(folder), "run `make wheel`"
    unnamed = {
        name: version
        for name, version in versions(folder).items()
        if version not in notice or (version != OF_AWS and not re.search(rf"\b{name}\b", notice))
    }
    assert unnamed == {}


def test_a_library_has_the_version_that_spark_has(spark_jars: Path) -> None:
    """The connector's jar, which the server uses, is compiled and tested with these."""
    of_spark = versions(spark_jars)
    ours = versions(sparklog_serve.JARS) | versions(sparklog_serve.STORES)
    # Spark's own are another metrics-core, of another project, and newer libraries of Apache, where S3A has the SDK's.
    shared = ours.keys() & of_spark.keys() - {"metrics-core", "commons-codec", "httpclient", "httpcore"}
    assert {"hadoop-client-api", "hadoop-client-runtime", "jackson-databind", "netty-common", "netty-codec-http2", "zstd-jni"} <= shared
    assert {name: ours[name] for name in shared} == {name: of_spark[name] for name in shared}
    assert versions(sparklog_serve.JARS).keys() & versions(sparklog_serve.STORES).keys() == set()


def test_a_server_of_a_root_on_a_disk_has_the_jars_of_two_wheels_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    monkeypatch.setenv("SPARK_HOME", "/opt/another/spark")
    *jars, connector = class_path(str(tmp_path / "root"))
    assert {Path(jar).parent for jar in jars} == {sparklog_serve.JARS}
    assert len(jars) == len(list(sparklog_serve.JARS.glob("*.jar"))) > 20
    assert Path(connector).name == "sparklog.jar"


@pytest.mark.parametrize("root", ["hdfs://server/log", "viewfs:///log", "s3a://bucket/log", "S3A://bucket/log"])
def test_a_server_of_a_root_in_a_store_has_hadoop_too(root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind the other jars, so that an archive of classes fits all roots."""
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    monkeypatch.setenv("HADOOP_CLASSPATH", "/opt/one.jar::/opt/more/*")
    on_disk, in_store = class_path(str(tmp_path)), class_path(root)
    assert in_store[: len(on_disk)] == on_disk
    *jars, settings, one, more = in_store[len(on_disk) :]
    assert (settings, one, more) == ("/etc/hadoop", "/opt/one.jar", "/opt/more/*")
    assert {Path(jar).parent for jar in jars} == {sparklog_serve.STORES}


def test_without_the_wheel_of_stores_an_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparklog_serve, "STORES", tmp_path / "absent")
    with pytest.raises(CallError, match=r"PARTLOG_SERVE_STORES_EXTRA.*s3a://bucket/log.*pip install 'sparklog\[serve-stores\]'"):
        command("s3a://bucket/log", [])
