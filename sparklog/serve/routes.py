"""Where the keys of topics go, as a server tells it.

A client decides the partition of a key, and librdkafka knows Kafka's function alone, murmur2. So a client of a topic that routes by murmur3
chooses the partition itself.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, NamedTuple

from sparklog.router import Router

Ask = Callable[[str, float], "Route | None"]
REFRESH_S = 300
"""An answer holds for this time, as the metadata of Kafka's clients do by `metadata.max.age.ms`."""
_AGAIN_S = 1
"""The longest wait for a new answer. The former one holds without it."""
_LOOK_S, _LOOK_MAX_S, _PAUSE_S = 1.0, 8.0, 0.05
"""A request of librdkafka cannot be interrupted. So the first one is short, and each further one may take twice the time."""
_REFUSED = ("CLUSTER_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED")
_ABSENT = ("TOPIC_EXCEPTION", "UNKNOWN_TOPIC_OR_PART")


class NoAnswerError(Exception):
    """No server has answered in time."""


class Route(NamedTuple):
    """How a topic routes keys.

    Without a `router`, librdkafka chooses the partitions: the topic routes by murmur2, or a broker of Kafka has it.
    """

    router: Router | None
    is_known: bool
    """Whether the topic exists. The answer about a topic that does not exist holds for one record."""


class Routes:
    """The answers of a server, each of them asked for once in a while. Threads may share it, and some may ask at the same time."""

    def __init__(self, ask: Ask, clock: Callable[[], float] = time.monotonic) -> None:
        """`ask` gets a topic and the most seconds, and returns None without an answer. It may raise errors of its own."""
        self._ask, self._clock = ask, clock
        self._known: dict[str, tuple[Route, float]] = {}
        """By topic, an answer, and when to ask again."""

    def partition(self, topic: str, key: bytes, patience_s: float) -> int | None:
        """The partition of a key; None if librdkafka chooses it. NoAnswerError if no server told it in `patience_s` seconds."""
        found = self._known.get(topic)
        router = found[0].router if found and self._clock() < found[1] else self._asked(topic, found, patience_s).router
        return None if router is None else router.of_key(key)

    def doubt(self, topic: str) -> None:
        """Asks again at the next key, since the topic may be another one now. Without an answer, the former one holds."""
        if found := self._known.get(topic):
            self._known[topic] = found[0], -math.inf

    def _asked(self, topic: str, found: tuple[Route, float] | None, patience_s: float) -> Route:
        route = self._ask(topic, min(_AGAIN_S, patience_s) if found else patience_s) or (found and found[0])
        if route is None:
            raise NoAnswerError
        if route.is_known:
            self._known[topic] = route, self._clock() + REFRESH_S
        return route


def ask(settings: Mapping[str, Any], topic: str, timeout_s: float, check: Callable[[], object]) -> Route | None:
    """Asks the server at `settings` of librdkafka, as a client that writes: it creates the topic if its server does that.

    It asks at least once, for a second, and again for `timeout_s` seconds; then it returns None.

    `check` is called now and then, and may raise an error to end the wait.
    """
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    client, until = AdminClient(dict(settings)), time.monotonic() + timeout_s
    look_s = _LOOK_S
    while True:
        check()
        try:
            return _told(client, topic, look_s)
        except (KafkaException, FutureTimeoutError):
            if time.monotonic() > until:
                return None
        time.sleep(_PAUSE_S)
        look_s = min(2 * look_s, _LOOK_MAX_S, max(_LOOK_S, timeout_s))


def _told(client: Any, topic: str, timeout_s: float) -> Route:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import ConfigResource  # type: ignore[attr-defined] # it is documented there

    found = client.list_topics(topic, timeout=timeout_s).topics[topic]
    if found.error is not None:
        if found.error.name() in (*_ABSENT, *_REFUSED):
            return Route(None, is_known=False)
        raise KafkaException(found.error)
    asked = ConfigResource(ConfigResource.Type.TOPIC, topic)
    try:
        settings = client.describe_configs([asked], request_timeout=timeout_s)[asked].result(timeout_s)
    except KafkaException as error:
        if error.args[0].name() in _REFUSED:  # by a broker: a server of sparklog tells settings to each client
            return Route(None, is_known=True)
        raise
    partitioner = settings.get("partitioner")
    if partitioner is None or partitioner.value == "murmur2":
        return Route(None, is_known=True)
    return Route(Router(len(found.partitions), partitioner.value), is_known=True)
