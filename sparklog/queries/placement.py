"""Shares of partitions in new load, from recent writes and reads, and their commit while a topic is written.

A topic with `placement` = `on_first_write` gives a key its partition when the first record of it is written. FORMAT.md annex A.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.groups.table.offset_table import OffsetTable
from sparklog.log.topic import Topic
from sparklog.ondisk.routing import UNBOUND, Routing
from sparklog.ondisk.state import State
from sparklog.spark.literals import literal

if TYPE_CHECKING:
    import os
    from types import TracebackType

    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)
SHARE_MAX = 1_000_000
_HORIZON_S = 60
_LEAST = 0.02
_TEXT = 32_000
"""The characters that the shares of all partitions may take in the configuration of the topic."""
_SAMPLED = 1_000
"""This many of the newest records of a partition show how much of its load belongs to new slots."""


class Load(NamedTuple):
    """The load of an open partition: records a second that were written, records that are unread, and records a second that can be read."""

    rate: float
    lag: float
    speed: float


def shares_of(loads: Sequence[Load], new: float, horizon_s: float) -> list[int]:
    """The shares of partitions in new load that level load per capacity in the end: 1 to 1,000,000, or less for more than 4,000 partitions.

    * new: the records a second to share: records of slots that were bound in the last interval.
    * horizon_s: the seconds in which a backlog is to be worked off.

    A partition gets its part of the new load. It also gets the load that it lacks to its part of all writes, less its backlog. It gets at
    least one fiftieth of an equal part, so no partition starves.
    """
    most = min(SHARE_MAX, 10 ** min(7, _TEXT // len(loads) - 1) - 1)
    capacity, written = sum(each.speed for each in loads), sum(each.rate for each in loads)
    needs = [(new + written) * each.speed / capacity - each.rate - each.lag / horizon_s for each in loads]
    least = _LEAST * max(new, 1.0) / len(loads)
    greatest = max(least, *needs)
    return [max(1, round(most * max(least, need) / greatest)) for need in needs]


class _TopicLook(NamedTuple):
    at: float
    state: State
    routing: Routing
    positions: Mapping[str, Mapping[int, int]]
    """By group and partition."""

    def lag(self, group: str, partition: int) -> int:
        """The records that a group has not read. Without a position, none are known to wait."""
        return self.state.unread(partition, self.positions[group].get(partition, self.state.ends[partition]))


class Placement:
    """Finds the shares of a topic's partitions in new keys from time to time, and commits them, so that writers place new keys by them.

    One program for a topic is enough, such as the driver of a stream that writes it. Where it ends, its last shares end soon after, and the
    weights of partitions decide. In a `with` statement, its end is `stop()`.

    Example:
        >>> spark = sparklog.session()
        >>> rows = spark.createDataFrame([(f"device-{n}", "on") for n in range(10)], "key STRING, value STRING")
        >>> options = {"topic": "devices", "placement": "on_first_write", "partitions": 2}
        >>> rows.write.format("partlog").options(**options).mode("append").save("events")
        >>> with sparklog.Placement("events", "devices", refresh_s=10) as placement:
        ...     print(placement.look())
        {0: 1, 1: 1}
    """

    __module__ = "sparklog"

    def __init__(
        self,
        root: str | os.PathLike[str],
        topic: str,
        *,
        group: str | Sequence[str] = (),
        table: str | os.PathLike[str] | None = None,
        refresh_s: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Opens the topic, and the offset table if there are groups.

        The shares level load and lag. In a simulation with eight partitions at 80 % load, records wait for 0.1 s on average, and for 1.5 s
        where keys are hashed.

        Args:
            root: The root that holds the topic.
            topic: The name of the topic, whose `placement` is `on_first_write`.
            group: The group whose lag counts, or several groups; of several, the group that needs longest counts in each partition.
            table: The path of the offset table that has the positions of the groups.
            refresh_s: Seconds between two commits of `start`, at least 1; default 10.
            clock: The function that gives the time in seconds, for tests.

        Raises:
            CallError: TOPIC_NOT_FOUND; OPTION_VALUE if the topic has another placement, if `refresh_s` is less than 1, or if groups are
                given without a table.

        Example:
            >>> try:
            ...     sparklog.Placement("events", "orders")
            ... except sparklog.CallError as error:
            ...     print(error.condition)
            PARTLOG_OPTION_VALUE
        """
        if not arguments.duration("refresh_s", refresh_s) >= 1:
            raise SparklogError("OPTION_VALUE", option="refresh_s", value=refresh_s, reason="it must be at least 1 second")
        self.groups = [group] if isinstance(group, str) else list(group)
        if self.groups and table is None:
            reason = "give the offset table that has the positions of the groups"
            raise SparklogError("OPTION_VALUE", option="table", value=None, reason=reason)
        self._logs = arguments.topic_logs(root)
        self.topic = Topic(self._logs, topic)
        self.refresh_s = refresh_s
        self._files = self._logs.log(topic)
        self._table = None if table is None else OffsetTable(self._logs, table)
        self._clock = clock
        self._last: _TopicLook | None = None
        self._speeds: dict[tuple[str, int], float] = {}
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        self._newest()

    def _newest(self) -> tuple[State, Routing]:
        """The newest state, and its routing.

        CallError OPTION_VALUE if the topic places keys otherwise, as a topic of that name may later.
        """
        state = self._files.newest()
        if not state.binds or not state.routing:
            topic = state.topic
            reason = f"topic {topic} has the placement modulo: name a topic with placement on_first_write"
            raise SparklogError("OPTION_VALUE", option="topic", value=topic, reason=reason)
        return state, state.routing

    def look(self) -> dict[int, int]:
        """Computes the share of each open partition now.

        The first look, and one after a re-route, has nothing to compare with, and gives the weights of partitions.

        Returns:
            The shares, by partition.

        Raises:
            CallError: OPTION_VALUE if another topic with the name has another placement.

        Example:
            >>> spark = sparklog.session()
            >>> rows = spark.createDataFrame([("device-1", "on")], "key STRING, value STRING")
            >>> options = {"topic": "devices", "placement": "on_first_write", "partitions": 2}
            >>> rows.write.format("partlog").options(**options).mode("append").save("events")
            >>> sparklog.Placement("events", "devices").look()
            {0: 1, 1: 1}
        """
        state, routing = self._newest()
        now = _TopicLook(self._clock(), state, routing, {group: self._positions(group, state) for group in self.groups})
        last, self._last = self._last, now
        of = [number for number, weight in enumerate(now.routing.weights) if weight]
        if last is None or (last.state.topic_id, last.routing.epoch) != (state.topic_id, now.routing.epoch) or now.at <= last.at:
            self._speeds = {}
            return {number: now.routing.weights[number] for number in of}
        seconds = now.at - last.at
        rates = {number: (state.ends[number] - last.state.ends[number]) / seconds for number in of}
        loads = self._loads(last, now, rates, seconds)
        return dict(zip(of, shares_of(loads, self._new(last, now, rates), max(_HORIZON_S, self.refresh_s)), strict=True))

    def _positions(self, group: str, state: State) -> dict[int, int]:
        assert self._table
        try:
            found = self._table.positions(group, state.topic)
        except SparklogError as error:
            _log.warning("the lag of group %s counts as 0 for new keys of topic %s: %s", group, state.topic, error)
            if error.id == "OFFSETS_TABLE_REPLACED":
                self._table = OffsetTable(self._logs, self._table.path)  # the next look asks the table that is there now
            return {}
        return {each.partition: each.offset for each in found if each.topic_id == state.topic_id}

    def _loads(self, last: _TopicLook, now: _TopicLook, rates: Mapping[int, float], seconds: float) -> list[Load]:
        """The speed of a group is measured while it has lag. Without lag, it is the speed from before, or the mean of the others."""
        for group in self.groups:
            for number in rates:
                read = now.positions[group].get(number, 0) - last.positions[group].get(number, 0)
                if last.lag(group, number) and now.lag(group, number) and number in last.positions[group] and read > 0:
                    before = self._speeds.get((group, number), read / seconds)
                    self._speeds[group, number] = (before + read / seconds) / 2
        loads = {number: Load(rate, 0.0, 0.0) for number, rate in rates.items()}
        for group in self.groups:
            known = [self._speeds[group, number] for number in rates if (group, number) in self._speeds]
            mean = sum(known) / len(known) if known else 1.0
            for number, rate in rates.items():
                load = Load(rate, now.lag(group, number), self._speeds.get((group, number), mean))
                held = loads[number]
                if not held.speed or load.lag / load.speed > held.lag / held.speed:
                    loads[number] = load
        return [each if each.speed else each._replace(speed=1.0) for each in loads.values()]

    def _new(self, last: _TopicLook, now: _TopicLook, rates: Mapping[int, float]) -> float:
        """The records a second of slots that were bound since the last look, by a sample of the newest records."""
        bound = {slot for slot, home in enumerate(last.routing.table) if home == UNBOUND and now.routing.table[slot] != UNBOUND}
        if not bound:
            return 0.0
        hot = self.topic.hot_slots(len(bound) + _SAMPLED, _SAMPLED)
        sampled = {number: count for number, count in hot.sampled.items() if count and number in rates}
        if not sampled:
            return 0.0
        new = dict.fromkeys(sampled, 0)
        for each in hot:
            if each.slot in bound and each.partition in new:
                new[each.partition] += each.records
        found = sum(rates[number] * new[number] / count for number, count in sampled.items())
        of = sum(rates[number] for number in sampled)
        return found * sum(rates.values()) / of if of else 0.0

    def commit(self, spark: SparkSession) -> dict[int, int]:
        """Computes the shares, and sets them for three intervals by `CALL partlog.set_config`, whose errors it raises.

        Args:
            spark: The session that makes the call.

        Returns:
            The shares, by partition.

        Raises:
            CallError: OPTION_VALUE if the topic is re-routed in the meantime: these shares would have no effect.

        Example:
            >>> spark = sparklog.session()
            >>> rows = spark.createDataFrame([("device-1", "on")], "key STRING, value STRING")
            >>> options = {"topic": "devices", "placement": "on_first_write", "partitions": 2}
            >>> rows.write.format("partlog").options(**options).mode("append").save("events")
            >>> sparklog.Placement("events", "devices").commit(spark)
            {0: 1, 1: 1}
        """
        shares = self.look()
        last = self._last
        assert last
        until = round(1000 * (time.time() + max(1.0, 3 * self.refresh_s)))
        listed = ",".join(str(shares.get(number, 0)) for number in range(last.state.partitions))
        config = {"placement.shares": f"{last.routing.epoch}:{until}:{listed}"}
        given = ", ".join(map(literal, (self.topic.root, self.topic.name, config)))
        spark.sql(f"CALL partlog.set_config({given})").collect()
        return shares

    def start(self, spark: SparkSession) -> Placement:
        """Commits at once and then every `refresh_s` seconds in a thread, until `stop`. An error is logged, and the next commit is tried.

        Args:
            spark: The session that makes the calls.

        Returns:
            The object itself, for a `with` statement.

        Raises:
            RuntimeError: If it was started already.

        Example:
            >>> spark = sparklog.session()
            >>> rows = spark.createDataFrame([("device-1", "on")], "key STRING, value STRING")
            >>> options = {"topic": "devices", "placement": "on_first_write", "partitions": 2}
            >>> rows.write.format("partlog").options(**options).mode("append").save("events")
            >>> placement = sparklog.Placement("events", "devices").start(spark)
            >>> placement.stop()
            >>> sparklog.Log("events")["devices"].describe()["routing"]["shares"]
            [1, 1]
        """
        if self._thread:
            raise RuntimeError("it has been started already")
        self._thread = threading.Thread(target=self._run, args=(spark,), name=f"placement of {self.topic.name}", daemon=True)
        self._thread.start()
        return self

    def _run(self, spark: SparkSession) -> None:
        while True:
            try:
                self.commit(spark)
            except Exception as error:  # a write never waits or fails for the sake of balance
                _log.warning("new keys of topic %s are placed as before: %s", self.topic.name, error)
            if self._ended.wait(self.refresh_s):
                return

    def stop(self) -> None:
        """Ends the thread, after the commit that it may be making.

        Example:
            >>> spark = sparklog.session()
            >>> rows = spark.createDataFrame([("device-1", "on")], "key STRING, value STRING")
            >>> options = {"topic": "devices", "placement": "on_first_write", "partitions": 2}
            >>> rows.write.format("partlog").options(**options).mode("append").save("events")
            >>> sparklog.Placement("events", "devices").stop()
        """
        self._ended.set()
        if self._thread:
            self._thread.join()

    def __enter__(self) -> Placement:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()
