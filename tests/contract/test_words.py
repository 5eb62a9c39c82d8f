"""Both languages on topics whose settings have values of a later release. FORMAT.md section 5.2."""

import re
from pathlib import Path
from typing import Any

import broken_rules
import pytest
from handmade import Topic, batch, records
from logtool import LogTool

from sparklog import Log, SparklogError
from sparklog.ondisk.config import _KEYS, _OF_KEY_READERS, _OF_RECORD_READERS
from sparklog.ondisk.features import Binds
from sparklog.ondisk.root import Root
from sparklog.ondisk.topic_log import TopicLog

OF_WRITERS = [key for key in _KEYS if key not in (*_OF_RECORD_READERS, *_OF_KEY_READERS)]


def written(root: Path, key: str, value: str, name: str = "t", checkpoint: bool = True) -> Topic:
    """A topic whose key got the value, and that has records from before and after it."""
    topic = Topic(root, name, partitions=2)
    topic.append(records(3))
    topic.commit(topic.data(batch(records(2)), routed=False), operation="alter", config={key: value})
    topic.append(records(2), 1, routed=False)
    if checkpoint:
        topic.config = {key: value}
        topic.checkpoint()
        topic.version_file(0).unlink()
    return topic


def refusal(call: Any) -> str:
    with pytest.raises(SparklogError) as refused:
        call()
    assert refused.value.id == "FORMAT_TOO_NEW"
    return str(refused.value)


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_reader_by_offset_reads_every_word(tool: LogTool, checkpoint: bool) -> None:
    cases = dict.fromkeys([(key, "tomorrow") for key in (*OF_WRITERS, *_OF_KEY_READERS)] + broken_rules.LATER)
    names = {f"t{number}": case for number, case in enumerate(cases)}
    for name, (key, value) in names.items():
        topic = written(Path(tool.root), key, value, name, checkpoint)
        assert Log(topic.root)[name].read().num_rows == 7
        assert Log(topic.root)[name].describe()["config"][key] == value
        state = TopicLog(Root.at(str(topic.root)), name).newest()
        assert [state.is_known_to(each) for each in (Binds.KEY_READERS, Binds.WRITERS)] == [key not in _OF_KEY_READERS, False]
    assert dict(line.split(" ") for line in tool.run("states")) == dict.fromkeys(names, "ok")


@pytest.mark.parametrize("key", [*OF_WRITERS, *_OF_KEY_READERS])
def test_programs_that_a_word_binds_refuse_it_by_key_and_value(tool: LogTool, key: str) -> None:
    topic = written(Path(tool.root), key, "tomorrow", checkpoint=False)
    for call in (lambda: Log(topic.root)["t"].partition_for("a"), lambda: Log(topic.root)["t"].read(key="a")):
        if key in _OF_KEY_READERS:
            assert re.search(rf"{key} is tomorrow\b.* Upgrade sparklog", refusal(call))
        else:
            call()
    assert sum(map(len, tool.read().values())) == 7
    assert tool.outcome("merge", topic="t") == ["FORMAT_TOO_NEW"]
    report = Log(topic.root).verify()
    assert [(each.severity, each.condition) for each in report.findings] == [("newer", "FORMAT_TOO_NEW")]
    assert report.status == 4
    assert f"{key} is tomorrow" in report.findings[0].problem


def test_a_topic_that_begins_after_a_deletion_has_its_own_words(tool: LogTool) -> None:
    topic = written(Path(tool.root), "compression.type", "brotli", checkpoint=False)
    topic.delete()
    assert tool.outcome("append", topic="t", tag="A", partitions=2) != ["FORMAT_TOO_NEW"]
    assert Log(topic.root).verify().ok


LONG = "x" * 32_768
SHOWN: dict[str, dict[str, Any]] = {
    "the topic": {"topic": LONG},
    "a key that readers need": {"config": {"max.message.bytes": LONG}},
    "a file": {"removed": [{"partition": 0, "file": LONG, "position": 0}]},
    "offsets": {"added": [{"partition": 0, "file": "data/x", "offsets": LONG}]},
    "features": {"features": [{"name": f"{number:064}", "binds": "readers"} for number in range(512)]},
    "a number": {"time": LONG},
}


def test_a_long_value_is_not_shown_whole(tool: LogTool) -> None:
    for number, fields in enumerate(SHOWN.values()):
        topic = Topic(Path(tool.root), f"t{number}", partitions=2)
        topic.append(records(1))
        topic.put(topic.next(operation="alter") | fields | ({"removed": []} if "removed" not in fields else {}))
    for number in range(len(SHOWN)):
        with pytest.raises(SparklogError) as refused:
            Log(tool.root)[f"t{number}"].read()
        assert len(str(refused.value)) < 1000
        assert len(tool.failure("read", topic=f"t{number}")) < 4000, "with the trace"
