"""The public names of sparklog with their docstrings, and the log, the offset table and the consumers that their examples use."""

import atexit
import doctest
import functools
import inspect
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from coordinated import position, topic_of_groups
from handmade import TIME, Record, Topic
from owners import Own

import sparklog
from sparklog import consumer, groups, spark_functions
from sparklog.serve.process import Server

MODULES: tuple[ModuleType, ...] = (sparklog, consumer, groups, spark_functions)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def documented() -> dict[str, Any]:
    """Functions, classes, and what a class itself has, by name: `Log`, `Log.topics`, `partition_for`."""
    found: dict[str, Any] = {}
    for module in MODULES:
        for name in module.__all__:
            given = getattr(module, name)
            if inspect.isfunction(given) or (inspect.isclass(given) and given.__module__.startswith("sparklog")):
                found[name] = given
            if inspect.isclass(given):
                found |= {f"{name}.{each}": member for each, member in _members(given)}
    return found


def _members(given: type) -> Iterator[tuple[str, Any]]:
    for name, member in vars(given).items():
        public = not name.startswith("_") or (name == "__init__" and member.__doc__ is not None)
        if public and isinstance(member, FunctionType | property):
            yield name, member


def needs_spark(given: Any) -> bool:
    """Whether the examples of a docstring use a Spark session."""
    return "spark" in (given.__doc__ or "").partition("Example:")[2].lower()


def failures(name: str) -> list[str]:
    """Runs the example of a name in the current folder, which must be empty. Returns the differences from its output."""
    found: list[str] = []
    text = inspect.getdoc(documented()[name]) or ""
    test = doctest.DocTest(doctest.DocTestParser().get_examples(text), world(name), name, None, 0, text)
    doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=found.append)
    return found


def world(name: str) -> dict[str, Any]:
    """The names that examples use. `events` is a root with 20 records, and the group `billing` in `offsets` has read 13 of them."""
    topic = Topic(Path("events"), "orders", partitions=2)
    made = [Record(b'{"cents": %d}' % (100 * n), b"customer-%d" % (n % 4), TIME + 1000 * n) for n in range(20)]
    for partition in range(2):
        topic.append([each for each in made if sparklog.partition_for(each.key, 2) == partition], partition)
    table = groups.OffsetTable("events", "offsets")
    Own(table, "billing", {"orders": {0: 3, 1: 10}}).end()
    names: dict[str, Any] = {"sparklog": sparklog, "log": sparklog.Log("events"), "topic": sparklog.Topic("events", "orders")}
    names |= {"table": table, "TopicPartition": sparklog.TopicPartition}
    if name.startswith("TopicGroups"):
        names["shop"] = _shop()
    if name.startswith(("Consumer.", "DeltaOutput")):
        commits_by_itself = name.startswith("Consumer.")
        given = {"group_id": "billing", "table": "offsets", "enable_auto_commit": commits_by_itself, "consumer_timeout_ms": 200}
        given["partition_assignment_strategy"] = "exclusive"
        names["consumer"] = sparklog.Consumer("events", "orders", auto_offset_reset="earliest", **given)
    if name.startswith("DeltaOutput."):
        names["output"] = consumer.DeltaOutput("sales", names["consumer"])
    if name.startswith("GroupPlan"):
        names["plan"] = table.plan("billing", 2, joining="consumer-3")
    if name.startswith(("Producer.", "RecordFuture", "RecordMetadata")):
        names["producer"] = sparklog.Producer(bootstrap_servers=_server().address)
    return names


def _shop() -> groups.TopicGroups:
    """The root `shop` has 20 records, and a server kept the group `mail` in it, which has read 11 of them."""
    sales = Topic(Path("shop"), "sales", partitions=2)
    for partition in range(2):
        sales.append([Record(b"sale", None, TIME + n) for n in range(10)], partition)
    topic_of_groups(Path("shop"), position("mail", "sales", 0, 8), position("mail", "sales", 1, 3))
    return groups.TopicGroups("shop")


@functools.cache
def _server() -> Server:
    """A server that all examples share. Its root has the topic `visits` with one partition."""
    folder = Path(tempfile.mkdtemp(prefix="docstrings-"))
    Topic(folder / "my-log", "visits").append([Record(b"1", b"ann", TIME)])
    server = Server(str(folder / "my-log"))
    atexit.register(server.close)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return server
