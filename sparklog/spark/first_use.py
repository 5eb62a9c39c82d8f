"""python -m sparklog.spark.first_use FOLDER OPTIONS: uses Spark as a new session does at first, in a JVM with these options.

A JVM loads most of its classes for this, for any later work of the program.
"""

from __future__ import annotations

import sys

from sparklog.spark.archive import SETTING
from sparklog.spark.session import session


def main(folder: str, options: str) -> None:
    """Writes, reads and queries a log in a folder, which also gets what Spark itself writes."""
    spark = session(
        app_name="sparklog class-archive",
        conf={
            "spark.master": "local[2]",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.port": "0",
            "spark.local.dir": f"{folder}/local",
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
            "spark.sql.shuffle.partitions": "2",
            SETTING: options,
        },
    )
    root = f"{folder}/log"
    rows = spark.range(1000).selectExpr("CAST(id AS STRING) AS key", "to_json(struct(id)) AS value", "current_timestamp() AS timestamp")
    rows.write.format("partlog").option("topic", "t").mode("append").save(root)
    log = spark.read.format("partlog").option("subscribe", "t").load(root)
    log.createOrReplaceTempView("t")
    asked = "SELECT CAST(key AS STRING) AS key, partition, `offset` FROM t WHERE partition >= 0 ORDER BY partition, `offset` LIMIT 5"
    assert len(spark.sql(asked).collect()) == 5
    assert spark.sql("SELECT sum(n) FROM (SELECT partition, count(*) AS n FROM t GROUP BY partition)").collect()[0][0] == 1000
    assert log.selectExpr("CAST(value AS STRING) AS value").distinct().count() == 1000
    assert spark.sql(f"CALL partlog.topics(root => '{root}')").count() == 1
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
