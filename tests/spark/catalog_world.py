"""A catalog of Spark, driven by random statements beside another session and other processes, and a model of what its tables hold."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from logtool import LogTool
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import sparklog

Row = tuple[int, int, str]
Rows = list[Row] | None
"""Partition, offset and value of all records; None where there is no topic."""

EXISTS = ("PARTLOG_TOPIC_EXISTS", "TABLE_OR_VIEW_ALREADY_EXISTS")
"""The second where the thread's session is another: the connector does not know the statement then."""
NO_TABLE = ("TABLE_OR_VIEW_NOT_FOUND", "PARTLOG_TOPIC_NOT_FOUND", "PARTLOG_ROOT_NOT_FOUND", "PARTLOG_ROOT_WITHOUT_LOG")


@dataclass
class Model:
    """A topic, from its creation to its end."""

    text: bool
    first: int
    """Its first version."""
    config: dict[str, str]
    starts: list[int]
    values: list[list[str]]
    versions: dict[int, tuple[list[int], list[int]]] = field(default_factory=dict)
    """The log start and end offsets of each version."""

    def rows(self, starts: list[int] | None = None, ends: list[int] | None = None) -> list[Row]:
        starts, ends = starts or self.starts, ends or self.ends
        return [(p, o, self.values[p][o]) for p in range(len(starts)) for o in range(starts[p], ends[p])]

    @property
    def ends(self) -> list[int]:
        return [len(values) for values in self.values]


class World:
    """One random history. Each act asserts what it finds."""

    def __init__(self, seed: int, spark: SparkSession, other: SparkSession, catalog: str, tool: LogTool) -> None:
        self.random = random.Random(seed)
        self.spark, self.other, self.catalog, self.tool = spark, other, catalog, tool
        self.topics: dict[str, Model | None] = {"t": None, "u": None}
        self.cached: dict[str, list[Rows]] = {}
        """By table, the states that its cache may have: that of the last look, and all since."""
        self.kept: list[tuple[DataFrame, str, Model, int | None]] = []
        """DataFrames of before: of a topic, or of its version."""
        self.written = 0
        self.acts: list[str] = []
        sparklog.attach(spark, catalog, str(tool.root))

    # ---- names

    def own(self, name: str) -> str:
        return f"{self.catalog}.{name}"

    def any_name(self, name: str) -> tuple[SparkSession, str]:
        """Another session knows the root by its path alone. The first name is the one that a cached table has."""
        return self.random.choice(
            [
                (self.spark, self.own(name)),
                (self.spark, f"{self.catalog}.topics.{name}"),
                (self.spark, f"partlog.`{self.tool.root}`.{name}"),
                (self.other, f"partlog.`{self.tool.root}`.{name}"),
            ]
        )

    def is_cached(self, session: SparkSession, table: str, name: str) -> bool:
        return name in self.cached and session is self.spark and table == self.own(name)

    # ---- the model

    def log(self, name: str) -> sparklog.Topic:
        return sparklog.Log(self.tool.root).topic(name)

    def settle(self, name: str, by: str = "") -> None:
        """To be called after each change. By the name of a cached table, Spark sees it."""
        model = self.topics[name]
        if model is not None:
            newest = int(self.log(name).commits(1)[-1].version)
            assert newest >= max(model.versions, default=model.first), "its versions went back"
            for version in range(max(model.versions, default=model.first - 1) + 1, newest + 1):
                model.versions[version] = (list(model.starts), model.ends)
        if name in self.cached:
            now = model and model.rows()
            self.cached[name] = [now] if by == self.own(name) else [*self.cached[name], now]

    def born(self, name: str, *, text: bool, partitions: int) -> Model:
        first = int(self.log(name).commits()[0].version)
        config = dict(self.log(name).config)
        assert config["partitions"] == str(partitions)
        model = Model(text, first, config, [0] * partitions, [[] for _ in range(partitions)])
        self.topics[name] = model
        return model

    def new_rows(self, model: Model | None, partitions: int, most: int = 4) -> tuple[str, list[tuple[int, str]]]:
        """SQL that selects new records, and these."""
        rows = []
        for _ in range(self.random.randrange(1, most + 1)):
            self.written += 1
            rows.append((self.random.randrange(partitions), f"v{self.written}"))
        listed = ", ".join(f"({partition}, 'k{value}', '{value}')" for partition, value in rows)
        return f"SELECT CAST(p AS INT) AS partition, key, value FROM VALUES {listed} AS rows(p, key, value)", rows

    # ---- what statements find

    def refused(self, act: Callable[[], object]) -> str:
        try:
            found = act()
        except PySparkException as error:
            return str(error.getCondition())
        raise AssertionError(f"it was not refused: {found}")

    def rows(self, frame: DataFrame) -> list[Row]:
        def text(value: Any) -> str:
            return value if isinstance(value, str) else bytes(value).decode()

        return sorted((row.partition, row.offset, text(row.value)) for row in frame.select("partition", "offset", "value").collect())

    def read(self, frame: Callable[[], DataFrame]) -> Rows:
        try:
            return self.rows(frame())
        except PySparkException as error:
            if error.getCondition() not in NO_TABLE:
                raise
            return None

    def select(self, name: str) -> None:
        session, table = self.any_name(name)
        model = self.topics[name]
        found = self.read(lambda: session.table(table))
        if self.is_cached(session, table, name):
            states = self.cached[name]
            assert found in states, f"cached {table} has {found}, and may have {states}"
            self.cached[name] = states[states.index(found) :]
        else:
            assert found == (model and model.rows()), f"{table} has {found}, and should have {model and model.rows()}"

    def select_some(self, name: str) -> None:
        session, table = self.any_name(name)
        model = self.topics[name]
        if model is None or self.is_cached(session, table, name):
            return
        partition, offset = self.random.randrange(len(model.starts)), self.random.randrange(max(model.ends) + 2)
        rows = model.rows()
        value = self.random.choice([row[2] for row in rows if row[2].startswith("v")] or ["none"])  # others have other keys
        for where, test in [
            (f"partition = {partition}", lambda row: row[0] == partition),
            (f"offset >= {offset}", lambda row: row[1] >= offset),
            (f"key = 'k{value}'", lambda row: row[2] == value),
        ]:
            found = self.rows(session.table(table).where(where))
            assert found == [row for row in rows if test(row)], f"{table} where {where} has {found}"
        counts = session.sql(f"SELECT partition, count(*), min(offset), max(offset) FROM {table} GROUP BY partition").collect()
        expected = {p: [row[1] for row in rows if row[0] == p] for p in range(len(model.starts))}
        assert sorted(map(tuple, counts)) == [(p, len(all_), min(all_), max(all_)) for p, all_ in expected.items() if all_]

    def describe(self, name: str) -> None:
        """The tables about it and the descriptions agree with the model."""
        model = self.topics[name]
        there = sorted(each for each, topic in self.topics.items() if topic)
        if there:
            assert [each.name for each in self.spark.catalog.listTables(self.catalog)] == there
        assert self.spark.catalog.tableExists(self.own(name)) == (model is not None)
        if model is None:
            assert self.refused(lambda: self.spark.table(f"{self.own(name)}.commits")) in NO_TABLE
            return
        partitions = self.spark.table(f"{self.own(name)}.partitions").collect()
        assert [(row.start_offset, row.end_offset) for row in partitions] == list(zip(model.starts, model.ends, strict=True))
        assert [row.version for row in self.spark.table(f"{self.own(name)}.commits").collect()] == sorted(model.versions)
        types = {each.name: each.dataType for each in self.spark.catalog.listColumns(self.own(name))}
        assert types["value"] == ("string" if model.text else "binary")
        shown = {row.key: row.value for row in self.spark.sql(f"SHOW TBLPROPERTIES {self.own(name)}").collect()}
        assert {key: shown.get(key) for key in model.config} == model.config

    def travel(self, name: str) -> None:
        model = self.topics[name]
        session, table = self.any_name(name)
        if model is None:
            assert self.refused(lambda: session.sql(f"SELECT * FROM {table} VERSION AS OF 0").collect()) in NO_TABLE
            return
        version = self.random.randrange(max(model.versions) + 2)
        if version not in model.versions:
            assert self.refused(lambda: session.sql(f"SELECT * FROM {table} VERSION AS OF {version}")) == "PARTLOG_VERSION_UNREADABLE"
            return
        frame = session.sql(f"SELECT * FROM {table} VERSION AS OF {version}")
        if self.random.random() < 0.4:
            self.kept.append((frame, name, model, version))
        else:
            self.assert_version(frame, model, version)

    def assert_version(self, frame: DataFrame, model: Model, version: int) -> None:
        starts, ends = model.versions[version]
        now = zip(starts, ends, model.starts, strict=False)
        if any(start < end and start < kept for start, end, kept in now):
            assert self.refused(lambda: frame.collect()) == "PARTLOG_OFFSETS_OUT_OF_RANGE"
        else:
            assert self.rows(frame) == model.rows(starts, ends), f"version {version}"

    def keep(self, name: str) -> None:
        model = self.topics[name]
        if model is not None and name not in self.cached:
            self.kept.append((self.spark.table(self.own(name)).select("partition", "offset", "value"), name, model, None))

    def look_again(self, name: str) -> None:
        """A DataFrame that has not run yet reads what the name has now; one of a version, that of its topic."""
        if not self.kept:
            return
        frame, name, model, version = self.kept.pop(self.random.randrange(len(self.kept)))
        now = self.topics[name]
        if version is None:
            if name in self.cached:
                return
            if now is not None and now.text != model.text:
                return  # Spark may see that its columns are others
            found, expected = self.read(lambda: frame), now and now.rows()
            assert found == expected, f"a DataFrame of {name} has {found}, and should have {expected}"
        elif now is model:
            self.assert_version(frame, model, version)
        else:
            condition = self.refused(lambda: frame.collect())
            assert condition == "PARTLOG_TOPIC_REPLACED" if now else condition in NO_TABLE, condition

    # ---- what statements change

    def create(self, name: str) -> None:
        session, table = self.any_name(name)
        text, partitions = self.random.random() < 0.5, self.random.randrange(1, 4)
        there = self.topics[name] is not None
        lenient = self.random.random() < 0.3
        columns = "(key STRING, value STRING)" if text else ""
        made = f"CREATE TABLE {'IF NOT EXISTS ' if lenient else ''}{table} {columns} TBLPROPERTIES ('partitions' = '{partitions}'"
        if self.random.random() < 0.5:
            act = f"{made})"
            rows: list[tuple[int, str]] = []
        else:
            query, rows = self.new_rows(None, partitions)
            text = True
            act = f"{made}) AS {query}".replace(columns, "")
        if there and not lenient:
            assert self.refused(lambda: session.sql(act)) in EXISTS
            return
        session.sql(act)
        if not there:
            model = self.born(name, text=text, partitions=partitions)
            for partition, value in rows:
                model.values[partition].append(value)
            self.settle(name, table if session is self.spark else "")

    def insert(self, name: str) -> None:
        session, table = self.any_name(name)
        model = self.topics[name]
        query, rows = self.new_rows(model, len(model.starts) if model else 1)
        if model is None:
            assert self.refused(lambda: session.sql(f"INSERT INTO {table} BY NAME {query}")) in NO_TABLE
            return
        session.sql(f"INSERT INTO {table} BY NAME {query}")
        for partition, value in rows:
            model.values[partition].append(value)
        self.settle(name, table if session is self.spark else "")

    def save(self, name: str) -> None:
        """In the format, which creates topics."""
        model, partitions = self.topics[name], self.random.randrange(1, 4)
        query, rows = self.new_rows(model, len(model.starts) if model else partitions)
        mode = self.random.choice(["append", "errorifexists", "ignore"])
        writer = self.other.sql(query).write.format("partlog").option("topic", name).mode(mode)
        writer = writer if model else writer.option("partitions", partitions)
        if model and mode == "errorifexists":
            assert self.refused(lambda: writer.save(str(self.tool.root))) in EXISTS
            return
        writer.save(str(self.tool.root))
        if model and mode == "ignore":
            return
        model = model or self.born(name, text=False, partitions=partitions)
        for partition, value in rows:
            model.values[partition].append(value)
        self.settle(name)

    def append_elsewhere(self, name: str) -> None:
        """Another process writes, and may create the topic. It chooses the partitions, and the reader without Spark says which."""
        self.written += 1
        before = self.topics[name]
        self.tool.run("append", topic=name, tag=f"p{self.written}", tasks=1, records=3, partitions=len(before.starts) if before else 2)
        model = before or self.born(name, text=False, partitions=2)
        added = 0
        for partition, values in enumerate(model.values):
            for value in self.log(name).read(partition=partition, start=len(values) or None)["value"].to_pylist():
                assert bytes(value).decode().startswith(f"p{self.written}-"), value
                values.append(bytes(value).decode())
                added += 1
        assert added == 3
        self.settle(name)

    def merge(self, name: str) -> None:
        if self.topics[name] is not None:
            rebatch = self.random.choice(["true", "false"])
            self.spark.sql(f"CALL {self.catalog}.merge(root => '{self.tool.root}', topic => '{name}', rebatch => {rebatch})")
            self.settle(name)

    def alter(self, name: str) -> None:
        model = self.topics[name]
        if model is None:
            return
        session, table = self.any_name(name)
        if self.random.random() < 0.5 and len(model.starts) < 6:
            more = len(model.starts) + self.random.randrange(1, 3)
            session.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('partitions' = '{more}')")
            model.values += [[] for _ in range(more - len(model.starts))]
            model.starts += [0] * (more - len(model.starts))
            model.config["partitions"] = str(more)
        elif self.random.random() < 0.5:
            model.config["retention.ms"] = str(10**12 + self.random.randrange(9))
            session.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('retention.ms' = '{model.config['retention.ms']}')")
        else:
            session.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('retention.ms')")
            model.config |= {"retention.ms": "-1"} if "retention.ms" in self.log(name).config else {}
        self.settle(name, table if session is self.spark else "")

    def delete(self, name: str) -> None:
        model = self.topics[name]
        if model is None:
            return
        session, table = self.any_name(name)
        partition, offset = self.random.randrange(len(model.starts)), self.random.randrange(max(model.ends) + 2)
        chosen, sql = self.random.choice(
            [
                (range(len(model.starts)), f"DELETE FROM {table} WHERE offset < {offset}"),
                ([partition], f"DELETE FROM {table} WHERE partition = {partition} AND offset < {offset}"),
                ([partition], f"DELETE FROM {table} WHERE partition = {partition} AND offset <= {offset - 1}"),
                (None, f"TRUNCATE TABLE {table}"),
            ]
        )
        session.sql(sql)
        for each, end in enumerate(model.ends):
            if chosen is None or each in chosen:
                model.starts[each] = end if chosen is None else max(model.starts[each], min(offset, end))
        self.settle(name, table if session is self.spark else "")

    def drop(self, name: str) -> None:
        session, table = self.any_name(name)
        if self.topics[name] is None:
            assert self.refused(lambda: session.sql(f"DROP TABLE {table}")) in NO_TABLE
            session.sql(f"DROP TABLE IF EXISTS {table}")
            return
        elsewhere = self.random.random() < 0.3
        if elsewhere:
            self.tool.run("change", topic=name, what="delete")
        else:
            session.sql(f"DROP TABLE {table}{self.random.choice(['', ' PURGE'])}")
        self.topics[name] = None
        if not elsewhere and table == self.own(name):
            self.cached.pop(name, None)
        self.settle(name)

    def cache(self, name: str) -> None:
        if name in self.cached:
            with contextlib.suppress(PySparkException):  # Spark does not find a table that another process has dropped
                self.spark.sql(f"UNCACHE TABLE IF EXISTS {self.own(name)}")
            if self.topics[name] is not None:
                del self.cached[name]
        elif self.topics[name] is not None:
            self.spark.sql(f"CACHE TABLE {self.own(name)}")
            self.cached[name] = [self.topics[name].rows()]  # type: ignore[union-attr]

    ACTS = (
        *(create, insert, insert, insert, save, append_elsewhere, merge, alter, delete, drop, cache),
        *(select, select, select_some, describe, travel, travel, keep, look_again),
    )

    def run(self, acts: int) -> None:
        for _ in range(acts):
            act, name = self.random.choice(self.ACTS), self.random.choice(sorted(self.topics))
            self.acts.append(f"{act.__name__} {name}")
            act(self, name)
        for name in self.topics:
            self.select(name)
            self.describe(name)


def fault(seed: int, spark: SparkSession, other: SparkSession, catalog: str, tool: LogTool, acts: int = 40) -> str | None:
    """The fault that a history shows; None if it shows none."""
    world = World(seed, spark, other, catalog, tool)
    try:
        world.run(acts)
    except (AssertionError, PySparkException) as error:
        return f"seed {seed}, after {', '.join(world.acts)}: {str(error)[:3000]}"
    finally:
        spark.catalog.clearCache()
    return None
