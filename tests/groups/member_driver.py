"""A consumer that does what it is asked, in this process or, as a program, in one of its own: see `member_world.py`.

As a program it reads lines of its standard input, and answers each in a line.
"""

from __future__ import annotations

import datetime
import json
import sys
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
        on = (
            {f"on_{event}": told(event) for event in ("assign", "revoke", "lost")}
            if given.get("partition_assignment_strategy") != "exclusive"
            else {}
        )
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

    def subscribe(self, **given: Any) -> None:
        self.consumer.subscribe(**given)

    def unsubscribe(self) -> None:
        self.consumer.unsubscribe()

    def set_clock(self, hours: float) -> None:
        """The clock of the day, as this process sees it, is wrong by so much."""
        from sparklog.groups import rows

        rows.now = lambda: datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=hours)

    def close(self) -> None:
        self.consumer.close()

    def do(self, asked: dict[str, Any]) -> dict[str, Any]:
        try:
            return getattr(self, asked.pop("do"))(**asked) or {}
        except SparklogError as error:
            return {"error": error.id, "text": str(error)}


def main() -> None:
    driver = Driver()
    print("{}", flush=True)
    for line in sys.stdin:
        print(json.dumps(driver.do(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
