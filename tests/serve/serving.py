"""A server in a process of its own."""

import contextlib
import os
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from kafka import KafkaConsumer, KafkaProducer
from logtool import put_into_jar, small_jvm

READY_S = 120


@dataclass
class RunningServer:
    """`sparklog serve ROOT`, which ends with the block. `arguments` are the arguments after the root.

    `address` is HOST:PORT, as a client's `bootstrap_servers` takes it.
    """

    classpath: str
    root: Path
    arguments: tuple[str, ...] = ()
    java: tuple[str, ...] = ()
    """More arguments for the JVM."""
    archives: bool = False
    """Whether it makes the archive of classes of its class path, when it ends."""
    address: str = field(init=False, default="")
    listeners: dict[str, str] = field(init=False, default_factory=dict)
    """The addresses by the names of listeners."""
    metrics: str = field(init=False, default="")
    """The address of the metrics, if it is among the arguments."""
    process: "subprocess.Popen[str]" = field(init=False, repr=False)

    def __enter__(self) -> "RunningServer":
        listen = () if {"--listen", "--config"} & set(self.arguments) else ("--listen", "127.0.0.1:0")
        java = [*small_jvm(self.classpath, self.archives), "-Xmx512m", *self.java]
        command = [*java, "io.sparklog.serve.Serve", str(self.root), *listen, *self.arguments]
        self._log = self.root.with_name(f"{self.root.name}.server.log")
        with self._log.open("a") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, encoding="utf-8")
        assert self.process.stdout is not None
        first = self.process.stdout.readline()
        assert first.startswith("Serving "), f"{first}{self.log()}"
        self.address = first.rpartition(" at ")[2].strip()
        self.listeners = dict(re.findall(r"([A-Z_]+)://([^, ]+[0-9])", self.process.stdout.readline()))
        if any(argument.startswith("metrics.address=") for argument in self.arguments):
            self.metrics = self.process.stdout.readline().rpartition("http://")[2].partition("/")[0]
        return self

    def log(self) -> str:
        """All that the process has written to stderr."""
        return self._log.read_text(encoding="utf-8")

    def kill(self) -> None:
        """Ends the process at once, as a crash does."""
        with self.process:
            self.process.kill()

    def __exit__(self, *failure: object) -> None:
        with self.process:
            self.process.terminate()
            try:
                self.process.wait(READY_S if self.archives else 30)
            except subprocess.TimeoutExpired:
                self.process.kill()


def server_classpath(java_classpath: str, repository: Path) -> str:
    """The class path of a server with the classes of this checkout, and the libraries that `sparklog-serve` holds."""
    target = repository / "jvm-shim" / "serve" / "target"
    jars = [jar for jar in sorted((target / "jars").glob("*.jar")) if str(jar) not in java_classpath]
    assert jars, "run `make serve-jars`"
    served = put_into_jar(target / "classes", Path(java_classpath.partition(os.pathsep)[0]).with_name("serve.jar"))
    return os.pathsep.join(map(str, (java_classpath, served, *jars)))


def server_pid(root: Path) -> int | None:
    """The process of the server of a root; None if there is none."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if b"io.sparklog.serve.Serve" in words and os.fsencode(root) in words:
                return int(process.name)
    return None


def archive_classes_of_server(classpath: str, folder: Path) -> None:
    """Makes the archive of the classes that a server loads for its first use: each server of a test then starts in less than half of the
    CPU time."""
    with RunningServer(classpath, folder / "root", archives=True) as server:
        producer = KafkaProducer(bootstrap_servers=server.address)
        producer.send("t", b"value", b"key").get(READY_S)
        producer.close()
        consumer = KafkaConsumer("t", bootstrap_servers=server.address, group_id="g", auto_offset_reset="earliest")
        assert consumer.poll(READY_S * 1000, max_records=1)
        consumer.commit()
        consumer.close()
