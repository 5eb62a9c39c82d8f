"""How a server begins and ends."""

import socket
import subprocess
from pathlib import Path

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient
from logtool import small_jvm
from serve.serving import RunningServer


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), "ROOT_REQUIRED"),
        (("absent", "--read-only"), "ROOT_NOT_FOUND"),
        (("{root}", "--listen", "9092"), "OPTION_VALUE"),
        (("{root}", "num.io.thread=3"), "SETTING_UNKNOWN"),
        (("{root}", "--listen", "127.0.0.1:0", "listeners=PLAINTEXT://127.0.0.1:0"), "OPTION_CONFLICT"),
        (("--verifiers", "ann"), "OPTION_VALUE"),
        (("{root}", "--listen", "{address}"), "SERVE_ADDRESS"),
    ],
)
def test_a_server_that_cannot_begin_says_why(
    server: RunningServer, serve_classpath: str, tmp_path: Path, arguments: tuple[str, ...], error: str
) -> None:
    words = [argument.format(root=server.root, address=server.address) for argument in arguments]
    command = [*small_jvm(serve_classpath), "io.sparklog.serve.Serve", *words]
    done = subprocess.run(command, input="", capture_output=True, encoding="utf-8", timeout=600, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"[PARTLOG_{error}] "), done.stderr
    assert "\tat " not in done.stderr
    assert done.stderr.count("PARTLOG_") == 1, done.stderr


def test_a_root_begins_with_the_server_that_serves_it(serve_classpath: str, tmp_path: Path) -> None:
    with RunningServer(serve_classpath, tmp_path / "root") as server:
        admin = KafkaAdminClient(bootstrap_servers=server.address)
        try:
            assert admin.list_topics() == []
        finally:
            admin.close()
    assert (tmp_path / "root" / "_partlog").is_dir()


def test_a_server_that_nobody_uses_ends(serve_classpath: str, tmp_path: Path) -> None:
    with RunningServer(serve_classpath, tmp_path / "root", ("end.when.unused.ms=2000",)) as server:
        host, _, port = server.address.rpartition(":")
        with socket.create_connection((host, int(port))), pytest.raises(subprocess.TimeoutExpired):
            server.process.wait(5)
        assert server.process.wait(600) == 0


def test_sigterm_ends_a_server(serve_classpath: str, tmp_path: Path) -> None:
    with RunningServer(serve_classpath, tmp_path / "root") as server:
        producer = KafkaProducer(bootstrap_servers=server.address)
        producer.send("t", b"1").get(timeout=600)
        server.process.terminate()
        assert server.process.wait(600) == 143
        producer.close()
    assert "WARN" not in server.log()
    assert "Exception" not in server.log()
