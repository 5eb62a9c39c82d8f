"""Version files and checkpoints that are wrong: which file is named, and how bad it is."""

import copy
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from broken_checkpoints import HEADS, LINES
from broken_rules import BROKEN, Change
from handmade import TIME, Topic, batch, given, identity, records, stamped, summed
from planting import Unrouted, checked, found, only


def written(root: Path, versions: int = 6) -> Topic:
    """A topic of two partitions with a segment a version, and checkpoints of versions 2 and 4."""
    topic = Unrouted(root, partitions=2)
    for number in range(versions):
        query = {"id": "q", "epoch": number, "input": None}
        topic.commit(topic.data(batch(records(3 + number)), number % 2), query=query)
        if number in (2, 4):
            topic.checkpoint(queries=[["q", number, None, TIME + 1000 * number]])
    return topic


def lines_of(checkpoint: Path) -> list[Any]:
    return [json.loads(line.split(b"\t")[0]) for line in checkpoint.read_bytes().splitlines()]


def checkpoint_of(topic: Topic, version: int) -> Path:
    [path] = topic.folder.glob(f"{version:020d}.checkpoint-*")
    return path


def test_a_right_one(tmp_path: Path) -> None:
    written(tmp_path)
    assert found(tmp_path) == []


@pytest.mark.parametrize("version", [2, 4])
def test_every_broken_checkpoint_is_found(tmp_path: Path, version: int) -> None:
    changes: dict[str, Callable[[list[Any]], object]] = {
        rule: lambda lines, change=change: change(lines[0]) for rule, change in HEADS.items()
    }
    changes |= {f"a segment: {rule}": lambda lines, change=change: lines.__setitem__(2, change(lines[2])) for rule, change in LINES.items()}
    changes |= {
        "a segment twice": lambda lines: (lines.insert(2, lines[2]), lines[0]["segments"].__setitem__(0, lines[0]["segments"][0] + 1)),
        "a segment less": lambda lines: (lines.pop(1), lines[0]["segments"].__setitem__(0, lines[0]["segments"][0] - 1)),
        "a later end": lambda lines: lines[0]["ends"].__setitem__(0, lines[0]["ends"][0] + 1),
    }
    topic = written(tmp_path)
    path = checkpoint_of(topic, version)
    right = lines_of(path)
    missed = []
    for rule, change in changes.items():
        lines = copy.deepcopy(right)
        change(lines)
        path.unlink()
        path = topic.put_checkpoint(version, lines)
        said = checked(tmp_path).findings
        if [(each.severity, each.condition, each.file) for each in said] != [
            ("repairable", "CHECKPOINT_DAMAGED", str(path.relative_to(tmp_path)))
        ]:
            missed.append((rule, said))
    assert missed == []


CLAIMS: dict[str, Callable[[list[Any]], object]] = {
    "another time": lambda lines: given("time", 5)(lines[0]),
    "another horizon": lambda lines: given("horizon", 1)(lines[0]),
    "another boundary": lambda lines: given("boundary", 1)(lines[0]),
    "another hash": lambda lines: given("hash", "0" * 64)(lines[0]),
    "another topic": lambda lines: given("topicId", "AAAAAAAAAAAAAAAAAAAAAw")(lines[0]),
    "other starts": lambda lines: given("starts", [1, 0])(lines[0]),
    "another configuration": lambda lines: lines[0]["config"].update(more="1"),
    "another epoch": lambda lines: given("queries", [["q", 7, None, lines[0]["time"]]])(lines[0]),
    "another input": lambda lines: given("queries", [["q", lines[0]["version"], "0" * 16, lines[0]["time"]]])(lines[0]),
    "another time of a query": lambda lines: given("queries", [["q", lines[0]["version"], None, 0]])(lines[0]),
    "no queries": lambda lines: given("queries", [])(lines[0]),
    "another query": lambda lines: lines[0]["queries"].append(["p", 0, None, 0]),
    "another file": lambda lines: lines[2].__setitem__(1, lines[2][1].replace("pool", "t0-0")),
    "another position": lambda lines: lines[2].__setitem__(2, 1),
    "another number of bytes": lambda lines: lines[2].__setitem__(3, lines[2][3] + 1),
    "a tiled segment": lambda lines: lines[2].__setitem__(10, "tiled"),
    "another least time": lambda lines: lines[2].__setitem__(8, 0),
    "a routed segment": lambda lines: lines[2].__setitem__(11, True),
    "an ordered segment": lambda lines: lines[2].__setitem__(12, True),
    "another checksum": lambda lines: lines[2].__setitem__(13, 0),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_checkpoint_that_is_not_the_state(tmp_path: Path, claim: str) -> None:
    """It is right by itself, and other than what the versions make. Readers would believe it."""
    topic = written(tmp_path)
    for version in (2, 4):
        path = checkpoint_of(topic, version)
        right = path.read_bytes()
        lines = lines_of(path)
        CLAIMS[claim](lines)
        path.unlink()
        forged = topic.put_checkpoint(version, lines)
        said = [each for each in checked(tmp_path).findings if each.file == str(forged.relative_to(tmp_path))]
        assert [(each.severity, each.condition) for each in said] == [("damage", "CHECKPOINT_WRONG")]
        forged.unlink()
        path.write_bytes(right)


@pytest.mark.parametrize("claim", ["another file", "another checksum", "another time", "another topic"])
def test_a_checkpoint_that_is_not_its_version(tmp_path: Path, claim: str) -> None:
    """The versions before it are gone, so that nothing but its own version tells."""
    topic = written(tmp_path)
    topic.commit(boundary=2)
    for version in (0, 1):
        topic.version_file(version).unlink()
    assert found(tmp_path) == []
    path = checkpoint_of(topic, 2)
    lines = lines_of(path)
    CLAIMS[claim](lines)
    path.unlink()
    forged = topic.put_checkpoint(2, lines)
    assert ("CHECKPOINT_WRONG", str(forged.relative_to(tmp_path))) in {(each.condition, each.file) for each in checked(tmp_path).findings}


@pytest.mark.parametrize("offsets", [{"starts": [2, 0]}, {"starts": [0, 0]}])
def test_a_checkpoint_with_other_offsets_than_its_version(tmp_path: Path, offsets: dict[str, Any]) -> None:
    """The versions before it are gone. Its own version names the start of partition 0, and it has another one."""
    topic = Unrouted(tmp_path, partitions=2)
    topic.append(records(4))
    topic.commit(operation="delete-records", starts=[1, 0])
    topic.commit(boundary=1)
    versions = topic.versions[2:]
    topic.versions, topic.hash, last = topic.versions[:2], versions[0]["previous"], topic.hash
    topic.checkpoint(**offsets)
    topic.version_file(0).unlink()
    assert ("damage", "CHECKPOINT_WRONG") in found(tmp_path), last


def test_bytes_behind_the_last_line_of_a_checkpoint(tmp_path: Path) -> None:
    path = checkpoint_of(written(tmp_path), 2)
    for more in (b"x", b"\n", b"{}\t00000000\n", path.read_bytes(), b"x" * 70_000):
        right = path.read_bytes()
        path.write_bytes(right + more)
        assert found(tmp_path) == []
        path.write_bytes(right)


def test_the_name_of_a_checkpoint(tmp_path: Path) -> None:
    path = checkpoint_of(written(tmp_path), 2)
    path.rename(path.with_name(path.name[:-10] + "0000.jsonl"))
    assert found(tmp_path) == [("repairable", "CHECKPOINT_DAMAGED")]


def forge(topic: Topic, version: int, change: Change) -> str:
    """A version file that is changed, with a right checksum. Returns its name below the root."""
    path = topic.version_file(version)
    content = json.loads(path.read_bytes().split(b"\n")[0])
    change(content)
    path.write_bytes(summed(json.dumps(content, separators=(",", ":")).encode()))
    return str(path.relative_to(topic.root))


def test_every_rule_of_a_version(tmp_path: Path) -> None:
    """Also of one that no reader reads, as there is a later checkpoint."""
    missed = []
    same_here = {"starts that fall", "a segment of another partition"}
    for number, (rule, change) in enumerate(BROKEN.items()):
        if rule in same_here:
            continue
        root = tmp_path / str(number)
        file = forge(written(root), 1, change)
        said = [each for each in checked(root).findings if each.file == file]
        if ("damage", "VERSION_CORRUPT") not in [(each.severity, each.condition) for each in said]:
            missed.append((rule, said))
        elif "no record now" not in said[0].impact:
            missed.append((rule, said[0].impact))
    assert missed == []


def test_which_of_two_versions_was_changed(tmp_path: Path) -> None:
    """The next version or a checkpoint tells; if neither does, both are named."""
    for version, expected in ((0, {0}), (1, {1}), (2, {2}), (3, {3}), (5, set())):
        topic = written(tmp_path / str(version))
        forge(topic, version, given("writer", "somebody else"))
        named = {int(str(each.file)[-25:-5]) for each in checked(topic.root).findings if each.condition == "VERSION_CORRUPT"}
        assert named >= expected, (version, named)
        assert len(named) <= 2
    topic = written(tmp_path / "damaged")
    forge(topic, 1, given("writer", "somebody else"))
    topic.version_file(3).write_bytes(b"{}")
    named = {int(str(each.file)[-25:-5]) for each in checked(topic.root).findings}
    assert named == {1, 2, 3}, "version 4 does not name the hash of 3, since that is damaged"
    topic = written(tmp_path / "previous")
    file = forge(topic, 5, given("previous", "0" * 64))
    assert file in {each.file for each in checked(topic.root).findings}


def test_missing_versions(tmp_path: Path) -> None:
    topic = written(tmp_path)
    topic.version_file(3).unlink()
    finding = only(tmp_path)
    assert (finding.severity, finding.condition, finding.file) == ("damage", "VERSION_MISSING", f"_partlog/t/{3:020d}.json")
    assert "no record now" in finding.impact, "readers begin at the checkpoint of version 4"
    topic.version_file(5).unlink()
    topic.commit()
    topic.commit()
    assert {each.file for each in checked(tmp_path).findings if each.condition == "VERSION_MISSING"} == {
        f"_partlog/t/{number:020d}.json" for number in (3, 5)
    }


@pytest.mark.parametrize(("version", "needed"), [(3, False), (4, True), (5, True)])
def test_what_a_damaged_version_costs(tmp_path: Path, version: int, needed: bool) -> None:
    """Readers begin at the newest checkpoint, and compare its version file; the ones before are not read any more."""
    topic = written(tmp_path)
    topic.version_file(version).write_bytes(b"{}")
    finding = next(each for each in checked(tmp_path).findings if each.file == str(topic.version_file(version).relative_to(tmp_path)))
    assert finding.impact.startswith("the topic cannot be read" if needed else "no record now")


def test_below_the_boundary_nothing_counts(tmp_path: Path) -> None:
    topic = written(tmp_path)
    topic.commit(boundary=4)
    assert found(tmp_path) == []
    for number in (0, 1):
        topic.version_file(number).unlink()
    topic.version_file(2).write_bytes(b"{}")
    assert set(found(tmp_path)) == {("garbage", "VERSION_CORRUPT")}
    for path in topic.folder.glob("*.checkpoint-*"):
        path.unlink()
    assert set(found(tmp_path)) == {("damage", "VERSION_CORRUPT"), ("damage", "VERSION_MISSING")}, "now they are needed"


def test_a_late_version_below_the_boundary_does_not_damage_the_version_after_it(tmp_path: Path) -> None:
    topic = written(tmp_path)
    topic.commit(boundary=3)
    for number in (0, 1):
        topic.version_file(number).unlink()
    checkpoint_of(topic, 2).unlink()
    late = forge(topic, 2, lambda content: content.update(writer="slept through the clean-up"))
    (finding,) = checked(tmp_path).findings
    assert (finding.severity, finding.file) == ("garbage", late)
    assert "A late writer" in finding.impact


def test_a_boundary_above_the_version(tmp_path: Path) -> None:
    written(tmp_path).commit(boundary=7)
    assert found(tmp_path) == [("damage", "VERSION_CORRUPT")]


@pytest.mark.parametrize(
    ("fields", "condition"),
    [
        ({"starts": [1, 0]}, "VERSION_ODD"),
        ({"starts": {"1": 0}}, "VERSION_ODD"),
        ({"operation": "merge", "ends": {"0": 15}}, "VERSION_ODD"),
        ({"config": {"retention.ms": "1"}}, "VERSION_ODD"),
        ({"horizon": 3}, "VERSION_ODD"),
        ({"operation": "alter", "config": {"retention.ms": "1"}}, None),
        ({"operation": "alter", "config": {"partitioner": "murmur2"}}, "VERSION_ODD"),
        ({"operation": "delete-records", "starts": [1, 0]}, None),
        ({"operation": "vacuum", "horizon": 7}, None),
        ({"operation": "vacuum", "horizon": 8}, "VERSION_ODD"),
        ({"operation": "other", "starts": [1, 0], "config": {"retention.ms": "1"}, "horizon": 3}, None),
        ({"query": {"id": "q", "epoch": 6, "input": None}}, None),
        ({"query": {"id": "q", "epoch": 5, "input": None}}, "EPOCH_TWICE"),
        ({"query": {"id": "q", "epoch": 3, "input": None}}, "EPOCH_TWICE"),
    ],
)
def test_what_no_writer_puts(tmp_path: Path, fields: dict[str, Any], condition: str | None) -> None:
    written(tmp_path).commit(**{"operation": "write", **fields})
    assert found(tmp_path) == ([("damage", condition)] if condition else [])


def test_a_horizon_of_the_first_version(tmp_path: Path) -> None:
    """A greater one than that of the next version keeps every write from committing."""
    for horizon, expected in ((1, []), (2, [("damage", "VERSION_ODD")])):
        Unrouted(tmp_path / str(horizon)).commit(horizon=horizon)
        assert found(tmp_path / str(horizon)) == expected


def test_a_rebuilt_topic_has_no_more_records_than_its_origin(tmp_path: Path) -> None:
    """Between two frontiers too: a group that is carried over would go on at the wrong place."""
    for name, passed, expected in (
        ("gaps", [[[0], [0, 0]], [[4], [3, 0]], [[9], [4, 0]]], []),
        ("more", [[[0], [0, 0]], [[2], [3, 0]], [[9], [4, 0]]], [("damage", "VERSION_ODD")]),
    ):
        topic = Unrouted(tmp_path / name, partitions=2)
        rebuilt = {"topic": "old", "topicId": identity("old"), "version": 3, "passed": passed}
        topic.commit(topic.data(batch(records(4))), rebuilt=rebuilt)
        assert found(tmp_path / name) == expected


def test_a_file_that_comes_back(tmp_path: Path) -> None:
    """A data file that a version removed is never added again: it may be deleted at any time."""
    topic = Unrouted(tmp_path)
    one, other = topic.append(records(4)), topic.append(records(4))
    merged = topic.data(stamped(topic.data_file(0).read_bytes() + topic.data_file(1).read_bytes(), 0, 4), base=0, end=8)
    topic.commit(merged, operation="merge", removed=[one, other])
    topic.commit(one, other, operation="merge", removed=[merged])
    assert found(tmp_path) == [("damage", "VERSION_ODD")] * 2 or found(tmp_path) == [("damage", "VERSION_ODD")]


def test_the_input_of_an_epoch_that_comes_twice(tmp_path: Path) -> None:
    """It is that of the last version with the epoch, so the checkpoint is right."""
    topic = Unrouted(tmp_path)
    for last in ("1" * 16, "2" * 16):
        topic.commit(topic.data(batch(records(2))), query={"id": "q", "epoch": 7, "input": last})
    topic.checkpoint(queries=[["q", 7, "2" * 16, TIME + 1000]])
    assert found(tmp_path) == [("damage", "EPOCH_TWICE")]


def test_a_query_that_is_forgotten(tmp_path: Path) -> None:
    topic = Unrouted(tmp_path)
    topic.config = {**topic.config, "transaction.retention.ms": "2000"}
    topic.commit(query={"id": "p", "epoch": 4, "input": None})
    topic.commit(query={"id": "q", "epoch": 0, "input": None})
    topic.checkpoint(queries=[["p", 4, None, TIME], ["q", 0, None, TIME + 1000]])
    topic.commit(query={"id": "q", "epoch": 1, "input": None})
    topic.checkpoint(queries=[["q", 1, None, TIME + 2000]])
    topic.commit(query={"id": "p", "epoch": 4, "input": None}, time=TIME + 9000)
    topic.checkpoint(queries=[["p", 4, None, TIME + 9000]])
    topic.commit(query={"id": "p", "epoch": 5, "input": None}, time=TIME + 99000)
    topic.checkpoint(queries=[["p", 5, None, TIME + 99000]])
    assert found(tmp_path) == []


def test_a_boundary_above_every_old_version(tmp_path: Path) -> None:
    topic = Unrouted(tmp_path)
    topic.config = {**topic.config, "versions.keep.ms": "2000"}
    topic.append(records(2))
    for boundary in (0, 0, 1, 3):
        topic.commit(topic.data(batch(records(2))), boundary=boundary)
        topic.checkpoint()
    assert found(tmp_path) == [("damage", "VERSION_ODD")]


DAY_MS = 24 * 60 * 60 * 1000


@pytest.mark.parametrize(
    ("age_ms", "keeps", "is_fault"),
    [
        (0, {0: DAY_MS}, True),
        (DAY_MS // 2, {0: DAY_MS}, True),
        (-DAY_MS // 2, {0: DAY_MS}, True),
        (DAY_MS - 1000, {0: DAY_MS}, False),
        (DAY_MS + 1000, {0: DAY_MS}, False),
        (0, {}, False),
        (0, {0: DAY_MS, 3: 0}, False),
        (DAY_MS // 2, {0: DAY_MS, 3: DAY_MS // 4}, False),
        (DAY_MS // 2, {0: DAY_MS, 3: DAY_MS // 4, 4: DAY_MS}, False),
        (0, {3: DAY_MS}, False),
        (0, {2: DAY_MS}, True),
        (0, {0: DAY_MS, 3: 2 * DAY_MS}, True),
    ],
    ids=str,
)
def test_a_data_file_of_a_version_that_is_kept(tmp_path: Path, age_ms: int, keeps: dict[int, int], is_fault: bool) -> None:
    """Version 2 removes it. Versions have other times to keep versions from these versions on."""
    now = int(time.time() * 1000)
    topic = Unrouted(tmp_path)
    for version in range(5):
        config = {"versions.keep.ms": str(keeps[version])} if version in keeps else {}
        fields: dict[str, Any] = {"time": now - age_ms}
        if version == 2:
            topic.commit(removed=[topic.live[0][0]], starts=[2], operation="delete-records", config=config, **fields)
        elif version:
            topic.commit(
                *([topic.data(batch(records(3)))] if version == 1 else []),
                operation="alter" if config else "write",
                config=config,
                **fields,
            )
        else:
            topic.config = {**topic.config, **config}
            topic.commit(topic.data(batch(records(2))), **fields)
    assert [each for each in found(tmp_path) if each[1] == "SEGMENT_MISSING"] == []
    topic.data_file(0).unlink()
    missing = [each for each in checked(tmp_path).findings if each.condition == "SEGMENT_MISSING"]
    assert [(each.severity, str(each.file).endswith(topic.data_file(0).name)) for each in missing] == [("damage", True)] * is_fault
    if missing:
        assert missing[0].impact == "no record now; reads of versions below 2 fail"
    topic.delete()
    assert "SEGMENT_MISSING" not in [each for _, each in found(tmp_path)], "a deletion of the topic ends it"


def test_epochs_of_versions_that_are_gone(tmp_path: Path) -> None:
    """The checkpoint has them: what comes after it is compared with that."""
    topic = Unrouted(tmp_path)
    for epoch in (3, 4):
        topic.commit(topic.data(batch(records(2))), query={"id": "p", "epoch": epoch, "input": None})
    topic.checkpoint(queries=[["p", 4, None, TIME + 1000]])
    topic.commit(topic.data(batch(records(2))), query={"id": "q", "epoch": 0, "input": None}, boundary=1)
    topic.checkpoint(queries=[["p", 4, None, TIME + 1000], ["q", 0, None, TIME + 2000]])
    topic.version_file(0).unlink()
    assert found(tmp_path) == []
    topic.commit(topic.data(batch(records(2))), query={"id": "p", "epoch": 4, "input": None})
    assert found(tmp_path) == [("damage", "EPOCH_TWICE")]


def test_a_txn_that_comes_again(tmp_path: Path) -> None:
    topic = written(tmp_path)
    topic.commit(txn=topic.versions[3]["txn"])
    assert found(tmp_path) == [("damage", "EPOCH_TWICE")]


def test_markers(tmp_path: Path) -> None:
    topic = written(tmp_path)
    marker = topic.folder / f"{1:020d}.deleted"
    marker.touch()
    assert found(tmp_path) == [("garbage", "MARKER_WRONG")]
    marker.rename(topic.folder / f"{5:020d}.deleted")
    assert found(tmp_path) == [("damage", "MARKER_WRONG")]
    (topic.folder / f"{5:020d}.deleted").unlink()
    topic.delete()
    assert found(tmp_path) == []
    later = topic.folder / f"{9:020d}.deleted"
    later.touch()
    assert found(tmp_path) == [("damage", "MARKER_WRONG")], "a topic that begins again would not be listed"
    later.unlink()
    marker = topic.folder / f"{6:020d}.deleted"
    marker.write_bytes(b"x")
    assert found(tmp_path) == [("garbage", "MARKER_WRONG")]
    marker.unlink()
    assert found(tmp_path) == [("repairable", "MARKER_MISSING")]
    marker.touch()
    topic.append(records(3))
    assert found(tmp_path) == []
