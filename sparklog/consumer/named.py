"""Arguments by the names of Kafka's clients: arguments that a `Consumer` takes in other forms too, and replacements for others."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import ParamSpec, TypeVar

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.groups.assignors import ASSIGNORS

P = ParamSpec("P")
T = TypeVar("T")
EXCLUSIVE = "exclusive"
"""The strategy of a consumer that has its group alone."""
_ROOT = "give the root, the directory that holds the topics, as the first argument: Consumer(root, 'topic')"
_GROUP = "give `group_id`, its name, and `table`, the path of an offset commit table"
_NO_BROKER = "leave it out: there is no broker"
_INSTEAD = {
    "bootstrap_servers": _ROOT,
    "bootstrap.servers": _ROOT,
    "group.id": _GROUP,
    "auto.offset.reset": "give `auto_offset_reset`",
    "enable.auto.commit": "give `enable_auto_commit`",
    "client_id": _NO_BROKER,
    "isolation_level": "leave it out: no reader sees records that are not committed",
    "check_crcs": "leave it out: checksums are always checked",
    "group.instance.id": "give `group_instance_id`",
    "partition.assignment.strategy": "give `partition_assignment_strategy`: sticky, range, roundrobin or exclusive",
    "session.timeout.ms": "give `session_timeout_ms`",
    "heartbeat.interval.ms": "give `heartbeat_interval_ms`",
    "max.poll.interval.ms": "give `max_poll_interval_ms`",
    "client.rack": "give `client_rack`",
}
_OF_BROKERS = (
    *("api_version", "connections_", "fetch_m", "heartbeat_", "max_poll_interval", "metadata_", "metric", "receive_", "reconnect_"),
    *("request_", "retry_", "sasl", "security_", "send_", "session_", "ssl", "socket"),
)
"""How arguments begin that are about brokers."""


def explained(method: Callable[P, None]) -> Callable[P, None]:
    """The method, which says of an argument that only Kafka's clients have what to give in its place. TypeError, like Python."""
    taken = set(method.__annotations__)

    @functools.wraps(method)
    def explaining(*given: P.args, **named: P.kwargs) -> None:
        settings = next((each for each in given[1:2] if isinstance(each, Mapping)), {})
        for name in (*settings, *named):
            if name not in taken and (instead := _instead(str(name))):
                raise TypeError(f"`{name}` is an argument of Kafka's clients, and Consumer() does not take it: {instead}")
        if settings:
            raise TypeError(f"`root` is of type dict; {_ROOT}")
        method(*given, **named)

    return explaining


def without(name: str, instead: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Methods that say of an argument, which only kafka-python's take, how to do without. TypeError, like Python."""

    def explained(method: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(method)
        def explaining(*given: P.args, **named: P.kwargs) -> T:
            if name in named:
                raise TypeError(f"`{name}` is an argument of kafka-python, and {method.__name__}() does not take it: {instead}")
            return method(*given, **named)

        return explaining

    return explained


def strategy(given: str | Sequence[str]) -> str:
    """The assignor that Kafka's argument names, or `EXCLUSIVE`: kafka-python's takes a list."""
    if isinstance(given, str):
        arguments.choice("partition_assignment_strategy", given, (*ASSIGNORS, EXCLUSIVE))
        return given
    if isinstance(given, Sequence) and len(given) == 1 and isinstance(given[0], str):
        return strategy(given[0])
    reason = "give one: sticky, range, roundrobin or exclusive"
    raise SparklogError("OPTION_VALUE", option="partition_assignment_strategy", value=given, reason=reason)


def named_topics(names: Sequence[object], topics: object) -> list[str]:
    """The topics that a consumer is given, by position or as a collection. TypeError if a name is not a string."""
    for name in names:
        if not isinstance(name, str):
            raise TypeError(
                f"`names` has {name!r}, of type {type(name).__name__}; name each topic by itself, Consumer(root, 'a', 'b'), "
                "or give topics=['a', 'b']"
            )
    return arguments.texts("topics", names or topics)


def compiled(pattern: str | re.Pattern[str]) -> re.Pattern[str]:
    """A pattern. CallError if it is not a regular expression, or is one for bytes."""
    try:
        found = re.compile(pattern) if isinstance(pattern, str | bytes | re.Pattern) else None
        if found is None:
            raise TypeError(f"`pattern` is {pattern!r}, of type {type(pattern).__name__}; it must be a regular expression")
        if isinstance(found.pattern, str):
            return found
        reason = "it is a pattern for bytes; give one for text"
    except re.error as error:
        reason = f"it must be a regular expression, and is not: {error}"
    raise SparklogError("OPTION_VALUE", option="pattern", value=pattern, reason=reason)


def _instead(name: str) -> str | None:
    return _INSTEAD.get(name) or (_NO_BROKER if name.replace(".", "_").startswith(_OF_BROKERS) else None)
