"""`sparklog verify`: what it prints, and how it ends."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from handmade import batches, records
from planting import Unrouted

from sparklog.__main__ import main
from sparklog.store.local import LocalFile, LocalStore


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def command(*words: object) -> tuple[int, str]:
        capsys.readouterr()
        status = main(["verify", *map(str, words)])
        out, err = capsys.readouterr()
        return status, out or err

    return command


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two topics, of which `b` has a damaged batch."""
    for name in ("a", "b"):
        topic = Unrouted(tmp_path, name)
        topic.commit(topic.data(batches(records(4), records(4))))
    octets = topic.data_file(0).read_bytes()
    topic.data_file(0).write_bytes(octets[:-1] + b"?")
    return tmp_path


def test_a_root_with_a_fault(run: Callable[..., tuple[int, str]], root: Path) -> None:
    status, said = run(root)
    assert status == 1
    file = next(root.glob("_partlog/b/data/*/*")).relative_to(root)
    assert said.startswith(f"{root}: 1 damage\nchecked: 2 topics, 2 versions, 0 checkpoints, 2 segments")
    assert f"damage BATCH_CORRUPT topic b, partition 0, offset 4: {file} at byte " in said
    assert "impact: 4 offsets, 4 to 8 (exclusive)" in said
    status, said = run(root, "--json", "--jobs", 2)
    document = json.loads(said)
    assert status == 1
    assert (document["ok"], document["checked"]["records"]) == (False, 12)
    assert [(each["topic"], each["file"]) for each in document["findings"]] == [("b", str(file))]


def test_what_is_right(run: Callable[..., tuple[int, str]], root: Path) -> None:
    for words in ((root, "a"), (root, "a", "b", "--quick"), (root, "-q", "-J")):
        status, said = run(*words)
        assert status == 0, said
        assert ("nothing is wrong" in said) != ("-J" in words)


def test_what_cannot_be_read(run: Callable[..., tuple[int, str]], root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, file = LocalStore.open, f"_partlog/a/{0:020d}.json"

    def refused(store: LocalStore, name: str) -> LocalFile:
        if name == file:
            raise PermissionError("access is denied")
        return opened(store, name)

    monkeypatch.setattr(LocalStore, "open", refused)
    status, said = run(root, "a")
    assert status == 6
    assert said.startswith(f"{root}: could not be checked: 1 version\nchecked: 1 topics, 0 versions")
    assert f"unread version topic a: {file}\n  access is denied" in said
    status, said = run(root, "--json")
    document = json.loads(said)
    assert (status, document["status"], document["ok"]) == (1, 1, False), "the fault of the other topic counts more"
    assert [(each["topic"], each["file"]) for each in document["unread"]] == [("a", file)]


def test_folders_of_the_format_belong_to_nobody_else(run: Callable[..., tuple[int, str]], root: Path) -> None:
    """The heartbeats of servers, and the trials of a store. That a topic has no Kafka view is right, and needs no word."""
    for name in ("_servers", "_probe"):
        (root / name).mkdir()
        (root / name / "file.json").touch()
    status, said = run(root, "a")
    assert (status, len(said.splitlines())) == (0, 2), said
    (root / "notes").touch()
    assert "1: files and folders belong to somebody else, and were not looked at, as notes" in run(root, "a")[1]


def test_wrong_calls(run: Callable[..., tuple[int, str]], root: Path) -> None:
    (root / "empty").mkdir()
    (root / "broker").mkdir()
    (root / "broker" / "meta.properties").touch()
    for words, condition in (
        ((root, "c"), "TOPIC_NOT_FOUND"),
        ((root / "nowhere",), "ROOT_NOT_FOUND"),
        ((root / "empty",), "ROOT_WITHOUT_LOG"),
        ((root / "broker",), "BROKER_DIRECTORY"),
    ):
        status, said = run(*words)
        assert (status, condition in said) == (2, True), said


def test_escape_codes_in_names_are_not_printed(run: Callable[..., tuple[int, str]], root: Path) -> None:
    for folder in ("_partlog/a", "_partlog", "_partlog/a/data"):
        (root / folder / "\x1b[31m\u202e\udcff.txt").touch()
    status, said = run(root)
    assert status == 1
    assert said.count("\\x1b[31m\\u202e\\udcff.txt") == 3
    assert said.isprintable() or not set(said) & {"\x1b", "\u202e", "\udcff"}
    assert json.loads(run(root, "--json")[1])["findings"]
