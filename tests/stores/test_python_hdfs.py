"""Python's store of HDFS on real daemons: its contract, whole roots, what they cost, a failover, and answers that no NameNode gives."""

import json
import os
import random
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

import pytest
from handmade import Record, Topic, batch
from store_contract import Place, StoreContract
from stores.hdfs import Hdfs
from stores.processes import free_port
from stores.webhdfs import WebHdfs

from sparklog import Consumer, Log, SparklogError
from sparklog.ondisk.root import Root
from sparklog.store import hdfs as hdfs_store
from sparklog.store.hdfs import HdfsStore, user
from sparklog.store.store import Absent, Damaged
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
    assert calls()["OPEN"] == len(found.segments())


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
        assert asked[dead] == 1, "it is asked once, and not again for some minutes"
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


# ---- answers that no NameNode gives


def status(name: str = "x", **more: object) -> dict[str, object]:
    return {"type": "FILE", "pathSuffix": name, "length": 1, "modificationTime": 1, "fileId": 1} | more


def listing(*found: object, remaining: int = 0) -> dict[str, object]:
    return {"DirectoryListing": {"partialListing": {"FileStatuses": {"FileStatus": list(found)}}, "remainingEntries": remaining}}


@contextmanager
def answering(code: int, sent: object, first: Sequence[tuple[int, object]] = ()) -> Iterator[str]:
    """The address of a server that gives this answer to each question, after the first ones. A text that is answered is no JSON."""
    before = iter(first)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            now, told = next(before, (code, sent))
            content = told if isinstance(told, bytes) else json.dumps(told).encode()
            self.send_response(now)
            self.send_header("Content-Type", "application/octet-stream" if isinstance(told, bytes) else "application/json")
            if now == 307:
                self.send_header("Location", str(told))
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    "sent",
    [
        *(listing(status("a"), status(name)) for name in ("", ".", "..", "../x", "a/b", "/etc/passwd", "x\0")),
        listing(status("a"), status("a")),
        listing(status("a"), remaining=1),
        listing(status("a", length=-1)),
        listing(status("a", length="1")),
        listing(status("a", type="PIPE")),
        listing(status(7)),
        listing("a"),
        {"DirectoryListing": {}},
        {},
        [],
        "text",
    ],
    ids=lambda sent: json.dumps(sent)[-60:],
)
def test_a_listing_that_no_name_node_gives_is_refused(sent):
    with answering(200, sent) as address:
        store = HdfsStore("h", "/root", [address], "me")
        for ask in (store.names, store.entries):
            with pytest.raises((Damaged, OSError)):
                ask("_partlog")
        with pytest.raises(SparklogError, match="PARTLOG_IO"):
            Root(store).topics()


@pytest.mark.parametrize("exception", ["StandbyException", "RetriableException"])
def test_a_name_node_that_does_not_serve_yet_is_not_the_one_that_is_asked(exception, monkeypatch):
    """One that starts up says RetriableException."""
    monkeypatch.setattr("sparklog.store.hdfs._FAILOVER_S", 0.3)
    told = {"RemoteException": {"exception": exception, "message": "Namenode is in startup mode"}}
    with answering(403, told) as first, answering(200, listing(status("a"))) as second:
        assert HdfsStore("h", "/root", [first, second], "me").names("_partlog") == ["a"]
        with pytest.raises(OSError, match=f"no active NameNode answers .*{exception}: Namenode is in startup mode"):
            HdfsStore("h", "/root", [first], "me").names("_partlog")


@pytest.mark.parametrize("exception", ["StandbyException", "RetriableException"])
def test_a_failover_is_waited_out(exception):
    """Its NameNodes are in standby or start up for some seconds, and one may be gone."""
    told = (403, {"RemoteException": {"exception": exception, "message": "Namenode is in startup mode"}})
    with answering(200, listing(status("a")), [told, told]) as address:
        gone = f"http://127.0.0.1:{free_port()}"
        assert HdfsStore("h", "/root", [gone, address], "me").names("_partlog") == ["a"]


# ---- where bytes are


def at(address: str, **more: str) -> dict[str, str]:
    """What a NameNode answers to OPEN."""
    return {"Location": f"{address}/webhdfs/v1/root/file?op=OPEN&offset=0", **more}


def located(*addresses: str) -> dict[str, object]:
    """What it answers to GET_BLOCK_LOCATIONS."""
    places = [{"hostName": urlsplit(each).hostname, "infoPort": urlsplit(each).port} for each in addresses]
    return {"LocatedBlocks": {"locatedBlocks": [{"locations": places}]}}


def read(*answers: tuple[int, object]) -> bytes:
    """Five bytes of a file, of which a NameNode gives these answers."""
    *first, (code, last) = answers
    with answering(code, last, first) as name_node:
        return HdfsStore("h", "/root", [name_node], "me").bytes_of("file", 0, 5)


def test_bytes_of_an_older_name_node_and_of_a_proxy():
    """The first redirects where it is asked not to, and the second has them."""
    with answering(200, b"01234") as node:
        assert read((200, at(node))) == b"01234"
        assert read((307, at(node)["Location"])) == b"01234"
    assert read((200, b"01234")) == b"01234"


def test_an_error_names_the_data_nodes_that_were_asked():
    gone = [f"http://127.0.0.1:{free_port()}" for _ in range(2)]
    with pytest.raises(
        OSError, match=r"^no DataNode gives the 5 bytes from byte 0 on [(]127.*Connection refused, 127.*refused[)]$"
    ) as raised:
        read((200, at(gone[0])), (200, located(*gone)))
    assert "NameNode" not in str(raised.value)
    assert all(each.removeprefix("http://") in str(raised.value) for each in gone)


def test_another_data_node_is_asked_after_an_answer_that_breaks_off():
    with answering(200, b"012") as short, answering(200, b"01234") as whole, answering(500, {}) as fails:
        for first in (short, fails):
            assert read((200, at(first)), (200, located(first, whole))) == b"01234"
        with pytest.raises(OSError, match=r"the answer ended after 3 of 5 bytes.*HTTP 500"):
            read((200, at(short)), (200, located(short, fails)))


def test_what_a_data_node_says_of_the_file_is_final():
    for exception, kind in {"FileNotFoundException": Absent, "AccessControlException": PermissionError}.items():
        told = {"RemoteException": {"exception": exception, "message": "no"}}
        with answering(403, told) as node, answering(200, b"01234") as other, pytest.raises(kind):
            read((200, at(node)), (200, located(node, other)))


def test_a_data_node_that_hangs_is_waited_for_once(monkeypatch):
    monkeypatch.setattr(hdfs_store, "_NEXT_S", 0.2)
    monkeypatch.setattr(hdfs_store, "_TIMEOUT_S", 3600)
    with socket.create_server(("127.0.0.1", 0)) as hung, answering(200, b"01234") as other:
        address = f"http://127.0.0.1:{hung.getsockname()[1]}"
        with answering(500, {}, [(200, at(address)), (200, located(address, other))] * 5) as name_node:
            store = HdfsStore("h", "/root", [name_node], "me")
            assert [store.bytes_of("file", 0, 5) for _ in range(5)] == [b"01234"] * 5
        hung.setblocking(False)
        hung.accept()[0].close()
        with pytest.raises(BlockingIOError):
            hung.accept()


def test_the_only_data_node_is_waited_for(monkeypatch):
    """It takes longer than one is given that there are others for."""
    monkeypatch.setattr(hdfs_store, "_NEXT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as slow:
        address = f"http://127.0.0.1:{slow.getsockname()[1]}"

        def answer_the_second() -> None:
            first, _ = slow.accept()
            second, _ = slow.accept()
            with first, second:
                second.sendall(b"HTTP/1.0 200 OK\r\n\r\n01234")

        thread = threading.Thread(target=answer_the_second, daemon=True)
        thread.start()
        assert read((200, at(address)), (200, located(address))) == b"01234"
        thread.join(60)


@pytest.mark.parametrize(
    "sent", [{}, {"Location": 7}, {"Location": "file:///etc/passwd"}, {"Location": "http:///x"}, {"Location": ""}, [], "x", b"0123"]
)
def test_a_place_that_no_name_node_names_is_refused(sent):
    with pytest.raises(OSError, match=r"answer"):
        read((200, sent))


@pytest.mark.parametrize("sent", [{}, [], {"LocatedBlocks": {"locatedBlocks": [{"locations": [{"hostName": "h", "infoPort": "x"}]}]}}])
def test_other_data_nodes_that_no_name_node_names_are_not_asked(sent):
    with pytest.raises(OSError, match=r"no DataNode gives .*refused"):
        read((200, at(f"http://127.0.0.1:{free_port()}")), (200, sent))


def test_a_root_that_may_not_be_seen_is_not_called_another_folder(monkeypatch):
    denied = {"RemoteException": {"exception": "AccessControlException", "message": "Permission denied: user=me"}}
    with answering(403, denied) as address, pytest.raises(SparklogError, match=r"PARTLOG_IO.*hdfs://h/root.*Permission denied: user=me"):
        Log(Root(HdfsStore("h", "/root", [address], "me")))
