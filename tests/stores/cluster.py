"""A Spark cluster: a master and two workers, one process each, of the Spark that PySpark carries."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyspark
from ports import HOST, free_port
from stores.processes import Daemon, Servers, children, json_at

# On one host, Spark never starts a second attempt of a task that is slow.
HOSTS = {"worker1": HOST, "worker2": "127.0.0.2"}


class SparkCluster(Servers):
    """The daemons are called master, worker1 and worker2. A worker has one core.

    `url` is the master for a session, and `settings` are what a session on this machine needs. Each executor has a folder of its own below
    `folder`, in which it runs. Workers and their executors find the folders in `hidden` empty, where Linux lets the user hide any.
    """

    def __init__(self, folder: Path, hidden: Sequence[Path] = ()) -> None:
        self.folder = folder
        self._prefix = _hiding(hidden)
        self.hides = bool(self._prefix)
        self._port, self._web_port = free_port(), free_port()
        self.url = f"spark://{HOST}:{self._port}"
        self.settings = {
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.executor.memory": "512m",
            "spark.pyspark.python": sys.executable,
        }
        self.daemons = {"master": self._master(), **{name: self._worker(name) for name in HOSTS}}

    def start_all(self) -> None:
        """Starts the daemons, and waits until the master knows of the workers."""
        for daemon in self.daemons.values():
            daemon.start()
        self._wait_for_workers()

    def start(self, name: str) -> None:
        """Starts a worker again that was killed."""
        self.daemons[name].start()
        self._wait_for_workers()

    def executors(self, worker: str) -> list[int]:
        """The ids of the processes of a worker's executors, for a test that kills one."""
        return children(self.daemons[worker].pid)

    def _wait_for_workers(self) -> None:
        def all_there() -> bool:
            workers: list[Any] = json_at(f"http://{HOST}:{self._web_port}/json/")["workers"]
            alive = {each["host"] for each in workers if each["state"] == "ALIVE"}
            return alive == {HOSTS[name] for name in HOSTS if self.daemons[name].runs}

        self.daemons["master"].wait_until(all_there)

    def _master(self) -> Daemon:
        return self._daemon("master", "master.Master", HOST, "--port", str(self._port), "--webui-port", str(self._web_port))

    def _worker(self, name: str) -> Daemon:
        host = HOSTS[name]
        own = ("--cores", "1", "--memory", "1g", "--work-dir", str(self.folder / name), "--webui-port", str(free_port(host)))
        return self._daemon(name, "worker.Worker", host, *own, self.url, prefix=self._prefix)

    def _daemon(self, name: str, main: str, host: str, *arguments: str, prefix: Sequence[str] = ()) -> Daemon:
        home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
        command = [*prefix, str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{main}", "--host", host, *arguments]
        own = self.folder / f"{name}-tmp"
        own.mkdir(exist_ok=True)
        env = {"TMPDIR": str(own), "SPARK_HOME": str(home), "SPARK_LOCAL_IP": host, "SPARK_DAEMON_MEMORY": "256m"}
        env["SPARK_DAEMON_JAVA_OPTS"] = "-XX:+UseSerialGC"
        return Daemon(name, command, self.folder, env)


def _hiding(folders: Sequence[Path]) -> list[str]:
    """Words before a command, by which it finds these folders empty and keeps its id; none where Linux refuses that."""
    unshare = ["unshare", "--mount", "--map-root-user", "sh", "-c"]
    mounts = " && ".join(f"mount -t tmpfs none {shlex.quote(str(folder))}" for folder in folders)
    if not folders or not shutil.which("unshare") or subprocess.run([*unshare, mounts], capture_output=True, check=False).returncode:
        return []
    return [*unshare, f'{mounts} && exec "$@"', "sh"]
