"""The answers of a server about where keys go: when they are asked for, and for how long each of them holds."""

from __future__ import annotations

import random

import pytest

from sparklog.router import Router
from sparklog.serve.routes import REFRESH_S, NoAnswerError, Route, Routes

BY_LIBRDKAFKA, UNKNOWN = Route(None, is_known=True), Route(None, is_known=False)


class AskError(Exception):
    """An ask of a closed producer raises an error of its own."""


class World:
    """A server whose topics change, a clock, and the names of the topics that were asked about."""

    def __init__(self) -> None:
        self.now = 0.0
        self.topics: dict[str, Route] = {}
        self.answers: Route | type[AskError] | None = UNKNOWN
        self.asked: list[str] = []
        self.routes = Routes(self.ask, lambda: self.now)

    def ask(self, topic: str, _: float) -> Route | None:
        self.asked.append(topic)
        if self.answers is AskError:
            raise AskError
        return None if self.answers is None else self.topics.get(topic, UNKNOWN)

    def partition(self, topic: str, key: bytes) -> int | str | None:
        try:
            return self.routes.partition(topic, key, 0.1)
        except (NoAnswerError, AskError) as error:
            return type(error).__name__


def expected(route: Route, key: bytes) -> int | None:
    return route.router.of_key(key) if route.router else None


@pytest.mark.parametrize("seed", range(200))
def test_each_key_goes_by_an_answer_that_holds(seed: int) -> None:
    chance, world = random.Random(seed), World()
    held: dict[str, tuple[Route, float]] = {}
    """By topic: the answer that was given last, and when to ask again."""
    for _ in range(200):
        topic, key = chance.choice("abc"), chance.randbytes(3)
        match chance.randrange(5):
            case 0:
                partitioner = chance.choice(["murmur3", "murmur2"])
                known = Route(Router(chance.randint(1, 50), partitioner), is_known=True)
                world.topics[topic] = chance.choice([known, BY_LIBRDKAFKA, UNKNOWN])
            case 1:
                world.answers = chance.choice([UNKNOWN, None, AskError])
            case 2:
                world.now += chance.choice([0, 1, REFRESH_S / 2, REFRESH_S])
            case 3 if chance.random() < 0.3:
                world.routes.doubt(topic)
                if topic in held:
                    held[topic] = held[topic][0], -1
            case _:
                before, world.asked = held.get(topic), []
                found = world.partition(topic, key)
                if before and world.now < before[1]:
                    assert not world.asked
                    assert found == expected(before[0], key)
                    continue
                assert world.asked == [topic]
                if world.answers is AskError:
                    assert found == "AskError"
                elif world.answers is None and before is None:
                    assert found == "NoAnswerError"
                else:
                    told = before[0] if world.answers is None and before else world.topics.get(topic, UNKNOWN)
                    assert found == expected(told, key)
                    if told.is_known:
                        held[topic] = told, world.now + REFRESH_S
                    elif before:
                        held[topic] = before
