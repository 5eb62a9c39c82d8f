"""A consumer looks for commits once in a poll interval. Changes of its topics before the next look, or in the middle of a round."""

import time

import pytest
from handmade import Topic, records
from owners import Own

import sparklog
from sparklog import Consumer, TopicPartition
from sparklog.groups import OffsetTable
from sparklog.ondisk import watch
from sparklog.ondisk.root import Root
from sparklog.ondisk.topic_log import TopicLog
from sparklog.ondisk.topic_logs import TopicLogs

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
LONG_MS = 60_000
ALONE = {"group_id": "g", "partition_assignment_strategy": "exclusive"}


@pytest.fixture
def topic(tmp_path) -> Topic:
    """Topic `t` of two partitions, each with six segments of three records."""
    topic = Topic(tmp_path / "root", partitions=2)
    for _ in range(6):
        topic.append(records(3, "old"), 0)
        topic.append(records(3, "old"), 1)
    return topic


def begun(topic: Topic, reset: str = "earliest", *, assign: bool = False, **options: object) -> Consumer:
    """A consumer that has read half of each partition, a segment at a time, and does not look again by itself for a minute."""
    consumer = Consumer(topic.root, auto_offset_reset=reset, max_partition_fetch_bytes=50, poll_interval_ms=LONG_MS, **options)
    if assign:
        consumer.assign([T0, T1])
    else:
        consumer.subscribe(["t"])
    consumer.seek(T0, 3)
    consumer.seek(T1, 3)
    assert sorted(consumer.poll(max_records=6)) == [T0, T1]
    return consumer


def recreate(topic: Topic, partitions: int = 2) -> None:
    """Another topic of the name, with more records; the files of the first one are gone."""
    topic.delete()
    for file in (topic.folder / "data").rglob("*.log"):
        file.unlink()
    topic.partitions = partitions
    for partition in range(partitions):
        topic.append(records(15, "new"), partition)


def rest(consumer: Consumer) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for _ in range(20):
        for partition, its in consumer.poll().items():
            found.setdefault(partition.partition, []).extend(record.offset for record in its)
    return found


@pytest.mark.parametrize("partitions", [2, 1])
def test_a_topic_that_is_created_again_in_a_round_is_read_once_from_its_start(topic, partitions):
    consumer = begun(topic)
    recreate(topic, partitions)
    assert rest(consumer) == {partition: list(range(15)) for partition in range(partitions)}


@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize(
    "question",
    [
        lambda consumer: consumer.end_offsets([T0]),
        lambda consumer: consumer.offsets_for_times({T0: 0}),
        lambda consumer: consumer.partitions_for_topic("t"),
        lambda consumer: consumer.fetch(T0, 3),
        lambda consumer: (consumer.end_offsets([T0]), consumer.position(T0)),
        lambda consumer: consumer.seek_to_beginning(),
    ],
)
def test_a_question_that_shows_another_topic_takes_the_consumer_there(topic, question, assign):
    consumer = begun(topic, assign=assign)
    recreate(topic)
    question(consumer)
    assert rest(consumer) == {0: list(range(15)), 1: list(range(15))}


def test_a_partition_that_the_new_topic_does_not_have(topic):
    consumer = begun(topic)
    recreate(topic, partitions=1)
    consumer.seek_to_end()
    assert (consumer.assignment(), consumer.position(T0), rest(consumer)) == ({T0}, 15, {})
    recreate(topic, partitions=2)
    by_hand = Consumer(topic.root, auto_offset_reset="earliest")
    by_hand.assign([T0, T1])
    by_hand.poll()
    recreate(topic, partitions=1)
    for call in (by_hand.seek_to_end, by_hand.seek_to_beginning, lambda: by_hand.position(T1), lambda: by_hand.highwater(T1)):
        with pytest.raises(sparklog.CallError, match="PARTLOG_PARTITION_NOT_FOUND"):
            call()


@pytest.mark.parametrize(("reset", "expected"), [("earliest", list(range(12, 18))), ("latest", []), ("none", None)])
def test_what_expires_in_a_round_is_not_skipped_in_silence(topic, reset, expected):
    consumer = begun(topic, reset)
    below = [segment for segment in topic.live[0] if segment["end"] <= 12]
    topic.commit(removed=below, starts=[12, 0], operation="delete-records")
    for segment in below:
        (topic.folder / segment["file"]).unlink()
    if expected is None:
        with pytest.raises(sparklog.CallError, match="PARTLOG_OFFSETS_OUT_OF_RANGE"):
            rest(consumer)
    else:
        assert rest(consumer).get(0, []) == expected


@pytest.mark.parametrize("how", ["commit", "given", "close"])
def test_offsets_of_a_topic_that_is_gone_are_not_committed_to_the_next_one(topic, tmp_path, how):
    table = OffsetTable(topic.root, tmp_path / "offsets")
    consumer = begun(topic, table=table, enable_auto_commit=how == "close", **ALONE)
    recreate(topic)
    if how != "close":
        with pytest.raises(sparklog.RetryError, match="PARTLOG_TOPIC_RECREATED"):
            consumer.commit({T0: 6} if how == "given" else None)
    consumer.close()
    assert table.positions("g") == []


def test_a_commit_to_a_topic_that_is_another_one_can_be_tried_again(topic, tmp_path):
    """The group has positions in the topic before: that needs no reset, since the consumer finds the other topic with its next poll."""
    table = OffsetTable(topic.root, tmp_path / "offsets")
    with begun(topic, table=table, enable_auto_commit=False, **ALONE) as consumer:
        consumer.commit()
        consumer.seek(T0, 7)
        recreate(topic)
        with pytest.raises(sparklog.RetryError, match=r"PARTLOG_TOPIC_RECREATED.*Topic t"):
            consumer.commit()
        assert rest(consumer) == {0: list(range(15)), 1: list(range(15))}
        consumer.commit()
    assert {(each.partition, each.offset, each.note) for each in table.positions("g")} == {(0, 15, None), (1, 15, None)}


def test_a_topic_that_was_deleted_does_not_keep_others_from_being_committed(topic, tmp_path):
    other = Topic(topic.root, "u")
    other.append(records(5))
    table = OffsetTable(topic.root, tmp_path / "offsets")
    with Consumer(topic.root, "t", "u", table=table, auto_offset_reset="earliest", **ALONE) as consumer:
        assert sum(map(len, consumer.poll().values())) == 41
        other.delete()
    assert {(each.topic, each.partition): each.offset for each in table.positions("g")} == {("t", 0): 18, ("t", 1): 18}


def test_a_consumer_sees_what_its_table_has_seen_first(topic, tmp_path, monkeypatch):
    """Both share the states of topics: a commit of the table takes the newest one, and the next poll returns its records."""
    monkeypatch.setattr(watch, "_ASK_S", 1e9)
    table = OffsetTable(topic.root, tmp_path / "offsets")
    with Consumer(topic.root, "t", table=table, auto_offset_reset="earliest", poll_interval_ms=1, **ALONE) as consumer:
        assert sum(map(len, consumer.poll().values())) == 36
        assert consumer.poll() == {}
        topic.append(records(2, "new"), 0)
        Own(table, "other", {"t": {0: 20}})
        time.sleep(0.002)
        assert [record.offset for record in consumer.poll()[T0]] == [18, 19]


def test_a_table_its_consumer_and_its_owner_open_a_topic_once(topic, tmp_path, monkeypatch):
    opened: list[str] = []
    begin = TopicLog.__init__

    def counting(self: TopicLog, root: str, topic: str) -> None:
        opened.append(topic)
        begin(self, root, topic)

    monkeypatch.setattr(TopicLog, "__init__", counting)
    for table in (tmp_path / "offsets", OffsetTable(topic.root, tmp_path / "offsets")):
        opened.clear()
        with Consumer(topic.root, "t", table=table, auto_offset_reset="earliest", **ALONE) as consumer:
            consumer.poll()
            consumer.commit()
            consumer.committed(T0)
        assert opened == ["t"]


def test_topics_that_a_pattern_found_and_that_went_are_forgotten(topic):
    logs = TopicLogs(Root.at(str(topic.root)))
    with Consumer(logs, auto_offset_reset="earliest", metadata_max_age_ms=0, poll_interval_ms=1) as consumer:
        consumer.subscribe(pattern="day-.*")
        for day in range(5):
            today = Topic(topic.root, f"day-{day}")
            today.append(records(1))
            time.sleep(0.002)
            assert sum(map(len, consumer.poll().values())) == 1
            today.delete()
            time.sleep(0.002)
            assert consumer.poll() == {}
            assert consumer.subscription() == set()
        assert logs.kept == []
