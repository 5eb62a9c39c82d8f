"""A consumer of a group that writes down all that it gets, and dies where a test says.

python ordered_consumer.py ROOT TABLE FILE STEP NTH

FILE gets a line for each record: its partition, offset, key and value; and `begins` at the start. STEP is where the process ends by
SIGKILL, the NTH time that it comes there: `polled`, `told` (the records are in FILE) or `committed`. Without one, it ends when FILE has a
neighbour `finished` and no record is left.
"""

import os
import signal
import sys
from pathlib import Path

from sparklog import Consumer


def main() -> None:
    root, table, file, step, nth = sys.argv[1:]
    left = {step: int(nth)}

    def reached(here: str) -> None:
        left[here] = left.get(here, 0) - 1
        if left[here] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    # The owner of a group: it begins at once where a killed one stopped, and waits for no session.
    options = {
        "partition_assignment_strategy": "exclusive",
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "poll_interval_ms": 5,
    }
    with Consumer(root, "t", group_id="g", table=table, **options) as consumer, Path(file).open("a") as told:
        print("begins", file=told, flush=True)
        while True:
            finished = Path(file).with_name("finished").exists()
            found = consumer.poll(1_000 if finished else 20, max_records=150)
            if finished and not found:
                break
            reached("polled")
            for partition, records in found.items():
                for record in records:
                    print(partition.partition, record.offset, record.key.decode(), record.value.decode(), file=told)
            told.flush()
            reached("told")
            consumer.commit()
            reached("committed")
        assert consumer.waiting() == {}


if __name__ == "__main__":
    main()
