"""Calls of a consumer as kafka-python's tests make them: the same call, the same answer, or the reason why not.

kafka-python answers them without a broker, so it is asked, too.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from groups.kafka_python import DIFFERENCES, Case, Cases, KafkaWorld, World, error, refused
from groups.test_kafka_python_records import case as with_records

import sparklog

case = Cases()
OF_PARTITIONS: dict[str, tuple[int, ...]] = {
    **{"pause": (), "resume": (), "seek": (1,)},
    **{"seek_to_beginning": (), "seek_to_end": (), "position": (), "highwater": ()},
}
"""Calls about a partition that is read, each with its other arguments."""


def about(consumer: Any, partition: object) -> list[Callable[[], object]]:
    return [lambda call=call, more=more: getattr(consumer, call)(partition, *more) for call, more in OF_PARTITIONS.items()]


# ---- reading


@case({"t"})
def a_subscription_is_a_copy(w: World) -> Any:
    consumer = w.make("t")
    consumer.subscription().add("x")
    return consumer.subscription()


@case(["TypeError", True, True])
def a_subscription_is_a_list_of_topics_or_a_pattern(w: World) -> Any:
    consumer = w.make()
    return [error(lambda: consumer.subscribe("t")), *refused(consumer.subscribe, lambda: consumer.subscribe(["t"], "t"))]


@case({"u"})
def a_subscription_takes_the_place_of_the_one_before(w: World) -> Any:
    consumer = w.make("t")
    consumer.subscribe(["u"])
    return consumer.subscription()


@case(2, there=0)
def partitions_of_a_subscription_before_the_first_poll(w: World) -> Any:
    return len(w.make("t").assignment())


@case({"t"}, there=set())
def topics_of_a_pattern_before_the_first_poll(w: World) -> Any:
    consumer = w.make()
    consumer.subscribe(pattern="t.*")
    return consumer.subscription()


@case([False], there=[True])
def names_after_a_pattern(w: World) -> Any:
    consumer = w.make()
    consumer.subscribe(pattern="t")
    return refused(lambda: consumer.subscribe(["u"]))


@case([True, True, True], there=[False, False, False])
def a_topic_that_does_not_exist(w: World) -> Any:
    return refused(lambda: w.make("x"), lambda: w.make().subscribe(["x"]), lambda: w.assigned(w.partition("x", 0)))


@case([None, set(), False])
def unsubscribe_leaves_nothing(w: World) -> Any:
    consumer = w.make("t")
    consumer.unsubscribe()
    return [consumer.subscription(), consumer.assignment(), *refused(lambda: consumer.assign([w.p0]))]


@case([True, True, True])
def an_assignment_and_a_subscription_exclude_each_other(w: World) -> Any:
    assigned = w.assigned()
    return refused(lambda: w.make("t").assign([w.p0]), lambda: assigned.subscribe(["t"]), lambda: assigned.subscribe(pattern="t"))


@case([True, None, True])
def one_assignment_takes_the_place_of_another(w: World) -> Any:
    consumer = w.assigned()
    first = consumer.assignment() == {w.p0}
    consumer.assign([w.p1])
    return [first, consumer.subscription(), consumer.assignment() == {w.p1}]


@case([(set(), None, [False])] * 2)
def an_empty_assignment_unsubscribes(w: World) -> Any:
    found = []
    for consumer in (w.assigned(), w.make("t")):
        consumer.assign([])
        found.append((consumer.assignment(), consumer.subscription(), refused(lambda consumer=consumer: consumer.subscribe(["u"]))))
    return found


@case([True, set()])
def a_partition_stays_paused_as_long_as_it_is_assigned(w: World) -> Any:
    consumer = w.assigned()
    consumer.pause(w.p0)
    consumer.assign([w.p0, w.p1])
    stays = consumer.paused() == {w.p0}
    consumer.assign([w.p1])
    consumer.assign([w.p0, w.p1])
    return [stays, consumer.paused()]


@case([set(), True, set(), set()])
def pause_and_resume(w: World) -> Any:
    consumer = w.assigned(w.p1)
    found = [consumer.paused()]
    consumer.pause(w.p1)
    found.append(consumer.paused() == {w.p1})
    consumer.resume(w.p1)
    found.append(consumer.paused())
    consumer.pause(w.p1)
    consumer.unsubscribe()
    return [*found, consumer.paused()]


# ---- wrong calls


@case([True] * len(OF_PARTITIONS))
def a_partition_that_is_not_assigned(w: World) -> Any:
    return refused(*about(w.assigned(), w.p1))


@case(["TypeError"] * len(OF_PARTITIONS))
def a_text_for_a_partition(w: World) -> Any:
    return list(map(error, about(w.assigned(), "t")))


@case([True] * 3)
def a_seek_to_no_offset(w: World) -> Any:
    consumer = w.assigned()
    return refused(*(lambda offset=offset: consumer.seek(w.p0, offset) for offset in (-1, 1.5, "1")))  # type: ignore[misc]


@case([True, True])
def a_seek_of_all_partitions_where_there_are_none(w: World) -> Any:
    consumer = w.make()
    return refused(consumer.seek_to_beginning, consumer.seek_to_end)


@case([True, True, True, "TypeError"])
def a_poll_for_no_time_or_no_records(w: World) -> Any:
    consumer = w.assigned()
    return [
        *refused(lambda: consumer.poll(-1), lambda: consumer.poll(0, 0), lambda: consumer.poll(0, -1)),
        error(lambda: consumer.poll(0, "5")),
    ]


@case([True] * 3)
def commits_without_a_group(w: World) -> Any:
    consumer = w.assigned()
    return refused(consumer.commit, consumer.commit_async, lambda: consumer.committed(w.p0))


@case([{}, True])
def times_of_no_partition_and_before_all_times(w: World) -> Any:
    consumer = w.make()
    return [consumer.offsets_for_times({}), *refused(lambda: consumer.offsets_for_times({w.p0: -1}))]


@case(25, there=None)
def the_end_offset_before_the_first_poll(w: World) -> Any:
    return w.assigned().highwater(w.p0)


@case([True])
def an_argument_that_does_not_exist(w: World) -> Any:
    return refused(lambda: w.make("t", poll_records=5))


@case("TypeError", there="KafkaConfigurationError")
def settings_of_brokers(w: World) -> Any:
    return error(lambda: w.make("t", fetch_max_wait_ms=50_000, request_timeout_ms=40_000))


@case([True])
def an_instance_without_a_group(w: World) -> Any:
    return refused(lambda: w.make("t", group_instance_id="a"))


_MORE = {"leader_epoch", "checksum", "serialized_key_size", "serialized_value_size", "serialized_header_size"}


@case(set(), there=_MORE)
def the_fields_of_a_record(w: World) -> Any:
    return set(w.record._fields) - set(sparklog.ConsumerRecord._fields)


@case([True, True], there=[False, False])
def arguments_of_poll_and_metrics(w: World) -> Any:
    consumer = w.assigned()
    return refused(lambda: consumer.poll(0, update_offsets=False), lambda: consumer.metrics(raw=True))


@case([True], there=[False])
def the_connection_to_a_broker(w: World) -> Any:
    return refused(lambda: w.make().bootstrap_connected())


@case("sticky", there=["RangePartitionAssignor", "RoundRobinPartitionAssignor"])
def the_default_assignor(w: World) -> Any:
    here = inspect.signature(sparklog.Consumer).parameters["partition_assignment_strategy"].default
    there = getattr(w.consumer, "DEFAULT_CONFIG", None)
    return [each.__name__ for each in there["partition_assignment_strategy"]] if there else here


@case([None, 5_000], there=[3_000, 300_000])
def defaults_of_times(w: World) -> Any:
    here = inspect.signature(sparklog.Consumer).parameters
    given = getattr(w.consumer, "DEFAULT_CONFIG", None) or {name: each.default for name, each in here.items()}
    return [given["heartbeat_interval_ms"], given["metadata_max_age_ms"]]


@case([True], there=[False])
def the_group_for_a_transaction(w: World) -> Any:
    return refused(lambda: w.make().group_metadata())


@case([True, True], there=[True, False])
def a_listener(w: World) -> Any:
    from kafka import ConsumerRebalanceListener

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: Any) -> None:
            pass

        def on_partitions_assigned(self, assigned: Any) -> None:
            pass

    return refused(*(lambda given=given: w.make().subscribe(["t"], listener=given) for given in (7, Listener())))  # type: ignore[misc]


# ---- the end


@case([(True, [True])] * 2)
def a_block_closes_its_consumer_also_if_it_fails(w: World) -> Any:
    found = []
    for divisor in (1, 0):
        consumer = w.make("t")
        with contextlib.suppress(ZeroDivisionError), consumer as entered:
            1 // divisor
        found.append((entered is consumer, refused(consumer.poll)))
    return found


@case([None, None, True, True, []])
def a_consumer_that_is_closed(w: World) -> Any:
    consumer = w.make("t")
    return [consumer.close(), consumer.close(), *refused(consumer.poll, lambda: consumer.subscribe(["u"])), list(consumer)]


@case(True)
def a_consumer_is_its_own_iterator(w: World) -> Any:
    consumer = w.make("t")
    return iter(consumer) is consumer


def collect_sockets() -> None:
    """Consumers of kafka-python leave sockets open when they are refused or closed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="module", autouse=True)
def sockets() -> Iterator[None]:
    yield
    collect_sockets()


@pytest.fixture(params=[World, KafkaWorld], ids=["here", "there"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made = request.param(tmp_path)
    yield made
    while made.opened:
        made.opened.pop().close(autocommit=False)
    collect_sockets()


@case.parametrized()
def test_a_call(world: World, case: Case) -> None:
    assert case.calls(world) == (case.there if isinstance(world, KafkaWorld) else case.answer)


def test_each_difference_has_a_reason() -> None:
    assert {each.name for each in (*case, *with_records) if each.answer != each.there} == DIFFERENCES
