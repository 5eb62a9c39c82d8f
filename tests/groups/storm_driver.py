"""A process with several members, each in a thread, which write a line for each record that they process: see `test_member_storm.py`."""

from __future__ import annotations

import socket
import sys
import threading
import time
from pathlib import Path

from sparklog import Consumer, SparklogError, TopicPartition


def run(root: str, table: str, file: Path, session_ms: int, beats: int) -> None:
    def assigned(_: Consumer, partitions: list[TopicPartition]) -> None:
        with file.with_suffix(".assigned").open("a", encoding="utf-8") as told:
            told.writelines(f"{number} {time.time():.3f}\n" for _, number in partitions)

    with file.open("a", encoding="utf-8") as out:
        while True:
            consumer = Consumer(
                root,
                "t",
                group_id="g",
                table=table,
                partition_assignment_strategy="sticky",
                auto_offset_reset="earliest",
                auto_commit_interval_ms=session_ms // 4,
                session_timeout_ms=session_ms,
                heartbeat_interval_ms=session_ms // beats,
                on_assign=assigned,
            )
            try:
                while True:
                    for (_, number), records in consumer.poll(200).items():
                        out.writelines(f"{number} {record.offset} {time.time():.3f}\n" for record in records)
                    out.flush()
            except SparklogError as error:
                print(f"{file.name}: {error}", file=sys.stderr, flush=True)


root, table, name, threads, session, beats = sys.argv[1:]
# An id begins with the host, which is the process here.
socket.gethostname = lambda: Path(name).name
timed = int(session), int(beats)
members = [threading.Thread(target=run, args=(root, table, Path(f"{name}-{thread}.txt"), *timed)) for thread in range(int(threads))]
for member in members:
    member.start()
for member in members:  # threads may import only as long as the main one lives
    member.join()
