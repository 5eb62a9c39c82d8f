"""Arguments of Kafka's clients that a `Consumer` does not take, and what to give in their place."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import ParamSpec

P = ParamSpec("P")
_ROOT = "give the root, the directory that holds the topics, as the first argument: Consumer(root, 'topic')"
_GROUP = "give `group`, its name, and `table`, the path of an offset commit table"
_NO_BROKER = "leave it out: there is no broker"
_INSTEAD = {
    "bootstrap_servers": _ROOT,
    "bootstrap.servers": _ROOT,
    "group_id": _GROUP,
    "group.id": _GROUP,
    "auto.offset.reset": "give `auto_offset_reset`",
    "enable.auto.commit": "give `enable_auto_commit`",
    "client_id": _NO_BROKER,
    "isolation_level": "leave it out: no reader sees records that are not committed",
    "check_crcs": "leave it out: checksums are always checked",
    "group.instance.id": "give `group_instance_id`",
    "partition_assignment_strategy": "give `assignor`: range, roundrobin or sticky",
    "partition.assignment.strategy": "give `assignor`: range, roundrobin or sticky",
    "session.timeout.ms": "give `session_timeout_ms`",
    "heartbeat.interval.ms": "give `heartbeat_interval_ms`",
    "max.poll.interval.ms": "give `max_poll_interval_ms`",
    "client_rack": "give `rack`",
    "client.rack": "give `rack`",
}
_OF_BROKERS = (
    *("api_version", "connections_", "fetch_m", "heartbeat_", "max_poll_interval", "metadata_", "metric", "receive_", "reconnect_"),
    *("request_", "retry_", "sasl", "security_", "send_", "session_", "ssl", "socket"),
)
"""How arguments begin that are about brokers."""


def explained(method: Callable[P, None]) -> Callable[P, None]:
    """The method, which says of an argument that only Kafka's clients have what to give in its place. TypeError, as of Python."""
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


def _instead(name: str) -> str | None:
    return _INSTEAD.get(name) or (_NO_BROKER if name.replace(".", "_").startswith(_OF_BROKERS) else None)
