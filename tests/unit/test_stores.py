"""The promises of every store, shown for the local one and for one in memory; and a whole root that is in no file system."""

import os
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from handmade import records, sample
from memory_store import MemoryStore, _Kept

from sparklog import Log, SparklogError
from sparklog.ondisk.root import Root
from sparklog.store.local import LocalStore
from sparklog.store.store import Absent, Damaged, Store
from sparklog.verify import verify


class Place(NamedTuple):
    """A store, and what another program does to its files."""

    store: Store
    put: Callable[[str, bytes], None]
    delete: Callable[[str], None]
    link: Callable[[str, str], None]
    """A symbolic link, at the first name to the second."""
    hard_link: Callable[[str, str], None]


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


@pytest.fixture(params=[local, memory], ids=lambda make: make.__name__)
def place(request, tmp_path) -> Place:
    place = request.param(tmp_path)
    place.put("folder/inner/file", b"0123456789")
    return place


def test_a_file_is_read_at_positions(place):
    with place.store.open("folder/inner/file") as file:
        assert file.size == 10
        assert file.read(0, 10) == b"0123456789"
        assert file.read(3, 4) == b"3456"
        assert file.read(8, 4) == b"89", "fewer where the file ends"
        assert file.read(10, 1) == b""
        assert file.read(99, 1) == b""
        assert file.read(0, 0) == b""


def test_a_file_that_is_open_stays_readable(place):
    with place.store.open("folder/inner/file") as file:
        place.delete("folder/inner/file")
        assert file.read(0, 10) == b"0123456789"
    with pytest.raises(Absent):
        place.store.open("folder/inner/file")


def test_a_whole_file_has_at_most_so_many_bytes(place):
    assert place.store.read("folder/inner/file", 10) == b"0123456789"
    with pytest.raises(Damaged, match="it has 10 bytes, more than 9"):
        place.store.read("folder/inner/file", 9)
    place.put("empty", b"")
    assert place.store.read("empty", 0) == b""


@pytest.mark.parametrize("name", ["nothing", "folder/nothing", "nothing/nothing", "folder/inner/file/nothing"])
def test_what_is_absent(place, name):
    with pytest.raises(Absent):
        place.store.open(name)
    assert not place.store.exists(name)
    assert place.store.look(name) is None
    assert place.store.tag(name) is None
    assert place.store.names(name) == []
    assert place.store.entries(name) == []
    assert not place.store.are_one(name, "folder/inner/file")


def test_a_folder_is_not_a_file(place):
    with pytest.raises(Damaged, match="not a regular file"):
        place.store.open("folder/inner")
    with pytest.raises(Damaged):
        place.store.read("folder", 100)
    assert place.store.names("folder/inner/file") == []
    for name in ("", "folder", "folder/inner"):
        entry = place.store.look(name)
        assert entry.kind == "folder"
        assert (entry.is_folder, entry.is_file) == (True, False)


def test_names_in_a_folder(place):
    for name in ("b", "a", "folder/c", "folder/a"):
        place.put(name, name.encode())
    assert sorted(place.store.names("")) == ["a", "b", "folder"]
    assert sorted(place.store.names("folder")) == ["a", "c", "inner"]
    entries = place.store.entries("folder")
    assert [(entry.name, entry.kind) for entry in entries] == [("a", "file"), ("c", "file"), ("inner", "folder")]
    assert [entry.bytes for entry in entries if entry.is_file] == [8, 8]
    assert [place.store.look(f"folder/{entry.name}") for entry in entries] == entries
    assert place.store.exists("folder/c")


def test_a_tag_is_that_of_the_file_and_not_of_its_name(place):
    tag = place.store.tag("folder/inner/file")
    assert tag == place.store.tag("folder/inner/file") is not None
    place.put("other", b"0123456789")
    assert place.store.tag("other") != tag
    place.hard_link("kept", "folder/inner/file")  # so that no other file gets what it has
    place.put("folder/inner/file", b"0123456789")
    assert place.store.tag("folder/inner/file") != tag
    place.delete("folder/inner/file")
    assert place.store.tag("folder/inner/file") is None


def test_hard_links(place):
    place.hard_link("again", "folder/inner/file")
    place.put("same", b"0123456789")
    assert place.store.are_one("again", "folder/inner/file")
    assert not place.store.are_one("same", "folder/inner/file")
    assert place.store.look("again").links == 2
    assert place.store.look("same").links == 1


def test_no_link_is_followed(place):
    place.put("elsewhere/file", b"secret")
    place.link("link", "elsewhere/file")
    place.link("folder/to", "elsewhere")
    assert place.store.look("link").kind == place.store.look("folder/to").kind == "link"
    assert place.store.exists("link")
    for name in ("link", "folder/to/file", "folder/to"):
        with pytest.raises(Damaged):
            place.store.open(name)
    with pytest.raises(Damaged):
        place.store.names("folder/to")
    with pytest.raises(Damaged):
        place.store.entries("folder/to")


@pytest.mark.parametrize("name", ["../file", "folder/../../file", "/etc/hostname", "folder//inner", "folder/", ".", "..", "./folder"])
@pytest.mark.parametrize("call", ["open", "look", "exists", "tag", "names", "entries"])
def test_no_name_leads_out_of_the_root(place, call, name):
    with pytest.raises(ValueError, match=r".*"):
        getattr(place.store, call)(name)


def test_another_process_gets_the_same_store(place):
    again = pickle.loads(pickle.dumps(place.store))
    assert again.root == place.store.root
    assert again.read("folder/inner/file", 10) == b"0123456789"


def test_locations_are_for_messages(place):
    assert place.store.location("folder/file") == f"{place.store.root}/folder/file"


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
    reader.join(20)
    assert failed == ["at once"]
    assert store.look("pipe").kind == "other"


def test_above_a_root(tmp_path):
    store = LocalStore(str(tmp_path / "a" / "b"))
    assert store.above().root == str(tmp_path / "a")
    assert LocalStore("/").above() is None
    assert LocalStore("/").location("etc") == "/etc"


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
    broker = MemoryStore()
    broker.put("meta.properties", b"")
    with pytest.raises(SparklogError, match="PARTLOG_BROKER_DIRECTORY"):
        Log(Root(broker))
