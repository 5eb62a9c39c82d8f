"""A process with a consumer, which does what the lines on its standard input say, and answers each in a line: see `member_world.py`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from sparklog import Consumer, SparklogError, TopicPartition


class Driver:
    def __init__(self) -> None:
        self.consumer: Any = None
        self.events: list[list[Any]] = []

    def open(self, **given: Any) -> None:
        def told(event: str) -> Any:
            return lambda _, partitions: self.events.append([event, [list(each) for each in partitions]])

        names = given.pop("names", [])
        on = {f"on_{event}": told(event) for event in ("assign", "revoke", "lost")} if given.get("assignor") else {}
        self.consumer = Consumer(given.pop("root"), *names, **on, **given)

    def poll(self, ms: float = 0, times: int = 1, commits: bool = False) -> dict[str, Any]:
        """Polls that often; the offsets that it got by partition, the events since the last answer, and what it reads now."""
        got: dict[str, list[int]] = {}
        for _ in range(times):
            for (topic, number), records in self.consumer.poll(ms).items():
                got.setdefault(f"{topic}-{number}", []).extend(record.offset for record in records)
            if commits:
                self.consumer.commit()
        events, self.events = self.events, []
        return {"got": got, "events": events, "has": sorted(map(list, self.consumer.assignment()))}

    def commit(self, offsets: list[list[Any]] | None = None) -> None:
        self.consumer.commit({TopicPartition(topic, number): at for topic, number, at in offsets} if offsets else None)

    def run(self, seconds: float, file: str, limit: int = 500) -> dict[str, Any]:
        """Reads for so long, with a line in a file for each record before it counts as processed."""
        until, lines = time.monotonic() + seconds, 0
        with Path(file).open("a") as out:
            while time.monotonic() < until:
                for (topic, number), records in self.consumer.poll(50, max_records=limit).items():
                    out.writelines(f"{topic} {number} {record.offset} {time.monotonic()}\n" for record in records)
                    lines += len(records)
                out.flush()
        return {"lines": lines}

    def close(self) -> None:
        self.consumer.close()


def main() -> None:
    driver = Driver()
    print("{}", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = getattr(driver, asked.pop("do"))(**asked) or {}
        except SparklogError as error:
            answer = {"error": error.id, "text": str(error)}
        print(json.dumps(answer), flush=True)


main()
