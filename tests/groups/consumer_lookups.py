"""A consumer's calls that only ask, compared with the model in consumer_world.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from groups.consumer_world import World


def lookups(world: World) -> None:
    """All calls that only ask, of topics that are read and of others."""
    assert world.consumer.topics() == {name for name, log in world.logs.items() if log.exists}
    for name, log in world.logs.items():
        assert world.consumer.partitions_for_topic(name) == set(log.starts)
    every = world.begin(sorted(world.logs))
    assert world.consumer.beginning_offsets(every) == {tp: world.logs[tp.topic].starts[tp.partition][-1] for tp in every}
    assert world.consumer.end_offsets(every) == {tp: world.logs[tp.topic].ends[tp.partition][-1] for tp in every}
    tp = world.random.choice(every)
    log = world.logs[tp.topic]
    if log.starts[tp.partition][-1] < log.ends[tp.partition][-1]:
        fetched = world.consumer.fetch(tp, log.ends[tp.partition][-1] - 1)
        assert fetched.next_offset == log.ends[tp.partition][-1]
    sure = {tp for tp in world.at if tp.topic not in world.dropped}
    assert {tp for tp in world.consumer.paused() if tp in sure} == world.paused & sure
    assert {tp for tp in world.consumer.assignment() if tp.topic not in world.dropped} == sure
    for tp in sure:
        assert world.consumer.highwater(tp) <= world.logs[tp.topic].ends[tp.partition][-1]
