"""The servers that the tests of stores start are real, and go when they should."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier

import pytest
from ports import HOST
from stores.cluster import SparkCluster
from stores.hdfs import Hdfs, write_settings
from stores.processes import Daemon, is_alive, is_listening
from stores.s3 import S3
from stores.webhdfs import WebHdfs


def ended_soon(pids: list[int]) -> bool:
    deadline = time.monotonic() + 10
    while any(map(is_alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(is_alive, pids))


def test_s3_keeps_what_is_put(s3: S3):
    files = s3.filesystem()
    with files.open_output_stream(f"{s3.bucket}/kept") as out:
        out.write(b"12345")
    assert files.open_input_file(f"{s3.bucket}/kept").read_at(3, 1) == b"234"
    assert (s3.objects / s3.bucket / "kept").read_bytes() == b"12345"
    s3.kill()
    s3.start()
    assert files.open_input_file(f"{s3.bucket}/kept").read() == b"12345"


def test_s3_lets_one_of_several_conditional_puts_win(s3: S3):
    keys, writers = 50, 8
    together = Barrier(writers)
    told: list[list[int]] = [[] for _ in range(keys)]

    def write(writer: int) -> None:
        for key in range(keys):
            together.wait()
            told[key].append(s3.ask("PUT", f"race/{key}", str(writer).encode(), {"If-None-Match": "*"})[0])

    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(write, range(writers)))
    assert [sorted(statuses) for statuses in told] == [[200] + [412] * (writers - 1)] * keys


def test_hdfs_keeps_what_is_written(hdfs: Hdfs):
    files = WebHdfs(hdfs.webhdfs)
    files.write("/folder/file", b"12345")
    assert files.read("/folder/file") == b"12345"
    assert files.read("/folder/file", offset=1, length=3) == b"234"


def hadoop_reads(uri: str, settings: dict[str, str], jars: list[Path], folder: Path) -> str:
    """A file as Hadoop's own client reads it, which knows these settings alone, in a JVM with these jars."""
    write_settings(folder / "core-site.xml", settings)
    class_path = os.pathsep.join(map(str, (folder, *jars)))
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", class_path, "org.apache.hadoop.fs.FsShell", "-cat", uri]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_settings_for_s3_are_right(s3: S3, spark_jars: Path, s3a_jars: Path, tmp_path: Path):
    assert s3.ask("PUT", "settings", b"12345")[0] == 200
    assert hadoop_reads(f"s3a://{s3.bucket}/settings", s3.settings(), [spark_jars / "*", s3a_jars / "*"], tmp_path) == "12345"


def test_the_settings_for_hdfs_are_right(hdfs_ha: Hdfs, spark_jars: Path, tmp_path: Path):
    WebHdfs(hdfs_ha.webhdfs).write("/settings", b"12345")
    assert hadoop_reads(f"{hdfs_ha.uri}/settings", hdfs_ha.settings, [spark_jars / "*"], tmp_path) == "12345"


@pytest.mark.parametrize("times", [1, 2])
def test_hdfs_goes_on_when_its_active_name_node_is_killed(hdfs_ha: Hdfs, times: int):
    files = WebHdfs(hdfs_ha.webhdfs)
    files.write(f"/before-{times}", b"before")
    killed = hdfs_ha.failover()
    assert hdfs_ha.active != killed
    assert files.read(f"/before-{times}") == b"before"
    files.write(f"/after-{times}", b"after")
    hdfs_ha.start(killed)
    assert files.read(f"/after-{times}") == b"after"


def test_hdfs_reads_on_when_a_data_node_is_killed(hdfs_ha: Hdfs):
    """For some seconds the NameNode goes on to name the DataNode that is dead."""
    files = WebHdfs(hdfs_ha.webhdfs)
    files.write("/twice", b"12345")
    hdfs_ha.kill("dn1")
    deadline = time.monotonic() + 60
    content = b""
    while not content and time.monotonic() < deadline:
        with suppress(OSError):
            content = files.read("/twice")
    assert content == b"12345"
    hdfs_ha.start("dn1")


SPREAD = """
import json, os, sys, time
from pyspark.sql import SparkSession
builder = SparkSession.builder.master(sys.argv[1])
for name, value in json.loads(sys.argv[2]).items():
    builder = builder.config(name, value)
def folder(_):
    time.sleep(0.5)
    return os.getcwd()
tasks = builder.getOrCreate().sparkContext.parallelize(range(40), 40)
print("begins", flush=True)
print(*sorted(tasks.map(folder).collect()), sep="\\n", flush=True)
"""


def test_a_spark_cluster_goes_on_when_an_executor_is_killed(spark_cluster: SparkCluster, tmp_path: Path):
    command = [sys.executable, "-c", SPREAD, spark_cluster.url, json.dumps(spark_cluster.settings)]
    with (tmp_path / "log").open("w") as log, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as job:
        assert job.stdout
        assert job.stdout.readline() == "begins\n"
        deadline = time.monotonic() + 60
        while not (killed := spark_cluster.executors("worker2")) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert killed, "worker2 has no executor"
        time.sleep(3)
        os.kill(killed[0], signal.SIGKILL)
        folders = [Path(line) for line in job.stdout.read().split()]
    assert job.returncode == 0, (tmp_path / "log").read_text()
    assert len(folders) == 40
    assert {folder.relative_to(spark_cluster.folder).parts[0] for folder in folders} == {"worker1", "worker2"}


def test_servers_at_a_shell(repository: Path, s3_program: Path):
    """A command finds them in its environment, and they end with it."""
    command = [sys.executable, "-m", "stores.serve", "s3", "--", "sh", "-c", "echo $PPID $STORES_S3; exit 3"]
    env = {**os.environ, "PYTHONPATH": str(repository / "tests")}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 3, done.stderr
    pid, endpoint = done.stdout.split()
    assert not is_alive(int(pid))
    with pytest.raises(ConnectionRefusedError):
        is_listening(HOST, int(endpoint.rpartition(":")[2]))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_server_ends_when_the_process_is_killed_that_started_it(how: signal.Signals, tmp_path: Path):
    """It was started by a thread that has ended since, and is in a session of its own."""
    script = """
import signal, sys, threading, time
from pathlib import Path
for number in signal.SIGHUP, signal.SIGTERM:
    signal.signal(number, signal.SIG_DFL)  # under nohup, a process inherits that it ignores one
from stores.processes import Daemon, is_alive, is_listening
daemon = Daemon("sleep", ["sleep", "600"], Path(sys.argv[1]))
thread = threading.Thread(target=daemon.start)
thread.start()
thread.join()
print(daemon.pid, flush=True)
time.sleep(600)
"""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    with subprocess.Popen([sys.executable, "-c", script, tmp_path], env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        pid = int(process.stdout.readline())
        assert is_alive(pid)
        process.send_signal(how)
    assert ended_soon([pid])


def test_a_server_that_does_not_start_says_why(tmp_path: Path):
    daemon = Daemon("broken", ["sh", "-c", "echo it is broken; exit 1"], tmp_path)
    daemon.start()
    with pytest.raises(AssertionError, match=re.compile("broken ended; .*broken.log ends:\nit is broken", re.DOTALL)):
        daemon.wait_until(lambda: False)
    daemon.stop()
