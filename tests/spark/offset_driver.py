"""A driver of streams with groups, which tests kill: python offset_driver.py FOLDER MASTER KILLS_AT

FOLDER holds the root `in` with topic `t`, and gets the offset table `table`, the output `out` and a checkpoint for each query. MASTER is
`spark.master` or `spark.remote`. KILLS_AT is the number of the write to Delta after which the driver and its JVM are killed, before the
offsets are committed; -1 for never.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import sparklog
from sparklog.groups import track, write_delta
from sparklog.groups.table.owner import Owner

DELTA = Path(__file__).resolve().parents[2] / ".tools" / "delta"
TRIGGER = 6
"""Offsets of a micro-batch."""


def kill_at(number: int) -> None:
    commit, writes = Owner.commit, iter(range(1_000))

    def killing(self: Owner, *offsets: Any, **more: Any) -> None:
        if next(writes) == number:
            os.killpg(0, signal.SIGKILL)
        commit(self, *offsets, **more)

    if number >= 0:
        Owner.commit = killing  # type: ignore[method-assign]


def main() -> None:
    folder, master, kills_at = sys.argv[1:]
    kill_at(int(kills_at))
    spark = sparklog.session(
        delta=DELTA,
        conf={
            master: "local[2]",
            "spark.ui.enabled": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": "2",
            "spark.databricks.delta.snapshotPartitions": "1",
            "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        },
    )
    root, table = f"{folder}/in", f"{folder}/table"
    options = {"subscribe": "t", "startingOffsets": "earliest", "maxOffsetsPerTrigger": TRIGGER}
    rows = spark.readStream.format("partlog").options(**options).load(root).select("partition", "offset")
    checkpoint = f"{folder}/checkpoint-out"
    function = write_delta(f"{folder}/out", table=table, group="out", root=root, checkpoint=checkpoint)
    writer = rows.writeStream.foreachBatch(function).option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()
    if master == "spark.remote":
        other = rows.writeStream.format("noop").option("checkpointLocation", f"{folder}/checkpoint-tracked")
        query = other.trigger(availableNow=True).start()
        with track(query, "tracked", root, table) as tracker:
            query.awaitTermination()
        assert tracker.failure is None
    spark.stop()


if __name__ == "__main__":
    main()
