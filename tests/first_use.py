"""A write, a read, a stream, a procedure: `make` keeps the classes that they load in an archive, for each Spark that a test starts."""

import sys
from pathlib import Path

import sparklog

spark = sparklog.session(**{"spark.master": "local[2]", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"})
folder = Path(sys.argv[1])
root = str(folder / "root")
rows = spark.range(100).selectExpr("CAST(id AS STRING) AS key", "to_json(struct(id)) AS value")
rows.write.format("partlog").option("topic", "t").mode("append").save(root)
log = spark.read.format("partlog").option("subscribe", "t").load(root)
assert log.where("partition >= 0").selectExpr("CAST(key AS STRING) AS key").distinct().count() == 100
assert log.groupBy("partition").count().orderBy("partition").collect()
stream = spark.readStream.format("partlog").option("subscribe", "t").option("startingOffsets", "earliest").load(root)
sink = stream.writeStream.format("partlog").option("topic", "copy").option("checkpointLocation", str(folder / "checkpoint"))
sink.trigger(availableNow=True).start(root).awaitTermination()
assert spark.sql(f"CALL partlog.topics(root => '{root}')").count() == 2
spark.stop()
