"""Where a page of records begins and ends: times, offsets."""

import pytest
from handmade import TIME, Record, Topic, records, seeded
from ui.asking import got, places

from sparklog import Log


@pytest.mark.parametrize("ordered", [True, False])
def test_records_of_times_are_those_that_a_read_returns(client, root, ordered):
    """Some records are late: offsets and times rise differently, within a segment and from one to the next."""
    random = seeded()
    late = Topic(root, "late", partitions=2)
    times = {0: [], 1: []}
    for _ in range(6):
        for partition in times:
            found = [TIME + random.randrange(2_000) for _ in range(20)]
            late.append([Record(b"v", timestamp=time) for time in (sorted(found) if ordered else found)], partition, ordered=ordered)
    for _ in range(25):
        since, until = sorted(TIME + random.randrange(-100, 2_100) for _ in range(2))
        bounds = {name: time for name, time in (("since", since), ("until", until + 1)) if random.random() < 0.8}
        table = Log(root)["late"].read(columns=["partition", "offset"], **bounds)
        expected = list(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))
        for order, way in (("newest", "older"), ("oldest", "newer")):
            seen, at = [], {}
            while at is not None:
                page = got(client, "topics/late/records", limit=17, order=order, **bounds, **at)
                seen += places(page["rows"])
                at = {{"older": "before", "newer": "from"}[way]: page[way]} if page[way] else None
            assert sorted(seen) == expected, (bounds, order)
        found = got(client, "topics/late/records", contains="v", limit=500, **bounds)
        assert sorted(places(found["rows"])) == expected, bounds


def test_an_offset_needs_a_partition(client, root):
    error = got(client, "topics/t/records", 400, **{"from": "3"})["error"]
    assert "an offset needs a partition, and the topic has 2: choose one" in error["text"]
    assert places(got(client, "topics/t/records", partition=1, order="oldest", **{"from": "3"}, limit=1)["rows"]) == [(1, 3)]
    one = Topic(root, "one")
    one.append(records(5))
    assert places(got(client, "topics/one/records", order="oldest", **{"from": "3"})["rows"]) == [(0, 3), (0, 4)]


def test_until_before_since_is_told(client):
    for until in (TIME, TIME - 1):
        error = got(client, "topics/t/records", 400, since=TIME, until=until)["error"]
        assert "Option `until`" in error["text"]
        assert "it is not after the time to begin at" in error["text"]
