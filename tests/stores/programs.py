"""Programs that a test runs on a cluster, in the process of its driver or as a client of Connect. Each is given a root."""

CALLS = """
import sys
import sparklog
root = sys.argv[1]
spark = sparklog.session()
def call(text):
    return [row.asDict() for row in spark.sql(f"CALL partlog.{text}").collect()]
for first in range(0, 400, 100):
    rows = spark.range(first, first + 100, numPartitions=3).selectExpr("CAST(id AS STRING) AS value")
    rows.write.format("partlog").options(topic="called", partitions="4", merge="false").mode("append").save(root)
(merged,) = call(f"merge(root => '{root}', topic => 'called')")
assert merged["segments_after"] < merged["segments_before"], merged
call(f"set_config(root => '{root}', topic => 'called', config => map('retention.ms', '1000000000000'))")
call(f"vacuum(root => '{root}', older_than => INTERVAL '7' DAY)")
rows.write.format("partlog").options(topic="deleted").mode("append").save(root)
call(f"delete_topic(root => '{root}', topic => 'deleted', dry_run => false)")
assert {row["topic"] for row in call(f"topics(root => '{root}')")} == {"called"}
assert sum(row["records"] for row in call(f"segments(root => '{root}', topic => 'called')")) == 400
"""
"""Calls procedures, and leaves the topic `called` with the numbers below 400."""

SHOWN = """
import os
import sys
import sparklog
from pyspark.errors import PySparkException
root, key, catalog = sys.argv[1:]
spark = sparklog.session()
def fails(act):
    try:
        act()
    except PySparkException as error:
        details = [getattr(error, name)() for name in ("getMessageParameters", "getStackTrace") if hasattr(error, name)]
        print(repr(error), error, error.__cause__, details, getattr(error, "_stacktrace", None), getattr(error, "desc", None))
    else:
        raise AssertionError("it does not fail")
rows = spark.range(10).selectExpr("CAST(id AS STRING) AS value")
marked = {"fs.marked.key": key}
rows.write.format("partlog").options(**marked, topic="orders").mode("append").save(root)
good = spark.read.format("partlog").options(**marked, subscribe="orders").load(root)
print(good, good.count(), good.inputFiles())
table = f"{catalog}.shown{abs(hash(root))}"
spark.sql(f"CREATE TABLE {table} AS SELECT value FROM {{rows}}", rows=rows)
for frame in (good, good.groupBy("partition").count(), spark.table(table), spark.table(f"partlog.`{root}`")):
    for mode in ("simple", "extended", "codegen", "cost", "formatted"):
        frame.explain(mode)
for name in (table, f"{catalog}.`{root}`"):
    for statement in ("SHOW CREATE TABLE {}", "DESCRIBE EXTENDED {}", "SHOW TBLPROPERTIES {}", "EXPLAIN EXTENDED SELECT * FROM {}"):
        try:
            print(spark.sql(statement.format(name)).collect())
        except PySparkException as error:
            print(error)
print(spark.sql(f"DESCRIBE NAMESPACE EXTENDED {catalog}.topics").collect())
wrong = marked | {"fs.s3a.secret.key": key}
fails(lambda: spark.read.format("partlog").options(**wrong).load(root + "-absent").collect())
fails(lambda: spark.read.format("partlog").options(**wrong).load("s3a://no-such-bucket/log").collect())
if "SPARK_REMOTE" not in os.environ:  # Spark itself shows paths in its event log
    fails(lambda: spark.read.format("partlog").load(f"s3a://key:{key}@bucket/log").collect())
fails(lambda: rows.write.format("partlog").options(**wrong, batch="1").mode("append").save(root))
fails(lambda: rows.selectExpr("value", "1 AS nonsense").write.format("partlog").options(**wrong).mode("append").save(root))
fails(lambda: rows.write.format("partlog").options(**marked, topic="no topic").mode("append").save(root))
late = rows.selectExpr("IF(value = '7', raise_error('told to'), value) AS value")
fails(lambda: late.write.format("partlog").options(**marked, topic="orders").mode("append").save(root))
fails(lambda: spark.sql(f"INSERT INTO {table} SELECT 1, 2, 3, 4, 5, 6, 7, 8"))
def streamed():
    stream = spark.readStream.format("partlog").options(**wrong, subscribe="absent").load(root).writeStream.format("noop")
    stream.option("checkpointLocation", root + "-failed").trigger(availableNow=True).start().awaitTermination()
fails(streamed)
stream = spark.readStream.format("partlog").options(**marked, subscribe="orders", startingOffsets="earliest").load(root)
out = stream.select("value").writeStream.format("partlog").options(**marked, topic="copy", checkpointLocation=root + "-marked")
query = out.trigger(availableNow=True).start(root)
query.awaitTermination()
print(query, query.recentProgress, query.lastProgress)
query.explain(True)
"""
"""Prints all that a user is shown of reads and writes that have a key among their options, also of those that fail."""
