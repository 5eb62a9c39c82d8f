"""Random queries, other ones in each run, give the same answers on a log and on the same records in Parquet."""

import random
import time

import pytest
from pyspark.sql import DataFrame, SparkSession

TOPICS = {"orders": 3, "billing": 1, "user-events": 5}
COLUMNS = "topic, partition, `offset`, timestamp, key, value, timestampType, size(headers) AS headers"


@pytest.fixture(scope="module")
def both(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, DataFrame]:
    """Three topics of several commits, some with data files of their own and many batches, some times out of order; and a Parquet copy."""
    root = tmp_path_factory.mktemp("differential")
    for number, (topic, partitions) in enumerate(TOPICS.items()):
        for commit in range(4):
            rows = spark.range(0, [40, 3_000, 1, 500][commit], 1, [1, 3, 1, 2][commit]).selectExpr(
                "IF(id % 9 = 0, NULL, concat('k', id % 40)) AS key",
                "IF(id % 17 = 0, NULL, concat(id, repeat('x', 300))) AS value",
                f"timestamp_millis(1700000000000 + {commit} * 100000 + id * 10 + IF(id % 50 = 0, -5000, 0)) AS timestamp",
                f"IF(id % 31 = 0, CAST({partitions - 1} AS INT), NULL) AS partition",
            )
            options = {"topic": topic, "partitions": partitions, "batch.size": 5_000, "segment.bytes": 200_000}
            writer = rows.write.format("partlog").options(**options)
            writer.option("compression.type", ["none", "zstd", "lz4"][number]).mode("append").save(str(root / "log"))
    log = spark.read.format("partlog").load(str(root / "log"))
    log.write.parquet(str(root / "copy"))
    return {"log": log, "copy": spark.read.parquet(str(root / "copy"))}


class Questions:
    """Generates queries. The same seed generates the same queries."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def offset(self) -> int:
        return self.random.choice([-1, 0, 1, 13, 14, 39, 40, 41, 500, 1_000, 3_541, 2**31, 2**63 - 1, self.random.randrange(4_000)])

    def time(self) -> str:
        ms = 1_700_000_000_000 + self.random.choice([-1, 0, 1, 100_000, 130_000, self.random.randrange(400_000)])
        micros = self.random.choice([0, 0, 1, 999])
        return f"timestamp_micros({ms * 1000 + micros})"

    def partition(self) -> int:
        return self.random.choice([-1, 0, 1, 2, 3, 4, 5])

    def topic(self) -> str:
        return repr(self.random.choice([*TOPICS, "nope"]))

    def leaf(self) -> str:
        name, literal = self.random.choice(
            [("partition", self.partition), ("`offset`", self.offset), ("timestamp", self.time), ("topic", self.topic)]
        )
        kind = self.random.choice(["compare", "compare", "in", "between", "null", "flipped", "not in", "<=>"])
        if kind == "in":
            return f"{name} IN ({', '.join(str(literal()) for _ in range(self.random.randrange(1, 4)))})"
        if kind == "not in":
            return f"{name} NOT IN ({', '.join(str(literal()) for _ in range(self.random.randrange(1, 4)))})"
        if kind == "between":
            return f"{name} BETWEEN {literal()} AND {literal()}"
        if kind == "null":
            return f"{name} IS {self.random.choice(['', 'NOT '])}NULL"
        if kind == "flipped":
            return f"{literal()} {self.random.choice(['<', '<=', '=', '>', '>=', '!='])} {name}"
        if kind == "<=>":
            return f"{name} <=> {self.random.choice([str(literal()), 'NULL'])}"
        return f"{name} {self.random.choice(['<', '<=', '=', '>', '>=', '!='])} {literal()}"

    def other(self) -> str:
        """A predicate that the source does not evaluate."""
        return self.random.choice(
            [
                "key = CAST('k7' AS BINARY)",
                "key IS NULL",
                "value IS NOT NULL",
                "`offset` % 3 = 1",
                "length(value) > 302",
                "partition + 1 > 1",
                "size(headers) = 0",
            ]
        )

    def predicate(self, depth: int = 0) -> str:
        kind = self.random.randrange(10)
        if depth > 2 or kind < 4:
            return self.leaf()
        if kind < 5:
            return self.other()
        if kind == 5:
            return f"NOT ({self.predicate(depth + 1)})"
        return f"({self.predicate(depth + 1)}) {self.random.choice(['AND', 'AND', 'OR'])} ({self.predicate(depth + 1)})"

    def query(self) -> str:
        where = f"WHERE {self.predicate()}" if self.random.random() < 0.9 else ""
        kind = self.random.randrange(9)
        if kind == 0:
            return f"SELECT count(*) FROM t {where}"
        if kind == 1:
            return f"SELECT min(`offset`), max(`offset`), min(partition), max(partition), count(*), count(value), count(1) FROM t {where}"
        if kind == 2:
            sums = "count(*), max(`offset`), min(timestamp), sum(length(value))"
            return f"SELECT topic, partition, {sums} FROM t {where} GROUP BY topic, partition"
        if kind == 3:
            return f"SELECT partition, count(*), min(`offset`) FROM t {where} GROUP BY partition"
        if kind == 4:
            columns = ", ".join(
                self.random.sample(
                    ["topic", "partition", "`offset`", "timestamp", "key", "value", "timestampType"], self.random.randrange(1, 5)
                )
            )
            return f"SELECT {columns} FROM t {where}"
        if kind == 5:
            return f"SELECT count(*) FROM (SELECT * FROM t {where} LIMIT {self.random.choice([0, 1, 10, 100_000])})"
        if kind == 6:
            last = f"ORDER BY topic, partition, `offset` DESC LIMIT 7 OFFSET {self.random.randrange(3)}"
            return f"SELECT topic, partition, `offset` FROM t {where} {last}"
        if kind == 7:
            over = "PARTITION BY topic, partition ORDER BY `offset`"
            return f"SELECT topic, partition, `offset`, row_number() OVER ({over}) AS n FROM t {where}"
        return f"SELECT {COLUMNS} FROM t {where}"


def answer(spark: SparkSession, rows: DataFrame, query: str) -> list[str]:
    rows.createOrReplaceTempView("t")
    return sorted(map(repr, spark.sql(query).collect()))


@pytest.mark.parametrize("queries", [60, pytest.param(1_000, marks=pytest.mark.soak)])
def test_same_answers(spark: SparkSession, both: dict[str, DataFrame], queries: int) -> None:
    seed = time.time_ns()
    print(f"seed {seed}")
    questions = Questions(seed)
    assert both["log"].count() == both["copy"].count() == 3 * 3_541
    found = 0
    for number in range(queries):
        query = questions.query()
        there, here = (answer(spark, both[side], query) for side in ("copy", "log"))
        assert here == there, f"query {number}: {query}"
        found += len(here) > 1
    print(f"{found} of {queries} answers have several rows")
    assert found > queries // 10, "otherwise this would prove nothing"
