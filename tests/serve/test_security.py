"""Listeners that ask for a password, encrypt, or show a part of a root."""

import shutil
import subprocess
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError
from logtool import LogTool, small_jvm
from serve.clients import assert_refused
from serve.serving import RunningServer


@dataclass
class Guarded:
    server: RunningServer
    certificate: Path

    def client(self, listener: str, kind: Any = KafkaAdminClient, mechanism: str = "", password: str = "secret", **more: Any) -> Any:
        settings: dict[str, Any] = {"bootstrap_servers": self.server.listeners[listener], "security_protocol": listener, **more}
        if mechanism:
            settings |= {"sasl_mechanism": mechanism, "sasl_plain_username": "ann", "sasl_plain_password": password}
        if listener.endswith("SSL"):
            settings |= {"ssl_cafile": str(self.certificate), "ssl_check_hostname": False}
        return kind(**settings)


@pytest.fixture(scope="module")
def guarded(serve_classpath: str, tmp_path_factory: pytest.TempPathFactory) -> Generator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    for topic in ("open.a", "closed"):
        LogTool(serve_classpath, folder / "root").run("append", tag="A", topic=topic, commits=1, tasks=2, records=10)
    keys, certificate = folder / "keys.p12", folder / "certificate.pem"
    keytool = ["keytool", "-keystore", str(keys), "-storepass", "storepass", "-alias", "server"]
    subprocess.run([*keytool, "-genkeypair", "-keyalg", "RSA", "-dname", "CN=localhost"], check=True, capture_output=True)
    subprocess.run([*keytool, "-exportcert", "-rfc", "-file", str(certificate)], check=True, capture_output=True)
    verifiers = [*small_jvm(serve_classpath), "io.sparklog.serve.Serve", "--verifiers", "ann"]
    users = subprocess.run(verifiers, input="secret\n", capture_output=True, text=True, check=True).stdout
    assert "secret" not in users
    (folder / "users").write_text(users)
    config = folder / "server.properties"
    config.write_text(
        "listeners=SASL_SSL://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0\n"
        f"ssl.keystore.location={keys}\nssl.keystore.password=storepass\nsasl.credentials.file={folder / 'users'}\n"
        "listener.name.plaintext.read.only=true\nlistener.name.plaintext.topic.prefixes=open.\n"
    )
    with RunningServer(serve_classpath, folder / "root", ("--config", str(config))) as server:
        yield Guarded(server, certificate)


@pytest.mark.parametrize("listener", ["SASL_SSL", pytest.param("SASL_PLAINTEXT", marks=pytest.mark.slow)])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_password_is_asked_for(guarded: Guarded, listener: str, mechanism: str) -> None:
    admin = guarded.client(listener, mechanism=mechanism)
    assert set(admin.list_topics()) >= {"open.a", "closed"}
    admin.close()
    assert_refused(lambda: guarded.client(listener, mechanism=mechanism, password="wrong", bootstrap_timeout_ms=3000))


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed (Debian: apt-get install kcat)")
def test_kcat_gives_a_password(guarded: Guarded) -> None:
    """By a librdkafka that looks for version 0 of SaslHandshake."""
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanisms": "PLAIN", "sasl.username": "ann", "sasl.password": "secret"}
    words = [word for name, value in settings.items() for word in ("-X", f"{name}={value}")]
    command = ["kcat", "-b", guarded.server.listeners["SASL_PLAINTEXT"], "-L", "-J", *words]
    listed = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=600)
    assert '"closed"' in listed.stdout, listed.stderr


def test_tls_alone(guarded: Guarded) -> None:
    admin = guarded.client("SSL")
    assert set(admin.list_topics()) >= {"open.a", "closed"}
    admin.close()


def test_a_listener_shows_a_part_of_a_root_and_takes_no_records(guarded: Guarded) -> None:
    admin = guarded.client("PLAINTEXT")
    assert admin.list_topics() == ["open.a"]
    admin.close()
    producer = guarded.client("PLAINTEXT", KafkaProducer, max_block_ms=3000, retries=0, enable_idempotence=False, request_timeout_ms=3000)
    with pytest.raises(KafkaError):
        producer.send("open.a", b"x").get(10)
    producer.close(1)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--listen", "0.0.0.0:0"), "SERVE_UNPROTECTED"),
        (("listeners=SASL_PLAINTEXT://127.0.0.1:0",), "OPTION_VALUE"),
        (("listeners=SSL://127.0.0.1:0",), "OPTION_VALUE"),
        (("listeners=SASL_PLAINTEXT://0.0.0.0:0", "sasl.enabled.mechanisms=PLAIN"), "OPTION_VALUE"),
        (("advertised.listeners=OTHER://a:1",), "OPTION_VALUE"),
        (("--config", "absent"), "OPTION_VALUE"),
    ],
)
def test_a_server_that_would_be_open_does_not_begin(serve_classpath: str, tmp_path: Path, arguments: tuple[str, ...], error: str) -> None:
    command = [*small_jvm(serve_classpath), "io.sparklog.serve.Serve", str(tmp_path / "root"), *arguments]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=600)
    assert (done.returncode, done.stderr.split()[0]) == (2, f"[PARTLOG_{error}]"), done.stderr
