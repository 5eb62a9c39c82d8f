"""Numbers of the work and the lag of a consumer, by the names of Kafka's metrics."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable

_WINDOW_S = 30.0
"""Rates, averages and maxima are of this time before, like in Kafka."""


class Samples:
    """Numbers, each with the time of its measure: their total, and the numbers within the window. It keeps one entry a second."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds."""
        self.total = 0.0
        self.count = 0
        self._clock = clock
        self._began = self._last = clock()
        self._seconds: deque[_Second] = deque()

    def add(self, value: float = 1.0) -> None:
        """Adds a number, which was measured now."""
        self.total += value
        self.count += 1
        self._last = self._clock()
        if not self._seconds or self._last - self._seconds[-1].began >= 1:
            self._seconds.append(_Second(self._last))
        self._seconds[-1].add(value)
        self._forget()

    @property
    def rate(self) -> float:
        """The sum of the window, by the second."""
        return sum(each.sum for each in self._forget()) / self._span

    @property
    def frequency(self) -> float:
        """How many numbers there were in the window, by the second."""
        return sum(each.count for each in self._forget()) / self._span

    @property
    def average(self) -> float:
        """The mean of the window; NaN if it is empty."""
        count = sum(each.count for each in self._forget())
        return sum(each.sum for each in self._seconds) / count if count else math.nan

    @property
    def maximum(self) -> float:
        """The greatest number of the window; NaN if it is empty."""
        return max((each.greatest for each in self._forget()), default=math.nan)

    @property
    def seconds_ago(self) -> float:
        """How long ago the last one was measured; -1 if none was."""
        return self._clock() - self._last if self.count else -1.0

    @property
    def _span(self) -> float:
        return min(_WINDOW_S, max(self._clock() - self._began, 1.0))

    def _forget(self) -> deque[_Second]:
        """The seconds of the window; the others are forgotten."""
        while self._seconds and self._clock() - self._seconds[0].began > _WINDOW_S:
            self._seconds.popleft()
        return self._seconds


class _Second:
    """The numbers of one second."""

    def __init__(self, began: float) -> None:
        self.began = began
        self.sum, self.count, self.greatest = 0.0, 0, -math.inf

    def add(self, value: float) -> None:
        self.sum += value
        self.count += 1
        self.greatest = max(self.greatest, value)


class ConsumerMetrics:
    """The numbers of one consumer."""

    def __init__(self) -> None:
        self.records, self.bytes, self.commits, self.rebalances = Samples(), Samples(), Samples(), Samples()
        """Records and bytes of each poll that returned some; milliseconds of each commit; partitions that came or went, each time."""
        self.failed_commits = 0

    def told(self, lags: Iterable[int], assigned: int) -> dict[str, dict[str, float]]:
        """The numbers by Kafka's groups and names, as kafka-python's `metrics()` gives them; `lags` are the lags of the partitions."""
        behind = list(lags)
        return {
            "consumer-fetch-manager-metrics": {
                "records-lag-max": max(behind, default=math.nan),
                "records-lag-avg": sum(behind) / len(behind) if behind else math.nan,
                "records-consumed-total": self.records.total,
                "records-consumed-rate": self.records.rate,
                "records-per-request-avg": self.records.average,
                "bytes-consumed-total": self.bytes.total,
                "bytes-consumed-rate": self.bytes.rate,
                "fetch-total": self.records.count,
                "fetch-rate": self.records.frequency,
            },
            "consumer-coordinator-metrics": {
                "assigned-partitions": assigned,
                "commit-latency-avg": self.commits.average,
                "commit-latency-max": self.commits.maximum,
                "commit-rate": self.commits.frequency,
                "commit-total": self.commits.count,
                "failed-commit-total": self.failed_commits,
                "rebalance-total": self.rebalances.count,
                "rebalance-rate-per-hour": self.rebalances.frequency * 3600,
                "last-rebalance-seconds-ago": self.rebalances.seconds_ago,
            },
        }
