"""What the reader in Python makes of a topic that was written by hand."""

import pytest
from handmade import Topic

from sparklog import Log, SparklogError
from sparklog.ondisk.commitlog import CommitLog, State


def newest(topic: Topic) -> State:
    return CommitLog(str(topic.root), topic.name).newest()


def values(topic: Topic) -> list[bytes]:
    return Log(topic.root).topic(topic.name).read()["value"].to_pylist()


def failure(topic: Topic) -> SparklogError:
    with pytest.raises(SparklogError) as raised:
        newest(topic)
    return raised.value
