"""Fields of a later version of sparklog: today's writer puts them into each checkpoint as they came, and both readers read on."""

import json
from pathlib import Path
from typing import Any

import broken_reroutes
from handmade import SEGMENT_FIELDS, Topic, batch, records
from logtool import LogTool

from sparklog import Log

OF_SEGMENT: dict[str, Any] = {"filter": {"bits": "00ff\u00e4\u2028\U0001f600", "of": [1, [-(2**63)], {"": None}]}, "sorted": True}
OF_VERSION: dict[str, Any] = {"ledger": [{"b": 1, "a": 2}], "query2": None}
OF_ROUTING: dict[str, Any] = {"reason": "a busy key", "until": 2**63 - 1}
HEAD = {
    *("format", "features", "topic", "topicId", "version", "time", "horizon", "boundary", "starts", "ends", "hash", "routing", "config"),
    *("queries", "segments", "producers"),
}
ROUTING = {"epoch", "slots", "weights", "first", "reroutes", "table"}


def text(value: object) -> str:
    """As sparklog writes it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def without(fields: dict[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}


def newest_checkpoint(topic: Topic) -> tuple[dict[str, Any], list[list[Any]], str]:
    """The head, the lines and all text of the newest checkpoint."""
    content = max(topic.folder.glob("*.checkpoint-*")).read_text()
    head, *lines = [json.loads(line.split("\t")[0]) for line in content.split("\n")[:-1]]
    return head, lines, content


def further(topic: Topic) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]:
    """The further fields of the head of the newest checkpoint, of its routing and of each segment that has some."""
    head, lines, _ = newest_checkpoint(topic)
    segments = [without(line[14], {"index"}) for line in lines if len(line) > 14]
    return without(head, HEAD), without(head["routing"], ROUTING), [each for each in segments if each]


def forged(tool: LogTool) -> Topic:
    """A topic of three partitions with slots, whose versions, segments and routing have fields that this page does not name."""
    topic = Topic(Path(tool.root), partitions=2)
    first = [topic.data(batch(records(5)), partition, routed=False) | OF_SEGMENT for partition in (0, 1)]
    topic.commit(*first, **OF_VERSION, gone=1)
    routed = broken_reroutes.Routed(topic)
    content = routed.reroute([1, 1, 1], {2: [*range(2731, 4096)]})
    routed.put(content | {"routing": content["routing"] | OF_ROUTING, "gone": 2})
    topic.features = routed.features
    return topic


def write(tool: LogTool, tag: str) -> None:
    """Commits, so that a checkpoint is put, and version files below it may be deleted."""
    tool.run("append", tag=tag, partitions=3, commits=9, pace=4)


def test_checkpoint_after_checkpoint(tool: LogTool) -> None:
    topic = forged(tool)
    expected = {**OF_VERSION, "gone": 2}, OF_ROUTING, [OF_SEGMENT, OF_SEGMENT]
    versions = set()
    for tag in "ABC":
        write(tool, tag)
        assert further(topic) == expected
        head, _, content = newest_checkpoint(topic)
        versions.add(head["version"])
        for fields in (OF_VERSION, OF_ROUTING, OF_SEGMENT):
            assert text(fields)[1:-1] in content, "they are as they came"
    assert len(versions) == 3 and not topic.version_file(0).exists(), "the fields came from a checkpoint"
    assert len(Log(tool.root)["t"].read()) == sum(map(len, tool.read().values())) == 10 + 27 * 20
    assert Log(tool.root).verify().ok


def test_a_later_version_puts_its_fields_over_those_before(tool: LogTool) -> None:
    topic = forged(tool)
    topic.commit(ledger="new", more=[])
    write(tool, "A")
    assert further(topic) == ({**OF_VERSION, "gone": 2, "ledger": "new", "more": []}, OF_ROUTING, [OF_SEGMENT, OF_SEGMENT])


def test_a_merge_drops_those_of_the_segments_that_it_removes(tool: LogTool) -> None:
    topic = forged(tool)
    write(tool, "A")
    before = {line[1] for line in newest_checkpoint(topic)[1]}
    tool.run("merge")
    write(tool, "B")
    _, lines, _ = newest_checkpoint(topic)
    kept = [line for line in lines if line[1] in before]
    assert len(kept) < len(before)
    forged_file = topic.versions[0]["added"][0]["file"]
    assert [line for line in lines if "filter" in text(line)] == [line for line in kept if line[1] == forged_file]
    assert len(Log(tool.root)["t"].read()) == 10 + 18 * 20


def test_a_deletion_forgets_them(tool: LogTool) -> None:
    topic = forged(tool)
    tool.run("change", what="delete")
    head, lines, _ = newest_checkpoint(topic)
    assert head["deleted"] and not lines and set(head) <= HEAD | {"deleted"}
    tool.run("append", tag="A", partitions=3, commits=9, pace=4)
    assert "ledger" not in newest_checkpoint(topic)[2]


def test_fields_that_are_too_long_for_a_line(tool: LogTool) -> None:
    topic = Topic(Path(tool.root))
    fits = {"more": ["x" * 8_000, "\u00e4" * 4_000, "\U0001f600" * 2_000, ""]}
    fits["more"][3] = "y" * ((32 << 10) - len(text(fits).encode()))
    for fields in (fits, {"more": [*fits["more"][:3], fits["more"][3] + "y"]}):
        topic.commit(topic.data(batch(records(5))) | fields)
    tool.run("append", tag="A", partitions=1, commits=9, pace=4)
    _, lines, _ = newest_checkpoint(topic)
    assert [line[14] for line in lines if len(line) > len(SEGMENT_FIELDS)] == [fits]
    assert len(Log(tool.root)["t"].read()) == 10 + 9 * 20
    for version in range(2):
        topic.version_file(version).unlink(missing_ok=True)
    assert len(Log(tool.root)["t"].read()) == sum(map(len, tool.read().values())) == 10 + 9 * 20
