"""Mistakes of streams that are told where a stream is defined or started."""

from mistakes import Mistake
from mistakes.writing import NOT_ASKED, SPARKS_SCHEMA


def sink(w, **options):
    return w.stream().writeStream.format("partlog").options(**options)


LOADED = [
    ("a typo in an option", {"subscrib": "t"}, "OPTION_UNKNOWN", "`subscrib`", "Did you mean `subscribe`?"),
    (
        "a word for a number",
        {"subscribe": "t", "maxOffsetsPerTrigger": "many"},
        "OPTION_VALUE",
        "`maxOffsetsPerTrigger`",
        "an integer from 1",
    ),
    ("no offsets a trigger", {"subscribe": "t", "maxOffsetsPerTrigger": 0}, "OPTION_VALUE", "`maxOffsetsPerTrigger`", "an integer from 1"),
    ("a unit of bytes", {"subscribe": "t", "maxBytesPerTrigger": "10m"}, "OPTION_VALUE", "`maxBytesPerTrigger`", "in bytes"),
    ("an end", {"subscribe": "t", "endingOffsets": "latest"}, "OPTION_VALUE", "`endingOffsets`", "leave it out, or read in a batch"),
    ("a broken pattern", {"subscribePattern": "t["}, "OPTION_VALUE", "`subscribePattern`", "a regular expression of Java"),
    (
        "two ways to name topics",
        {"subscribe": "t", "assign": '{"t":[0]}'},
        "OPTION_CONFLICT",
        "`subscribe` and `assign`",
        "Give one of them",
    ),
    (
        "a number for the start",
        {"subscribe": "t", "startingOffsets": "0"},
        "OPTION_VALUE",
        "`startingOffsets`",
        "in a stream it may also be latest",
    ),
    ("a missing topic", {"subscribe": "T"}, "TOPIC_NOT_FOUND", "Topic T", "Existing topics: t."),
]

STARTED = [
    ("a typo in an option of a sink", {"partitons": 4}, "OPTION_UNKNOWN", "`partitons`", "Did you mean `partitions`?"),
    ("a word for partitions", {"partitions": "four"}, "OPTION_VALUE", "`partitions`", "an integer from 1 to 10000"),
    ("a codec that is unknown", {"compression.type": "brotli"}, "OPTION_VALUE", "`compression.type`", "one of none, gzip"),
    ("an illegal topic of a sink", {"topic": "bad name"}, "TOPIC_NAME_ILLEGAL", "'bad name'", "Use 1 to 249 of the characters"),
    ("an empty topic", {"topic": ""}, "TOPIC_NAME_ILLEGAL", "it is empty", "Use 1 to 249 of the characters"),
    ("a batch write's name", {"txnAppId": "a", "txnVersion": 1}, "OPTION_VALUE", "`txnAppId`", "leave it out"),
]

RUNNING = "Spark's: it asks the sink when the query runs, and shows the error as that of the query"


def started(w, rows=None, at=None, **options):
    rows = w.stream() if rows is None else rows
    given = {"topic": "u", "checkpointLocation": f"{w.tmp}/checkpoint", **options}
    return rows.writeStream.format("partlog").options(**given).trigger(availableNow=True).start(at or f"{w.tmp}/new")


TABLE = [
    *(
        Mistake(
            what,
            lambda w, o=options: w.spark.readStream.format("partlog").options(**o).load(str(w.root)),
            f"PARTLOG_{id}",
            tuple(says),
        )
        for what, options, id, *says in LOADED
    ),
    Mistake(
        "a missing root of a stream",
        lambda w: w.spark.readStream.format("partlog").option("subscribe", "t").load(f"{w.tmp}/rooot"),
        "PARTLOG_ROOT_NOT_FOUND",
        ("/rooot", "Check the path"),
    ),
    *(Mistake(what, lambda w, o=options: started(w, **o), f"PARTLOG_{id}", tuple(says)) for what, options, id, *says in STARTED),
    Mistake(
        "a file for a sink's root",
        lambda w: started(w, at=str(w.file())),
        "PARTLOG_ROOT_NOT_A_DIRECTORY",
        ("/file", "Give the directory that holds the topics"),
    ),
    Mistake(
        "rows of a stream without a value",
        lambda w: started(w, w.stream().selectExpr("value AS v")),
        "STREAM_FAILED",
        ("PARTLOG_COLUMN_REQUIRED", 'selectExpr("to_json(struct(*)) AS value")'),
        "B",
        late=lambda query: query.awaitTermination(),
        why=RUNNING,
    ),
    Mistake(
        "other partitions than the topic has",
        lambda w: started(w, at=str(w.root), topic="t", partitions=9),
        "STREAM_FAILED",
        ("PARTLOG_OPTION_CONTRADICTS_TOPIC", "Leave the option out"),
        "B",
        late=lambda query: query.awaitTermination(),
        why=RUNNING,
    ),
    Mistake(
        "a checkpoint of another source",
        lambda w: w.reused(),
        "STREAM_FAILED",
        ("PARTLOG_STREAM_UNSUBSCRIBED", "has read topic t"),
        "B",
        late=lambda query: query.awaitTermination(),
        why="Spark's: it opens the checkpoint when the query runs",
    ),
    Mistake(
        "partitionBy of a stream",
        lambda w: w.partitioned(),
        right=lambda columns: columns == ["key", "value"],
        grade="C",
        why="Spark drops it before the sink is asked: records are routed by key, as without it",
    ),
    Mistake(
        "an aggregate without a watermark",
        lambda w: started(w, w.stream().groupBy("key").count().selectExpr("key", "CAST(count AS STRING) AS value")),
        "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION",
        ("append", "without watermark"),
        "B",
        why="Spark's: without a remedy",
    ),
    Mistake(
        "a continuous trigger",
        lambda w: (
            w.stream()
            .writeStream.format("partlog")
            .options(topic="u", checkpointLocation=f"{w.tmp}/c")
            .trigger(continuous="1 second")
            .start(f"{w.tmp}/new")
        ),
        "_LEGACY_ERROR_TEMP_2253",
        ("partlog does not support continuous processing",),
        "B",
        why="Spark's: without a remedy",
    ),
    Mistake(
        "a schema of a stream",
        lambda w: w.spark.readStream.schema("value STRING").format("partlog").option("subscribe", "t").load(str(w.root)),
        "_LEGACY_ERROR_TEMP_2242",
        ("does not support user-specified schema",),
        "B",
        why="Spark's: without a remedy",
    ),
    Mistake(
        "no path",
        lambda w: w.spark.readStream.format("partlog").option("subscribe", "t").load(),
        "PARTLOG_ROOT_REQUIRED",
        ("No root is given", ".load(root)"),
    ),
    Mistake(
        "a sink without a path",
        lambda w: sink(w, topic="u", checkpointLocation=f"{w.tmp}/checkpoint").start(),
        "PARTLOG_ROOT_REQUIRED",
        ("No root is given", ".save(root)"),
    ),
    Mistake(
        "a checkpoint in the root",
        lambda w: sink(w, topic="u", checkpointLocation=f"{w.root}/checkpoint").start(f"{w.tmp}/new"),
        "PARTLOG_CHECKPOINT_IN_ROOT",
        ("root/checkpoint of a new query", "Give a checkpointLocation outside"),
    ),
    Mistake(
        "no checkpoint",
        lambda w: sink(w, topic="u").start(f"{w.tmp}/new"),
        "_LEGACY_ERROR_TEMP_1298",
        ("checkpointLocation must be specified", 'option("checkpointLocation", ...)'),
    ),
    Mistake("show", lambda w: w.stream().show(), "_LEGACY_ERROR_TEMP_3102", ("streaming sources", "executed with writeStream.start()")),
    Mistake(
        "a batch write of a stream",
        lambda w: w.stream().write.format("partlog"),
        "CALL_ON_STREAMING_DATASET_UNSUPPORTED",
        ("`write` can not be called on streaming",),
        "B",
        why=NOT_ASKED,
    ),
    Mistake(
        "toTable",
        lambda w: sink(w, path=f"{w.tmp}/new", topic="u", checkpointLocation=f"{w.tmp}/checkpoint").toTable("mistaken_new"),
        SPARKS_SCHEMA,
        ("Please remove the schema",),
        "D",
        why=f"{NOT_ASKED}; there is no schema to remove",
    ),
]
