"""Mistakes of a batch read of a root that has 20 records of the topic t in 4 partitions.

Spark asks the source of a batch read nothing before the first action, so that is the call which is to tell of a mistake.
"""

from mistakes import ACTION, Mistake

OPTIONS = [
    ("a typo in an option", {"subscrib": "t"}, "OPTION_UNKNOWN", "`subscrib`", "Did you mean `subscribe`?"),
    ("topics for topic", {"topics": "t"}, "OPTION_UNKNOWN", "`topics`", "Did you mean `topic`?"),
    ("an option of files", {"recursiveFileLookup": True}, "OPTION_UNKNOWN", "`recursiveFileLookup`", "sparklog options` to list"),
    ("a missing topic", {"subscribe": "T"}, "TOPIC_NOT_FOUND", "Topic T", "Existing topics: t.", "Check the name"),
    ("one of two topics is missing", {"subscribe": "t,u"}, "TOPIC_NOT_FOUND", "Topic u", "Check the name"),
    ("an empty subscribe", {"subscribe": ""}, "OPTION_VALUE", "`subscribe`", "it must have one name or more"),
    ("a broken pattern", {"subscribePattern": "t["}, "OPTION_VALUE", "`subscribePattern`", "regular expression"),
    ("a glob for a pattern", {"subscribePattern": "*"}, "OPTION_VALUE", "`subscribePattern`", "regular expression"),
    ("subscribe and assign", {"subscribe": "t", "assign": '{"t":[0]}'}, "OPTION_CONFLICT", "`subscribe` and `assign`", "Give one of them"),
    ("a name for assign", {"assign": "t"}, "OPTION_VALUE", "`assign`", "it must be JSON that names topics and partitions"),
    ("assign beyond the last partition", {"assign": '{"t":[4]}'}, "PARTITION_NOT_FOUND", "partition 4 of topic t", "in that range only"),
    ("one offset for all", {"startingOffsets": 0}, "OPTION_VALUE", "`startingOffsets`", "it must be earliest, or JSON"),
    ("latest for the start", {"startingOffsets": "latest"}, "OPTION_VALUE", "`startingOffsets`", "it must be earliest, or JSON"),
    ("earliest for the end", {"endingOffsets": "earliest"}, "OPTION_VALUE", "`endingOffsets`", "it must be latest, or JSON"),
    (
        "a dict of Python's",
        {"startingOffsets": "{'t': {'0': 0}}"},
        "OPTION_VALUE",
        "`startingOffsets`",
        "it is not valid JSON: it is wrong at character 2",
        "give JSON by topic or partition",
    ),
    ("a time that is none", {"startingTimestamp": "yesterday"}, "OPTION_VALUE", "`startingTimestamp`", "it must be milliseconds"),
    (
        "a time after all records",
        {"startingTimestamp": "2199-01-01"},
        "TIMESTAMP_NOT_FOUND",
        "topic t",
        "startingOffsetsByTimestampStrategy=latest",
    ),
    ("a time in seconds", {"startingTimestamp": 1700000000}, "OPTION_VALUE", "`startingTimestamp`", "append 000"),
    (
        "a time in seconds, by partition",
        {"startingOffsetsByTimestamp": '{"t":{"0":1700000000,"1":0,"2":0,"3":0}}'},
        "OPTION_VALUE",
        "1700000000 for partition 0 of topic t is no time",
        "append 000",
    ),
    ("a flag that is none", {"failOnDataLoss": "no"}, "OPTION_VALUE", "`failOnDataLoss`", "it must be one of true, false"),
    ("a number that is none", {"minPartitions": "many"}, "OPTION_VALUE", "`minPartitions`", "it must be an integer from 1"),
    ("a number below 0", {"maxRecordsPerPartition": -1}, "OPTION_VALUE", "`maxRecordsPerPartition`", "it must be an integer from 1"),
]

OFFSETS = [
    ("a partition left out", '{"t":{"0":0}}', "OPTION_VALUE", "partition 1 of topic t, which is read", "give an offset"),
    ("another topic too", '{"t":{"0":0,"1":0,"2":0,"3":0},"u":{"0":0}}', "OPTION_VALUE", "topic u, which is not read", "leave it out"),
    ("broken JSON", '{"t":{"0":0', "OPTION_VALUE", "it is not valid JSON: it breaks off", "give JSON by topic or partition"),
    ("a partition twice", '{"t":{"0":0,"0":1}}', "OPTION_VALUE", "it is not valid JSON: the name 0 is there twice", "give JSON"),
    ("an offset of -3", '{"t":{"0":-3,"1":0,"2":0,"3":0}}', "OPTION_VALUE", "-3 is not an offset", "give offsets from 0 on"),
    ("latest for the start of a partition", '{"t":{"0":-1,"1":0,"2":0,"3":0}}', "OPTION_VALUE", "-1 (latest)", "give offsets, or -2"),
    ("an offset beyond the end", '{"t":{"0":99,"1":0,"2":0,"3":0}}', "OFFSETS_OUT_OF_RANGE", "topic t, partition 0", "in that range"),
    (
        "a text for an offset",
        '{"t":{"0":"0","1":0,"2":0,"3":0}}',
        "OPTION_VALUE",
        "for partition 0 of topic t",
        "an integer, as it must be",
    ),
]

ROOTS = [
    ("a typo in the path", lambda w: w.tmp / "rooot", "ROOT_NOT_FOUND", "/rooot", "Check the path"),
    ("a file for a root", lambda w: w.file(), "ROOT_NOT_A_DIRECTORY", "/file", "Give the directory that holds the topics"),
    ("a directory that is no root", lambda w: w.folder(), "ROOT_WITHOUT_LOG", "/folder", "Give the directory that holds the topics"),
    ("a partition's directory", lambda w: w.root / "t-0", "PARTITION_DIRECTORY", "partition 0 of topic t", "Give the directory above it"),
    ("the folder _partlog", lambda w: w.root / "_partlog", "LOG_DIRECTORY", "/_partlog", "Give the root"),
    ("the topic in the path", lambda w: w.root / "t", "ROOT_NOT_FOUND", "root/t", "Check the path"),
    ("a glob for a path", lambda w: w.root / "t-*", "ROOT_NOT_FOUND", "root/t-*", "Check the path"),
]

TABLE = [
    *(Mistake(what, lambda w, o=given: w.read(**o), f"PARTLOG_{id}", tuple(says), late=ACTION) for what, given, id, *says in OPTIONS),
    *(
        Mistake(
            f"startingOffsets: {what}", lambda w, j=json: w.read(subscribe="t", startingOffsets=j), f"PARTLOG_{id}", (*says,), late=ACTION
        )
        for what, json, id, *says in OFFSETS
    ),
    *(Mistake(what, lambda w, at=root: w.read(at(w)), f"PARTLOG_{id}", tuple(says), late=ACTION) for what, root, id, *says in ROOTS),
    Mistake(
        "the end before the start",
        lambda w: w.read(startingOffsets='{"t":{"0":3,"1":0,"2":0,"3":0}}', endingOffsets='{"t":{"0":1,"1":1,"2":1,"3":1}}'),
        "PARTLOG_OFFSETS_BACKWARDS",
        ("topic t, partition 0", "Give an end that is not before the start"),
        late=ACTION,
    ),
    Mistake("no path", lambda w: w.format().load(), "PARTLOG_ROOT_REQUIRED", ("No root is given", ".load(root)")),
    Mistake(
        "Kafka's servers and no path",
        lambda w: w.format().options(**{"kafka.bootstrap.servers": "b:9092", "subscribe": "t"}).load(),
        "PARTLOG_ROOT_REQUIRED",
        ("No root is given", ".load(root)"),
    ),
    Mistake("two roots", lambda w: w.format().load([str(w.root)] * 2), "PARTLOG_OPTION_VALUE", ("`paths`", "combine them with union()")),
    Mistake("a home directory", lambda w: w.read("~/log"), "PARTLOG_OPTION_VALUE", ("`path`", "write /")),
    Mistake(
        "a store of objects", lambda w: w.read("gs://b/log"), "PARTLOG_STORE_UNSUPPORTED", ("gs://b/log", "Use a path on a local disk")
    ),
    Mistake("Kafka's servers", lambda w: w.read(**{"kafka.bootstrap.servers": "b:9092"}), right=lambda df: df.count() == 20),
    Mistake("an option in another case", lambda w: w.read(SUBSCRIBE="t"), right=lambda df: df.count() == 20),
    Mistake("a value in another case", lambda w: w.read(startingOffsets="EARLIEST"), right=lambda df: df.count() == 20),
    Mistake("a space between topics", lambda w: w.read(subscribe="t, t"), right=lambda df: df.count() == 20),
    Mistake("an option of a stream", lambda w: w.read(maxOffsetsPerTrigger=5), right=lambda df: df.count() == 20),
    Mistake("text beside the binary key", lambda w: w.read().where("key = 'k3'"), right=lambda df: df.count() == 1),
    Mistake(
        "a number beside the binary key",
        lambda w: w.read().where("key = 3"),
        "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES",
        ('"(key = 3)"', '("BINARY" and "INT")'),
        "B",
        why="Spark's: without a remedy",
    ),
    Mistake(
        "a typo in a column", lambda w: w.read().select("timestmp"), "UNRESOLVED_COLUMN.WITH_SUGGESTION", ("`timestmp`", "Did you mean")
    ),
    Mistake(
        "a schema",
        lambda w: w.spark.read.schema("value STRING").format("partlog").load(str(w.root)),
        "IllegalArgumentException",
        ("does not support user specified schema", "don't specify the schema"),
        "B",
        why="Spark's: without a condition",
    ),
]
