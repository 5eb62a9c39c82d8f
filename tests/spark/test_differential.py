"""Random queries give the same answers on a log and on the same records in Parquet."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from handmade import draw_seed
from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

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
        return self.condition(name, literal, "<", "<=", "=", ">", ">=", "!=")

    def condition(self, column: str, literal: Callable[[], object], *operators: str) -> str:
        """A condition on a column, in one of the forms that SQL has for it."""
        kind = self.random.choice(["compare", "compare", "IN", "NOT IN", "BETWEEN", "null", "flipped", "<=>"])
        if kind in ("IN", "NOT IN"):
            return f"{column} {kind} ({', '.join(str(literal()) for _ in range(self.random.randrange(1, 4)))})"
        if kind == "BETWEEN":
            return f"{column} BETWEEN {literal()} AND {literal()}"
        if kind == "null":
            return f"{column} IS {self.random.choice(['', 'NOT '])}NULL"
        if kind == "<=>":
            return f"{column} <=> {self.random.choice([str(literal()), 'NULL'])}"
        operator = self.random.choice(operators)
        return f"{literal()} {operator} {column}" if kind == "flipped" else f"{column} {operator} {literal()}"

    def other(self) -> str:
        """A predicate of another form, or on another column."""
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


@pytest.mark.parametrize("queries", [15, pytest.param(1_000, marks=pytest.mark.soak)])
def test_same_answers(spark: SparkSession, both: dict[str, DataFrame], queries: int) -> None:
    questions = Questions(draw_seed())
    assert both["log"].count() == both["copy"].count() == 3 * 3_541
    found = 0
    for number in range(queries):
        query = questions.query()
        there, here = (answer(spark, both[side], query) for side in ("copy", "log"))
        assert here == there, f"query {number}: {query}"
        found += len(here) > 1
    print(f"{found} of {queries} answers have several rows")
    assert found > queries // 10, "otherwise this would prove nothing"


KEYS = "array(CAST('' AS BINARY), X'FF', X'C328', X'EFBFBD', X'EFBFBD28', X'6B3100', CAST(concat('k', id % 40) AS BINARY))"
"""Keys that are no UTF-8 among them, and the keys that a reader would take these for if it replaced what is not."""

KEY = f"element_at({KEYS}, CAST(1 + id % 7 AS INT)) AS key"


@pytest.fixture(scope="module")
def keyed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, DataFrame]:
    """Two topics with routed segments, others, and such of before partitions were added, many of them merged; and a Parquet copy."""
    root = tmp_path_factory.mktemp("keyed")

    def write(topic: str, partitions: int, *kinds: str) -> None:
        for kind in kinds:
            key = "IF(id % 3 = 0, NULL, key)" if kind == "without keys" else "key"
            rows = spark.range(0, 150, 1, 2).selectExpr("id", KEY).selectExpr(f"{key} AS key", "CAST(id AS STRING) AS value")
            placed = rows.selectExpr("*", "0 AS partition") if kind == "chosen" else rows
            options = {"topic": topic, "partitions": partitions, "partitioner": topic}
            placed.write.format("partlog").options(**options).mode("append").save(str(root / "log"))

    for topic in ("murmur3", "murmur2"):
        write(topic, 3, "routed", "without keys", "routed")
        spark.sql(f"CALL partlog.add_partitions('{root}/log', '{topic}', 7)")
        write(topic, 7, "routed", "chosen", "routed")
        if topic == "murmur2":
            spark.sql(f"CALL partlog.merge('{root}/log', '{topic}')")
        write(topic, 7, "without keys", "routed")
    log = spark.read.format("partlog").load(str(root / "log"))
    log.write.parquet(str(root / "copy"))
    return {"log": log, "copy": spark.read.parquet(str(root / "copy"))}


class KeyQuestions(Questions):
    """Queries about keys; also joins and subqueries, whose keys Spark knows only when it runs them."""

    def key(self) -> str:
        literal = self.random.choice(["X''", "X'FF'", "X'C328'", "X'EFBFBD'", "X'EFBFBD28'", "X'6B3100'", "X'6B31'", "X'6B3337'", "X'6E'"])
        return "NULL" if self.random.random() < 0.1 else literal

    def leaf(self) -> str:
        if self.random.random() < 0.2:
            return super().leaf()
        cast = (lambda text: f"CAST({text} AS STRING)") if self.random.random() < 0.5 else (lambda text: text)
        kind = self.random.randrange(10)
        if kind == 0:
            return "CAST(key AS STRING) LIKE 'k1%'"
        if kind == 1:
            return f"{cast('key')} IN ({', '.join(cast(hexadecimal(number)) for number in range(self.random.randrange(12, 30)))})"
        return self.condition(cast("key"), lambda: cast(self.key()), "=", "=", "=", "!=", "<")

    def query(self) -> str:
        kind = self.random.randrange(6)
        # AQE may make a broadcast of the small side, whose keys then become a filter of the large side.
        few = f"SELECT DISTINCT key AS k FROM t WHERE {self.leaf()} AND value < '2'"
        if kind == 0:
            return f"SELECT /*+ BROADCAST(few) */ topic, partition, `offset` FROM t JOIN ({few}) few ON key = k WHERE {self.predicate()}"
        if kind == 1:
            return f"SELECT topic, partition, `offset` FROM t WHERE key IN ({few}) AND {self.predicate()}"
        if kind == 2:
            return f"SELECT key, value, `offset` FROM t WHERE key = (SELECT max(k) FROM ({few})) OR {self.predicate()}"
        return f"SELECT topic, partition, `offset`, key FROM t WHERE {self.predicate()}" if kind < 5 else super().query()


def hexadecimal(number: int) -> str:
    return f"X'{f'k{number}'.encode().hex()}'"


@pytest.mark.parametrize("queries", [12, pytest.param(1_000, marks=pytest.mark.soak)])
def test_same_answers_about_keys(spark: SparkSession, keyed: dict[str, DataFrame], queries: int) -> None:
    questions = KeyQuestions(draw_seed())
    found = 0
    for number in range(queries):
        query = questions.query()
        there, here = (answer(spark, keyed[side], query) for side in ("copy", "log"))
        assert here == there, f"query {number}: {query}"
        found += len(here) > 1
    assert found > queries / 10, "the answers are empty, and prove nothing"


def test_a_join_reads_only_the_partitions_of_its_keys(spark: SparkSession, keyed: dict[str, DataFrame], tmp_path: Path) -> None:
    rows = spark.range(2_000).selectExpr("CAST(concat('k', id) AS BINARY) AS key", "CAST(id AS STRING) AS value")
    rows.write.format("partlog").options(topic="t", partitions=8).mode("append").save(str(tmp_path / "log"))
    spark.read.format("partlog").load(str(tmp_path / "log")).createOrReplaceTempView("t")
    few = spark.createDataFrame([("k7", 1), ("k8", 2)], "name STRING, n INT").selectExpr("CAST(name AS BINARY) AS k", "n")
    few.write.parquet(str(tmp_path / "few"))
    spark.read.parquet(str(tmp_path / "few")).createOrReplaceTempView("few")
    joined = spark.sql("SELECT CAST(CAST(value AS STRING) AS INT) AS value FROM t JOIN few ON key = k WHERE n = 1")
    assert [row["value"] for row in joined.collect()] == [7]
    assert "dynamicpruning" in joined._jdf.queryExecution().executedPlan().toString()
    assert bytes_read(joined) * 4 < bytes_read(spark.sql("SELECT CAST(CAST(value AS STRING) AS INT) AS value FROM t"))


def bytes_read(rows: DataFrame) -> int:
    """By the metric of the scan of a topic."""
    plan = rows._jdf.queryExecution().executedPlan()
    rows._jdf.queryExecution().executedPlan().executeCollect()
    nodes = [plan]
    while nodes:
        node = nodes.pop()
        if node.nodeName().startswith("AdaptiveSparkPlan"):
            nodes.append(node.executedPlan())
        elif "QueryStage" in node.nodeName():
            nodes.append(node.plan())
        elif node.nodeName().startswith("BatchScan") and node.metrics().contains("bytesRead"):
            return int(node.metrics().apply("bytesRead").value())
        children = node.children()
        nodes.extend(children.apply(i) for i in range(children.size()))
    raise AssertionError("no scan of a topic")


class AggregateQuestions(Questions):
    """Queries whose aggregates Spark may have answered from the state of a topic, and others that look like these to a source."""

    def aggregate(self, known: bool) -> str:
        """One that a state knows, or looks so to a source; or any."""
        distinct = self.random.choice(["", "DISTINCT "])
        literal = self.random.choice(["1", "1", "'x'", "one", "1 + 1", "true", "DATE'2024-01-01'", "NULL", "CAST(NULL AS INT)"])
        place = self.random.choice(["topic", "partition", "`offset`"])
        column = self.random.choice([place, "timestamp", "key", "value", "partition + 1", "one"])
        if known:
            kinds = [
                "count(*)",
                f"count({distinct}{literal})",
                f"count({distinct}{literal})",
                f"count({place})",
                f"min({place})",
                f"max({place})",
            ]
            return self.random.choice(kinds)
        function = self.random.choice(
            [
                f"count({distinct}{literal})",
                f"count({distinct}{column})",
                f"count({distinct}partition, {literal})",
                f"min({column})",
                f"max({literal})",
                f"sum({distinct}{self.random.choice(['1', 'partition', '`offset`', 'one', 'NULL'])})",
                f"avg({distinct}{self.random.choice(['1', 'partition', 'one'])})",
                f"count_if({self.leaf()})",
                "bool_and(true)",
                "count(*)",
            ]
        )
        return f"{function} FILTER (WHERE {self.leaf()})" if self.random.random() < 0.2 else function

    def source(self) -> str:
        rows = f"SELECT *, 1 AS one FROM t {f'WHERE {self.predicate()}' if self.random.random() < 0.5 else ''}"
        # The rows that LIMIT takes are any, so they are told by their order.
        kind = self.random.randrange(12)
        if kind == 0:
            last = self.random.choice([0, 1, 10, 100_000])
            return f"{rows} ORDER BY topic, partition, `offset` LIMIT {last} OFFSET {self.random.randrange(3)}"
        if kind == 1:
            return f"{rows} UNION ALL {rows}"
        if kind == 2:
            return f"SELECT * FROM ({rows}) TABLESAMPLE (100 PERCENT)"
        if kind == 3:
            return f"SELECT DISTINCT topic, partition, `offset`, timestamp, key, value, one FROM ({rows})"
        if kind == 4:
            return f"SELECT a.* FROM ({rows}) a JOIN (SELECT DISTINCT partition FROM t WHERE {self.leaf()}) b ON a.partition = b.partition"
        if kind == 5:
            return f"WITH w AS ({rows}) SELECT * FROM w"
        return rows

    def query(self) -> str:
        kind = self.random.randrange(10)
        known = self.random.random() < 0.6
        if kind == 0:
            return f"SELECT partition, (SELECT {self.aggregate(known)} FROM ({self.source()})) AS n, count(*) FROM t GROUP BY partition"
        by = self.random.choice(["", "", "partition", "topic", "topic, partition", *([] if known else ["one", "key"])])
        sets = self.random.choice(["GROUP BY {}", "GROUP BY {}", "GROUP BY {}", "GROUP BY CUBE ({})", "GROUP BY ROLLUP ({})"])
        having = " HAVING count(1) > 2" if self.random.random() < 0.1 else ""
        groups = f"FROM ({self.source()}) {sets.format(by) if by else ''}{having}"
        if kind == 1:
            return f"SELECT count(*), count(DISTINCT 1) FROM (SELECT count(*) AS n {groups})"
        aggregates = [self.aggregate(known) for _ in range(self.random.randrange(1, 4))]
        return f"SELECT {', '.join([by, *aggregates] if by else aggregates)} {groups}"


# Spark 4.2 offers these to a source as counts of all records. It would offer a COUNT of NULL, too, if it did not make 0 of it before.
COUNTS_OF_LITERALS = [
    "SELECT count(NULL), count(CAST(NULL AS INT)), count(*) FROM t",
    "SELECT count(DISTINCT 1) FROM t",
    "SELECT topic, count(DISTINCT 'x'), count(1), max(`offset`) FROM t WHERE partition = 0 GROUP BY topic",
    "SELECT count(DISTINCT one), count(*) FROM (SELECT 1 AS one FROM t WHERE `offset` < 0)",
]


@pytest.mark.parametrize("queries", [8, pytest.param(2_000, marks=pytest.mark.soak)])
def test_same_aggregates(spark: SparkSession, both: dict[str, DataFrame], keyed: dict[str, DataFrame], queries: int) -> None:
    """Each query twice: as it runs, and from a plan that was made before, of which Spark does not say what query it is of."""
    questions = AggregateQuestions(draw_seed())
    found = planned = 0
    for number, query in enumerate([*COUNTS_OF_LITERALS, *(questions.query() for _ in range(queries))]):
        sides = keyed if number % 3 == 0 else both
        there, here = (answer(spark, sides[side], query) for side in ("copy", "log"))
        assert here == there, f"query {number}: {query}"
        rows = spark.sql(query)
        planned += "LocalTableScan" in rows._jdf.queryExecution().executedPlan().toString()
        assert sorted(map(repr, rows.collect())) == there, f"query {number}, planned before: {query}"
        found += len(here) > 1
    print(f"{found} of {queries} answers have several rows, {planned} are made of the state alone")
    assert planned > queries // 10, "otherwise this would prove nothing"


def test_a_plan_has_counts_that_are_ready_where_spark_says_what_is_counted(spark: SparkSession, both: dict[str, DataFrame]) -> None:
    both["log"].createOrReplaceTempView("t")
    for columns, adds_up in {
        "count(*), min(`offset`)": False,
        "count(*), count(DISTINCT partition)": True,
        "count(DISTINCT 1)": True,
    }.items():
        rows = spark.sql(f"SELECT topic, {columns} FROM t GROUP BY topic")
        assert len(rows.collect()) == 3
        assert ("HashAggregate" in rows._jdf.queryExecution().executedPlan().toString()) == adds_up, columns
