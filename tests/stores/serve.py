"""Servers at a shell: `PYTHONPATH=tests python -m stores.serve hdfs s3` starts these, says where they are, and waits for Ctrl+C.

With `-- COMMAND`, it runs the command with all that in its environment, and ends with its status.
"""

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack, suppress
from pathlib import Path

from stores.cluster import SparkCluster
from stores.hdfs import Hdfs
from stores.s3 import S3

TOOLS = Path(__file__).resolve().parents[2] / ".tools"


def start(name: str, folder: Path, stack: ExitStack) -> dict[str, str]:
    """Starts a server, which the stack stops, and returns what a program must know of it, as names of an environment."""
    if name == "s3":
        s3 = stack.enter_context(S3(folder, TOOLS / "versitygw" / "versitygw"))
        return {"STORES_S3": s3.endpoint, "STORES_S3_URI": f"s3a://{s3.bucket}", "STORES_S3_SETTINGS": json.dumps(s3.settings())}
    if name == "spark":
        cluster = stack.enter_context(SparkCluster(folder))
        return {"STORES_SPARK": cluster.url, "STORES_SPARK_SETTINGS": json.dumps(cluster.settings)}
    hdfs = stack.enter_context(Hdfs(folder, TOOLS / "hdfs", ha=name == "hdfs-ha"))
    return {"STORES_HDFS": hdfs.uri, "STORES_WEBHDFS": ",".join(hdfs.webhdfs), "HADOOP_CONF_DIR": str(hdfs.conf)}


def main(arguments: list[str]) -> int:
    """Runs the program, and returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m stores.serve", description=__doc__)
    parser.add_argument("servers", nargs="+", choices=["hdfs", "hdfs-ha", "s3", "spark"])
    at = arguments.index("--") if "--" in arguments else len(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with tempfile.TemporaryDirectory(prefix="stores-") as folder, ExitStack() as stack:
        environment: dict[str, str] = {}
        for name in parser.parse_args(arguments[:at]).servers:
            own = Path(folder) / name
            own.mkdir()
            environment |= start(name, own, stack)
        if at < len(arguments):
            return subprocess.run(arguments[at + 1 :], env={**os.environ, **environment}, check=False).returncode
        print("".join(f"export {name}={shlex.quote(value)}\n" for name, value in environment.items()), flush=True)
        with suppress(KeyboardInterrupt):
            threading.Event().wait()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
