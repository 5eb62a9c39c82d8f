"""What a caller of an offset table can get wrong, and what a table can be found to be: clear errors, and nothing moved in silence."""

import pytest
from handmade import TIME, Record, Topic, records

import sparklog
from sparklog.offsets import OffsetTable, Owner, owner


def test_a_heartbeat_repeats_the_whole_row(table, topic, monkeypatch):
    own = Owner(table, "g")
    own.commit({"t": {0: 5}}, {"t": table._topics.state("t").topic_id}, query_id="q", epoch=3, metadata="m")
    monkeypatch.setattr(owner, "_HEARTBEAT_S", 0)
    own.beat()
    (position,) = table.positions("g")
    assert len(table.history("g")) == 2
    assert (position.offset, position.query_id, position.epoch, position.metadata) == (5, "q", 3, "m")


@pytest.mark.parametrize("again", [False, True])
def test_a_group_runs_on_when_a_topic_of_it_is_gone(table, topic, monkeypatch, again):
    own = Owner(table, "g")
    own.commit({"t": {0: 5}}, {"t": table._topics.state("t").topic_id})
    topic.delete()
    if again:
        topic.append(records(9))
    before = table._groups.group("g").last
    monkeypatch.setattr(owner, "_HEARTBEAT_S", 0)
    own.beat()
    assert table._groups.group("g").last > before
    assert [each.offset for each in table.positions("g")] == [5]


def test_a_fence_of_one_group_by_its_name(table):
    for group, offset in (("billing", 9), ("b", 3)):
        table.append(group, table.begin(group), {"t": {0: offset, 1: offset}})
    assert table.fence("billing") == table.fence(["billing"]) == {"t": {0: 9, 1: 9}}
    with pytest.raises(sparklog.CallError, match=r"PARTLOG_GROUP_NOT_FOUND.* Group mail "):
        table.fence("mail")


def test_nobody_has_a_generation_below_the_first(table, topic):
    for call in (lambda: table.append("g", 0, {"t": {0: 1}}), lambda: table.end("g", 0), lambda: table.require_generation("g", 0)):
        with pytest.raises(sparklog.GenerationFenced):
            call()
    assert table.groups() == []
    assert not (topic.root.parent / "offsets").exists()


def test_numbers_in_a_file_are_those_of_kafka(table):
    for text in ("t,0,1_0\n", "t,٠,5\n", "t,0,+5\n", "t,0, \n"):
        with pytest.raises(sparklog.CallError, match=r"PARTLOG_OFFSETS_FILE.* must be numbers"):
            table.load("g", text, "csv")
    for given in (b"t,0,5\n", None):
        with pytest.raises(TypeError, match="the content of a file"):
            table.load("g", given, "csv")
    assert table.groups() == []
    table.load("g", "\ufefft,0,5\r\n", "csv")  # as a spreadsheet saves it
    assert [each.offset for each in table.positions("g")] == [5]


def test_a_shift_is_not_true(table):
    table.append("g", table.begin("g"), {"t": {0: 5}})
    with pytest.raises(TypeError):
        table.reset("g", True)


def test_a_table_has_a_path():
    with pytest.raises(sparklog.CallError, match=r"PARTLOG_OPTION_VALUE.*path"):
        OffsetTable("")


def test_a_table_whose_files_are_gone(table, topic):
    table.begin("g")
    for file in topic.root.parent.joinpath("offsets").glob("*.parquet"):
        file.unlink()
    with pytest.raises(sparklog.RetryError, match="PARTLOG_OFFSETS_TABLE"):
        OffsetTable(table.path, topic.root).groups()


def test_seconds_of_lag_are_those_of_the_unread_records(tmp_path):
    """Times that fall: neither what is read already counts, nor which records share a segment."""
    topic = Topic(tmp_path / "root")
    times = [[9000, 100, 700, 300], [500, 200]]
    for each in times:
        topic.append([Record(timestamp=TIME + time) for time in each])
    table = OffsetTable(tmp_path / "offsets", topic.root)
    of_all = [time for each in times for time in each]
    for offset in range(6):
        table.append("g", table.begin("g", {"t": {0: offset}}), {})
        assert table.lag("g")["seconds"].to_pylist() == [(max(of_all[offset:]) - of_all[offset]) / 1000]
