"""The records that the reader in Python finds in a topic that was written by hand."""

import pytest
from handmade import Topic

from sparklog import Log, SparklogError
from sparklog.ondisk.root import Root
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog
from sparklog.ondisk.version import Segment


def newest(topic: Topic) -> State:
    return TopicLog(Root.at(str(topic.root)), topic.name).newest()


def segments(topic: Topic, partition: int) -> list[Segment]:
    """The live segments of a partition in the newest state."""
    log = TopicLog(Root.at(str(topic.root)), topic.name)
    return list(log.segments(log.newest(), partition))


def values(topic: Topic) -> list[bytes]:
    return Log(topic.root).topic(topic.name).read()["value"].to_pylist()


def failure(topic: Topic) -> SparklogError:
    with pytest.raises(SparklogError) as raised:
        newest(topic)
    return raised.value
