"""Uses Spark as tests do, once: `make` keeps the classes that are loaded for it in an archive, for each Spark that a test starts.

python first_use.py FOLDER does so in a session whose JVM has a Connect server, and then in another process over Connect.
"""

import subprocess
import sys
from pathlib import Path

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import sparklog


def use(spark: SparkSession, folder: Path) -> None:
    """Writes, reads, streams and procedures, and functions and formats of Spark that they are combined with."""
    root = str(folder / "root")
    rows = spark.range(100).selectExpr("CAST(id AS STRING) AS key", "to_json(struct(id)) AS value", "current_timestamp() AS timestamp")
    rows.write.format("partlog").option("topic", "t").mode("append").save(root)
    log = spark.read.format("partlog").option("subscribe", "t").load(root)
    assert log.where("partition >= 0").selectExpr("CAST(key AS STRING) AS key").distinct().count() == 100
    assert log.groupBy("partition").agg(F.count("*"), F.max("offset"), F.sum(F.length("value"))).orderBy("partition").collect()
    log.createOrReplaceTempView("t")
    ranked = "SELECT *, row_number() OVER (PARTITION BY partition ORDER BY `offset` DESC) AS rank FROM t"
    assert spark.sql(f"SELECT a.`offset` FROM ({ranked}) a JOIN t USING (partition, `offset`) WHERE rank = 1 LIMIT 1").count() == 1
    log.write.parquet(str(folder / "parquet"))
    assert spark.read.parquet(str(folder / "parquet")).toPandas().shape == (100, len(log.columns))
    assert spark.createDataFrame([("a", 1)], "key string, n long").unionByName(spark.sql("SELECT 'b' AS key, 2L AS n")).collect()
    assert log.select(F.udf(lambda value: len(value), "long")("value").alias("n")).agg(F.sum("n")).first()
    assert log.groupBy("partition").applyInPandas(counted, "n long").count() == log.select("partition").distinct().count()

    given = {"subscribe": "t", "startingOffsets": "earliest", "maxOffsetsPerTrigger": 60}
    stream = spark.readStream.format("partlog").options(**given).load(root)

    def run(name: str, rows: DataFrame, mode: str = "append", **settings: str) -> None:
        writer = rows.writeStream.outputMode(mode).option("checkpointLocation", str(folder / f"checkpoint-{name}"))
        writer.options(**settings).trigger(availableNow=True).format(settings.pop("format", "partlog")).start().awaitTermination()

    run("copy", stream, topic="copy", path=root)
    run("counts", stream.groupBy("key").count(), "complete", format="noop")
    late = stream.withWatermark("timestamp", "1 minute").dropDuplicates(["key", "timestamp"])
    run("late", late.join(spark.read.parquet(str(folder / "parquet")).select("key"), "key"), format="parquet", path=str(folder / "out"))
    each = stream.writeStream.foreachBatch(lambda rows, epoch: rows.write.format("noop").mode("append").save())
    each.option("checkpointLocation", str(folder / "checkpoint-each")).trigger(availableNow=True).start().awaitTermination()
    assert spark.sql(f"CALL partlog.topics(root => '{root}')").count() == 2


def counted(rows: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({"n": [len(rows)]})


def connect_server(spark: SparkSession) -> str:
    """The Connect server in the JVM of a session, which chose its port itself."""
    service = getattr(spark._jvm.org.apache.spark.sql.connect.service, "SparkConnectService$")  # type: ignore[union-attr]
    return f"sc://127.0.0.1:{getattr(service, 'MODULE$').localPort()}"


def main() -> None:
    folder = Path(sys.argv[1])
    if sys.argv[2:]:
        use(sparklog.session(conf={"spark.remote": sys.argv[2]}), folder)
        return
    server = {"spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin", "spark.connect.grpc.binding.port": 0}
    shown = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.sql.shuffle.partitions": "2"}
    patient = {"spark.python.authenticate.socketTimeout": "600s"}  # 15 s can be too short for a worker in Python on a busy machine
    spark = sparklog.session(conf={"spark.master": "local[2]", **server, **shown, **patient})
    use(spark, folder / "classic")
    subprocess.run([sys.executable, __file__, str(folder / "connect"), connect_server(spark)], check=True)
    spark.stop()


if __name__ == "__main__":
    main()
