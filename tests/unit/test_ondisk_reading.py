"""How the newest state is found while others commit, and while version files are deleted. FORMAT.md section 9."""

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from handmade import Record, Topic, batch, records
from unit.readback import failure

from sparklog import SparklogError
from sparklog.ondisk import checkpoint
from sparklog.ondisk.names import version_of
from sparklog.ondisk.root import Root
from sparklog.ondisk.topic_log import TopicLog
from sparklog.store.local import LocalStore

BEGINS = ["nothing", "a checkpoint", "a state"]


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    made = Topic(tmp_path / "root")
    made.append(records(1, "v0"))
    made.append(records(1, "v1"))
    return made


def begun(topic: Topic, begin: str) -> TopicLog:
    """A reader that will begin at no checkpoint, at one of version 1, or with the state of version 1."""
    log = TopicLog(Root.at(str(topic.root)), topic.name)
    if begin == "a checkpoint":
        topic.checkpoint()
    if begin == "a state":
        log.newest()
    return log


def clean_up(topic: Topic, before: int) -> None:
    """Deletes what is before a version of which there is a checkpoint, the checkpoints first and the lowest first."""
    for file in sorted(topic.folder.glob("*.checkpoint-*")):
        if int(file.name[:20]) < before:
            file.unlink()
    for version in range(before):
        topic.version_file(version).unlink()


def commit_up_to_6(topic: Topic) -> None:
    while len(topic.versions) <= 5:
        topic.append(records(1, f"v{len(topic.versions)}"))
    topic.checkpoint()
    topic.commit(topic.data(batch(records(1, "v6"))), boundary=5)


def watch(call: str, told: Callable[[int], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Tells the version before a method of the store is called for the file of one."""
    method = getattr(LocalStore, call)

    def watched(store: LocalStore, name: str, *more: int) -> object:
        version = version_of(name.rpartition("/")[2])
        if version is not None:
            told(version)
        return method(store, name, *more)

    monkeypatch.setattr(LocalStore, call, watched)


def before(call: str, version: int, action: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Acts when a reader calls a method of the store for the file of a version, for the first time."""
    seen: list[int] = []

    def told(number: int) -> None:
        if number == version and not seen:
            seen.append(number)
            action()

    watch(call, told, monkeypatch)


@pytest.mark.parametrize("begin", BEGINS)
def test_versions_are_deleted_beneath_a_reader(topic, begin, monkeypatch):
    log = begun(topic, begin)
    commit_up_to_6(topic)
    if begin == "a state":
        before("tag", 3, lambda: clean_up(topic, 5), monkeypatch)
    else:
        # The checkpoint of version 5 is put after the reader listed the folder.
        late = next(topic.folder.glob(f"{5:020d}.checkpoint-*"))
        hidden = late.rename(topic.root / "hidden")
        before("tag", 3, lambda: (hidden.rename(late), clean_up(topic, 5)), monkeypatch)
    assert log.newest().version == 6


@pytest.mark.parametrize("look", [lambda root: TopicLog(root, "t").newest().version, lambda root: len(root.topics())])
def test_one_listing_without_a_version_proves_nothing(topic, look, monkeypatch):
    """One that takes as long as writers take to replace all that was there when it began need not show any of it."""
    topic.checkpoint()
    names = LocalStore.names
    listings = []

    def listed(store, folder):
        of_topic = folder == f"_partlog/{topic.name}"
        listings.extend([folder] * of_topic)
        return [] if of_topic and len(listings) == 1 else names(store, folder)

    monkeypatch.setattr(LocalStore, "names", listed)
    assert look(Root.at(str(topic.root))) == 1
    assert len(listings) == 2


def test_without_a_checkpoint_version_0_is_there_in_the_end(topic, monkeypatch):
    """The versions from 3 on are gone when a reader comes to them, and the last listing, which takes long, shows no checkpoint."""
    before("tag", 2, lambda: commit_up_to_6(topic), monkeypatch)
    before("tag", 3, lambda: clean_up(topic, 5), monkeypatch)
    names = LocalStore.names
    listings = []

    def listed(store, folder):
        listings.append(folder)
        return [name for name in names(store, folder) if len(listings) != 2 or "checkpoint" not in name]

    monkeypatch.setattr(LocalStore, "names", listed)
    assert TopicLog(Root.at(str(topic.root)), topic.name).newest().version == 6


def test_a_listing_that_told_of_a_later_version_proves_nothing(topic, monkeypatch):
    """The files in it were overtaken and deleted; the next one takes long, and shows a version that came and not the checkpoint."""
    names = LocalStore.names
    listings = []

    def listed(store, folder):
        found = names(store, folder)
        listings.append(folder)
        if len(listings) == 1:
            commit_up_to_6(topic)
            clean_up(topic, 5)
        return [name for name in found if len(listings) != 2 or "checkpoint" not in name]

    monkeypatch.setattr(LocalStore, "names", listed)
    assert TopicLog(Root.at(str(topic.root)), topic.name).newest().version == 6
    assert len(listings) == 3


def test_a_reader_that_kept_a_state_looks_for_the_next_version_first(topic, monkeypatch):
    log = begun(topic, "a state")
    commit_up_to_6(topic)
    looks = []

    def told(version):
        looks.append(version)
        if len(looks) == 2:
            clean_up(topic, 5)

    watch("tag", told, monkeypatch)
    assert log.newest().version == 6
    assert looks[0] == 2


def test_nothing_new_costs_two_looks(topic, monkeypatch):
    log = begun(topic, "a state")
    state = log.newest()
    looks = []
    watch("tag", looks.append, monkeypatch)
    monkeypatch.setattr(LocalStore, "open", None)
    assert log.newest() is state
    assert looks == [2, 1]


@pytest.mark.parametrize("begin", BEGINS)
def test_a_version_of_a_writer_that_slept_counts_for_nothing(topic, begin, monkeypatch, tmp_path):
    """It stands where the true version 2 was deleted, and follows version 1."""
    log = begun(topic, begin)
    other = Topic(tmp_path / "other", versions=list(topic.versions), hash=topic.hash)
    other.append(records(3, "stray"))

    def overtake() -> None:
        commit_up_to_6(topic)
        clean_up(topic, 5)
        shutil.copy(other.version_file(2), topic.version_file(2))

    before("tag", 2, overtake, monkeypatch)
    state = log.newest()
    assert (state.version, state.hash, state.ends) == (6, topic.hash, (7,))
    assert [version.version for version in log.history()] == [5, 6]


def attempts(topic, monkeypatch):
    """The error of a topic that is damaged, which a reader must have met twice."""
    made = []
    attempt = TopicLog._attempt
    with monkeypatch.context() as patch:
        patch.setattr(TopicLog, "_attempt", lambda log, *listed: made.append(log) or attempt(log, *listed))
        error = failure(topic)
    assert len(made) == 2
    return error


def test_what_is_missing_twice_is_missing(topic, monkeypatch):
    commit_up_to_6(topic)
    clean_up(topic, 5)
    topic.version_file(5).unlink()
    error = attempts(topic, monkeypatch)
    assert (error.id, error.parameters["version"]) == ("VERSION_MISSING", "5")


def test_a_version_that_follows_another_one_is_corrupt(topic, monkeypatch, tmp_path):
    other = Topic(tmp_path / "other")
    other.append(records(2, "another"))
    topic.hash = other.hash
    topic.append(records(1))
    error = attempts(topic, monkeypatch)
    assert (error.id, error.parameters["file"]) == ("VERSION_CORRUPT", str(topic.version_file(2)))
    assert "does not follow the existing version 1" in str(error)


def test_history_while_versions_are_deleted(topic, monkeypatch, tmp_path):
    commit_up_to_6(topic)
    other = Topic(tmp_path / "other", versions=topic.versions[:3], hash=topic.hash)
    other.append(records(1, "stray"))
    topic.commit(boundary=5)
    log = TopicLog(Root.at(str(topic.root)), "t")
    log.newest()
    before("read", 4, lambda: clean_up(topic, 4), monkeypatch)
    assert [version.version for version in log.history()] == [4, 5, 6, 7]
    shutil.copy(other.version_file(3), topic.version_file(3))
    assert [version.version for version in log.history()] == [4, 5, 6, 7]
    topic.version_file(3).unlink()
    topic.version_file(5).unlink()
    with pytest.raises(SparklogError) as raised:
        TopicLog(Root.at(str(topic.root)), "t").history()
    assert raised.value.id == "VERSION_MISSING"


def large(topic: Topic) -> Path:
    """A checkpoint that is read in several blocks."""
    topic.commit(*(topic.data(batch([Record(b"x")]), base=number + 2, end=number + 3) for number in range(9000)))
    file = topic.checkpoint()
    assert file.stat().st_size > checkpoint._BLOCK_BYTES
    return file


def test_a_checkpoint_that_vanishes_beneath_a_state(topic):
    """The program that deletes it has put newer ones, and may have deleted the versions before them."""
    file = large(topic)
    log = TopicLog(Root.at(str(topic.root)), "t")
    state = log.newest()
    again = pickle.loads(pickle.dumps(log))
    topic.append(records(1, "after"))
    topic.checkpoint()
    topic.append(records(1, "last"))
    file.unlink()
    clean_up(topic, 3)
    assert [segment.base for segment in log.segments(state, 0)] == list(range(9002))
    assert log.newest().ends == again.newest().ends == (9004,)


def test_a_checkpoint_is_closed_when_it_was_read(topic):
    def opened(file: Path) -> int:
        links = Path("/proc/self/fd").iterdir()
        return sum(link.exists() and link.resolve() == file.resolve() for link in links)

    for made in (topic.checkpoint, lambda: large(topic)):
        file = made()
        log = TopicLog(Root.at(str(topic.root)), "t")
        assert log.newest().checkpoint == file.name
        assert opened(file) == 0
