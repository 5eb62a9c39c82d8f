"""Mistakes of a batch write to that root."""

from mistakes import Mistake

V = "'v' AS value"

ROWS = [
    ("no column value", ["'v' AS val"], "COLUMN_REQUIRED", "no column `value`", "Add a column `value`"),
    ("no column value, but others", ["'a' AS name", "1 AS age"], "COLUMN_REQUIRED", "name, age", "Add a column `value`"),
    ("a column of its own", [V, "1 AS user"], "COLUMN_UNKNOWN", "`user`", "Drop or rename the column, or put it into the value"),
    ("a number for the key", [V, "1 AS key"], "COLUMN_TYPE", "`key`", "CAST(key AS STRING)"),
    ("a struct for the value", ["struct(1 AS a) AS value"], "COLUMN_TYPE", "`value`", "to_json(value)"),
    ("a number for the value", ["1 AS value"], "COLUMN_TYPE", "`value`", "CAST(value AS STRING)"),
    ("a map for headers", [V, "map('a', 'b') AS headers"], "COLUMN_TYPE", "`headers`", "transform(map_entries(headers)"),
    ("headers without names", [V, "array(struct('a', X'01')) AS headers"], "COLUMN_TYPE", "`headers`", "named_struct('key'"),
    ("a text for the partition", [V, "'1' AS partition"], "COLUMN_TYPE", "`partition`", "CAST(partition AS INT)"),
    ("milliseconds for the time", [V, "1700000000000 AS timestamp"], "COLUMN_TYPE", "`timestamp`", "timestamp_millis(timestamp)"),
    ("a partition too high", [V, "4 AS partition"], "PARTITION_OUT_OF_RANGE", "partition 4 of topic t", "Use a partition in that range"),
    ("a partition of -1", [V, "-1 AS partition"], "PARTITION_OUT_OF_RANGE", "partition -1 of topic t", "Use a partition in that range"),
    ("a time before 1970", [V, "timestamp'1960-01-01' AS timestamp"], "TIMESTAMP_NEGATIVE", "topic t", "Put earlier times into the value"),
    ("two megabytes", ["repeat('x', 2000000) AS value"], "RECORD_TOO_LARGE", "topic t, partition", "Make the record smaller"),
]

OPTIONS = [
    ("a typo in an option", {"partitons": 4}, "OPTION_UNKNOWN", "`partitons`", "Did you mean `partitions`?"),
    ("a broker's name of an option", {"num.partitions": 4}, "OPTION_UNKNOWN", "`num.partitions`", "Did you mean `partitions`?"),
    ("the name of other sources", {"compression": "zstd"}, "OPTION_UNKNOWN", "`compression`", "Did you mean `compression.type`?"),
    ("compaction", {"cleanup.policy": "compact"}, "OPTION_UNKNOWN", "`cleanup.policy`", "There is no compaction"),
    ("replicas", {"replication.factor": 3}, "OPTION_UNKNOWN", "`replication.factor`", "There are no replicas"),
    ("other partitions", {"partitions": 8}, "OPTION_CONTRADICTS_TOPIC", "topic t under", "Leave the option out", "partlog.add_partitions"),
    ("another partitioner", {"partitioner": "murmur2"}, "OPTION_CONTRADICTS_TOPIC", "topic t under", "Leave the option out"),
    ("a word for partitions", {"partitions": "four"}, "OPTION_VALUE", "`partitions`", "it must be an integer from 1 to 10000"),
    ("no partitions", {"partitions": 0}, "OPTION_VALUE", "`partitions`", "it must be an integer from 1 to 10000"),
    ("a time with a unit", {"retention.ms": "7d"}, "OPTION_VALUE", "`retention.ms`", "it must be an integer", "in milliseconds"),
    ("bytes with a unit", {"segment.bytes": "1g"}, "OPTION_VALUE", "`segment.bytes`", "it must be an integer", "in bytes"),
    ("an unknown codec", {"compression.type": "brotli"}, "OPTION_VALUE", "`compression.type`", "it must be one of none, gzip"),
    ("half a transaction", {"txnAppId": "job"}, "OPTION_VALUE", "`txnAppId`", "give both or none"),
    (
        "a date for its number",
        {"txnAppId": "job", "txnVersion": "2024-01-01"},
        "OPTION_VALUE",
        "`txnVersion`",
        "it must be an integer from 0",
    ),
    ("a space in the topic", {"topic": "my topic"}, "TOPIC_NAME_ILLEGAL", "'my topic'", "Use 1 to 249 of the characters"),
    ("the topic of groups", {"topic": "__consumer_offsets"}, "TOPIC_OF_SERVER", "Topic __consumer_offsets under", "Write to another topic"),
    ("two topics", {"topic": "t,u"}, "TOPIC_NAME_ILLEGAL", "'t,u'", "Use 1 to 249 of the characters"),
]

ROOTS = [
    ("a home directory", lambda w: "~/log", "OPTION_VALUE", "`path`", "write /"),
    ("a file for a root", lambda w: w.file(), "ROOT_NOT_A_DIRECTORY", "/file", "Give the directory that holds the topics"),
    ("a partition's directory", lambda w: w.root / "t-0", "PARTITION_DIRECTORY", "partition 0 of topic t", "Give the directory above it"),
    ("the folder _partlog", lambda w: w.root / "_partlog", "LOG_DIRECTORY", "/_partlog", "Give the root"),
    ("a root in a root", lambda w: w.root / "inner", "ROOT_IN_ROOT", "/inner is inside the root", "write the topics to"),
    (
        "a root in a partition's directory",
        lambda w: w.root / "t-0" / "inner",
        "ROOT_IN_ROOT",
        "/t-0/inner is inside the root",
        "Give a folder outside",
    ),
    ("a place that cannot be written to", lambda w: "/proc/log", "ROOT_NOT_WRITABLE", "/proc/log", "or choose another root"),
]
SPARKS_SCHEMA = "CANNOT_CREATE_DATA_SOURCE_TABLE.EXTERNAL_METADATA_UNSUPPORTED"
NOT_ASKED = "Spark's: it refuses before the source is asked"

TABLE = [
    *(Mistake(what, lambda w, c=columns: w.save(*c), f"PARTLOG_{id}", tuple(says)) for what, columns, id, *says in ROWS),
    *(Mistake(what, lambda w, o=given: w.save(**o), f"PARTLOG_{id}", tuple(says)) for what, given, id, *says in OPTIONS),
    *(Mistake(what, lambda w, at=root: w.save(root=at(w)), f"PARTLOG_{id}", tuple(says)) for what, root, id, *says in ROOTS),
    Mistake(
        "a row for the topic of groups",
        lambda w: w.save(V, "'__consumer_offsets' AS topic", topic=None),
        "PARTLOG_TOPIC_OF_SERVER",
        ("their server alone writes it", "Write to another topic"),
    ),
    Mistake("mode overwrite", lambda w: w.save(mode="overwrite"), "PARTLOG_SAVE_MODE", ("mode overwrite", 'Write with .mode("append")')),
    Mistake("a typo in the mode", lambda w: w.save(mode="apend"), "INVALID_SAVE_MODE", ('"apend"', 'Valid save modes include "append"')),
    Mistake(
        "no mode",
        lambda w: w.save(mode="error"),
        "PARTLOG_TOPIC_EXISTS",
        ("Topic t already exists under the root", 'with .mode("append")'),
    ),
    Mistake(
        "no mode, and topics in a column",
        lambda w: w.save(V, "'t' AS topic", mode="error", topic=None),
        "PARTLOG_TOPIC_REQUIRED",
        ("has topics already", 'Write .mode("append")'),
    ),
    Mistake(
        "a typo in the format",
        lambda w: w.rows().write.format("sparklogs").mode("append").save(str(w.root)),
        "Py4JJavaError",
        ("[DATA_SOURCE_NOT_FOUND] Failed to find the data source: sparklogs",),
        "C",
        why="Spark's: it finds a format by its name",
    ),
    Mistake("mode ignore", lambda w: w.save(mode="ignore"), right=lambda nothing: nothing is None),
    Mistake("no topic", lambda w: w.save(topic=None), "PARTLOG_TOPIC_REQUIRED", ("No topic is given", 'Set option("topic"')),
    Mistake(
        "subscribe for the topic", lambda w: w.save(topic=None, subscribe="t"), "PARTLOG_TOPIC_REQUIRED", ("No topic", 'Set option("topic"')
    ),
    Mistake(
        "a null topic",
        lambda w: w.save(V, "CAST(NULL AS STRING) AS topic", topic=None),
        "PARTLOG_TOPIC_NULL",
        ("A row has a null topic", "Filter such rows"),
    ),
    Mistake(
        "no path",
        lambda w: w.rows().write.format("partlog").option("topic", "t").mode("append").save(),
        "PARTLOG_ROOT_REQUIRED",
        ("No root is given", ".save(root)"),
    ),
    Mistake("the offset of a copied record", lambda w: w.save(V, "7L AS offset", root=w.tmp / "new") or w, right=lambda w: w.count() == 1),
    Mistake("Kafka's settings", lambda w: w.save(root=w.tmp / "new", **{"kafka.acks": "all"}) or w, right=lambda w: w.count() == 1),
    Mistake(
        "partitionBy",
        lambda w: w.writer().partitionBy("key").mode("append").save(str(w.root)),
        "IllegalArgumentException",
        ("partitioning or clustering columns do not match", "identity(key)"),
        "C",
        why=f"{NOT_ASKED}, in words of a table",
    ),
    Mistake(
        "bucketBy",
        lambda w: w.writer().bucketBy(4, "key").mode("append").save(str(w.root)),
        "_LEGACY_ERROR_TEMP_1312",
        ("does not support bucketBy",),
        "B",
        why=NOT_ASKED,
    ),
    Mistake(
        "saveAsTable",
        lambda w: w.writer().option("path", str(w.root)).mode("append").saveAsTable("mistaken_new"),
        SPARKS_SCHEMA,
        ("Please remove the schema",),
        "D",
        why=f"{NOT_ASKED}; there is no schema to remove",
    ),
]
