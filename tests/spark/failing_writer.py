"""A program that `test_failures.py` starts. It writes 3,000 records in three tasks, and makes one task fail in the given way.

python failing_writer.py ROOT MASTER HOW [SETTING=VALUE …]
"""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext

import sparklog

RECORDS = 3_000


def _parent(process: int) -> int:
    stat = Path(f"/proc/{process}/stat").read_text()
    return int(stat.rpartition(")")[2].split()[1])


def _kill_executor() -> None:
    """Kills the executor's JVM: the first ancestor of this Python worker that is a java."""
    process = os.getpid()
    while Path(f"/proc/{process}/comm").read_text().strip() != "java":
        process = _parent(process)
    os.kill(process, signal.SIGKILL)


def _make(how: str):  # type: ignore[no-untyped-def]
    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        first = context.attemptNumber() == 0
        for i, batch in enumerate(batches):
            # In the middle of the task, after it has written rows.
            if i == 2 and context.partitionId() == 1:
                if (how == "once" and first) or how == "always":
                    raise RuntimeError("made to fail")
                if how == "executor" and first:
                    _kill_executor()
                if how == "slow" and first:
                    time.sleep(10)
            yield batch

    return rows


def main() -> None:
    root, master, how, *settings = sys.argv[1:]
    conf = {
        "spark.master": master,
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
        **dict(setting.split("=", 1) for setting in settings),
    }
    spark = sparklog.session(conf=conf)
    spark.sparkContext.setLogLevel("OFF")
    source = spark.range(0, RECORDS, 1, 3).selectExpr("concat('k', id % 50) AS key", "concat(id, repeat('x', 500)) AS value")
    rows = source.mapInArrow(_make(how), source.schema)
    rows.write.format("partlog").option("topic", "t").mode("append").save(root)
    spark.stop()


if __name__ == "__main__":
    main()
