"""The archive of classes: it is made once, in a cache of the tests' own. Each session is a Python of its own."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

# The options of a JVM of other tests, without the archive that `make` keeps for them.
JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SESSION = """
import json, sys, sparklog

settings = {"spark.master": "local[1]", "spark.ui.enabled": "false", "spark.driver.extraJavaOptions": "-Dmine=kept"}
spark = sparklog.session(conf=settings | json.loads(sys.argv[1]))
java = spark._jvm.java.lang
with open(f"/proc/{java.ProcessHandle.current().pid()}/maps") as maps:
    mapped = sorted({line.split(maxsplit=5)[5].strip() for line in maps if line.rstrip().endswith(".jsa")})
print(json.dumps([spark.range(3).count(), java.System.getProperty("mine"), mapped]))
"""


def run(*words: str, cache: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "SPARK"))}
    given = inherited | {"JAVA_TOOL_OPTIONS": JVM, "XDG_CACHE_HOME": str(cache)} | environment
    return subprocess.run([sys.executable, *words], env=given, capture_output=True, text=True, timeout=300)


def archives(cache: Path, **environment: str) -> list[str]:
    """The archives of this cache that the JVM of a session has mapped. The session must work, keep options, and say nothing of archives."""
    done = run("-c", SESSION, environment.pop("settings", "{}"), cache=cache, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    *before, last = done.stdout.splitlines()
    rows, mine, mapped = json.loads(last)
    assert (rows, mine, before) == (3, "kept", [])
    assert not re.search(r"archive|\[cds|jsa|defaultJavaOptions", done.stderr), done.stderr
    return [each for each in mapped if each.startswith(str(cache))]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache, in whose path there is a blank, and in which there is an archive."""
    cache = tmp_path_factory.mktemp("cache") / "of mine"
    done = run("-m", "sparklog", "class-archive", cache=cache)
    assert done.returncode == 0, done.stdout + done.stderr
    (archive,) = (cache / "sparklog").iterdir()
    assert done.stdout == f"{archive} ({archive.stat().st_size:,} bytes)\n"
    assert ((cache / "sparklog").stat().st_mode & 0o777, archive.stat().st_mode & 0o777) == (0o700, 0o600)
    return cache


@pytest.fixture
def archive(cache: Path) -> Path:
    (found,) = (cache / "sparklog").iterdir()
    return found


@pytest.mark.soak
def test_a_session_uses_it(cache, archive):
    assert archives(cache) == [str(archive)]


@pytest.mark.soak
def test_one_that_does_not_fit_the_class_path_is_not_used(cache, tmp_path):
    with zipfile.ZipFile(tmp_path / "mine.jar", "w") as jar:
        jar.writestr("mine.txt", "mine")
    more = json.dumps({"spark.driver.extraClassPath": str(tmp_path / "mine.jar")})
    assert archives(cache, settings=more) == []


@pytest.mark.soak
def test_one_that_is_damaged_is_not_used(cache, archive, tmp_path):
    """A JVM crashes on an archive that lost its end: tests/unit/test_class_archive.py shows that it is not given one."""
    copy = tmp_path / "sparklog" / archive.name
    copy.parent.mkdir(mode=0o700)
    copy.write_bytes(archive.read_bytes()[:100_000])
    copy.chmod(0o600)
    with copy.open("wb") as file:
        file.truncate(archive.stat().st_size)
    assert archives(tmp_path) == []


@pytest.mark.soak
def test_a_jvm_that_makes_none_is_an_error(cache, archive, tmp_path):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("")
    done = run("-m", "sparklog", "class-archive", cache=cache, SPARK_CONF_DIR=str(tmp_path / "conf"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "[PARTLOG_CLASS_ARCHIVE_JVM]" in done.stderr and "non-empty directory" in done.stderr
    assert list(archive.parent.iterdir()) == [archive], "the archive that was there stays, and nothing is left beside it"


@pytest.mark.soak
def test_a_spark_that_does_not_start_is_an_error(cache, archive):
    done = run("-m", "sparklog", "class-archive", cache=cache, JAVA_TOOL_OPTIONS="-XX:NoSuchOption")
    assert (done.returncode, done.stdout) == (2, "")
    assert "[PARTLOG_CLASS_ARCHIVE_USE]" in done.stderr and "[PARTLOG_JAVA_NEEDED]" in done.stderr
    assert list(archive.parent.iterdir()) == [archive]
