"""Roots in file systems of pyarrow, and of fsspec through them."""

import io
import shutil
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from handmade import Topic, records, sample
from pyarrow import fs
from store_contract import Place, StoreContract

import sparklog
from sparklog import Consumer, Log, SparklogError
from sparklog.arguments import named_root
from sparklog.store.arrow import ArrowClient
from sparklog.store.local import LocalStore
from sparklog.store.paths import PathStore
from sparklog.store.requests import AT_ONCE
from sparklog.store.store import Damaged
from sparklog.store.stores import open_store


def of_disk(folder: Path) -> Place:
    return _on_disk(_through(fs.LocalFileSystem(), "", "/", str(folder)[1:]), folder)


def of_a_part(folder: Path) -> Place:
    (folder / "part" / "root").mkdir(parents=True)
    part = fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())
    return _on_disk(_through(part, "", "", "part/root"), folder / "part" / "root")


def of_fsspec(folder: Path) -> Place:
    """Files in memory, whose names do not begin with a slash here and do so in its listings."""
    del folder
    memory = _memory()
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]
    store = _through(fs.PyFileSystem(fs.FSSpecHandler(memory)), "memory://bucket", "bucket", "root")
    return Place(
        store, lambda name, content: memory.pipe_file(f"/bucket/root/{name}", content), lambda name: memory.rm(f"/bucket/root/{name}")
    )


def _memory():
    return pytest.importorskip("fsspec").filesystem("memory")


def _through(filesystem: fs.FileSystem, place: str, base: str, folder: str) -> PathStore:
    return PathStore(place, base, folder, partial(ArrowClient, filesystem, base, AT_ONCE))


def _on_disk(store: PathStore, folder: Path) -> Place:
    def put(name: str, content: bytes) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_name("new").write_bytes(content)
        path.with_name("new").rename(path)

    return Place(store, put, lambda name: (folder / name).unlink())


class TestArrowStores(StoreContract):
    @pytest.fixture(params=[of_disk, of_a_part, of_fsspec], ids=lambda make: make.__name__)
    def place(self, request, tmp_path) -> Place:
        place = request.param(tmp_path / "folder")
        place.put("folder/inner/file", b"0123456789")
        return place

    def test_a_tag_is_that_of_the_file_and_not_of_its_name(self, place):
        if place.store.client.filesystem.type_name.startswith("py::"):
            # Without times, equal bytes are the same file (FORMAT.md section 9.1).
            tag = place.store.tag("folder/inner/file")
            place.put("folder/inner/file", b"9876543210")
            assert place.store.tag("folder/inner/file") != tag
            place.put("folder/inner/file", b"0123456789")
            assert place.store.tag("folder/inner/file") == tag
        else:
            super().test_a_tag_is_that_of_the_file_and_not_of_its_name(place)


@pytest.fixture(params=["part of a bucket", "fsspec"])
def placed(request, tmp_path) -> tuple[Topic, str, fs.FileSystem, Callable[[], None]]:
    """A topic, the URL of a copy of its root, the file system that has it, and a function that copies again."""
    topic = sample(tmp_path / "root")
    topic.checkpoint()
    topic.append(records(5, "after"))
    if request.param == "fsspec":
        memory = _memory()
        memory.store.clear()
        return (
            topic,
            "memory://bucket/a/events",
            fs.PyFileSystem(fs.FSSpecHandler(memory)),
            lambda: memory.put(f"{topic.root}/", "/bucket/a/events/", recursive=True),
        )
    files = fs.SubTreeFileSystem(str(tmp_path / "there"), fs.LocalFileSystem())
    return (
        topic,
        "abfss://bucket@account.dfs.core.windows.net/a/events",
        files,
        lambda: shutil.copytree(topic.root, tmp_path / "there" / "bucket" / "a" / "events", dirs_exist_ok=True),
    )


def test_a_root_is_the_same_there(placed):
    topic, url, files, copy = placed
    copy()
    there, here = Log(url, filesystem=files), Log(topic.root)
    assert (there.root, there.topics(), "t" in there) == (url, ["t"], True)
    assert there["t"].read() == here["t"].read()
    assert there["t"].describe() == {**here["t"].describe(), "root": url}
    assert there["t"].commits() == here["t"].commits()
    assert there.verify().findings == here.verify().findings
    assert [each.offsets for each in Log(f"{url}?max_requests=3", filesystem=files).summaries()] == [40]
    before = there["t"].end_offsets()
    topic.append(records(2, "later"))
    copy()
    assert there["t"].end_offsets() == here["t"].end_offsets() != before
    with Consumer(url, "t", filesystem=files, auto_offset_reset="earliest", consumer_timeout_ms=3000) as consumer:
        assert sum(1 for _ in consumer) == 42


def test_a_file_that_is_cut_is_an_error_that_names_it(placed):
    topic, url, files, copy = placed
    for segment in topic.folder.rglob("*.log"):
        segment.write_bytes(segment.read_bytes()[:-1])
    copy()
    with pytest.raises(SparklogError, match=r"SEGMENT_CORRUPT.*a/events/_partlog/t/data/"):
        Log(url, filesystem=files)["t"].read()
    assert "SEGMENT_CORRUPT" in {each.condition for each in Log(url, filesystem=files).verify(quick=True).findings}


def test_a_disk_is_read_as_a_disk(tmp_path):
    """So no link is followed, and the Kafka view counts."""
    topic = sample(tmp_path / "base" / "root")
    local = fs.LocalFileSystem()
    for root, files in (
        (str(topic.root), local),
        (f"file:{topic.root}", local),
        ("root", fs.SubTreeFileSystem(str(tmp_path / "base"), local)),
        ("/root", fs.SubTreeFileSystem(str(tmp_path / "base"), local)),
        ("root", fs.SubTreeFileSystem("base", fs.SubTreeFileSystem(str(tmp_path), local))),
    ):
        named = named_root(root, files)
        log = Log(named)
        assert (log.root, log.topics()) == (str(topic.root), ["t"])
        assert isinstance(named.store, LocalStore)


@pytest.mark.parametrize(
    ("root", "path"),
    [
        ("gs://bucket/events", "bucket/events"),
        ("gs://bucket", "bucket"),
        ("GS://bucket//a/../events/", "bucket/events"),
        ("abfss://container@account.dfs.core.windows.net/events", "container/events"),
        ("hdfs://namenode:8020/data/events", "/data/events"),
        ("hdfs://cluster/", "/"),
        ("viewfs://cluster/data", "/data"),
        ("viewfs:///data", "/data"),
        ("viewfs:/data", "/data"),
        ("viewfs:///", "/"),
        ("s3://bucket/events", "bucket/events"),
        ("sftp://host:22/data", "host:22/data"),
        ("/data/events", "/data/events"),
        ("data/events", "data/events"),
        ("../data", "data"),
    ],
)
def test_the_path_in_the_file_system(root, path):
    listing = _Listing([])
    store = open_store(root, fs.PyFileSystem(listing))
    for name in ("", "_partlog/t"):
        store.look(name)
    assert listing.looks == [path, f"{path.rstrip('/')}/_partlog/t"]


@pytest.mark.parametrize(
    ("root", "in_order"),
    [
        ("s3a://bucket/events", True),
        ("s3a://bucket/a--x-s3", True),
        ("s3a://bucket--usw2-az1--x-s3/events", False),
        ("s3a://bucket--usw2-az1--x-s3", False),
        ("s3a://reader--usw2-az1--xa-s3/events", False),
    ],
)
def test_directory_buckets_of_s3_list_names_in_no_order(root, in_order):
    assert open_store(root, fs.S3FileSystem(anonymous=True, region="us-west-2")).lists_in_order is in_order


@pytest.mark.parametrize(
    ("root", "says"),
    [
        ("gs://key:very-secret@bucket/x", "without credentials"),
        ("gs://key:very-secret/x@bucket", "without credentials"),
        ("hdfs://user:very-secret@host/x", "without credentials"),
        ("abfss://c:very-secret@account/x", "without credentials"),
        ("s3a://key:very-secret@bucket/x", "without credentials"),
        ("gs:///x", "there must be the name of a bucket"),
        ("gs:x", "there must be the name of a bucket"),
        ("gs://bucket/x?key=very-secret", "max_requests is the only setting"),
        ("hdfs://host/x?webhdfs=a:1", "max_requests is the only setting"),
        ("gs://bucket/x?max_requests=0", "from 1 to 1000"),
        ("gs://bucket/\0", "Nul character"),
        ("", "ROOT_REQUIRED"),
        ("file://elsewhere/x", "on the host elsewhere"),
    ],
)
def test_a_name_that_is_refused(root, says):
    with pytest.raises(sparklog.CallError) as raised:
        open_store(root, _nowhere())
    assert says in str(raised.value)
    assert "very-secret" not in f"{raised.value}{raised.value!r}"


def test_a_file_system_of_buckets_is_not_for_a_path(tmp_path):
    with pytest.raises(SparklogError, match=r"`filesystem`.*S3FileSystem.*the root must be a URL, such as s3a://bucket/prefix"):
        Log(tmp_path, filesystem=fs.S3FileSystem(anonymous=True, region="us-east-1"))
    with pytest.raises(TypeError, match=r"of type dict; it must be a pyarrow.fs.FileSystem"):
        Log("gs://bucket/x", filesystem={})


def test_a_commit_is_seen_through_a_file_system_that_keeps_listings(tmp_path):
    """As those of fsspec for buckets do: they answer from the listing of the folder, which they keep for ever."""
    pytest.importorskip("fsspec")
    from fsspec.implementations.local import LocalFileSystem

    class Keeping(LocalFileSystem):
        cachable = False

        def ls(self, path, detail=False, **settings):
            path = self._strip_protocol(path)
            if path not in self.dircache:
                self.dircache[path] = super().ls(path, detail=True, **settings)
            return self.dircache[path] if detail else [each["name"] for each in self.dircache[path]]

        def info(self, path, **settings):
            path = self._strip_protocol(path)
            folder = path.rpartition("/")[0]
            if folder not in self.dircache:
                return super().info(path, **settings)
            named = [each for each in self.dircache[folder] if each["name"] == path]
            if not named:
                raise FileNotFoundError(path)
            return named[0]

        def isfile(self, path):
            return self.exists(path) and self.info(path)["type"] == "file"

        def exists(self, path, **settings):
            try:
                self.info(path, **settings)
            except FileNotFoundError:
                return False
            return True

        def invalidate_cache(self, path=None):
            self.dircache.clear()

    topic = Topic(tmp_path / "root")
    topic.append(records(3))
    whole = fs.PyFileSystem(fs.FSSpecHandler(Keeping()))
    for root, files in ((str(topic.root), whole), ("any://root", fs.SubTreeFileSystem(str(tmp_path), whole))):
        there = Log(root, filesystem=files)["t"]
        listed = there.commits()
        before = there.end_offsets()[0]
        for number in range(1, 4):
            topic.append(records(4))
            assert there.end_offsets() == {0: before + 4 * number}
        assert len(there.commits()) == len(listed) + 3
        assert len(there.read()) == before + 12
        assert Log(there.root, filesystem=files)["t"].end_offsets() == {0: before + 12}


class _Listing(fs.FileSystemHandler):
    """A file system that lists other paths than it is asked for."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = paths
        self.looks: list[str] = []

    def get_type_name(self) -> str:
        return "listing"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info_selector(self, selector):
        return [fs.FileInfo(path, fs.FileType.File, size=1) for path in self.paths]

    def get_file_info(self, paths):
        self.looks += paths
        return [fs.FileInfo(path, fs.FileType.Directory) for path in paths]

    def _never(self, *_: object) -> None:
        raise NotImplementedError

    copy_file = create_dir = delete_dir = delete_dir_contents = delete_file = delete_root_dir_contents = move = _never
    open_append_stream = open_input_file = open_input_stream = open_output_stream = _never


def _nowhere() -> fs.FileSystem:
    return fs.PyFileSystem(_Listing([]))


@pytest.mark.parametrize(
    "path", ["bucket/other/x", "elsewhere", "/etc/passwd", "bucket/root/folder/..", "bucket/root/folder/.", "bucket/root/folder/a/b\0", ""]
)
def test_a_listing_with_names_that_lead_elsewhere_is_refused(path):
    store = open_store("gs://bucket/root", fs.PyFileSystem(_Listing(["bucket/root/folder/right", path])))
    for ask in (store.names, store.entries, store.tree):
        with pytest.raises((Damaged, ValueError)):
            ask("folder")


@pytest.mark.parametrize("error", [KeyError("x"), ValueError("the region is wrong"), RuntimeError(), EOFError("the body ended")])
def test_each_exception_of_a_file_system_is_an_os_error(error):
    """A library of another store has errors of its own."""

    class Failing(_Listing):
        def get_file_info_selector(self, selector):
            raise error

        def get_file_info(self, paths):
            raise error

        def open_input_file(self, path):
            raise error

    store = open_store("gs://bucket/root", fs.PyFileSystem(Failing([])))
    for ask in (store.look, store.names, store.tree, store.open, store.tag, lambda name: store.reader(name)(0, 10)):
        with pytest.raises(OSError, match=str(error) or type(error).__name__):
            ask("folder/file")
    with pytest.raises(ValueError, match="not the name of a file below a root"):
        store.look("folder/../file")


def test_files_and_stores_do_not_wait_for_one_another():
    """Each tag is found, and each FileSystem is asked, while another one is."""
    both = threading.Barrier(2, timeout=600)

    class Together(_Listing):
        def open_input_file(self, path):
            return pa.PythonFile(io.BytesIO(b"abc"), mode="r")

        def get_file_info(self, paths):
            both.wait()
            return [fs.FileInfo(path, fs.FileType.File, size=3, mtime_ns=7) for path in paths]

    store = open_store("gs://bucket/root", fs.PyFileSystem(Together([])))
    assert list(store.at_once(store.tag, ["a", "b"])) == [(7, 3), (7, 3)]
