"""Mistakes of Python without Spark: a root with the topic t of 2 partitions, offsets 0 to 24 and 0 to 9, and no offset table yet."""

import sparklog
from mistakes import Mistake
from sparklog import Consumer, Log
from sparklog.groups import OffsetTable

LOGS = [
    ("a typo in the path", lambda w: Log(w.tmp / "rooot"), "ROOT_NOT_FOUND", "/rooot", "Check the path"),
    ("no path", lambda w: Log(""), "ROOT_REQUIRED", "No root is given", "Give the directory"),
    ("a file for a root", lambda w: Log(w.file()), "ROOT_NOT_A_DIRECTORY", "/file", "Give the directory that holds the topics"),
    ("a directory that is no root", lambda w: Log(w.folder()), "ROOT_WITHOUT_LOG", "/folder", "Give the directory"),
    ("a home directory", lambda w: Log("~/log"), "OPTION_VALUE", "~/log", "write /"),
    ("a store of objects", lambda w: Log("gs://b/log"), "STORE_UNSUPPORTED", "gs://b/log", "by `filesystem=`"),
    ("the folder _partlog", lambda w: Log(w.root / "_partlog"), "LOG_DIRECTORY", "/_partlog", "Give the root"),
    ("a missing topic", lambda w: Log(w.root)["T"], "TOPIC_NOT_FOUND", "Topic T", "Existing topics: t."),
    ("a missing partition", lambda w: w.topic.read(2), "PARTITION_NOT_FOUND", "partition 2 of topic t", "in that range only"),
    ("Kafka's -1", lambda w: w.topic.read(start=-1), "OPTION_VALUE", "`start`", "leave `start` out for the earliest"),
    ("an offset beyond the end", lambda w: w.topic.read(0, start=26), "OFFSETS_OUT_OF_RANGE", "topic t, partition 0", "in that range"),
    ("an end before the start", lambda w: w.topic.read(0, 5, 2), "OFFSETS_BACKWARDS", "topic t, partition 0", "Give an end that is not"),
    ("times the wrong way round", lambda w: w.topic.read(since=2, until=1), "OPTION_VALUE", "`until`", "give a time that is not before"),
    ("a time that is none", lambda w: w.topic.offsets_for_time("14.11.2023"), "OPTION_VALUE", "`time`", "a time is milliseconds"),
    ("a time in seconds", lambda w: w.topic.offsets_for_time(1700000000), "OPTION_VALUE", "`time`", "append 000"),
    ("a time in seconds, as text", lambda w: w.topic.read(since="1700000000"), "OPTION_VALUE", "`since`", "append 000"),
    ("a typo in a column", lambda w: w.topic.read(columns=["k"]), "OPTION_VALUE", "`columns`", "is not one of key, value"),
    ("a number below 0", lambda w: w.topic.head(-1), "OPTION_VALUE", "`n`", "it must not be negative"),
    ("a negative number for txn_options", lambda w: sparklog.txn_options("a", -1), "OPTION_VALUE", "`number`", "it must not be negative"),
    ("a setting's short name", lambda w: sparklog.session(conf={"master": "local"}), "SESSION_SETTING", "`master`", "Use full names"),
    (
        "a catalog with a dash",
        lambda w: sparklog.attach(None, "my-log", w.root),
        "OPTION_VALUE",
        "`name`",
        "digits and _",
        "such as my_log",
    ),
    (
        "a root for a catalog's name",
        lambda w: sparklog.attach(None, str(w.root), "log"),
        "OPTION_VALUE",
        "root comes after",
        "digits and _",
    ),
    ("a consumer's missing topic", lambda w: Consumer(w.root, "T"), "TOPIC_NOT_FOUND", "Topic T", "Existing topics: t."),
    ("a group without a table", lambda w: Consumer(w.root, "t", group_id="g"), "GROUP_REQUIRED", "`table`", "Give Consumer() both"),
    (
        "Kafka's old reset",
        lambda w: Consumer(w.root, auto_offset_reset="smallest"),
        "OPTION_VALUE",
        "`auto_offset_reset`",
        "earliest, latest",
    ),
    ("commit without a group", lambda w: Consumer(w.root, "t").commit(), "GROUP_REQUIRED", "`group_id` is not given", "both `group_id`"),
    ("poll without topics", lambda w: Consumer(w.root).poll(), "NOT_SUBSCRIBED", "reads nothing", "Name topics when you make the consumer"),
    ("a table in the root", lambda w: OffsetTable(w.root, w.root / "o").groups(), "TABLE_IN_ROOT", "root/o", "outside"),
    ("a missing table", lambda w: w.table.positions("g"), "OFFSETS_TABLE_NOT_FOUND", "/offsets", "Check the path"),
    (
        "reset of a running group",
        lambda w: w.running(),
        "GROUP_RUNNING",
        "Group g in the offset table",
        "Stop the program that runs the group",
    ),
]

TYPES = [
    ("a text for a partition", lambda w: w.topic.read("0"), "`partition` is '0'", "it must be an integer"),
    ("a word for an offset", lambda w: w.topic.read(start="earliest"), "`start` is 'earliest'", "leave `start` out for the earliest"),
    ("a time as a float", lambda w: w.topic.offsets_for_time(1.7e9), "`time` is 1700000000.0", "it must be an integer (milliseconds since"),
    ("a number for a key", lambda w: w.topic.read(key=7), "a key is str, bytes or None", "not int"),
    ("a text for columns", lambda w: w.topic.read(columns="key"), "`columns` is 'key'", "it must be a list of names"),
    ("a text for txn_options", lambda w: sparklog.txn_options("a", "b"), "`number` is 'b'", "it must be an integer"),
    ("kafka-python's servers", lambda w: Consumer("t", bootstrap_servers="b:9092"), "`bootstrap_servers`", "give the root"),
    ("confluent-kafka's list of topics", lambda w: Consumer(w.root, ["t"]), "`names` has ['t'], of type list", "topics=['a', 'b']"),
    ("confluent-kafka's dict", lambda w: Consumer({"group.id": "g"}), "`group.id`", "give `group_id`, its name, and `table`"),
]

TABLE = [
    *(Mistake(what, act, f"PARTLOG_{id}", tuple(says)) for what, act, id, *says in LOGS),
    *(Mistake(what, act, "TypeError", tuple(says)) for what, act, *says in TYPES),
]
