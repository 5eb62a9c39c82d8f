"""Arguments of a wrong type, in the public calls: each is refused by its name, and nothing is done."""

import importlib
import inspect
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import sparklog
from sparklog import Consumer, Log
from sparklog.offsets import OffsetTable, write_delta
from sparklog.ui import application, serve
from sparklog.verify import verify

PUBLIC = ("sparklog", "sparklog.offsets", "sparklog.consumer", "sparklog.assignors", "sparklog.ui", "sparklog.verify", "sparklog.log")


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
    return Consumer(topic.root, "t", group="g", table=table, auto_offset_reset="earliest", **options)


def moving(name: str, call: Callable[..., object], **options: object) -> Callable[..., object]:
    """The call with the argument; `dry_run=False` is the dangerous one."""
    return lambda topic, table, given: call(table, **{"dry_run": False, **options, name: given})


BOOLEANS: dict[tuple[str, str], Callable[..., object]] = {
    ("Consumer.__init__", "enable_auto_commit"): lambda topic, table, given: opened(topic, table, enable_auto_commit=given),
    ("Consumer.close", "autocommit"): lambda topic, table, given: Consumer(topic.root, "t").close(given),
    ("Log.verify", "quick"): lambda topic, table, given: Log(topic.root).verify(quick=given),
    ("verify", "quick"): lambda topic, table, given: verify(Log(topic.root)._root, quick=given),
    ("Topic.show", "last"): lambda topic, table, given: Log(topic.root)["t"].show(last=given),
    ("serve", "public"): lambda topic, table, given: serve(topic.root, host="0.0.0.0", public=given),
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
    with opened(topic, table, enable_auto_commit=np.bool_(False)) as consumer:
        assert consumer.poll()
    assert list(table.positions("g")) == []


@pytest.mark.parametrize("given", [None, 7, b"log", {"root": "log"}])
def test_what_is_no_path_is_refused(topic, table, given):
    there = {"table": table.path, "group": "g", "root": topic.root, "checkpoint": "c"}
    for name, call in {
        "root": lambda: Log(given),
        "root ": lambda: sparklog.Topic(given, "t"),
        "root  ": lambda: application(given),
        "table": lambda: application(topic.root, 7 if given is None else given),
        "path": lambda: OffsetTable(given),
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
        (lambda: sparklog.murmur3_partition("a", 8.0), "`partitions` is 8.0, of type float; it must be an integer"),
        (lambda: sparklog.progress(None), "`query` is None, of type NoneType; it must be a streaming query, as start() returns it"),
        (lambda: sparklog.attach(None, 7, "log"), "`name` is 7, of type int; it must be a string"),
    ],
)
def test_other_types_are_refused_by_the_name_of_the_argument(call, says):
    with pytest.raises(TypeError) as raised:
        call()
    assert str(raised.value) == says
