"""The table through delta-spark, in a Spark session that has Delta; classic and Connect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from sparklog.errors import SparklogError
from sparklog.offsets.rows import PROPERTIES, SCHEMA, application, require_schema, select
from sparklog.spark.session import require_delta

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ABSENT = {"DELTA_TABLE_NOT_FOUND", "DELTA_MISSING_DELTA_TABLE", "DELTA_PATH_DOES_NOT_EXIST", "PATH_NOT_FOUND"}
_LOST = "DELTA_CONCURRENT_TRANSACTION"
"""In the text of the error of a commit that another one of its group was before, which classic PySpark raises without a condition."""

_VACUUMING = {
    # Delta lists the files of a table in this many tasks before it deletes: 10,000 by default, for a folder of some hundred files.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    # Otherwise Delta 4.1 and later go by the table's property in place of RETAIN.
    "spark.databricks.delta.vacuum.retentionWindowIgnore.enabled": "false",
}
"""Settings of the session while it deletes files."""

_RETAINED_H = 7 * 24
"""Unlike that of deltalake, this VACUUM deletes also files that no commit ever named. A writer that slept may still commit such a file."""


class ThroughSpark:
    """An `Engine` that is delta-spark. CallError if the session does not have Delta."""

    def __init__(self, path: str, spark: SparkSession) -> None:
        require_delta(spark)
        self._spark = spark
        self._path = path
        self._name = "delta.`" + path.replace("`", "``") + "`"
        self._taken: dict[str, int] = {}
        """By group, a number below the next one, where rows do not tell it, since they were deleted by hand."""

    def exists(self) -> bool:
        with self._faults():
            return self._table() is not None

    def rows(self, group: str | None = None, *, current: bool) -> pa.Table:
        with self._faults():
            table = self._table()
            if table is None:
                return SCHEMA.empty_table()
            of_group = table if group is None else table.where(table["group"] == group)
            # The rows are few: in one partition they are ranked and sorted without a shuffle.
            found = self._spark.sql(select("{offsets}", "`", None, current=current), offsets=of_group.coalesce(1))
            return found.toArrow().cast(SCHEMA)

    def last(self, group: str) -> int:
        # Only a classic session tells the version of an application. But each commit has rows.
        with self._faults():
            table = self._table()
            if table is None:
                return 0
            # Before commits had numbers of their own, they had those of generations.
            greatest = table.where(table["group"] == group).coalesce(1).agg({"seq": "max", "generation": "max"})
            return max(self._taken.get(group, 0), *(each or 0 for each in greatest.collect()[0]))

    def append(self, rows: pa.Table, group: str, number: int) -> bool:
        with self._faults():
            if self._table() is None:
                self._create()
            writer = self._spark.createDataFrame(rows).coalesce(1).write.format("delta").mode("append")
            try:
                writer.option("txnAppId", application(group)).option("txnVersion", number).save(self._path)
            except Exception as error:
                if _LOST not in str(error):
                    raise
                return False
            # Delta skips a write whose version is not above that of another one, and does not say so.
            table = self._table()
            assert table is not None
            found = table.where((table["group"] == group) & (table["seq"] == number)).coalesce(1).toArrow().cast(SCHEMA)
        if rows.slice(0, 1).to_pylist()[0] in found.to_pylist():
            return True
        if self.last(group) < number:
            self._taken[group] = 2 * number  # and on in such steps, since each try is a job of Spark
        return False

    def maintain(self) -> dict[str, int]:
        # Delta itself writes the checkpoint, with every hundredth commit.
        with self._faults():
            if self._table() is None:
                return {"joined": 0, "deleted": 0}
            (done,) = self._spark.sql(f"OPTIMIZE {self._name}").collect()
            before = {key: self._spark.conf.get(key, None) for key in _VACUUMING}
            try:
                for key, value in _VACUUMING.items():
                    self._spark.conf.set(key, value)
                self._spark.sql(f"VACUUM {self._name} RETAIN {_RETAINED_H} HOURS").collect()
            finally:
                for key, was in before.items():
                    if was is None:
                        self._spark.conf.unset(key)
                    else:
                        self._spark.conf.set(key, was)
            (vacuum, *_) = self._spark.sql(f"DESCRIBE HISTORY {self._name} LIMIT 1").collect()
            deleted = (vacuum["operationMetrics"] or {}).get("numDeletedFiles", 0)
            return {"joined": done["metrics"]["numFilesRemoved"], "deleted": int(deleted)}

    def _table(self) -> DataFrame | None:
        """The table as it is now; None if it does not exist."""
        try:
            table = self._spark.read.format("delta").load(self._path)
            require_schema(self._path, {field.name: field.dataType.typeName() for field in table.schema.fields})
        except SparklogError:
            raise
        except Exception as error:
            if _condition(error) in _ABSENT:
                return None
            raise
        return table

    def _create(self) -> None:
        types = {pa.string(): "STRING", pa.int64(): "BIGINT", pa.int32(): "INT"}
        columns = ", ".join(
            f"`{field.name}` {types.get(field.type, 'TIMESTAMP')}{'' if field.nullable else ' NOT NULL'}" for field in SCHEMA
        )
        properties = ", ".join(f"'{name}' = '{value}'" for name, value in PROPERTIES.items())
        try:
            self._spark.sql(f"CREATE TABLE IF NOT EXISTS {self._name} ({columns}) USING delta TBLPROPERTIES ({properties})").collect()
        except Exception:
            # If another writer created it first, this one takes that table.
            if self._table() is None:
                raise

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except SparklogError:
            raise
        except Exception as error:
            raise SparklogError("OFFSETS_TABLE", table=self._path, cause=" ".join(str(error).splitlines()[:2])) from error


def _condition(error: Exception) -> str:
    from pyspark.errors import PySparkException

    return (error.getCondition() or "") if isinstance(error, PySparkException) else ""
