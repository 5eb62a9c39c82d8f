"""`verify` of a store that fails now and then.

A damaged root is never right, a right root is never damaged, and what was not read is named.
"""

import random
import threading
from collections import Counter
from collections.abc import Callable, Container, Hashable
from pathlib import Path

import pytest
from handmade import batches, draw_seed, records
from planting import Unrouted
from unit.far_store import FarStore

from sparklog import Log, RetryError
from sparklog.ondisk.root import Root
from sparklog.store.local import LocalFile
from sparklog.store.store import Absent, Entry
from sparklog.verify import Report, run, verify

VERSIONS, SEEDS = 12, 3
KINDS = ("403", "404", "500", "cut answers", "cut listings", "empty listings")


class Failing(FarStore):
    """One request in `rate` fails. The seed, the name and the number of times that it was asked for decide, whatever threads do."""

    has_empty_folders = False

    def __init__(self, folder: str, kind: str = "", rate: int = 1, seed: int = 0) -> None:
        super().__init__(folder)
        self.kind, self.rate, self.seed = kind, rate, seed
        self.times: Counter[tuple[str, str]] = Counter()
        self.failed = 0
        self.guard = threading.Lock()

    def fails(self, call: str, name: str, *kinds: str) -> bool:
        if self.kind not in kinds:
            return False
        with self.guard:
            self.times[call, name] += 1
            fails = random.Random(f"{self.seed} {call} {name} {self.times[call, name]}").randrange(self.rate) == 0
            self.failed += fails
            return fails

    def entries(self, folder: str) -> list[Entry]:
        if self.fails("LIST", folder, "500", "cut listings"):
            raise OSError("the listing ends early")
        return [] if self.fails("LIST", folder, "empty listings") else super().entries(folder)

    def names(self, folder: str) -> list[str]:
        return [entry.name for entry in self.entries(folder)]

    def tree(self, folder: str) -> dict[str, list[Entry]]:
        if self.fails("LIST", folder, "500", "cut listings"):
            raise OSError("the listing ends early")
        return {"": []} if self.fails("LIST", folder, "empty listings") else super().tree(folder)

    def file(self, name: str) -> tuple[LocalFile, Hashable]:
        if self.fails("GET", name, "404"):
            raise Absent
        if self.fails("GET", name, "403", "500", "cut answers"):
            raise OSError(f"the server answered {self.kind}")
        return super().file(name)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparklog.verify.asking._WAITS_S", (0, 0, 0))


def root_of(folder: Path, *, damaged: bool) -> None:
    for name in ("t", "u"):
        topic = Unrouted(folder, name)
        for number in range(VERSIONS):
            topic.commit(topic.data(batches(records(20, f"r{number}"))))
            if number == 6:
                topic.checkpoint()
        if damaged and name == "t":
            octets = bytearray(topic.data_file(9).read_bytes())
            octets[200] ^= 1
            topic.data_file(9).write_bytes(octets)


def looked_at(folder: Path, kind: str, rate: int, seed: int) -> tuple[Report | None, int]:
    """The report; None if the root itself could not be seen."""
    store = Failing(str(folder), kind, rate, seed)
    try:
        return verify(Root(store), jobs=1, settles_s=(0,) * 5), store.failed
    except RetryError:
        return None, store.failed


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("damaged", [True, False], ids=["damaged", "right"])
def test_one_request_in_some_fails(tmp_path: Path, kind: str, damaged: bool) -> None:
    root_of(tmp_path, damaged=damaged)
    told, failed, first = Counter[str](), 0, draw_seed()
    for rate in (3, 10, 30):
        for seed in range(first, first + SEEDS):
            report, times = looked_at(tmp_path, kind, rate, seed)
            failed += times
            if report is None:
                continue
            why = (kind, rate, seed, str(report))
            found = {(each.condition, each.topic) for each in report.findings}
            assert found <= ({("BATCH_CORRUPT", "t")} if damaged else set()), why
            assert found or report.unread or not damaged, why
            if report.ok:
                checked = report.checked
                assert checked[:4] == (2, 2 * VERSIONS, 2, 2 * VERSIONS) and checked.records == 2 * VERSIONS * 20, why
            told["right" if report.ok else "found" if found else "unread"] += 1
    assert failed > SEEDS
    assert told["found" if damaged else "right"] > SEEDS, told


@pytest.mark.parametrize(
    ("call", "fails", "expected"),
    [
        ("GET", lambda name: name.endswith("05.json"), {("version", "_partlog/t/00000000000000000005.json")}),
        ("GET", lambda name: ".checkpoint-" in name, {("checkpoint", None)}),
        ("GET", lambda name: name.endswith(".log") and "/00000000000000000003-" in name, {("segment", None)}),
        ("LIST", lambda name: name == "_partlog/t", {("folder", "_partlog/t")}),
        ("LIST", lambda name: name == "_partlog", {("folder", "_partlog")}),
    ],
    ids=["version", "checkpoint", "segment", "topic", "root"],
)
@pytest.mark.parametrize("kind", ["refused", "absent"])
def test_what_is_never_read_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    fails: Callable[[str], bool],
    expected: set[tuple[str, str | None]],
    kind: str,
) -> None:
    """Also if the store says that a file which it lists is absent, and lists nothing in a folder that is there."""
    root_of(tmp_path, damaged=False)
    file, entries = FarStore.file, FarStore.entries

    def asked(store: FarStore, name: str) -> tuple[LocalFile, Hashable]:
        if call == "GET" and name.startswith("_partlog/t/") and fails(name):
            raise Absent if kind == "absent" else OSError("access is denied")
        return file(store, name)

    def listed(store: FarStore, folder: str) -> list[Entry]:
        if call == "LIST" and fails(folder):
            if kind == "refused":
                raise OSError("access is denied")
            return []
        return entries(store, folder)

    monkeypatch.setattr(FarStore, "file", asked)
    monkeypatch.setattr(FarStore, "entries", listed)
    report = verify(Root(Failing(str(tmp_path))), jobs=1, settles_s=(0,) * 5)
    assert report.findings == []
    assert (report.ok, report.status) == (False, 6)
    found = {(each.what, each.file) for each in report.unread}
    assert [what for what, _ in found] == [what for what, _ in expected]
    assert all(name in (None, file) for (_, name), (_, file) in zip(expected, found, strict=True))
    assert "nothing is wrong" not in str(report)
    assert f"could not be checked: 1 {next(iter(found))[0]}" in str(report)
    assert next(iter(found))[1] in str(report)
    assert report.as_dict()["unread"][0]["file"] == report.unread[0].file


def test_less_than_there_is_is_not_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report compares the counts of the checks with the counts of the newest state, for any reason."""
    root_of(tmp_path, damaged=False)
    monkeypatch.setattr(run, "_expected", lambda chain, folders, real=run._expected: real(chain, folders)[1:])
    report = Log(tmp_path).verify()
    assert report.findings == []
    assert [each.topic for each in report.unread] == ["t", "u"]
    assert "11 of 12 segments" in report.unread[0].problem


def test_a_store_that_does_not_answer_is_not_asked_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Unrouted(tmp_path)
    for _ in range(60):
        topic.append(records(1))
    store = Failing(str(tmp_path), "403", 1)
    report = verify(Root(store), jobs=1, settles_s=(0,) * 5)
    assert len(report.unread) == 61 and not report.findings, "nor is it known whether another version follows"
    assert store.failed < 400


class Refusing(FarStore):
    """Some reads of a file are refused: those whose number `refused` has, from 0 on."""

    def __init__(self, folder: str, file: str, refused: Container[int]) -> None:
        super().__init__(folder)
        self.name, self.refused, self.times = file, refused, 0

    def file(self, name: str) -> tuple[LocalFile, Hashable]:
        if name.endswith(self.name):
            self.times += 1
            if self.times - 1 in self.refused:
                raise OSError("access is denied")
        return super().file(name)


def test_a_version_that_was_not_read_may_have_removed_what_is_missing(tmp_path: Path) -> None:
    topic = Unrouted(tmp_path)
    first = [topic.append(records(20))]
    file = topic.data_file(0)
    topic.commit(topic.data(file.read_bytes()) | {"base": 0, "end": 20}, operation="merge", removed=first)
    file.unlink()
    assert verify(Root.at(str(tmp_path)), settles_s=()).ok
    report = verify(Root(Refusing(str(tmp_path), "01.json", range(1000))), settles_s=(0,) * 5)
    assert [each.file for each in report.unread] == ["_partlog/t/00000000000000000001.json"]
    assert report.findings == []


def test_a_checkpoint_that_was_not_read_is_not_missing(tmp_path: Path) -> None:
    topic = Unrouted(tmp_path)
    topic.append(records(20))
    topic.append(records(20))
    topic.checkpoint()
    topic.commit(topic.data(batches(records(20))), boundary=1)
    assert verify(Root.at(str(tmp_path)), settles_s=()).ok
    report = verify(Root(Refusing(str(tmp_path), ".jsonl", range(1000))), settles_s=(0,) * 5)
    assert [each.what for each in report.unread] == ["checkpoint"]
    assert report.findings == []


def test_damage_is_told_though_the_version_of_its_segment_cannot_be_read_again(tmp_path: Path) -> None:
    root_of(tmp_path, damaged=True)
    store = Refusing(str(tmp_path), "_partlog/t/00000000000000000009.json", range(2, 1000))  # a read takes two requests
    report = verify(Root(store), settles_s=(0,) * 5)
    assert [each.condition for each in report.findings] == ["BATCH_CORRUPT"]
    assert [each.what for each in report.unread] == ["version"]
    assert report.status == 1
    assert report.summary() == "1 damage; could not be checked: 1 version"


def test_a_topic_is_looked_at_until_it_was_read_whole(tmp_path: Path) -> None:
    """For a while, each look meets another file that is refused."""
    root_of(tmp_path, damaged=True)

    class Now(Failing):
        looks = 0

        def entries(self, folder: str) -> list[Entry]:
            self.looks += folder == "_partlog/t"
            return super().entries(folder)

        def file(self, name: str) -> tuple[LocalFile, Hashable]:
            if name.startswith("_partlog/t/") and name.endswith(f"{self.looks:02}.json"):
                raise OSError("access is denied")
            return super().file(name)

    report = verify(Root(Now(str(tmp_path))), settles_s=(0,) * 5)
    assert [each.condition for each in report.findings] == ["BATCH_CORRUPT"]
    assert report.unread == []
