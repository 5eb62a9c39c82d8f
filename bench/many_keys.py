"""Look-ups of very many keys at once: a join, with and without the filter that Spark makes of its other side; and a long IN list."""

from __future__ import annotations

from bench.harness import Bench, Side

PARTITIONS = 64
CUSTOMERS = 100_000
FILTERS = "spark.sql.optimizer.dynamicPartitionPruning.enabled"
PLACES = {"routed": "CAST(NULL AS INT)", "by explicit partitions": f"CAST(id % {PARTITIONS} AS INT)"}
IN_LIST = 8_000


def run(bench: Bench) -> None:
    """The filter cannot leave out anything where nearly all keys are asked for: it must cost nothing then."""
    _tables(bench)
    for place in PLACES:
        for tasks in (PARTITIONS, 10 * PARTITIONS):
            for keys in (1_000, CUSTOMERS - 1):
                joined = (
                    f"SELECT /*+ BROADCAST(c) */ count(*) FROM {_view(place, tasks)} o JOIN customers c ON o.key = c.key WHERE c.n < {keys}"
                )
                sides = {"partlog": _side(bench, joined, True), "without runtime filters": _side(bench, joined, False)}
                bench.compare(f"join with {keys:,} keys, {place}, {tasks} tasks", "partlog", sides)
            listed = ", ".join(f"'customer-{7 * i % CUSTOMERS}'" for i in range(IN_LIST))
            among = {"partlog": "key", "not taken over": "concat(key, '')"}
            queries = {name: f"SELECT count(*) FROM {_view(place, tasks)} WHERE {key} IN ({listed})" for name, key in among.items()}
            bench.compare(
                f"IN of {IN_LIST:,} keys, {place}, {tasks} tasks",
                "partlog",
                {name: _side(bench, query, True) for name, query in queries.items()},
            )
    bench.spark.conf.unset(FILTERS)


def _side(bench: Bench, query: str, has_filters: bool) -> Side:
    def run() -> None:
        bench.spark.conf.set(FILTERS, has_filters)
        bench.spark.sql(query).collect()

    return run


def _view(place: str, tasks: int) -> str:
    return f"{place.split()[-1]}_{tasks}"


def _tables(bench: Bench) -> None:
    """Orders of customers, routed and not, as views of a number of tasks; and the customers. Made once per folder."""
    root = bench.path(f"many-keys-{bench.records}")
    for place, partition in PLACES.items():
        orders = bench.spark.range(0, bench.records, 1, 4).selectExpr(
            f"concat('customer-', id % {CUSTOMERS}) AS key", "concat(id, repeat('v', 16)) AS value", f"{partition} AS partition"
        )
        topic = place.split()[-1]
        # Small batches, so that a partition can be cut into ten splits.
        options: dict[str, str | int] = {"topic": topic, "partitions": PARTITIONS, "batch.size": 1024, "key.type": "string"}
        writer = orders.write.format("partlog").options(**options)
        writer.mode("ignore").save(root)
        for tasks in (PARTITIONS, 10 * PARTITIONS):
            rows = bench.spark.read.format("partlog").options(topic=topic, includeHeaders=False, minPartitions=tasks).load(root)
            rows.selectExpr("CAST(key AS STRING) AS key", "value").createOrReplaceTempView(_view(place, tasks))
    customers = bench.path("many-keys-customers")
    bench.spark.range(0, CUSTOMERS, 1, 1).selectExpr("concat('customer-', id) AS key", "id AS n").write.mode("ignore").parquet(customers)
    bench.spark.read.parquet(customers).createOrReplaceTempView("customers")
