"""A process with several members, each in a thread, which commit after each record: see `test_operators_beside_members.py`."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from pathlib import Path

from sparklog import Consumer, GenerationFencedError, SparklogError


def run(root: str, table: str, stop: Path) -> None:
    given = {"group_id": "g", "table": table, "auto_offset_reset": "earliest", "enable_auto_commit": False, "poll_interval_ms": 20}
    consumer = Consumer(root, "t", "u", partition_assignment_strategy="sticky", max_poll_records=1, **given)
    while not stop.exists():
        try:
            if consumer.poll(100):
                consumer.commit()
        except GenerationFencedError:
            break  # the group was deleted
        except SparklogError as error:
            if error.id != "MEMBER_FENCED":
                raise
    with suppress(GenerationFencedError):
        consumer.close()  # it waits for the thread of heartbeats: an interpreter that ends beneath deltalake crashes


root, table, stop, threads = sys.argv[1:]
members = [threading.Thread(target=run, args=(root, table, Path(stop))) for _ in range(int(threads))]
for member in members:
    member.start()
for member in members:  # threads may import only as long as the main one lives
    member.join()
