"""A root as a catalog of a session."""

from __future__ import annotations

import re
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
    """Makes the topics of a root tables of a session, by a catalog.

    The session, classic or of Connect, may be running. Another session, such as a session of `newSession()`, does not know the name. A
    second call changes nothing.

    Args:
        spark: The session.
        name: The name of the catalog: letters, digits and underscores, without a digit at the beginning.
        root: A path, or a URI that Spark can read; it need not exist yet. A relative path is taken from the folder of this process.

    Raises:
        CallError: SPARK_EXTRA if PySpark is not installed; OPTION_VALUE if Spark cannot use the name; CATALOG_TAKEN if the name
            is another catalog, or a catalog of another root: Spark keeps a catalog as it was at its first use.

    Example:
        >>> spark = sparklog.session()
        >>> sparklog.attach(spark, "attached", "events")
        >>> spark.sql("SELECT count(*) FROM attached.orders").first()[0]
        20
    """
    require_pyspark()
    path = arguments.path("root", root)
    if "://" not in path and not path.startswith("file:"):
        path = str(Path.cwd() / path)
    if not arguments.text("name", name).isidentifier():
        reason = "a name of a catalog has letters, digits and _, and does not begin with a digit"
        wrong = "; the root comes after the name: attach(spark, name, root)" if "/" in name or ":" in name else f", such as {_legal(name)}"
        raise SparklogError("OPTION_VALUE", option="name", value=name, reason=reason + wrong)
    for setting, expected in ((f"spark.sql.catalog.{name}", CATALOG), (f"spark.sql.catalog.{name}.root", path)):
        found = spark.conf.get(setting, None)
        if found is None and setting.endswith(".root") and name == "partlog":
            found = "a catalog without a root"
        if found not in (None, expected):
            raise SparklogError("CATALOG_TAKEN", setting=setting, found=found, expected=expected)
    if name == "spark_catalog":
        raise SparklogError("CATALOG_TAKEN", setting=f"spark.sql.catalog.{name}", found="Spark's own catalog", expected=CATALOG)
    spark.conf.set(f"spark.sql.catalog.{name}.root", path)
    spark.conf.set(f"spark.sql.catalog.{name}", CATALOG)


def _legal(name: str) -> str:
    """A similar name that Spark can use."""
    legal = re.sub(r"\W+", "_", name).strip("_")
    return legal if legal.isidentifier() else f"log_{legal}".rstrip("_")
