"""Lag, compared with a second computation by hand, its history, and what retention must keep."""

import datetime

import pytest
from handmade import TIME, Record, Topic, batch, records, seeded
from owners import Own

import sparklog
from sparklog.groups import OffsetTable
from sparklog.groups.member import weights


def by_hand(root, topic: str, partition: int, offset: int, segments: list[dict]) -> tuple[int, int, float]:
    """Records, bytes and seconds behind, from the records that `Topic.read` gives and the segments as they were written."""
    log = sparklog.Log(root)[topic]
    end = log.end_offsets()[partition]
    times = log.read(partition, start=max(offset, log.start_offsets()[partition]), columns=["timestamp"])["timestamp"].to_pylist()
    seconds = (max(times) - times[0]) / datetime.timedelta(seconds=1) if times else 0.0
    octets = 0
    for segment in segments:
        if segment["partition"] == partition and segment["end"] > offset:
            unread = segment["end"] - max(offset, segment["base"])
            octets += int(segment["bytes"] * unread / (segment["end"] - segment["base"]))
    return end - max(offset, log.start_offsets()[partition]), octets, seconds


def test_lag_is_what_is_unread(tmp_path):
    chance = seeded()
    topic = Topic(tmp_path / "root", "t", partitions=2)
    segments, time = [], TIME
    for _ in range(12):
        content = []
        for _ in range(chance.randint(1, 20)):
            time += chance.randint(0, 3000)
            content.append(Record(b"x" * chance.randint(0, 90), timestamp=time))
        segments.append(topic.append(content, chance.randint(0, 1)))
    table = OffsetTable(topic.root, tmp_path / "offsets")
    ends = sparklog.Log(topic.root)["t"].end_offsets()
    for _ in range(15):
        at = {partition: chance.randint(0, end) for partition, end in ends.items()}
        group = f"g-{sorted(at.items())}"
        Own(table, group, {"t": at})
        for row in table.lag(group).to_pylist():
            expected = by_hand(topic.root, "t", row["partition"], at[row["partition"]], segments)
            assert (row["records"], row["seconds"]) == (expected[0], pytest.approx(expected[2], abs=1e-9))
            assert abs(row["bytes"] - expected[1]) <= len(segments)  # each is rounded down


def test_lag_of_each_partition(table, topic):
    own = Own(table, "g", {"t": {0: 15}})
    first, second = table.lag("g").to_pylist()
    assert first["group"] == "g" and first["topic"] == "t"
    # Offset 15 was written at TIME + 1000, and the last of the three batches after it ends at TIME + 2002.
    assert (first["partition"], first["offset"], first["end"], first["records"], first["seconds"]) == (0, 15, 25, 10, 1.002)
    assert first["bytes"] == topic.versions[1]["added"][0]["bytes"]
    assert (second["offset"], second["end"], second["records"], second["bytes"], second["seconds"]) == (None, 10, None, None, None)
    own.to({"t": {0: 25, 1: 10}})
    assert [(row["records"], row["bytes"], row["seconds"]) for row in table.lag("g").to_pylist()] == [(0, 0, 0.0)] * 2
    assert table.lag("g", "u").num_rows == 0


@pytest.mark.parametrize(("start", "records", "seconds"), [(15, 10, 1.002), (25, 0, 0.0)])
def test_what_has_expired_is_no_lag(table, topic, start, records, seconds):
    """Those records cannot be read any more. So it is wherever a lag is told."""
    Own(table, "g", {"t": {0: 3, 1: 10}})
    first = sparklog.TopicPartition("t", 0)
    consumer = sparklog.Consumer(topic.root)
    consumer.assign([first])
    consumer.seek(first, 3)
    topic.commit(starts=[start, 0])
    row = table.lag("g").to_pylist()[0]
    assert (row["offset"], row["start"], row["end"], row["records"], row["seconds"]) == (3, start, 25, records, seconds)
    assert (row["bytes"] > 0) == (records > 0)
    assert [each.lag for each in table.summaries()] == [records]
    assert table.topics.unread(table.positions("g")) == {("t", 0): records, ("t", 1): 0}
    planned = table.plan("g", members=["a", "b"], weight="lag")
    assert {each.partition: each.lag for each in planned.partitions} == {0: records, 1: 0}
    state = table.topics.state("t")
    lags = weights.lags({"t": state}, table.positions("g"))
    assert weights.measured("lag", {"t": state}, lags, table.topics.logs) == {("t", 0): records, ("t", 1): 0}
    consumer.end_offsets([first])
    assert consumer.metrics()["consumer-fetch-manager-metrics"]["records-lag-max"] == records
    Own(table, "g", {"t": {0: 4}})
    assert table.lag_history("g")["records"].to_pylist()[-1] == records, "at the time of a commit, what was in the log counts"


def test_records_without_a_time_have_no_seconds(tmp_path):
    topic = Topic(tmp_path / "root")
    topic.append([Record(timestamp=-1), Record(timestamp=TIME)])
    table = OffsetTable(topic.root, tmp_path / "offsets")
    Own(table, "g", {"t": {0: 0}})
    assert table.lag("g")["seconds"].to_pylist() == [None]


def test_lag_in_a_gap_of_offsets(tmp_path):
    topic = Topic(tmp_path / "root")
    content = batch([Record(timestamp=TIME), Record(timestamp=TIME + 500)], deltas=[0, 9])
    topic.commit(topic.data(content, offsets="tiled"))
    table = OffsetTable(topic.root, tmp_path / "offsets")
    Own(table, "g", {"t": {0: 4}})
    assert [(row["records"], row["seconds"]) for row in table.lag("g").to_pylist()] == [(6, 0.0)]


def test_lag_of_a_topic_that_was_created_again(table, topic):
    Own(table, "g", {"t": {0: 3}})
    topic.delete()
    topic.append(records(3))
    with pytest.raises(sparklog.CallError, match="PARTLOG_GROUP_OF_OTHER_TOPIC"):
        table.lag("g")
    assert table.retain_from() == {}
    assert table.lag_history("g")["records"].to_pylist() == [None]


def test_lag_is_shown(table, capsys):
    Own(table, "g", {"t": {0: 15}})
    table.show("g")
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "Group g"
    assert shown[1].startswith("behind by 10 records, ") and shown[1].endswith(" bytes, 1.0 s")
    assert shown[3].split() == ["topic", "partition", "offset", "start", "end", "records", "bytes", "seconds"]
    assert shown[4].split()[:6] == ["t", "0", "15", "0", "25", "10"]


def test_lag_over_time(table, topic):
    """The topic is extended between two commits of the group, at a time that its version file says."""
    now = int(datetime.datetime.now(datetime.timezone.utc).timestamp() * 1000)
    own = Own(table, "g")
    own.to({"t": {0: 15, 1: 2}})
    topic.commit(topic.data(batch(records(10)), 0), time=now + 100_000)
    own.to({"t": {0: 25}})
    found = table.lag_history("g").to_pylist()
    assert [(row["partition"], row["offset"], row["end"], row["records"]) for row in found] == [
        (0, 15, 25, 10),
        (1, 2, 10, 8),
        (0, 25, 25, 0),
    ]
    assert [row["committed_at"] for row in found] == [each.committed_at for each in table.history("g")]


def test_retain_from_is_the_lowest_offset_that_a_group_needs(table, topic):
    Topic(topic.root, "u").append(records(4))
    Own(table, "a", {"t": {0: 5, 1: 9}})
    Own(table, "b", {"t": {0: 7, 1: 3}, "u": {0: 2}})
    Own(table, "c", {"t": {0: 20}})
    assert table.retain_from() == {"t": {0: 5, 1: 0}, "u": {0: 2}}, "c still reads partition 1 from its first offset"
    assert table.retain_from(["a", "b"]) == {"t": {0: 5, 1: 3}, "u": {0: 2}}
    assert table.retain_from(["b"]) == {"t": {0: 7, 1: 3}, "u": {0: 2}}
    assert table.retain_from([]) == {}
    with pytest.raises(sparklog.CallError, match=r"PARTLOG_GROUP_NOT_FOUND.*a, b, c"):
        table.retain_from(["a", "d"])
    table.delete("a", force=True)
    assert table.retain_from() == {"t": {0: 7, 1: 0}, "u": {0: 2}}
