"""GROUP BY and joins by key, without a shuffle and with one."""

from __future__ import annotations

from pathlib import Path

from bench.harness import Bench, Side, metric

ORDERS_OF_A_CUSTOMER = 10
BY_KEY = "spark.sql.sources.v2.bucketing.enabled"
CORES = "spark.sql.files.minPartitionNum"
SIDES = {"partlog": True, "by a shuffle": False}
_JOIN = "SELECT /*+ {} */ sum(length(customers.value)) FROM orders JOIN customers ON orders.key = customers.key"
QUERIES = {
    "GROUP BY key": "SELECT max(n), count(*) FROM (SELECT key, count(*) AS n FROM orders GROUP BY key)",
    "merge join": _JOIN.format("MERGE(orders)"),
    "hash join": _JOIN.format("SHUFFLE_HASH(customers)"),
}


def run(bench: Bench, partitions: int, cores: list[str]) -> None:
    """With fewer cores than partitions a scan is grouped by key. With more it is not, and Spark shuffles either way.

    More cores are a number that the session is told, not threads.
    """
    _topics(bench, partitions)
    for number in cores:
        if number == "more":
            bench.spark.conf.set(CORES, 2 * partitions)
        for label, query in QUERIES.items():
            case = f"{label}, {partitions} partitions, {number} cores"
            shuffled = {}
            for name, is_on in SIDES.items():
                bench.spark.conf.set(BY_KEY, is_on)
                shuffled[name] = metric(bench.spark.sql(query), "Exchange", "shuffleBytesWritten")
            bench.note(f"{case}, bytes shuffled", **shuffled)
            bench.compare(case, "partlog", {name: _side(bench, query, is_on) for name, is_on in SIDES.items()})
    bench.spark.conf.unset(CORES)
    bench.spark.conf.unset(BY_KEY)


def _side(bench: Bench, query: str, is_on: bool) -> Side:
    def run() -> None:
        bench.spark.conf.set(BY_KEY, is_on)
        bench.spark.sql(query).collect()

    return run


def _topics(bench: Bench, partitions: int) -> None:
    """Orders, and a tenth as many customers, one record of each. Made once per folder."""
    root = Path(bench.path(f"by-key-{partitions}"))
    customers = bench.records // ORDERS_OF_A_CUSTOMER
    rows = {
        "orders": (bench.records, f"pmod(xxhash64(id), {customers})", "left(repeat(sha2(CAST(id AS STRING), 256), 2), 100)"),
        "customers": (customers, "id", "concat('city-', id % 1000)"),
    }
    for topic, (records, number, value) in rows.items():
        made = bench.spark.range(0, records, 1, 4).selectExpr(f"concat('customer-', {number}) AS key", f"{value} AS value")
        writer = made.write.format("partlog").options(topic=topic, partitions=partitions)
        writer.mode("ignore").save(str(root))
        log = bench.spark.read.format("partlog").options(topic=topic, includeHeaders=False).load(str(root))
        log.createOrReplaceTempView(topic)
