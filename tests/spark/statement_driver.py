"""A program with a Spark of its own, which runs statements of SQL as they come; and what starts it, and asks it.

python statement_driver.py OPTIONS_OF_THE_JVM

Each line of its input is JSON: when to begin, in seconds of the epoch, and a statement. It answers each with a line: `null`, or the
condition and the text of the error.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import sparklog

Answer = list[str] | None
"""Condition and text of an error; None if there is none."""


def run(spark: SparkSession, begin: float, statement: str) -> Answer:
    time.sleep(max(0.0, begin - time.time()))
    try:
        spark.sql(statement)
    except PySparkException as error:
        return [str(error.getCondition()), str(error)]
    return None


class Driver:
    """The program, in a process group of its own. Its errors go to the file `said`."""

    def __init__(self, said: Path, java: str = "") -> None:
        self.said = said
        with said.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, __file__, java],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )

    def ask(self, begin: float, statement: str) -> None:
        assert self.process.stdin is not None
        print(json.dumps([begin, statement]), file=self.process.stdin, flush=True)

    def answer(self) -> Answer:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the driver has ended:\n{self.text()[-4000:]}"
        answer: Answer = json.loads(line)
        return answer

    def ready(self) -> None:
        self.ask(0, "SELECT 1")
        assert self.answer() is None

    def until_says(self, text: str, limit_s: float = 60) -> None:
        deadline = time.monotonic() + limit_s
        while text not in self.text():
            assert self.process.poll() is None, f"the driver ended before it said {text}:\n{self.text()[-4000:]}"
            assert time.monotonic() < deadline, f"the driver did not say {text}:\n{self.text()[-4000:]}"
            time.sleep(0.01)

    def text(self) -> str:
        return self.said.read_text(errors="replace")

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate(timeout=60)


def main() -> None:
    spark = sparklog.session(
        conf={
            "spark.master": "local[2]",
            "spark.ui.enabled": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {sys.argv[1]}",
        }
    )
    spark.sparkContext.setLogLevel("OFF")
    for line in sys.stdin:
        print(json.dumps(run(spark, *json.loads(line))), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
