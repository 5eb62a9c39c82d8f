"""A JVM that programs take one after another: to start a JVM takes four times as long as most commands.

python running_jvm.py PROGRAM ARGUMENTS runs a program in it, and stops the session that the program leaves. PROGRAM is a file, or `-m` with
a module.
"""

import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

import sparklog


@contextmanager
def running_jvm() -> Iterator[dict[str, str]]:
    """The environment of programs that take the JVM. Each of them must end before the next one begins."""
    gateway = launch_gateway(SparkConf(loadDefaults=False).set("spark.jars", sparklog.jar()))
    try:
        given = gateway.java_parameters
        yield {
            "PYSPARK_GATEWAY_PORT": str(given.port),
            "PYSPARK_GATEWAY_SECRET": given.auth_token,
            "PYSPARK_PYTHON": sys.executable,
        }
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()  # the JVM ends then
        gateway.proc.wait()


def command_in(folder: Path) -> None:
    """Puts a command `sparklog` into a folder, which runs in the JVM of its environment."""
    command = folder / "sparklog"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{__file__}" -m sparklog "$@"\n')
    command.chmod(0o755)


def main() -> None:
    del sys.argv[0]
    try:
        if sys.argv[0] == "-m":
            del sys.argv[0]
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = str(Path(sys.argv[0]).parent)
            runpy.run_path(sys.argv[0], run_name="__main__")
    finally:
        if SparkContext._active_spark_context is not None:
            SparkContext._active_spark_context.stop()


if __name__ == "__main__":
    main()
