"""Groups in short: what a list of them says of each."""

import pytest
from handmade import records
from in_notebook import html
from owners import Own

import sparklog
from sparklog import Consumer
from sparklog.groups import OffsetTable


def test_groups_in_short(table):
    Own(table, "<g>\x1b", {"t": {0: 5, 1: 2}})
    Own(table, "new")
    short = table.summaries()
    assert [(each.group, each.generation, each.topics, each.partitions, each.error) for each in short] == [
        ("<g>\x1b", 1, ["t"], 2, None),
        ("new", 1, [], 0, None),
    ]
    assert [each.lag for each in short] == [25 - 5 + 10 - 2, 0]
    assert short[1].committed_at is None
    lines = repr(short).splitlines()
    assert lines[0] == f"2 groups in {table.path}"
    assert lines[3].split()[:4] == ["<g>\\x1b", "t", "2", "28"]
    assert "&lt;g&gt;\\x1b" in html(short)
    assert OffsetTable(None, table.path).summaries()[0].lag is None
    assert [each.group for each in table.summaries("new")] == ["new"]
    with pytest.raises(sparklog.CallError, match="PARTLOG_GROUP_NOT_FOUND"):
        table.summaries(["new", "old"])


def test_a_summary_says_whether_the_group_runs(table, topic):
    def state() -> tuple[bool, str]:
        (short,) = table.summaries()
        return short.running, repr(table.summaries())

    with Consumer(topic.root, "t", group_id="g", table=table, auto_offset_reset="earliest") as consumer:
        consumer.poll()
        consumer.commit()
        assert state()[0] and " running " in state()[1]
    assert not state()[0] and " not running " in state()[1]
    Own(table, "g")
    assert state()[0]
    table.reset("g", "latest", dry_run=False, force=True)
    assert not state()[0]


def test_a_group_whose_topic_was_created_again_is_still_listed(table, topic):
    Own(table, "a", {"t": {0: 5}})
    topic.delete()
    topic.append(records(3))
    Own(table, "b", {"t": {0: 1}})
    first, second = table.summaries()
    assert (first.lag, first.error.id) == (None, "GROUP_OF_OTHER_TOPIC")
    assert (second.lag, second.error) == (2, None)
    assert "PARTLOG_GROUP_OF_OTHER_TOPIC" in repr(table.summaries())
