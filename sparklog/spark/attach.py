"""A root as a catalog of a session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.spark.installed import require_pyspark

if TYPE_CHECKING:
    import os

    from pyspark.sql import SparkSession

CATALOG = "io.sparklog.catalog.PartlogCatalog"


def attach(spark: SparkSession, name: str, root: str | os.PathLike[str]) -> None:
    """Makes the topics of a root tables of this session: `attach(spark, "events", root)`, then `SELECT * FROM events.orders`.

    `root` is a path, or a URI that Spark can read; it need not exist yet. A relative path is taken from the folder of this process. The
    session, classic or of Connect, may be running; another one, as of `newSession()`, does not know the name. To repeat it changes
    nothing.
    CallError if PySpark is not installed, or the name is another catalog, or one of another root: Spark keeps a catalog as it was at its
    first use.
    """
    require_pyspark()
    path = arguments.path("root", root)
    if "://" not in path and not path.startswith("file:"):
        path = str(Path.cwd() / path)
    arguments.text("name", name)
    for setting, expected in ((f"spark.sql.catalog.{name}", CATALOG), (f"spark.sql.catalog.{name}.root", path)):
        found = spark.conf.get(setting, None)
        if found is None and setting.endswith(".root") and name == "partlog":
            found = "a catalog without a root"
        if found not in (None, expected):
            raise SparklogError("CATALOG_TAKEN", setting=setting, found=found, expected=expected)
    if name == "spark_catalog" or not name.isidentifier():
        raise SparklogError(
            "CATALOG_TAKEN", setting=f"spark.sql.catalog.{name}", found="a name that Spark keeps or cannot use", expected=CATALOG
        )
    spark.conf.set(f"spark.sql.catalog.{name}.root", path)
    spark.conf.set(f"spark.sql.catalog.{name}", CATALOG)
