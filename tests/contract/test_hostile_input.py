"""The readers in Java and in Python on input that no writer makes: both return the same records, or both raise an error."""

import json
import os
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import broken_checkpoints
import broken_rules
import google_crc32c
import pytest
from broken_rules import BIG, changed, write_third, write_two_versions
from contract import json_texts
from handmade import Record, Topic, batch, featured, flipped, given, records, seeded
from logtool import TIMEOUT_S, BatchTool, LogTool
from odd_batches import BROKEN, CONTENT, RIGHT, WRONG, compressed

from sparklog import Log, SparklogError
from sparklog.batches.header import CODECS
from sparklog.ondisk.root import Root
from sparklog.ondisk.topic_log import TopicLog


def test_the_forms_of_codecs(batch_tool: BatchTool) -> None:
    """The tests of the reader in Python have the same list."""
    right = [
        {"offset": offset, "timestamp": each.timestamp, "key": each.key.hex(), "value": each.value.hex(), "headers": []}
        for offset, each in enumerate(CONTENT)
        if each.key and each.value
    ]
    lines = [compressed(codec, payload).hex() for codec, payload in [*RIGHT.values(), *WRONG.values()]]
    answers = [json.loads(line) for line in batch_tool("decode", lines)]
    found = dict(zip([*RIGHT, *WRONG], answers, strict=True))
    assert [form for form in RIGHT if found[form].get("records") != right] == []
    assert [form for form in WRONG if "bad" not in found[form]] == []


def test_batches_that_break_a_rule(batch_tool: BatchTool) -> None:
    lines = [batch([Record()], **fields).hex() for fields in BROKEN.values()]
    answers = [json.loads(line) for line in batch_tool("decode", lines)]
    assert [rule for rule, answer in zip(BROKEN, answers, strict=True) if "bad" not in answer] == []


def test_empty_batches(batch_tool: BatchTool) -> None:
    """Also with a codec in their attributes; but a batch that claims records must have some."""
    empty = [batch([], attributes=codec, last_offset_delta=4).hex() for codec in range(len(CODECS))]
    claiming = [batch([], attributes=codec, records=1).hex() for codec in range(len(CODECS))]
    answers = [json.loads(line) for line in batch_tool("decode", empty + claiming)]
    assert answers[: len(CODECS)] == [{"records": []}] * len(CODECS)
    assert all("bad" in answer for answer in answers[len(CODECS) :])


def test_version_files(tool: LogTool) -> None:
    """Each in a topic of its own. The checksums are right; the content is wrong, or its JSON."""
    changes = {
        **{rule: (change, bytes, "VERSION_CORRUPT") for rule, change in broken_rules.BROKEN.items()},
        **{rule: (change, bytes, "ok") for rule, change in broken_rules.ODD.items()},
        **{rule: (id, text, "VERSION_CORRUPT") for rule, text in json_texts.WRONG_TEXTS.items()},
        **{rule: (id, text, "ok") for rule, text in json_texts.OTHER_TEXTS.items()},
        "format 2": (given("format", 2), bytes, "FORMAT_TOO_NEW"),
        "a feature": (given("features", featured("more", binds="readers")), bytes, "FORMAT_TOO_NEW"),
        "very many features": (given("features", featured(*map(str, range(2000)), binds="readers")), bytes, "FORMAT_TOO_NEW"),
        "as it should be": (id, bytes, "ok"),
    }
    assert len(changes) == 4 + sum(map(len, (broken_rules.BROKEN, broken_rules.ODD, json_texts.WRONG_TEXTS, json_texts.OTHER_TEXTS)))
    names = {f"t{number}": rule for number, rule in enumerate(changes)}
    for name, rule in names.items():
        topic = Topic(tool.root, name, partitions=2)
        change, text, _ = changes[rule]
        write_third(topic, changed(write_two_versions(topic), change), text)
    expected = {rule: found for rule, (_, _, found) in changes.items()}
    names["large"] = "64 MiB and a byte"
    large = Topic(tool.root, "large", partitions=2)
    os.truncate(write_third(large, write_two_versions(large)), (64 << 20) + 1)
    expected[names["large"]] = "VERSION_CORRUPT"
    assert {rule: verdict(tool.root, name) for name, rule in names.items()} == expected
    assert {names[name]: found for name, found in (line.split(" ") for line in tool.run("states"))} == expected


def test_checkpoints(tool: LogTool) -> None:
    """The versions before the checkpoint's are deleted: either the checkpoint is valid, or these versions are missing."""
    heads: dict[str, Callable[[list[Any]], object]] = {
        rule: lambda lines, change=change: change(lines[0]) for rule, change in broken_checkpoints.HEADS.items()
    }
    segments: dict[str, Callable[[list[Any]], object]] = {
        f"a segment: {rule}": lambda lines, change=change: lines.__setitem__(2, change(lines[2]))
        for rule, change in broken_checkpoints.LINES.items()
    }
    right: dict[str, Callable[[list[Any]], object]] = {
        "as it should be": len,
        "unknown fields": lambda lines: lines[0].update(more=[{}, BIG - 1]),
        "queries in any order": lambda lines: lines[0].update(
            queries=[["q", 1, "0123456789abcdef", 0], ["", BIG - 1, None, BIG - 1], ["ä", 0, "0" * 16, 1]]
        ),
        **{
            f"a segment with {rule}": lambda lines, change=change: lines.__setitem__(2, change(lines[2]))
            for rule, change in broken_checkpoints.ODD_LINES.items()
        },
    }
    changes = {**heads, **segments, **right}
    names = {f"t{number}": rule for number, rule in enumerate(changes)}
    for name, rule in names.items():
        topic = Topic(tool.root, name, partitions=2)
        for number in range(4):
            topic.append(records(3), number % 2)
        lines = [json.loads(line.split(b"\t")[0]) for line in topic.checkpoint().read_bytes().splitlines()]
        for file in topic.folder.glob("0*"):
            if file != topic.version_file(3):
                file.unlink()
        changes[rule](lines)
        topic.put_checkpoint(3, lines)
    expected = {rule: "ok" if rule in right else "VERSION_MISSING" for rule in changes}
    assert {rule: verdict(tool.root, name) for name, rule in names.items()} == expected
    assert {names[name]: found for name, found in (line.split(" ") for line in tool.run("states"))} == expected


@pytest.mark.parametrize(("size", "expected"), [(65_536, "ok"), (65_537, "VERSION_MISSING")])
def test_the_longest_line_of_a_checkpoint(tool: LogTool, size: int, expected: str) -> None:
    topic = Topic(tool.root)
    topic.append(records(3))
    topic.commit()
    file = topic.checkpoint()
    topic.version_file(0).unlink()
    head, segment = (line.split(b"\t")[0] for line in file.read_bytes().splitlines())
    segment += b" " * (size - len(segment) - 9)
    sums = google_crc32c.value(head), google_crc32c.value(head + segment)
    file.write_bytes(head + b"\t%08x\n" % sums[0] + segment + b"\t%08x\n" % sums[1])
    assert verdict(tool.root, "t") == expected
    assert tool.run("states") == [f"t {expected}"]


def flipped_bits(tool: LogTool, file: Path, step: int = 1) -> Counter[str]:
    """How often each outcome came when every `step`-th bit of a file was flipped, one at a time. Both readers must have the same counts."""
    whole = file.read_bytes()
    right = everything(tool.root)
    found: Counter[str] = Counter()
    for bit in range(0, 8 * len(whole), step):
        file.write_bytes(flipped(whole, bit))
        try:
            found["same" if everything(tool.root) == right else "another"] += 1
        except SparklogError as error:
            found[error.id] += 1
    file.write_bytes(whole)
    out, err = tool.start("bits", file=file.name, step=step).communicate(timeout=3600)
    java = {what: int(times) for what, times in (line.split(" ") for line in out.splitlines())}
    print(f"{file.name}: {found.total():,} bits: {dict(found)}")
    assert java == found, err
    return found


def everything(root: Path, topic: str = "t") -> object:
    log = TopicLog(Root.at(str(root)), topic)
    state = log.newest()
    segments = [list(log.segments(state, partition)) for partition in range(state.partitions)]
    return state.topic_id, state.version, state.hash, dict(state.config), state.starts, state.ends, segments


def hand_made(root: Path, partitions: int, versions: int) -> tuple[Path, Path]:
    """The file of the newest version, and the checkpoint before it."""
    topic = Topic(root, partitions=partitions)
    for version in range(versions):
        topic.append(records(3, f"v{version}"), version % partitions)
    checkpoint = topic.checkpoint()
    topic.commit(
        *[topic.data(batch(records(2)), partition) for partition in range(1, partitions)],
        query={"id": "q", "epoch": 7, "input": "fedcba9876543210"},
    )
    return topic.version_file(versions), checkpoint


def test_a_bit_of_each_third_byte(tool: LogTool) -> None:
    """A version file that is damaged is an error; a checkpoint only saves time."""
    version, checkpoint = hand_made(tool.root, 1, 1)
    for file, outcome in ((version, "VERSION_CORRUPT"), (checkpoint, "same")):
        assert flipped_bits(tool, file, 23) == {outcome: len(range(0, 8 * file.stat().st_size, 23))}


@pytest.mark.soak
@pytest.mark.parametrize("which", ["by hand", "by Java", "checkpoint"])
def test_every_bit_of_larger_files(tool: LogTool, which: str) -> None:
    version, checkpoint = hand_made(tool.root, 10, 5)
    tool.run("append", tag="A", query="Zürich", epoch=0)
    file = {"by hand": version, "by Java": version.with_name(f"{6:020d}.json"), "checkpoint": checkpoint}[which]
    bits = 8 * file.stat().st_size
    assert flipped_bits(tool, file) == {"same" if file == checkpoint else "VERSION_CORRUPT": bits}


@pytest.mark.soak
def test_very_many_predicates(java_classpath: str, spark_jars: Path) -> None:
    """Pushed-down predicates, compared with brute force. The short version is in PushDownTest."""
    command = [
        "java",
        "-cp",
        f"{java_classpath}:{spark_jars}/*",
        "io.sparklog.source.RandomPredicates",
        str(seeded().randrange(2**63)),
        "400000",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr
    print(done.stdout)


UNFIT: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a file": Path.touch,
    "a device": lambda file: file.symlink_to("/dev/zero"),
    "a link to the file": lambda file: file.symlink_to(file.with_suffix(".moved")),
    "a link to nowhere": lambda file: file.symlink_to("nowhere"),
}


PLACES: dict[str, tuple[str, str]] = {
    "version file": (f"_partlog/t/{1:020d}.json", "VERSION_CORRUPT"),
    "checkpoint": ("_partlog/t/*.checkpoint-*", "ok"),
    "data file": ("_partlog/t/data/*/p0-*.log", "SEGMENT_CORRUPT"),
    "index": ("t-0/*.index", "ok"),
    "data folder": (f"_partlog/t/data/{1:020d}-*", "SEGMENT_CORRUPT"),
    "data": ("_partlog/t/data", "SEGMENT_CORRUPT"),
    "topic": ("_partlog/t", "IO"),
    "_partlog": ("_partlog", "IO"),
    "partition": ("t-0", "ok"),
}


@pytest.mark.parametrize("what", PLACES)
def test_files_of_other_kinds(tool: LogTool, what: str) -> None:
    """FORMAT.md section 2: what else is in the place of a file or a folder. Readers neither wait nor follow, and answer alike."""
    tool.run("append", tag="A", commits=100 if what == "checkpoint" else 1, tasks=1, records=2, partitions=1)
    tool.run("append", tag="B", tasks=1, records=200, big=10_000, partitions=1)
    right = tool.read()[0]
    place = max(tool.root.glob(PLACES[what][0]))
    expected = PLACES[what][1]
    moved = place.with_suffix(".moved")
    kinds = [kind for kind in UNFIT if kind != "a file"]
    if place.is_dir():
        kinds = ["a link to the file", *(["a pipe", "a file", "a link to nowhere"] if expected == "SEGMENT_CORRUPT" else [])]
    place.rename(moved)
    for kind in kinds:
        UNFIT[kind](place)
        if expected == "ok":
            assert tool.read()[0] == right, kind
            assert Log(tool.root).topic("t").end_offsets() == {0: len(right)}, kind
            assert Log(tool.root).topic("t").read(0, start=len(right) - 1).num_rows == 1, kind
        else:
            err = failure(tool, "read")
            assert re.search("symbolic link|not a regular file|not a folder", err), (kind, err)
            with pytest.raises(SparklogError, match=r"symbolic link|not a regular file|not a folder") as raised:
                Log(tool.root).topic("t").read()
            assert raised.value.id == expected and f"PARTLOG_{expected}" in err, (kind, err)
        if what in ("topic", "data") and "link" in kind:
            assert "symbolic link" in failure(tool, "append")
        if place.is_dir() and not place.is_symlink():
            place.rmdir()
        else:
            place.unlink()
    moved.rename(place)
    assert tool.read()[0] == right


@pytest.mark.parametrize("place", ["_partlog/t", "_partlog"])
@pytest.mark.parametrize("make", [os.mkfifo, Path.touch], ids=["a pipe", "a file"])
def test_what_is_not_a_folder_is_not_a_topic(tool: LogTool, place: str, make: Callable[[Path], object]) -> None:
    """FORMAT.md section 2: a listing does not wait for a pipe."""
    tool.run("append", tag="A", tasks=1)
    (tool.root / place).rename(tool.root / "moved")
    make(tool.root / place)
    assert tool.run("states") == []
    assert tool.run("read") == ["none"], "nor is it one when it is named"
    assert Log(tool.root).topics() == []
    with pytest.raises(SparklogError, match="PARTLOG_TOPIC_NOT_FOUND"):
        Log(tool.root).topic("t").read()


def test_a_root_beyond_a_link(tool: LogTool) -> None:
    """`..` is resolved in the text of a path, as Spark does it with all paths. Both readers find the same root."""
    elsewhere = tool.root.parent / "elsewhere" / "folder"
    elsewhere.mkdir(parents=True)
    (tool.root.parent / "link").symlink_to(elsewhere)
    beyond = tool.root.parent / "link" / ".." / "root"
    LogTool(tool.classpath, beyond).run("append", tag="A", tasks=1)
    assert sum(Log(beyond).topic("t").end_offsets().values()) == 10
    assert sum(map(len, tool.read().values())) == 10
    assert list(elsewhere.parent.iterdir()) == [elsewhere]


def failure(tool: LogTool, *words: str) -> str:
    process = tool.start(*words)
    _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 1, err
    return err


def verdict(root: Path, topic: str) -> str:
    """The findings of the reader in Python, in the format of `LogTool states`."""
    try:
        everything(root, topic)
    except SparklogError as error:
        return error.id
    return "ok"
