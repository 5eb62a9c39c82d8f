"""The time that a read takes without Spark and without a decoder: no scan can be faster."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyspark

from bench.harness import Bench, Side


@contextlib.contextmanager
def alone(bench: Bench, root: Path, what: str) -> Iterator[Side]:
    """A side that reads a topic's data files and verifies checksums ("checksum"), or also decompresses the batches ("decompress").

    It runs in a JVM of its own, which is kept for all rounds.
    """
    data = root / "_partlog" / "t" / "data"
    total = sum(file.stat().st_size for file in data.rglob("*.log"))
    jars = Path(pyspark.__file__).parent / "jars"
    command = ["java", "-cp", f"{jars}/*", str(Path(__file__).with_name("ReadAlone.java")), str(data), what]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        requests, answers = process.stdin, process.stdout
        bench.processes.append(process.pid)

        def ask() -> None:
            print(file=requests, flush=True)
            found = int(answers.readline())
            assert found > total if what == "decompress" else found == total, f"{found} bytes of {total}"

        yield ask
        bench.processes.remove(process.pid)
        requests.close()
