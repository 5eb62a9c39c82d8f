"""Python's store of HDFS on real daemons: its contract, whole roots, what they cost, a failover, and a DataNode that is dead."""

import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import SplitResult

import pytest
from handmade import Record, Topic, batch
from hdfs_native.fsspec import HdfsFileSystem, ViewfsFileSystem
from ports import free_port
from pyarrow import fs
from store_contract import Place, StoreContract
from stores.hdfs import NAMESERVICE, Hdfs, write_settings
from stores.webhdfs import WebHdfs

from sparklog import Consumer, Log, SparklogError
from sparklog.ondisk.root import Root
from sparklog.store import hdfs as hdfs_store
from sparklog.store.hdfs import HdfsStore, user
from sparklog.verify import verify

REPOSITORY = Path(__file__).resolve().parents[2]


def put(files: WebHdfs, folder: Path, to: str) -> None:
    """Puts all files below a folder there that are not there yet."""
    there = put.__dict__.setdefault(to, set())
    new = [path for path in sorted(folder.rglob("*")) if path.is_file() and path not in there]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda path: files.write(f"{to}/{path.relative_to(folder)}", path.read_bytes()), new))
    there.update(new)


def copied(hdfs: Hdfs, folder: Path, settings: str | None = None) -> str:
    """The root at a path, put into HDFS: the URL."""
    name = f"/roots/{random.SystemRandom().randrange(10**12)}"
    put(WebHdfs(hdfs.webhdfs), folder, name)
    return f"{hdfs.uri}{name}?webhdfs={settings or ','.join(hdfs.webhdfs)}"


class TestHdfs(StoreContract):
    keeps_open_files = False

    @pytest.fixture
    def place(self, hdfs: Hdfs) -> Place:
        files, folder = WebHdfs(hdfs.webhdfs), f"/contract/{random.SystemRandom().randrange(10**12)}"
        store = HdfsStore(hdfs.uri.removeprefix("hdfs://"), folder, [f"http://{each}" for each in hdfs.webhdfs], user())

        def put_again(name: str, content: bytes) -> None:
            files.delete(f"{folder}/{name}")
            files.write(f"{folder}/{name}", content)

        put_again("folder/inner/file", b"0123456789")
        return Place(store, put_again, lambda name: files.delete(f"{folder}/{name}"))

    def test_a_listing_of_several_pages(self, place):
        names = [f"{number:04d}" for number in range(1_100)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda name: place.put(f"many/{name}", b""), names))
        assert place.store.names("many") == names
        assert [entry.name for entry in place.store.entries("many")] == names

    def test_odd_names(self, place):
        for name in ("a b", "50%", "a+b", "u#1", "ü", "q?x=1&y"):
            place.put(f"odd/{name}", name.encode())
            assert place.store.read(f"odd/{name}", 100) == name.encode()
        assert sorted(place.store.names("odd")) == sorted(("a b", "50%", "a+b", "u#1", "ü", "q?x=1&y"))


def test_a_root_is_the_same_there(hdfs, topic):
    url = copied(hdfs, topic.root)
    there, here = Log(url), Log(topic.root)
    assert there.root == url.partition("?")[0]
    assert there.topics() == here.topics() == [topic.name]
    assert there[topic.name].read() == here[topic.name].read()
    assert there[topic.name].tail(3) == here[topic.name].tail(3)
    assert there[topic.name].commits() == here[topic.name].commits()
    assert there[topic.name].describe() == {**here[topic.name].describe(), "root": there.root}
    assert there.verify().findings == here.verify().findings
    assert not [each for each in there.verify().waiting if each.what == "view"]
    with Consumer(url, "t", auto_offset_reset="earliest", consumer_timeout_ms=3000) as consumer:
        assert len(list(consumer)) == 40


def test_workers_verify_it(hdfs, topic, monkeypatch):
    monkeypatch.setattr("sparklog.verify.run._WORTHWHILE_BYTES", 0)
    url = copied(hdfs, topic.root)
    assert verify(Root.at(url), jobs=2, settles_s=()).findings == Log(topic.root).verify().findings


def test_how_the_address_is_found(hdfs, topic, monkeypatch):
    url = copied(hdfs, topic.root).partition("?")[0]
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    port = free_port()
    monkeypatch.setattr("sparklog.store.hdfs.PORT", port)
    with pytest.raises(SparklogError, match=rf"PARTLOG_IO.*WebHDFS at http://127.0.0.1:{port}.*[?]webhdfs=host:9870.*HADOOP_CONF_DIR"):
        Log(url)
    conf = topic.root.parent / "conf"
    conf.mkdir()
    address = f"<property><name>dfs.namenode.http-address</name><value>{hdfs.webhdfs[0]}</value></property>"
    (conf / "hdfs-site.xml").write_text(f"<configuration>{address}</configuration>")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(conf))
    assert Log(url).topics() == [topic.name]
    (conf / "hdfs-site.xml").write_text("<configuration>")
    with pytest.raises(SparklogError, match=r"PARTLOG_IO.*hdfs-site.xml is not XML"):
        Log(url)


def test_what_is_no_root_there(hdfs, topic):
    url = copied(hdfs, topic.root)
    place, _, settings = url.partition("?")
    for root, condition in {
        f"{hdfs.uri}/nothing?{settings}": "ROOT_NOT_FOUND",
        f"{hdfs.uri}/roots?{settings}": "ROOT_WITHOUT_LOG",
        f"{place}/_partlog/t/{0:020d}.json?{settings}": "ROOT_NOT_A_DIRECTORY",
        f"{place}/_partlog?{settings}": "LOG_DIRECTORY",
        "hdfs:/x": "OPTION_VALUE",
        "hdfs:///x": "OPTION_VALUE",
        "viewfs://x/y": "STORE_UNSUPPORTED",
    }.items():
        with pytest.raises(SparklogError) as raised:
            Log(root)
        assert raised.value.id == condition, raised.value
    assert Log(f"{place}//x/..//?{settings}").root == place


def test_the_command_line(hdfs, topic):
    url = copied(hdfs, topic.root)
    command = [sys.executable, "-m", "sparklog", "cat", url, "t"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=REPOSITORY)
    assert (ended.returncode, len(ended.stdout.splitlines()), ended.stderr) == (0, 40, "")


def test_requests(hdfs, topic, fault_proxy):
    proxy = fault_proxy(hdfs.webhdfs[0])
    log = Log(copied(hdfs, topic.root, proxy.endpoint))

    def calls() -> Counter[str]:
        """Those of a NameNode."""
        asked = [
            request.query.partition("op=")[2].partition("&")[0] for request in proxy.requests if "namenoderpcaddress" not in request.query
        ]
        proxy.clear()
        return Counter(asked)

    calls()
    found = log.topic(topic.name)
    assert calls() == Counter(LISTSTATUS_BATCH=1, OPEN=3, GETFILESTATUS=5)
    found.end_offsets()
    assert calls() == Counter(GETFILESTATUS=2)
    found.commits(1)
    assert calls() == Counter(GETFILESTATUS=3, OPEN=1)
    assert found.read().num_rows == 40
    assert calls() == Counter(GETFILESTATUS=2, OPEN=len({segment.file for segment in found.segments()})), "no file is asked for its length"


def test_a_name_node_fails_over(hdfs_ha, topic):
    url = copied(hdfs_ha, topic.root)
    found = Log(url)[topic.name]
    before = found.read()
    killed = hdfs_ha.failover()
    try:
        assert found.read() == before
        assert Log(url)[topic.name].read() == before
    finally:
        hdfs_ha.start(killed)


@pytest.mark.parametrize("scheme", ["hdfs", "viewfs"])
def test_hdfs_native_reads_a_root_behind_filesystem(hdfs_ha, topic, tmp_path, monkeypatch, scheme):
    """By the protocol of Hadoop's own clients, which WebHDFS is not. HADOOP_CONF_DIR has the name service and the mount table."""
    name = copied(hdfs_ha, topic.root).removeprefix(hdfs_ha.uri).partition("?")[0]
    shutil.copytree(hdfs_ha.conf, tmp_path / "conf")
    table = "fs.viewfs.mounttable.all"
    mounts = {f"{table}.link./mounted": f"{hdfs_ha.uri}/roots", f"{table}.linkFallback": f"{hdfs_ha.uri}/"}
    write_settings(tmp_path / "conf" / "core-site.xml", hdfs_ha.settings | mounts)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path / "conf"))
    if scheme == "hdfs":
        url, files = f"{hdfs_ha.uri}{name}", HdfsFileSystem(host=NAMESERVICE, skip_instance_cache=True)
    else:
        url, files = f"viewfs://all{name.replace('/roots', '/mounted')}", ViewfsFileSystem(host="all", skip_instance_cache=True)
    given = fs.PyFileSystem(fs.FSSpecHandler(files))
    there, here = Log(url, filesystem=given), Log(topic.root)
    assert there.root == url
    assert there.topics() == [topic.name]
    assert there[topic.name].read() == here[topic.name].read()
    assert there.verify().findings == here.verify().findings
    with Consumer(url, "t", filesystem=given, auto_offset_reset="earliest", consumer_timeout_ms=3000) as consumer:
        assert len(list(consumer)) == 40
    with pytest.raises(SparklogError, match="ROOT_NOT_FOUND"):
        Log(f"{url}-absent", filesystem=given)
    killed = hdfs_ha.failover()
    try:
        assert there[topic.name].read() == here[topic.name].read()
    finally:
        hdfs_ha.start(killed)


def test_a_data_node_that_is_dead_is_left_for_another(hdfs_ha, topic, monkeypatch):
    """Its NameNode, the only one that is asked, goes on to name it."""
    name_node = hdfs_ha.http_of(hdfs_ha.active)
    url = copied(hdfs_ha, topic.root, name_node)
    files, place = WebHdfs([name_node]), url.removeprefix(hdfs_ha.uri).partition("?")[0]
    for path in (path for path in topic.root.rglob("*") if path.is_file()):
        hdfs_ha.daemons[hdfs_ha.active].wait_until(lambda path=path: files.data_nodes(f"{place}/{path.relative_to(topic.root)}") == 2)
    expected, asked, given = Log(topic.root)["t"].read(), Counter(), hdfs_store._bytes

    def counted(of: SplitResult, count: int, wait_s: float) -> bytes:
        asked[of.netloc] += 1
        return given(of, count, wait_s)

    monkeypatch.setattr(hdfs_store, "_bytes", counted)
    root, dead = Root.at(url), hdfs_ha.http_of("dn1")
    hdfs_ha.kill("dn1")
    try:
        for _ in range(10):
            assert Log(root)["t"].read() == expected
        files_of_topic = len(list(topic.root.rglob("*.log")))
        assert 1 <= asked[dead] <= files_of_topic, "only requests that are under way at once ask it, and none for some minutes after"
        with Consumer(root, "t", auto_offset_reset="earliest", consumer_timeout_ms=3000) as consumer:
            assert len(list(consumer)) == 40
    finally:
        hdfs_ha.start("dn1")


def test_a_name_with_letters_that_a_name_node_composes(hdfs, topic):
    """It does so in the address of a DataNode, where there is no such file then."""
    put(WebHdfs(hdfs.webhdfs), topic.root, "/roots/cafe\u0301")
    found = Log(f"{hdfs.uri}/roots/cafe\u0301?webhdfs={','.join(hdfs.webhdfs)}")
    assert found["t"].read() == Log(topic.root)["t"].read()


def test_a_file_that_goes_in_mid_read_is_read_where_it_went(hdfs, tmp_path):
    topic, files = Topic(tmp_path / "root"), WebHdfs(hdfs.webhdfs)
    octets = [b"".join(batch([Record(os.urandom(1000)) for _ in range(100)], 100 * n) for n in range(at, at + 20)) for at in (0, 20)]
    for each in octets:
        topic.commit(topic.data(each))
    expected = Log(topic.root)["t"].read()["value"].to_pylist()
    url = copied(hdfs, topic.root)
    place = url.removeprefix(hdfs.uri).partition("?")[0]
    got = []
    for part in Log(url)["t"].scan():
        got += part.column("value").to_pylist()
        if len(got) == part.num_rows:
            old = topic.live[0]
            segments = [(topic.folder / one["file"]).read_bytes()[one["position"] :][: one["bytes"]] for one in old]
            topic.commit(topic.data(b"".join(segments), base=0, end=4000, name="p0-t0-0-0.log"), removed=old)
            put(files, topic.root, place)
            for one in old:
                files.delete(f"{place}/_partlog/t/{one['file']}")
    assert got == expected


@pytest.mark.parametrize("fault", [{"kind": "answer", "status": 500}, {"kind": "tear"}, {"kind": "cut"}])
def test_an_answer_that_fails_is_an_error_that_names_the_file(hdfs, topic, fault_proxy, fault):
    proxy = fault_proxy(hdfs.webhdfs[0])
    log = Log(copied(hdfs, topic.root, proxy.endpoint))
    proxy.inject(**fault, method="GET", key="pool.log", times=100)
    with pytest.raises(SparklogError, match=r"PARTLOG_IO.*hdfs://.*pool.log"):
        log[topic.name].read()
    proxy.clear()
    assert log[topic.name].read().num_rows == 40
