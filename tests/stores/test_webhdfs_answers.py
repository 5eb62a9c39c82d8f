"""Answers of NameNodes and DataNodes that real ones seldom give, or never: of servers of this test."""

import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest
from ports import free_port

from sparklog import Log, SparklogError
from sparklog.ondisk.root import Root
from sparklog.store import hdfs as hdfs_store
from sparklog.store.hdfs import HdfsStore
from sparklog.store.store import Absent, Damaged


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
        store = HdfsStore("h", "/logs", [address], "me")
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
        assert HdfsStore("h", "/logs", [first, second], "me").names("_partlog") == ["a"]
        with pytest.raises(OSError, match=f"no active NameNode answers .*{exception}: Namenode is in startup mode"):
            HdfsStore("h", "/logs", [first], "me").names("_partlog")


@pytest.mark.parametrize("exception", ["StandbyException", "RetriableException"])
def test_a_failover_is_waited_out(exception):
    """Its NameNodes are in standby or start up for some seconds, and one may be gone."""
    told = (403, {"RemoteException": {"exception": exception, "message": "Namenode is in startup mode"}})
    with answering(200, listing(status("a")), [told, told]) as address:
        gone = f"http://127.0.0.1:{free_port()}"
        assert HdfsStore("h", "/logs", [gone, address], "me").names("_partlog") == ["a"]


# ---- where bytes are


def at(address: str, **more: str) -> dict[str, str]:
    """The answer of a NameNode to OPEN."""
    return {"Location": f"{address}/webhdfs/v1/logs/file?op=OPEN&offset=0", **more}


def located(*addresses: str) -> dict[str, object]:
    """Its answer to GET_BLOCK_LOCATIONS."""
    places = [{"hostName": urlsplit(each).hostname, "infoPort": urlsplit(each).port} for each in addresses]
    return {"LocatedBlocks": {"locatedBlocks": [{"locations": places}]}}


def read(*answers: tuple[int, object]) -> bytes:
    """Five bytes of a file, of which a NameNode gives these answers."""
    *first, (code, last) = answers
    with answering(code, last, first) as name_node:
        return HdfsStore("h", "/logs", [name_node], "me").bytes_of("file", 0, 5)


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
            store = HdfsStore("h", "/logs", [name_node], "me")
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
    with answering(403, denied) as address, pytest.raises(SparklogError, match=r"PARTLOG_IO.*hdfs://h/logs.*Permission denied: user=me"):
        Log(Root(HdfsStore("h", "/logs", [address], "me")))
