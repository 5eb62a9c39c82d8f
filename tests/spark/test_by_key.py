"""Queries by key without a shuffle give what those with one give; and a scan is grouped by key exactly where its records are."""

import json
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from handmade import draw_seed
from pyspark.sql import DataFrame, SparkSession

import sparklog

BUCKETING = "spark.sql.sources.v2.bucketing"
CORES = "spark.sql.files.minPartitionNum"

# Topics by their name: partitions, the partitioner, and what is done to them. Few keys leave most of 64 partitions empty.
TOPICS = {
    "a8": (8, "murmur3", "routed"),
    "b8": (8, "murmur3", "routed"),
    "c4": (4, "murmur3", "routed"),
    "d12": (12, "murmur3", "routed"),
    "e5": (5, "murmur3", "routed"),
    "f64": (64, "murmur3", "routed"),
    "g1": (1, "murmur3", "routed"),
    "h8": (8, "murmur2", "routed"),
    "i8": (8, "murmur3", "null keys"),
    "j8": (8, "murmur3", "explicit"),
    "k8": (5, "murmur3", "added"),
    "l6": (4, "murmur3", "re-routed, nothing is from before"),
    "m6": (4, "murmur3", "re-routed, and read from there on"),
    "n6": (4, "murmur3", "re-routed"),
    "o6": (4, "murmur3", "re-routed to other weights, nothing is from before"),
}
ROUTED = [topic for topic, (_, _, kind) in TOPICS.items() if kind == "routed"]
STARTS: dict[str, dict[str, str]] = {}
"""The options of a read of a topic, where it does not read all: those of `m6`."""


@pytest.fixture(scope="module")
def log(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The topics, in the catalog `bykey` with text for keys, and as views with bytes for keys: `bytes_a8`."""
    root = tmp_path_factory.mktemp("by_key") / "log"
    fill(spark, root)
    sparklog.attach(spark, "bykey", root)
    for topic in TOPICS:
        read = spark.read.format("partlog").option("topic", topic).options(**STARTS.get(topic, {}))
        read.load(str(root)).createOrReplaceTempView(f"bytes_{topic}")
    return root


def fill(spark: SparkSession, root: Path) -> None:
    def write(topic: str, partitions: int, partitioner: str, place: str = "NULL", key: str = "concat('k', id * id % 37)") -> None:
        rows = spark.range(0, 90, 1, 2).selectExpr(f"{key} AS key", "CAST(id AS STRING) AS value", f"CAST({place} AS INT) AS partition")
        options = {"topic": topic, "partitions": partitions, "partitioner": partitioner, "batch.size": 200, "key.type": "string"}
        rows.write.format("partlog").options(**options).mode("append").save(str(root))

    for topic, (partitions, partitioner, kind) in TOPICS.items():
        write(topic, partitions, partitioner)
        if kind == "null keys":
            write(topic, partitions, partitioner, key="IF(id % 5 = 0, NULL, concat('k', id % 41))")
        elif kind == "explicit":
            write(topic, partitions, partitioner, place="IF(id % 3 = 0, id % 8, NULL)")
        elif kind == "added":
            spark.sql(f"CALL partlog.add_partitions('{root}', '{topic}', 8)")
            write(topic, 8, partitioner)
        elif kind.startswith("re-routed"):
            reroute(spark, root, topic, kind)
            write(topic, 6, partitioner)


def reroute(spark: SparkSession, root: Path, topic: str, kind: str) -> None:
    """From 4 to 6 partitions, whose shares of the keys may differ."""
    spark.sql(f"CALL partlog.add_partitions('{root}', '{topic}', 6)")
    if "weights" in kind:
        spark.sql(f"""CALL partlog.reroute('{root}', '{topic}', '{{"2":3}}')""")
    ends = json.dumps(sparklog.Log(root).topic(topic).end_offsets())
    if "nothing is from before" in kind:
        spark.sql(f"CALL partlog.delete_records('{root}', '{topic}', '{ends}')")
    elif "read from there on" in kind:
        STARTS[topic] = {"startingOffsets": f'{{"{topic}":{ends}}}'}


def with_options(options: dict[str, str]) -> str:
    """The clause of SQL that gives options to a table."""
    pairs = ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
    return f"WITH ({pairs})" if pairs else ""


@contextmanager
def settings(spark: SparkSession, given: dict[str, object]) -> Iterator[None]:
    for key, value in given.items():
        spark.conf.set(key, str(value).lower())
    try:
        yield
    finally:
        for key in given:
            spark.conf.unset(key)


def shuffles(rows: DataFrame) -> int:
    """How many exchanges the plan of a query has, broadcasts not counted."""
    return len(re.findall(r"\bExchange ", plan(rows)))


def plan(rows: DataFrame) -> str:
    text: str = rows._jdf.queryExecution().executedPlan().toString()
    return text


def answer(rows: DataFrame) -> list[str]:
    return sorted(map(repr, rows.collect()))


class Questions:
    """Generates queries by key. The same seed generates the same queries."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.text = True

    def table(self, topic: str) -> str:
        """A topic with text or bytes as keys, in up to 50 splits a partition."""
        if not self.text:
            return f"bytes_{topic}"
        splits = self.random.choice([1, 8, 50 * TOPICS[topic][0]])
        options = {"minPartitions": str(splits), **STARTS.get(topic, {})}
        return f"bykey.{topic} {with_options(options)}"

    def topic(self) -> str:
        return self.random.choice([*TOPICS, *ROUTED])

    def few(self) -> str:
        """Some keys, which a join or a subquery makes a filter at run time."""
        literal = "k" if self.text else "CAST(k AS BINARY)"
        return f"(SELECT {literal} AS key FROM few WHERE n < {self.random.randrange(2, 9)})"

    def query(self) -> str:
        self.text = self.random.random() < 0.7
        one, two, three = (self.table(self.topic()) for _ in range(3))
        kind = self.random.randrange(9)
        if kind == 0:
            counts = self.random.choice(["count(*), sum(length(value))", "count(DISTINCT value), max(offset)"])
            return f"SELECT key, {counts} FROM {one} GROUP BY key"
        if kind == 1:
            window = "PARTITION BY key ORDER BY partition, offset"
            return f"SELECT key, partition, offset, row_number() OVER ({window}) AS n, sum(offset) OVER ({window}) AS s FROM {one}"
        hint = self.random.choice(["MERGE(b)", "SHUFFLE_HASH(b)", "MERGE(a)"])
        join = self.random.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        if kind == 2:
            half = self.random.choice(["LEFT SEMI JOIN", "LEFT ANTI JOIN"])
            return f"SELECT /*+ {hint} */ a.key, a.partition, a.offset FROM {one} a {half} {two} b ON a.key = b.key"
        if kind == 3:
            return f"SELECT a.key, a.partition, a.offset FROM {one} a WHERE a.key IN (SELECT key FROM {two} b WHERE b.offset > 3)"
        if kind == 4:
            columns = "a.key, count(*), count(b.key), sum(a.offset), sum(b.offset)"
            return f"""SELECT /*+ {hint}, BROADCAST(f) */ {columns} FROM {one} a {join} {two} b ON a.key = b.key
                JOIN {self.few()} f ON a.key = f.key GROUP BY a.key"""
        if kind == 5:
            sums = f"(SELECT key, count(*) AS n FROM {two} GROUP BY key)"
            return f"SELECT a.key, a.offset, b.n FROM {one} a {join} {sums} b ON a.key = b.key"
        if kind == 6:
            other = self.random.choice(["JOIN", "LEFT JOIN", "FULL JOIN"])
            columns = "a.key, count(*), count(b.key), count(c.key), sum(c.offset)"
            return f"SELECT {columns} FROM {one} a {join} {two} b ON a.key = b.key {other} {three} c ON a.key = c.key GROUP BY a.key"
        columns = "a.key AS one, b.key AS two, count(*), sum(a.offset), sum(b.offset)"
        return f"SELECT /*+ {hint} */ {columns} FROM {one} a {join} {two} b ON a.key = b.key GROUP BY a.key, b.key"

    def settings(self) -> dict[str, object]:
        """Those that say where Spark does without a shuffle; by default it joins equal numbers of partitions only."""

        def one_in(n: int) -> bool:
            return self.random.randrange(n) == 0

        return {
            CORES: self.random.choice([1, 1, 2, 4, 8]),
            "spark.sql.autoBroadcastJoinThreshold": -1,
            "spark.sql.adaptive.enabled": not one_in(4),
            f"{BUCKETING}.shuffle.enabled": one_in(4),
            f"{BUCKETING}.allowCompatibleTransforms.enabled": not one_in(3),
            f"{BUCKETING}.partiallyClusteredDistribution.enabled": one_in(4),
            f"{BUCKETING}.partition.filter.enabled": one_in(4),
            f"{BUCKETING}.pushPartValues.enabled": not one_in(8),
            f"{BUCKETING}.preserveOrderingOnCoalesce.enabled": one_in(4),
        }


@pytest.mark.parametrize("queries", [pytest.param(12, marks=pytest.mark.slow), pytest.param(1_500, marks=pytest.mark.soak)])
def test_queries_without_a_shuffle_give_what_those_with_one_give(spark: SparkSession, log: Path, queries: int) -> None:
    seed = 29 if queries < 100 else draw_seed()
    print(f"seed {seed}")
    questions = Questions(seed)
    spark.range(0, 60).selectExpr("concat('k', id) AS k", "id % 10 AS n").createOrReplaceTempView("few")
    saved = 0
    for number in range(queries):
        query = questions.query()
        given = questions.settings()
        with settings(spark, given):
            by_key = spark.sql(query)
            fewer, found = shuffles(by_key), answer(by_key)
            with settings(spark, {f"{BUCKETING}.enabled": False}):
                shuffled = spark.sql(query)
                more, expected = shuffles(shuffled), answer(shuffled)
        assert found == expected, f"query {number}: {query}\n{given}"
        saved += fewer < more
    print(f"{saved} of {queries} queries have fewer shuffles")
    assert saved > queries // 5, "otherwise this would prove nothing"


PARTLY = f"{BUCKETING}.partiallyClusteredDistribution.enabled"
FORCED = "spark.sql.adaptive.forceOptimizeSkewedJoin"
SKEWED: dict[str, object] = {
    "spark.sql.autoBroadcastJoinThreshold": -1,
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor": "0.1",
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "10b",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "600b",
}
"""With these, Spark takes the smallest of shuffles for a skewed one."""

A, B, C = (f"bykey.{topic} WITH ('minPartitions' = '56')" for topic in ("a8", "b8", "d12"))
_JOINS = "SELECT /*+ MERGE(b) */ a.key, a.partition, a.offset, b.partition, b.offset FROM {A} a {} {B} b ON a.key = b.key"
JOINS_OF_SKEWED = {
    "inner": _JOINS.format("JOIN", A=A, B=B),
    "left": _JOINS.format("LEFT JOIN", A=A, B=B),
    "right": _JOINS.format("RIGHT JOIN", A=A, B=B),
    "full": _JOINS.format("FULL JOIN", A=A, B=B),
    "hash": f"SELECT /*+ SHUFFLE_HASH(b) */ count(*), sum(a.offset * b.offset) FROM {A} a JOIN {B} b ON a.key = b.key",
    "semi": f"SELECT a.partition, a.offset FROM {A} a LEFT SEMI JOIN {B} b ON a.key = b.key AND a.offset < b.offset",
    "anti": f"SELECT a.partition, a.offset FROM {A} a LEFT ANTI JOIN {B} b ON a.key = b.key AND a.offset < b.offset",
    "aggregated": f"SELECT a.key, count(*), sum(b.offset) FROM {A} a JOIN {B} b ON a.key = b.key GROUP BY a.key",
    "of sums": f"SELECT a.key, a.offset, b.n FROM {A} a JOIN (SELECT key, count(*) AS n FROM {B} GROUP BY key) b ON a.key = b.key",
    "of three": f"SELECT count(*), sum(c.offset) FROM {A} a JOIN {B} b ON a.key = b.key LEFT JOIN {C} c ON c.key = b.key",
    "by partition": f"SELECT a.partition, count(*) FROM {A} a JOIN {B} b ON a.partition = b.partition GROUP BY a.partition",
    "three by partition": f"""SELECT count(*), count(b.key), count(c.key) FROM (SELECT * FROM {A} WHERE partition < 5) a
        JOIN (SELECT CAST(id AS INT) AS p FROM range(12)) r ON a.partition = r.p
        LEFT JOIN {B} b ON b.partition = r.p FULL JOIN {C} c ON c.partition = r.p""",
    "beside a shuffle": f"""SELECT count(*), sum(r.n) FROM {A} a JOIN {B} b ON a.key = b.key
        JOIN (SELECT id % 3 AS o, id AS n FROM range(200)) r ON r.o = a.offset % 5""",
}


def settings_of_joins(random: random.Random) -> dict[str, object]:
    def is_on(share: float = 0.5) -> bool:
        return random.random() < share

    return {
        **SKEWED,
        CORES: random.choice([1, 2]),
        PARTLY: is_on(0.7),
        FORCED: is_on(0.7),
        "spark.sql.adaptive.enabled": is_on(0.8),
        "spark.sql.adaptive.forceApply": is_on(),
        "spark.sql.adaptive.skewJoin.enabled": is_on(0.8),
        "spark.sql.adaptive.optimizeSkewsInRebalancePartitions.enabled": is_on(),
        "spark.sql.adaptive.coalescePartitions.enabled": is_on(),
        "spark.sql.requireAllClusterKeysForDistribution": is_on(),
        "spark.sql.requireAllClusterKeysForCoPartition": is_on(),
        **{
            f"{BUCKETING}.{name}.enabled": is_on()
            for name in (
                "pushPartValues",
                "allowCompatibleTransforms",
                "allowJoinKeysSubsetOfPartitionKeys",
                "shuffle",
                "partition.filter",
                "sorting",
                "partitionKeyOrdering",
                "preserveOrderingOnCoalesce",
                "preserveKeyOrderingOnCoalesce",
            )
        },
    }


@pytest.mark.parametrize("rounds", [pytest.param(1, marks=pytest.mark.slow), pytest.param(100, marks=pytest.mark.soak)])
def test_joins_of_skewed_topics_give_the_same_rows_under_all_settings(spark: SparkSession, log: Path, rounds: int) -> None:
    seed = 1 if rounds == 1 else draw_seed()
    print(f"seed {seed}")
    drawn = random.Random(seed)
    for number in range(rounds):
        for name, query in JOINS_OF_SKEWED.items():
            with settings(spark, {f"{BUCKETING}.enabled": False}):
                expected = answer(spark.sql(query))
            with settings(spark, given := settings_of_joins(drawn) if rounds > 1 else {**SKEWED, PARTLY: True, FORCED: True}):
                assert answer(spark.sql(query)) == expected, f"round {number}, {name}: {query}\n{given}"


def test_the_order_of_splits_that_are_brought_together_needs_no_column_that_is_not_read(spark: SparkSession, log: Path) -> None:
    query = JOINS_OF_SKEWED["by partition"]
    right = answer(spark.sql(query))
    with settings(spark, {**SKEWED, f"{BUCKETING}.preserveOrderingOnCoalesce.enabled": True}):
        assert answer(spark.sql(query)) == right


def test_a_plan_that_is_older_than_the_settings_gives_the_same_rows(spark: SparkSession, log: Path) -> None:
    query = JOINS_OF_SKEWED["hash"]
    with settings(spark, {**SKEWED, PARTLY: True, FORCED: False}):
        right = answer(spark.sql(query))
        planned = spark.sql(query)
        assert shuffles(planned) == 1, "only that of the sum: it was planned with the groups"
        with settings(spark, {FORCED: True}):
            assert answer(planned) == right
            assert answer(spark.sql(query)) == right
            assert shuffles(spark.sql(query)) == 3


GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "sql.md"


def drawn(rows: DataFrame) -> str:
    """A plan as the guide draws it: its operators, with what is scanned and how it is exchanged."""
    lines = plan(rows).rstrip().split("\n")
    indent = 0
    if lines[0].startswith("AdaptiveSparkPlan"):
        lines, indent = lines[1:], 3
    names = (re.match(r"[ :+-]*(BatchScan [\w.]+|Exchange \w+|\w+)", line) for line in lines)
    return "\n".join(name[0][indent:] for name in names if name)


def test_the_plan_of_the_guide_is_that_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    """On topics in which every partition has records. Their catalog has another name here, for others may be called `events`."""
    sparklog.attach(spark, "bykey_guide", tmp_path / "log")
    for topic in ("orders", "customers"):
        spark.sql(f"CREATE TABLE bykey_guide.{topic} (key STRING, value STRING) TBLPROPERTIES ('partitions' = '4')")
        keys = "SELECT concat('k', id) AS key, 'v' AS value FROM range(100)"
        spark.sql(f"INSERT INTO bykey_guide.{topic} (key, value) {keys}")
    [(query, expected)] = re.findall(r"^```text\n(SELECT .*)\n\n((?:.*\n)+?)```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    with settings(spark, {"spark.sql.autoBroadcastJoinThreshold": -1}):
        found = drawn(spark.sql(query.replace("events.", "bykey_guide.")))
    assert found.replace("bykey_guide.", "events.") == expected.rstrip()


DEFAULTS = {
    "enabled": True,
    "allowCompatibleTransforms.enabled": False,
    "partiallyClusteredDistribution.enabled": False,
    "shuffle.enabled": False,
}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT key, count(*) FROM a8 GROUP BY key", 0),
        ("SELECT DISTINCT key FROM bytes_a8", 0),
        ("SELECT key, row_number() OVER (PARTITION BY key ORDER BY offset) FROM f64", 0),
        ("SELECT key, row_number() OVER (PARTITION BY key ORDER BY _routing_epoch DESC, offset DESC) FROM f64", 0),
        ("SELECT a.key, count(*) FROM a8 a FULL JOIN b8 b ON a.key = b.key GROUP BY a.key", 1),
        ("SELECT a.offset FROM a8 a LEFT ANTI JOIN b8 b ON a.key = b.key", 0),
        ("SELECT a.key, count(*) FROM a8 a JOIN b8 b ON a.key = b.key LEFT JOIN a8 c ON b.key = c.key GROUP BY a.key", 0),
        ("SELECT a.offset FROM a8 a JOIN c4 b ON a.key = b.key", 2),
        ("SELECT a.offset FROM a8 a JOIN d12 b ON a.key = b.key", 2),
        ("SELECT a.offset FROM a8 a JOIN h8 b ON a.key = b.key", 2),
        ("SELECT a.offset FROM a8 a JOIN i8 b ON a.key = b.key", 2),
        ("SELECT key, count(*) FROM i8 GROUP BY key", 1),
        ("SELECT key, count(*) FROM j8 GROUP BY key", 1),
        ("SELECT key, count(*) FROM k8 GROUP BY key", 1),
        ("SELECT key, count(*) FROM l6 GROUP BY key", 1),
        ("SELECT key, count(*) FROM m6 GROUP BY key", 1),
        ("SELECT key, count(*) FROM n6 GROUP BY key", 1),
        ("SELECT a.offset FROM l6 a JOIN m6 b ON a.key = b.key", 2),
        ("SELECT a.offset FROM l6 a JOIN n6 b ON a.key = b.key", 2),
        ("SELECT a.offset FROM l6 a JOIN o6 b ON a.key = b.key", 2),
        ("SELECT a.offset FROM l6 a JOIN c4 b ON a.key = b.key", 2),
        ("SELECT CAST(key AS STRING), count(*) FROM bytes_a8 GROUP BY CAST(key AS STRING)", 1),
        ("SELECT a.offset FROM a8 a JOIN bytes_b8 b ON a.key = b.key", 2),
        ("SELECT partition, max(offset) FROM a8 GROUP BY partition", 0),
        ("SELECT partition, count(DISTINCT key) FROM a8 GROUP BY partition", 1),
    ],
)
def test_what_the_guide_says_is_without_a_shuffle(spark: SparkSession, log: Path, query: str, expected: int) -> None:
    def named(match: re.Match[str]) -> str:
        return f"{match[1]}bykey.{match[2]} {with_options(STARTS.get(match[2], {}))}"

    table = re.sub(r"\b((?:FROM|JOIN) )(?!bytes)(\w+)", named, query)
    with settings(spark, {"spark.sql.autoBroadcastJoinThreshold": -1, CORES: 2}):
        assert shuffles(spark.sql(table)) == expected, plan(spark.sql(table))


def test_other_numbers_of_partitions_join_where_a_setting_allows_it(spark: SparkSession, log: Path) -> None:
    given = {"spark.sql.autoBroadcastJoinThreshold": -1, f"{BUCKETING}.allowCompatibleTransforms.enabled": True}
    found = {}
    with settings(spark, given):
        for other in ("c4", "d12", "e5", "h8"):
            joined = spark.sql(f"SELECT a.offset FROM bykey.a8 a JOIN bykey.{other} b ON a.key = b.key")
            found[other] = shuffles(joined), joined.rdd.getNumPartitions() if not shuffles(joined) else None
    assert found == {"c4": (0, 4), "d12": (0, 4), "e5": (2, None), "h8": (2, None)}


def test_the_settings_have_the_defaults_that_the_guide_says(spark: SparkSession) -> None:
    guide = GUIDE.read_text(encoding="utf-8")
    for setting, default in DEFAULTS.items():
        assert f"| `.{setting}` | {str(default).lower()} |" in guide
        conf = spark._jsparkSession.sessionState().conf()
        assert conf.getConfString(f"{BUCKETING}.{setting}") == str(default).lower()
