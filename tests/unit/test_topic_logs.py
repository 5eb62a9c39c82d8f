"""A topic is opened once, however many questions are asked about it."""

import gc
import pickle
import shutil
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
from handmade import Topic, records

from sparklog import Consumer, Log, SparklogError
from sparklog.ondisk.root import Root
from sparklog.ondisk.topic_log import TopicLog
from sparklog.ondisk.topic_logs import KEPT, TopicLogs


def test_a_log_opens_a_topic_once(topic, opens):
    log = Log(topic.root)
    for _ in range(2):
        assert log["t"].head().num_rows == 10
        assert [each.offsets for each in log.summaries()] == [35]
        assert "t" in repr(log)
    assert opens == ["t"]


def test_a_log_sees_each_commit_deletion_and_creation(topic, opens):
    log = Log(topic.root)
    before = log["t"].end_offsets()
    topic.append(records(5))
    assert log["t"].end_offsets()[0] == before[0] + 5
    topic.delete()
    assert "t" not in log
    topic.append(records(2))
    assert log["t"].end_offsets()[0] == 2


def test_the_topics_that_were_asked_for_last_are_kept(topic, opens):
    for name in "abc":
        Topic(topic.root, name, partitions=1).append(records(1))
    logs = TopicLogs(Root.at(str(topic.root)), 2)
    kept = logs.log("a")
    for name in "abac":
        logs.log(name).newest()
    assert opens == ["a", "b", "c"]
    assert logs.log("a") is kept
    logs.log("b").newest()
    assert opens == ["a", "b", "c", "b"]


def test_logs_and_topics_go_to_other_processes(topic):
    log = Log(topic.root)
    log["t"].head()
    there, of = pickle.loads(pickle.dumps((log, log["t"])))
    assert there["t"].head().equals(of.head())
    assert of.head().equals(log["t"].head())


def test_a_consumer_opens_a_topic_once(topic, opens):
    with Consumer(topic.root, "t", auto_offset_reset="earliest") as consumer:
        assert consumer.poll()
        assert consumer.end_offsets(consumer.assignment())
    assert opens == ["t"]


def test_a_log_of_many_topics_keeps_few(tmp_path, monkeypatch):
    """A kept topic may hold a file open, and the lines of its segments."""
    for number in range(KEPT + 3):
        Topic(tmp_path, f"t{number:02}", partitions=1).append(records(1))
    made, begin = [], TopicLog.__init__
    monkeypatch.setattr(TopicLog, "__init__", lambda self, *given: made.append(weakref.ref(self)) or begin(self, *given))
    log = Log(tmp_path)
    for name in log:
        assert log[name].name == name
    gc.collect()
    assert [each() is not None for each in made] == [False] * 3 + [True] * KEPT


def test_a_topic_of_a_log_costs_no_look_at_the_root(topic, monkeypatch):
    log, looks, require = Log(topic.root), [], Root.require
    monkeypatch.setattr(Root, "require", lambda root: looks.append(root) or require(root))
    assert log["t"].head().num_rows == 10
    assert looks == []
    shutil.rmtree(topic.root)
    with pytest.raises(SparklogError, match="ROOT_NOT_FOUND"):
        log["t"]


def test_a_look_beside_another_look_lists_no_folder(topic, monkeypatch):
    log = TopicLog(Root.at(str(topic.root)), "t")
    log.newest()
    topic.append(records(5))
    listings, names_of = [], Root.names_of
    monkeypatch.setattr(Root, "names_of", lambda root, name: listings.append(name) or names_of(root, name))
    looking, ends, go_on = threading.Event(), threading.Event(), log._go_on

    def waits(kept):
        looking.set()
        assert ends.wait(60)
        return go_on(kept)

    monkeypatch.setattr(log, "_go_on", waits)
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(log.newest)
        assert looking.wait(60)
        monkeypatch.setattr(log, "_go_on", go_on)
        second = log.newest()
        ends.set()
        assert first.result().version == second.version
    assert listings == []
