"""Arguments of a wrong type, in the public calls: each is refused by its name, and nothing is done."""

import functools
import importlib
import inspect
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import sparklog
from sparklog import Consumer, Log, spark_functions
from sparklog.groups import OffsetTable, track, write_delta
from sparklog.ondisk.root import Root
from sparklog.ui import application, serve, serve_metrics
from sparklog.verify import verify

PUBLIC = ("sparklog", "sparklog.groups", "sparklog.consumer", "sparklog.spark_functions", "sparklog.ui", "sparklog.verify", "sparklog.log")


def parameters(kind: str) -> Iterator[tuple[str, str]]:
    """The call and the name of each public parameter that is annotated with this kind, or this kind and others."""
    for module in map(importlib.import_module, PUBLIC):
        for found in (getattr(module, name) for name in module.__all__):
            calls = {found.__qualname__: found} if inspect.isfunction(found) else {}
            if inspect.isclass(found):
                methods = inspect.getmembers(found, inspect.isfunction)
                calls = {f"{found.__name__}.{name}": method for name, method in methods if name[0] != "_" or name == "__init__"}
            for call, made in calls.items():
                yield from (
                    (call, each.name) for each in inspect.signature(made).parameters.values() if str(each.annotation).startswith(kind)
                )


def opened(topic, table, **options: object) -> Consumer:
    return Consumer(topic.root, "t", group_id="g", table=table, auto_offset_reset="earliest", **options)


def moving(name: str, call: Callable[..., object], **options: object) -> Callable[..., object]:
    """The call with the argument; `dry_run=False` is the dangerous one."""
    return lambda topic, table, given: call(table, **{"dry_run": False, **options, name: given})


BOOLEANS: dict[tuple[str, str], Callable[..., object]] = {
    ("Consumer.__init__", "enable_auto_commit"): lambda topic, table, given: opened(topic, table, enable_auto_commit=given),
    ("Consumer.close", "autocommit"): lambda topic, table, given: Consumer(topic.root, "t").close(given),
    ("Consumer.committed", "metadata"): lambda topic, table, given: Consumer(topic.root, "t").committed(("t", 0), given),
    ("Log.verify", "quick"): lambda topic, table, given: Log(topic.root).verify(quick=given),
    ("verify", "quick"): lambda topic, table, given: verify(Root.at(str(topic.root)), quick=given),
    ("Topic.show", "last"): lambda topic, table, given: Log(topic.root)["t"].show(last=given),
    ("serve", "public"): lambda topic, table, given: serve(topic.root, host="0.0.0.0", public=given),
    ("serve_metrics", "public"): lambda topic, table, given: serve_metrics(topic.root, host="0.0.0.0", public=given),
    **{
        (f"OffsetTable.{call.__name__}", name): moving(name, act)
        for call, act in (
            (OffsetTable.reset, lambda table, **options: table.reset("g", "earliest", **options)),
            (OffsetTable.load, lambda table, **options: table.load("g", "t,0,0\n", "csv", **options)),
            (OffsetTable.carry, lambda table, **options: table.carry("g", "t", "t", **options)),
        )
        for name in ("dry_run", "force")
    },
    ("OffsetTable.delete", "force"): lambda topic, table, given: table.delete("g", force=given),
}
PATHS_TOO = {("session", "delta"), ("configure", "delta")}
"""A text is the path of Delta's jars there."""
GIVEN_BACK = {("Report.__init__", "quick")}
"""Programs are given a Report, and do not make one."""


def test_every_public_boolean_is_here() -> None:
    assert set(parameters("bool")) - PATHS_TOO - GIVEN_BACK == BOOLEANS.keys()


@pytest.mark.parametrize("given", ["false", "False", "no", "", 0, 1, None])
@pytest.mark.parametrize(("call", "name"), BOOLEANS)
def test_what_is_no_boolean_is_refused(topic, table, call, name, given):
    with opened(topic, table) as consumer:
        consumer.poll()
    before = table.positions("g")
    with pytest.raises(TypeError) as raised:
        BOOLEANS[call, name](topic, table, given)
    assert str(raised.value) == f"`{name}` is {given!r}, of type {type(given).__name__}; it must be True or False"
    assert list(table.positions("g")) == list(before)


def test_a_boolean_of_numpy_is_one(topic, table):
    with opened(topic, table, enable_auto_commit=np.bool_(False), partition_assignment_strategy="exclusive") as consumer:
        assert consumer.poll()
    assert list(table.positions("g")) == []


def of_topic(call: str) -> Callable[..., object]:
    return lambda topic, table, **given: getattr(Log(topic.root)["t"], call)(**given)


def of_consumer(call: str, **always: object) -> Callable[..., object]:
    return lambda topic, table, **given: getattr(Consumer(topic.root, "t"), call)(**(always | given))


def of_table(call: str, **always: object) -> Callable[..., object]:
    return lambda topic, table, **given: getattr(table, call)(**({"group": "g"} | always | given))


RANGES = ("partition", "start", "end", "limit")
INTERVALS = (
    "auto_commit_interval_ms",
    "session_timeout_ms",
    "heartbeat_interval_ms",
    "max_poll_interval_ms",
    "poll_interval_ms",
    "idle_look_ms",
)
SIZES = ("max_poll_records", "fetch_max_bytes", "max_partition_fetch_bytes", "capacity", "metadata_max_age_ms", "consumer_timeout_ms")


@functools.cache
def unconnected() -> sparklog.Producer:
    """A producer of a server that does not run. A test needs no more, as the arguments are wrong."""
    return sparklog.Producer(bootstrap_servers="127.0.0.1:1", delivery_timeout_ms=1)


NUMBERS: dict[str, tuple[Callable[..., object], tuple[str, ...]]] = {
    "Consumer.__init__": (
        lambda topic, table, **given: opened(topic, table, partition_assignment_strategy="range", **given),
        (*INTERVALS, *SIZES),
    ),
    "Consumer.poll": (of_consumer("poll"), ("timeout_ms", "max_records")),
    "Consumer.poll_batches": (of_consumer("poll_batches"), ("timeout_ms", "max_records", "max_bytes")),
    "Consumer.seek": (of_consumer("seek", partition=("t", 0)), ("offset",)),
    "Consumer.fetch": (of_consumer("fetch", partition=("t", 0), offset=0), ("offset", "max_bytes")),
    "Log.verify": (lambda topic, table, **given: Log(topic.root).verify(**given), ("jobs",)),
    "verify": (lambda topic, table, **given: verify(Root.at(str(topic.root)), **given), ("jobs",)),
    "serve": (lambda topic, table, **given: serve(topic.root, **given), ("port",)),
    "serve_metrics": (lambda topic, table, **given: serve_metrics(topic.root, **given), ("port",)),
    "Placement.__init__": (lambda topic, table, **given: sparklog.Placement(topic.root, "t", **given), ("refresh_s",)),
    "Producer.__init__": (
        lambda topic, table, **given: sparklog.Producer(bootstrap_servers="127.0.0.1:1", **given),
        ("linger_ms", "max_request_size", "buffer_memory", "max_block_ms", "delivery_timeout_ms"),
    ),
    "RecordFuture.get": (lambda topic, table, **given: unconnected().send("t").get(**given), ("timeout",)),
    "Producer.send": (lambda topic, table, **given: unconnected().send("t", **given), ("partition", "timestamp_ms")),
    "Producer.flush": (lambda topic, table, **given: unconnected().flush(**given), ("timeout",)),
    "Producer.close": (lambda topic, table, **given: unconnected().close(**given), ("timeout",)),
    "Topic.batches": (of_topic("batches"), ("partition",)),
    "Topic.commits": (of_topic("commits"), ("limit",)),
    "Topic.head": (of_topic("head"), ("n", "partition")),
    "Topic.tail": (of_topic("tail"), ("n", "partition")),
    "Topic.show": (of_topic("show"), ("n", "partition", "truncate")),
    "Topic.read": (of_topic("read"), RANGES),
    "Topic.scan": (of_topic("scan"), RANGES),
    "Topic.segments": (of_topic("segments"), ("partition",)),
    "Topic.stats": (of_topic("stats"), ("partition", "hot_keys")),
    "Topic.hot_slots": (of_topic("hot_slots"), ("n", "records")),
    "Topic.suggest_moves": (of_topic("suggest_moves"), ("max_moves",)),
    "Topic.recent_keys": (of_topic("recent_keys"), ("n",)),
    "OffsetTable.doctor": (of_table("doctor"), ("watch_s",)),
    "murmur2_partition": (lambda topic, table, **given: spark_functions.murmur2_partition("key", **given), ("partitions",)),
    "murmur3_partition": (lambda topic, table, **given: spark_functions.murmur3_partition("key", **given), ("partitions",)),
    "partition_for": (lambda topic, table, **given: sparklog.partition_for("key", **given), ("partitions",)),
    "txn_options": (lambda topic, table, **given: sparklog.txn_options("name", **given), ("number",)),
}
TEXTS_TOO = {("OffsetTable.plan", "members"), ("plan", "members"), ("Topic.offsets_for_time", "time")} | {
    (f"Topic.{call}", name) for call in ("read", "scan") for name in ("since", "until")
}
"""A text is a time there, or the name of a member."""
OF_ANSWERS = (
    "Finding.",
    "GroupPlan.",
    "Position.",
    "Report.",
    "Tracker.",
    "RecordDeserializationError.",
)
"""Objects that programs are given, or that only carry numbers to a call that looks at them."""
ELSEWHERE = {("track", "interval_s"), ("DeltaOutput.poll", "timeout_ms"), ("DeltaOutput.poll", "max_records")}
"""These have tests of their own, or give the number to a call that is here."""


def test_every_public_number_is_here() -> None:
    found = {(call, name) for kind in ("int", "float") for call, name in parameters(kind) if not call.startswith(OF_ANSWERS)}
    assert found - TEXTS_TOO - ELSEWHERE == {(call, name) for call, (_, names) in NUMBERS.items() for name in names}


@pytest.mark.parametrize("given", ["5", True])
@pytest.mark.parametrize(("call", "name"), [(call, name) for call, (_, names) in NUMBERS.items() for name in names])
def test_what_is_no_number_is_refused(topic, table, call, name, given):
    with pytest.raises(TypeError, match=f"^`{name}` is {given!r}, of type {type(given).__name__}; it must be an? (integer|number)"):
        NUMBERS[call][0](topic, table, **{name: given})
    assert not table.exists()


@pytest.mark.parametrize("given", [None, 7, b"log", {"root": "log"}])
def test_what_is_no_path_is_refused(topic, table, given):
    there = {"table": table.path, "group": "g", "root": topic.root, "checkpoint": "c"}
    for name, call in {
        "root": lambda: Log(given),
        "root ": lambda: sparklog.Topic(given, "t"),
        "root  ": lambda: application(given),
        "table": lambda: application(topic.root, 7 if given is None else given),
        "path": lambda: OffsetTable(None, given),
        "path ": lambda: write_delta(given, **there),
        "checkpoint": lambda: write_delta("d", **(there | {"checkpoint": given})),
        "root   ": lambda: sparklog.attach(None, "name", given),
    }.items():
        with pytest.raises(TypeError, match=rf"^`{name.strip()}` is .*; it must be a path or URL"):
            call()


@pytest.mark.parametrize("name", ["key_deserializer", "value_deserializer", "on_assign", "on_revoke", "on_lost"])
def test_what_is_no_function_is_refused(topic, table, name):
    with pytest.raises(TypeError, match=f"^`{name}` is 'json', of type str; it must be a function"):
        opened(topic, table, **{name: "json"})
    assert not table.exists()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: sparklog.partition_for("a", "8"), "`partitions` is '8', of type str; it must be an integer"),
        (lambda: sparklog.partition_for("a", True), "`partitions` is True, of type bool; it must be an integer"),
        (lambda: spark_functions.murmur3_partition("a", 8.0), "`partitions` is 8.0, of type float; it must be an integer"),
        (lambda: sparklog.progress(None), "`query` is None, of type NoneType; it must be a streaming query, as start() returns it"),
        (
            lambda: track(None, "g", "log", "table"),
            "`query` is None, of type NoneType; it must be a streaming query, as start() returns it",
        ),
        (lambda: sparklog.attach(None, 7, "log"), "`name` is 7, of type int; it must be a string"),
    ],
)
def test_other_types_are_refused_by_the_name_of_the_argument(call, says):
    with pytest.raises(TypeError) as raised:
        call()
    assert str(raised.value) == says


LIST = "name each topic by itself, Consumer(root, 'a', 'b'), or give topics=['a', 'b']"
PAIRS = "it must be a list of TopicPartition"


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda root: Consumer(root, ["t"]), f"`names` has ['t'], of type list; {LIST}"),
        (lambda root: Consumer(root, "t", 7), f"`names` has 7, of type int; {LIST}"),
        (lambda root: Consumer(root, topics=7), "`topics` is 7, of type int; it must be a name, or a list of names"),
        (lambda root: Consumer(root, topics=[["t"]]), "`topics` is ['t'], of type list; it must be a string"),
        (lambda root: Consumer(root).subscribe([["t"]]), "`topics` is ['t'], of type list; it must be a string"),
        (lambda root: Consumer(root).subscribe(7), "`topics` is 7, of type int; it must be a name, or a list of names"),
        (lambda root: Consumer(root).subscribe(pattern=7), "`pattern` is 7, of type int; it must be a regular expression"),
        (lambda root: Consumer(root).partitions_for_topic(["t"]), "`name` is ['t'], of type list; it must be a string"),
        (lambda root: Consumer(root).assign("t"), f"`partitions` is 't', of type str; {PAIRS}"),
        (lambda root: Consumer(root).assign(7), f"`partitions` is 7, of type int; {PAIRS}"),
        (
            lambda root: Consumer(root).end_offsets(sparklog.TopicPartition("t", 0)),
            f"`partitions` is TopicPartition(topic='t', partition=0), of type TopicPartition; {PAIRS}",
        ),
        (lambda root: Consumer(Log(root), "t"), "`root` is of type Log; it must be a path or URL: give its `.root`"),
        (lambda root: sparklog.Topic(Log(root), "t"), "`root` is of type Log; it must be a path or URL: give its `.root`"),
        (lambda root: OffsetTable(Log(root), "table"), "`root` is of type Log; it must be a path or URL: give its `.root`"),
        (
            lambda root: OffsetTable(None, OffsetTable(None, "table")),
            "`path` is of type OffsetTable; it must be a path or URL: give its `.path`",
        ),
    ],
)
def test_a_first_argument_of_another_type_is_named(topic, call, says):
    with pytest.raises(TypeError) as raised:
        call(topic.root)
    assert str(raised.value) == says
