"""The servers that the tests of stores start are real, and go when they should."""

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
from stores.hdfs import Hdfs
from stores.processes import Daemon
from stores.s3 import S3
from stores.webhdfs import WebHdfs


def runs(pid: int) -> bool:
    """Whether there is such a process, and it is not only waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ended_soon(pids: list[int]) -> bool:
    deadline = time.monotonic() + 10
    while any(map(runs, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(runs, pids))


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


def test_nothing_runs_when_a_server_was_stopped(hdfs_jars: Path, s3_program: Path, tmp_path: Path):
    with Hdfs(tmp_path / "hdfs", hdfs_jars) as hdfs, S3(tmp_path / "s3", s3_program) as s3:
        pids = hdfs.pids + s3.pids
        assert len(pids) == 3
        assert all(map(runs, pids))
    assert not any(map(runs, pids))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_server_ends_when_the_process_is_killed_that_started_it(how: signal.Signals, tmp_path: Path):
    """It was started by a thread that has ended since, and is in a session of its own."""
    script = """
import sys, threading, time
from pathlib import Path
from stores.processes import Daemon
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
        time.sleep(0.5)
        assert runs(pid)
        process.send_signal(how)
    assert ended_soon([pid])


def test_a_server_that_does_not_start_says_why(tmp_path: Path):
    daemon = Daemon("broken", ["sh", "-c", "echo it is broken; exit 1"], tmp_path)
    daemon.start()
    with pytest.raises(AssertionError, match=re.compile("broken ended; .*broken.log ends:\nit is broken", re.DOTALL)):
        daemon.wait_until(lambda: False)
    daemon.stop()
