"""The promises of every store, shown for the local one and for one in memory; and a whole root that is in no file system."""

import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from handmade import records, sample
from shutting import shut
from store_contract import LinkingStoreContract, Place
from unit.memory_store import MemoryStore, _Kept

import sparklog
from sparklog import Log, SparklogError
from sparklog.ondisk.root import Root
from sparklog.store.local import LocalStore
from sparklog.store.store import Absent, Damaged
from sparklog.verify import verify


def local(folder: Path) -> Place:
    def put(name: str, content: bytes) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_name("new").write_bytes(content)
        path.with_name("new").rename(path)

    def link(name: str, to: str) -> None:
        (folder / name).symlink_to(folder / to)

    return Place(
        LocalStore(str(folder)), put, lambda name: (folder / name).unlink(), link, lambda name, to: os.link(folder / to, folder / name)
    )


def memory(_: Path) -> Place:
    store = MemoryStore()

    def link(name: str, _: str) -> None:
        store.files[name] = _Kept(kind="link")

    def hard_link(name: str, to: str) -> None:
        store.files[name] = store.files[to]

    return Place(store, store.put, store.files.pop, link, hard_link)


class TestStores(LinkingStoreContract):
    @pytest.fixture(params=[local, memory], ids=lambda make: make.__name__)
    def place(self, request) -> Iterator[Place]:
        """On the disk of temporary files, also where the folders of tests are in memory."""
        with tempfile.TemporaryDirectory() as folder:
            place = request.param(Path(folder))
            place.put("folder/inner/file", b"0123456789")
            yield place


# ---- only on a disk


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="the system does not say which files are open")
def test_no_file_stays_open(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"content")
    store = LocalStore(str(tmp_path))
    before = set(Path("/proc/self/fd").iterdir())
    for name in ("folder", "nothing"):
        with pytest.raises((Damaged, Absent)):
            store.open(name)
    with pytest.raises(Damaged):
        store.read("file", 1)
    store.read("file", 7)
    assert set(Path("/proc/self/fd").iterdir()) == before


def test_the_root_itself_may_be_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    store = LocalStore(str(tmp_path / "link"))
    assert store.look("").kind == "folder"
    assert store.names("") == ["file"]
    assert store.read("file", 7) == b"content"


def test_a_pipe_does_not_make_a_reader_wait(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    store = LocalStore(str(tmp_path))
    failed = []

    def read() -> None:
        with pytest.raises(Damaged, match="not a regular file"):
            store.open("pipe")
        failed.append("at once")

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(300)
    assert failed == ["at once"]
    assert store.look("pipe").kind == "other"


def test_above_a_root(tmp_path):
    store = LocalStore(str(tmp_path / "a" / "b"))
    assert store.above().root == str(tmp_path / "a")
    assert LocalStore("/").above() is None
    assert LocalStore("/").location("etc") == "/etc"


# ---- what cannot be seen is not absent


def test_a_store_does_not_say_that_what_cannot_be_seen_is_absent(tmp_path):
    place = local(tmp_path / "root")
    place.put("folder/file", b"0")
    place.put("folder/other", b"0")
    with shut(tmp_path / "root" / "folder"):
        for ask in (
            place.store.exists,
            place.store.look,
            place.store.tag,
            place.store.open,
            lambda name: place.store.are_one(name, "folder/other"),
            lambda name: place.store.names("folder"),
        ):
            with pytest.raises(PermissionError):
                ask("folder/file")
        assert place.store.exists("folder")
    assert place.store.exists("folder/file")


def test_a_root_that_cannot_be_seen_is_not_called_another_folder(tmp_path):
    """The same call later finds it: the caller need not choose another folder."""
    topic = sample(tmp_path / "root")
    with shut(topic.root):
        for ask in (lambda: Log(topic.root), lambda: Root.at(str(topic.root)).topics()):
            with pytest.raises(sparklog.RetryError, match=rf"PARTLOG_IO.*{topic.root}.*Permission denied"):
                ask()
    assert Log(topic.root).topics() == ["t"]


def test_a_root_that_cannot_be_seen_for_a_moment(tmp_path):
    root = Root(MemoryStore.copy_of(sample(tmp_path).root))
    root.store.away = 1
    with pytest.raises(sparklog.RetryError, match=r"PARTLOG_IO.*memory:.*the server does not answer"):
        Log(root)
    assert Log(root).topics() == ["t"]


def test_a_folder_above_that_cannot_be_seen_tells_nothing(tmp_path):
    """It is only looked at to say what a folder may be, if it is not a root."""
    (tmp_path / "above" / "t-0").mkdir(parents=True)
    (tmp_path / "above" / "_partlog" / "t").mkdir(parents=True)
    for store, condition in ((LocalStore(str(tmp_path / "above" / "t-0")), "PARTITION_DIRECTORY"), (_Below(), "ROOT_WITHOUT_LOG")):
        with pytest.raises(SparklogError, match=f"PARTLOG_{condition}"):
            Root(store).require()


class _Below(MemoryStore):
    """In a folder that cannot be seen, as with rights for a prefix of a bucket alone."""

    def __init__(self) -> None:
        super().__init__("memory:/t-0")

    def above(self) -> MemoryStore:
        return MemoryStore("memory:", away=100)


# ---- a root in a store without a disk


@pytest.fixture
def in_memory(tmp_path):
    topic = sample(tmp_path)
    topic.checkpoint()
    topic.append(records(5, "after"))
    return topic, Root(MemoryStore.copy_of(topic.root))


def test_a_root_is_read_from_any_store(in_memory):
    topic, root = in_memory
    there, here = Log(root), Log(topic.root)
    assert there.topics() == here.topics() == [topic.name]
    assert there[topic.name].read() == here[topic.name].read()
    assert there[topic.name].tail(3, columns=["value"])["value"].to_pylist() == here[topic.name].tail(3)["value"].to_pylist()
    assert there[topic.name].describe() == {**here[topic.name].describe(), "root": "memory:"}
    assert there[topic.name].commits() == here[topic.name].commits()
    topic.append(records(1, "later"))
    root.store.files.update(MemoryStore.copy_of(topic.root).files)
    assert there[topic.name].end_offsets() == here[topic.name].end_offsets()


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_root_is_verified_in_any_store(in_memory, jobs, monkeypatch):
    """In processes of its own too, to which the store is sent."""
    monkeypatch.setattr("sparklog.verify.run._WORTHWHILE_BYTES", 0 if jobs > 1 else 1 << 40)
    topic, root = in_memory
    before = verify(root, jobs=jobs, settles_s=()).findings
    assert before == Log(topic.root).verify(jobs=jobs).findings
    segment = Log(root)[topic.name].segments()[0]
    name = f"_partlog/{topic.name}/{segment.file}"
    damaged = bytearray(root.store.files[name].content)
    damaged[segment.position + 70] ^= 1
    root.store.put(name, bytes(damaged))
    after = verify(root, jobs=jobs, settles_s=()).findings
    assert "BATCH_CORRUPT" in {finding.condition for finding in after if finding not in before}
    del root.store.files[name]
    assert "SEGMENT_MISSING" in {finding.condition for finding in verify(root, jobs=jobs, settles_s=()).findings}


def test_what_is_no_root_in_any_store():
    with pytest.raises(SparklogError, match=r"PARTLOG_ROOT_WITHOUT_LOG.*memory:"):
        Log(Root(MemoryStore()))
    for has_links, condition in ((True, "BROKER_DIRECTORY"), (False, "ROOT_WITHOUT_LOG")):  # A broker's files are on a disk.
        store = MemoryStore(has_links=has_links)
        store.put("meta.properties", b"")
        with pytest.raises(SparklogError, match=f"PARTLOG_{condition}"):
            Log(Root(store))
