"""Mistakes of callers of a consumer: each is a clear error, and changes nothing."""

import inspect

import pytest
from handmade import Topic

import sparklog
from sparklog import Consumer, TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def read(topic: Topic, *names: object, **options: object) -> Consumer:
    return Consumer(topic.root, *(names or ["t"]), **({"auto_offset_reset": "earliest"} | options))


def test_what_a_caller_can_do_wrong(topic):
    consumer = read(topic)
    idle = Consumer(topic.root)
    closed = read(topic)
    closed.close()
    gone = TopicPartition("t", 2)
    table = topic.root.parent / "table"

    def member(**given: object) -> Consumer:
        return read(topic, group_id="g", table=table, partition_assignment_strategy="range", **given)

    for call, condition in [
        (lambda: read(topic, "oders"), "TOPIC_NOT_FOUND"),
        (lambda: read(topic, topics="t"), "OPTION_CONFLICT"),
        (lambda: Consumer(topic.root, topics=["t", "oders"]), "TOPIC_NOT_FOUND"),
        (lambda: read(topic, "a/b"), "TOPIC_NAME_ILLEGAL"),
        (lambda: Consumer(topic.root / "nothing", "t"), "ROOT_NOT_FOUND"),
        (lambda: read(topic, auto_offset_reset="smallest"), "OPTION_VALUE"),
        (lambda: read(topic, max_poll_records=0), "OPTION_VALUE"),
        (lambda: read(topic, group_id="g"), "GROUP_REQUIRED"),
        (lambda: read(topic, table=table), "GROUP_REQUIRED"),
        (lambda: read(topic, group_id="", table=table), "`group_id` has the value ''"),
        (lambda: read(topic, partition_assignment_strategy="nix"), "`partition_assignment_strategy` has the value nix"),
        (lambda: read(topic, partition_assignment_strategy=["nix"]), "`partition_assignment_strategy` has the value nix"),
        (lambda: member(group_instance_id=""), "`group_instance_id` has the value ''"),
        (lambda: consumer.seek(T0, -1), "OPTION_VALUE"),
        (lambda: consumer.seek(gone, 0), "PARTITION_NOT_ASSIGNED"),
        (lambda: consumer.pause(gone), "PARTITION_NOT_ASSIGNED"),
        (lambda: consumer.position(("u", 0)), "PARTITION_NOT_ASSIGNED"),
        (lambda: consumer.poll(-1), "OPTION_VALUE"),
        (lambda: consumer.poll(float("nan")), "OPTION_VALUE"),
        (lambda: read(topic, consumer_timeout_ms=-1), "OPTION_VALUE"),
        (lambda: read(topic, group_id="g", table=""), "OPTION_VALUE"),
        (lambda: consumer.poll(max_records=0), "OPTION_VALUE"),
        (lambda: consumer.poll_batches(max_bytes=0), "OPTION_VALUE"),
        (lambda: consumer.commit(), "GROUP_REQUIRED"),
        (lambda: consumer.committed(T0), "GROUP_REQUIRED"),
        (lambda: consumer.assign([T0]), "OPTION_CONFLICT"),
        (lambda: consumer.subscribe(), "OPTION_VALUE"),
        (lambda: consumer.subscribe(["t"], "t"), "OPTION_VALUE"),
        (lambda: consumer.subscribe(pattern="("), "OPTION_VALUE"),
        (lambda: consumer.subscribe(["oders"]), "TOPIC_NOT_FOUND"),
        (lambda: idle.assign([gone]), "PARTITION_NOT_FOUND"),
        (lambda: idle.assign([("u", 0)]), "TOPIC_NOT_FOUND"),
        (lambda: idle.poll(), "NOT_SUBSCRIBED"),
        (lambda: next(idle), "NOT_SUBSCRIBED"),
        (lambda: consumer.fetch(T0, -1), "OPTION_VALUE"),
        (lambda: consumer.fetch(T0, 26), "OFFSETS_OUT_OF_RANGE"),
        (lambda: consumer.fetch(gone, 0), "PARTITION_NOT_FOUND"),
        (lambda: consumer.fetch(T0, 0, 0), "OPTION_VALUE"),
        (lambda: consumer.end_offsets([gone]), "PARTITION_NOT_FOUND"),
        (lambda: consumer.offsets_for_times({T0: -1}), "OPTION_VALUE"),
        (lambda: closed.poll(), "CONSUMER_CLOSED"),
        (lambda: closed.seek(T0, 0), "CONSUMER_CLOSED"),
        (lambda: closed.fetch(T0, 0), "CONSUMER_CLOSED"),
        (lambda: closed.subscribe(["t"]), "CONSUMER_CLOSED"),
    ]:
        with pytest.raises(sparklog.CallError, match=condition):
            call()
    assert not table.exists()
    for call in (
        lambda: consumer.seek("t", 0),
        lambda: consumer.subscribe("t"),
        lambda: consumer.seek(T0, 1.5),
        lambda: consumer.poll("5"),
        lambda: consumer.offsets_for_times([T0]),
        lambda: read(topic, consumer_timeout_ms="5"),
        lambda: read(topic, 7),
        lambda: member(client_rack=7),
        lambda: member(client_rack=topic.root),
    ):
        with pytest.raises(TypeError):
            call()
    for call, said in (
        (
            lambda: sparklog.Consumer("t", bootstrap_servers="host:9092"),
            "`bootstrap_servers` .* does not take it: give the root, the direct",
        ),
        (lambda: sparklog.Consumer({"bootstrap.servers": "host:9092", "group.id": "g"}), "`bootstrap.servers` .*: give the root"),
        (lambda: sparklog.Consumer({"x": 1}), "`root` is of type dict; give the root"),
        (lambda: read(topic, request_timeout_ms=6000), "`request_timeout_ms` .*: leave it out: there is no broker"),
        (lambda: read(topic, fetch_max_wait_ms=500), "`fetch_max_wait_ms` .*: leave it out: there is no broker"),
        (lambda: read(topic, ssl_cafile="x"), "`ssl_cafile` .*: leave it out: there is no broker"),
        (lambda: read(topic, isolation_level="read_committed"), "`isolation_level` .*: leave it out: no reader sees"),
        (lambda: consumer.close(timeout_ms=5), "`timeout_ms` .* close.. does not take it: leave it out"),
        (lambda: read(topic, topik="t"), "unexpected keyword argument 'topik'"),
        (lambda: sparklog.Consumer(), "missing 1 required positional argument: 'root'"),
    ):
        with pytest.raises(TypeError, match=said):
            call()
    assert list(inspect.signature(sparklog.Consumer).parameters)[:4] == ["root", "names", "topics", "group_id"]
    # Nothing of this changed what it reads.
    assert {partition: len(its) for partition, its in consumer.poll().items()} == {T0: 25, T1: 10}
    consumer.seek(T0, 26)
    assert [record.offset for record in consumer.poll()[T0]] == list(range(25))
