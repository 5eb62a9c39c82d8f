"""Mistakes of streams that are told where a stream is defined or started."""

from mistakes import Mistake
from mistakes.writing import NOT_ASKED, SPARKS_SCHEMA


def sink(w, **options):
    return w.stream().writeStream.format("partlog").options(**options)


TABLE = [
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
