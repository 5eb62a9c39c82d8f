"""Faults, forks and requests at a bucket that obstore reads."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from handmade import Record, Topic, batch
from stores.buckets import copied, environment, put, unique
from stores.faults import FaultProxy
from stores.s3 import S3

from sparklog import Consumer, Log, SparklogError
from sparklog.groups import OffsetTable
from sparklog.store.objects import ObjectClient
from sparklog.store.paths import PathStore
from sparklog.store.store import Absent, Damaged, Store
from sparklog.store.stores import open_store

OFTEN = 100
"""More often than the client tries."""


@pytest.fixture
def proxy(s3: S3, fault_proxy: Callable[[str], FaultProxy], monkeypatch: pytest.MonkeyPatch) -> FaultProxy:
    """Before the server, where the environment tells."""
    proxy = fault_proxy(s3.endpoint)
    for name, value in environment(s3, proxy.endpoint).items():
        monkeypatch.setenv(name, value)
    return proxy


@pytest.fixture
def store(s3: S3, proxy: FaultProxy) -> Store:
    """A root with the file `folder/file`: ten digits."""
    prefix = unique()
    put(s3, f"{prefix}/folder/file", b"0123456789")
    store = open_store(f"s3a://{s3.bucket}/{prefix}")
    assert isinstance(store, PathStore) and isinstance(store.client, ObjectClient)
    return store


def key(store: Store) -> str:
    return store.root.rpartition("/")[2]


READS: dict[str, Callable[[Store], object]] = {
    "read": lambda store: store.read("folder/file", 10),
    "read_tagged": lambda store: store.read_tagged("folder/file", 10)[1],
    "open": lambda store: store.open("folder/file").read(0, 10),
    "open_at": lambda store: store.open_at("folder/file", 0).read(0, 10),
    "reader": lambda store: store.reader("folder/file")(0, 10),
}


@pytest.mark.parametrize("how", READS)
def test_a_read_is_one_request(store: Store, proxy: FaultProxy, how: str) -> None:
    proxy.clear()
    assert READS[how](store) == b"0123456789"
    assert proxy.count() == ({"HEAD": 1, "GET": 1} if how == "open" else {"GET": 1})


def test_looks_and_listings_are_few_requests(s3: S3, store: Store, proxy: FaultProxy) -> None:
    for asked, kinds in {
        lambda: store.look("folder/file"): ["HEAD"],
        lambda: store.tag("folder/file"): ["HEAD"],
        lambda: store.look("folder"): ["HEAD", "LIST"],
        lambda: store.look("nothing"): ["HEAD", "LIST"],
        lambda: store.has_folder("folder"): ["LIST"],
        lambda: store.has_folder("folder/file"): ["LIST"],
        lambda: store.names("folder"): ["LIST"],
        lambda: store.tree("folder"): ["LIST"],
        lambda: store.open_at("folder/file", 10).read(10, 1): ["GET", "HEAD"],
    }.items():
        proxy.clear()
        asked()
        assert [request.kind for request in proxy.requests] == kinds


def test_objects_that_stand_for_folders_are_folders(s3: S3, store: Store, proxy: FaultProxy) -> None:
    """Other programs put an object whose name ends with a slash. An empty object with another name is a file."""
    files = s3.filesystem()
    for folder in ("folder", "folder/empty", "folder/full", "folder/full/deep"):
        files.create_dir(f"{s3.bucket}/{key(store)}/{folder}")
    put(s3, f"{key(store)}/folder/full/deep/file", b"x")
    put(s3, f"{key(store)}/folder/nothing", b"")
    by_pyarrow = open_store(store.root, files)
    for ask in ("names", "entries", "tree"):
        found, expected = (getattr(each, ask)("folder") for each in (store, by_pyarrow))
        assert (set(found) if ask == "names" else found) == (set(expected) if ask == "names" else expected)
    proxy.clear()
    assert [entry.kind for entry in store.tree("folder")[""]] == ["folder", "file", "folder", "file"]
    assert [request.kind for request in proxy.requests] == ["LIST", "LIST"], "the folder has two empty objects with nothing below"
    assert store.look("folder/empty") == by_pyarrow.look("folder/empty")


@pytest.mark.parametrize("how", READS)
@pytest.mark.parametrize(("kind", "status"), [("answer", 503), ("cut", 0), ("tear", 0)])
def test_a_request_that_goes_wrong_is_made_again(store: Store, proxy: FaultProxy, how: str, kind: str, status: int) -> None:
    proxy.inject(kind, method="GET", key="folder/file", times=2, status=status)
    assert READS[how](store) == b"0123456789"


@pytest.mark.parametrize("how", ["read", "reader"])
@pytest.mark.parametrize(("kind", "status"), [("answer", 503), ("answer", 500), ("cut", 0), ("lose", 0), ("tear", 0)])
def test_a_request_that_goes_wrong_each_time(store: Store, proxy: FaultProxy, how: str, kind: str, status: int) -> None:
    proxy.inject(kind, method="GET", key="folder/file", times=OFTEN, status=status)
    began = time.monotonic()
    with pytest.raises(OSError, match=r"GET|body") as raised:
        READS[how](store)
    assert time.monotonic() - began < 60
    assert "Debug source" not in str(raised.value) and "\n" not in str(raised.value)


def test_a_server_that_says_nothing_is_asked_again(store: Store, proxy: FaultProxy) -> None:
    proxy.inject("delay", key="folder/file", seconds=20)
    assert store.read("folder/file", 10) == b"0123456789"
    asked = proxy.count("folder/file")
    assert set(asked) == {"GET"} and asked["GET"] >= 2


@pytest.mark.parametrize(("status", "times"), [(403, 1), (503, 11)])
@pytest.mark.parametrize("how", ["read", "open_at", "names"])
def test_a_server_that_refuses_is_not_asked_in_other_ways(store: Store, proxy: FaultProxy, how: str, status: int, times: int) -> None:
    """The first answer says why: it is not lost."""
    proxy.inject("answer", key="", times=OFTEN, status=status)
    ask = (lambda: store.names("folder")) if how == "names" else lambda: READS[how](store)
    with pytest.raises(OSError, match=rf"GET .* status code: {status}"):
        ask()
    asked = {request.kind for request in proxy.requests}
    assert asked == ({"LIST"} if how == "names" else {"GET"})
    assert len(proxy.requests) <= times


@pytest.mark.parametrize("status", [403, 404])
def test_what_a_server_refuses(store: Store, proxy: FaultProxy, status: int) -> None:
    proxy.inject("answer", key="", times=OFTEN, status=status)
    if status == 404:
        assert store.look("folder") is None and store.names("folder") == [] and store.tree("folder") == {"": []}
        with pytest.raises(Absent):
            store.read("folder/file", 10)
    else:
        for ask in (store.look, store.names, store.tree, lambda name: store.read(f"{name}/file", 10)):
            with pytest.raises(OSError, match="403"):
                ask("folder")


def test_an_object_that_is_replaced_is_not_read_as_the_first(s3: S3, store: Store) -> None:
    file, known = store.opened("folder/file"), store.reader("folder/file")  # type: ignore[attr-defined]
    assert file.read(0, 5) == known(0, 5) == b"01234"
    put(s3, f"{key(store)}/folder/file", b"abcdefghij")
    for read in (file.read, known):
        with pytest.raises(Absent):
            read(5, 5)
    assert store.read("folder/file", 10) == store.reader("folder/file")(0, 10) == b"abcdefghij"
    s3.filesystem().delete_file(f"{s3.bucket}/{key(store)}/folder/file")
    with pytest.raises(Absent):
        known(5, 5)


def test_a_large_object_is_refused_without_its_bytes(s3: S3, store: Store, tmp_path: Path) -> None:
    """And a range of it takes its bytes twice at most, for a moment."""
    put(s3, f"{key(store)}/large", bytes(96 << 20))
    program = (
        "import re, sys\n"
        "from pathlib import Path\n"
        "from sparklog.store.stores import open_store\n"
        "from sparklog.store.store import Damaged\n"
        "most = lambda: int(re.search('VmHWM:\\s*([0-9]+) kB', Path('/proc/self/status').read_text())[1]) << 10\n"
        "store = open_store(sys.argv[1])\n"
        "store.read('folder/file', 10)\n"
        "begun = most()\n"
        "for read in (store.read, store.read_tagged):\n"
        "    try: read('large', 1000); assert False\n"
        "    except Damaged as damage: assert str(damage) == 'it has 100663296 bytes, more than 1000', damage\n"
        "refused = most()\n"
        "read = store.reader('large')\n"
        "for at in range(0, 96 << 20, 16 << 20): assert read(at, 16 << 20) == bytes(16 << 20)\n"
        "print(refused - begun, most() - refused)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program, store.root], check=True, capture_output=True, text=True, timeout=300)
    refused, read = map(int, ran.stdout.split())
    print(f"{refused >> 20} MiB to refuse 96 MiB; {read >> 20} MiB to read them by 16 MiB")
    assert refused < 24 << 20
    assert read < 56 << 20


def _in_fork(run: Callable[[], object]) -> object:
    """The answer of a call in a fork, or its error. The fork has a minute."""
    answers: multiprocessing.Queue[object] = multiprocessing.get_context("fork").Queue()

    def tell() -> None:
        try:
            answers.put(run())
        except Exception as error:
            answers.put(getattr(error, "id", repr(error)))

    child = multiprocessing.get_context("fork").Process(target=tell)
    child.start()
    try:
        return answers.get(timeout=60)
    finally:
        child.kill()
        child.join()


def test_a_fork_of_a_process_that_has_read_is_told_so(s3: S3, proxy: FaultProxy, tmp_path: Path) -> None:
    """It has no thread of obstore's: a request would wait for ever."""
    topic = Topic(tmp_path / "root")
    octets = b"".join(batch([Record(bytes(1_000)) for _ in range(1_000)], 1_000 * n) for n in range(30))
    topic.commit(topic.data(octets))
    log = Log(copied(s3, topic.root))
    scan = log["t"].scan()
    begun = next(scan).num_rows
    with Consumer(log.root, "t", auto_offset_reset="earliest") as consumer:
        consumer.poll(timeout_ms=5_000, max_records=10)
        polls = partial(consumer.poll, timeout_ms=5_000)
        for run in (lambda: log["t"].read(), lambda: Log(log.root), lambda: sum(each.num_rows for each in scan), polls):
            assert _in_fork(run) == _in_fork(lambda run=run: _in_fork(run)) == "BUCKET_FORKED"
    assert begun + sum(each.num_rows for each in scan) == 30_000


def test_forks_read_where_their_parent_has_not(s3: S3, proxy: FaultProxy, tmp_path: Path) -> None:
    Topic(tmp_path / "root").append([Record(b"v")])
    program = (
        "import multiprocessing, sys\n"
        "from sparklog import Log\n"
        "def rows(url): return Log(url)['t'].read().num_rows\n"
        "with multiprocessing.get_context('fork').Pool(2) as pool: print(pool.map(rows, 2 * sys.argv[1:]))\n"
    )
    command = [sys.executable, "-c", program, copied(s3, tmp_path / "root")]
    assert subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout == "[1, 1]\n"


@pytest.mark.parametrize("profile", ["of-file", "of-process"])
def test_a_profile_reads_a_root_and_shares_a_group_beside_it(s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str) -> None:
    """The root, the table of the group and the heartbeats of its member are asked with the same keys."""
    Topic(tmp_path / "root").append([Record(b"v")])
    url = copied(s3, tmp_path / "root")
    keys = {"aws_access_key_id": s3.access_key, "aws_secret_access_key": s3.secret_key}
    told = json.dumps({"Version": 1, "AccessKeyId": s3.access_key, "SecretAccessKey": s3.secret_key})
    told_by_process = {"credential_process": f"{sys.executable} {tmp_path / 'keys.py'}"}
    (tmp_path / "keys.py").write_text(f"print({told!r})")
    lines = (
        f"[{name}]\n" + "".join(f"{each} = {value}\n" for each, value in of.items())
        for name, of in {"default": dict.fromkeys(keys, "wrong"), "profile of-file": keys, "profile of-process": told_by_process}.items()
    )
    (tmp_path / "config").write_text("".join(lines))
    settings = {"AWS_CONFIG_FILE": str(tmp_path / "config"), "AWS_SHARED_CREDENTIALS_FILE": "/nothing", "AWS_PROFILE": profile}
    for name, value in (environment(s3) | settings).items():
        monkeypatch.setenv(name, value)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    table = f"{url}-offsets"
    with Consumer(url, "t", group_id="g", table=table, auto_offset_reset="earliest", consumer_timeout_ms=20_000) as consumer:
        assert next(consumer).value == b"v"
        consumer.commit()
    assert OffsetTable(url, table).group("g").summary.lag == 0
    monkeypatch.setenv("AWS_PROFILE", "default")
    with pytest.raises(SparklogError, match=r"PARTLOG_IO.*access key"):
        Log(url)


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch, s3: S3) -> Iterator[Callable[[int, dict[str, str], bytes], None]]:
    """A server that answers each request so, or as a function tells; the environment tells where it is."""
    told: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = told[0]() if len(told) == 1 else told
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                with suppress(ConnectionError):
                    self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        for name, value in environment(s3, f"http://127.0.0.1:{server.server_port}").items():
            monkeypatch.setenv(name, value)
        yield lambda *answer: told.__setitem__(slice(None), answer)
        server.shutdown()


@pytest.mark.parametrize("tag", [None, "", '""', 'W/"weak"', '"strong"'])
def test_a_server_need_not_send_a_tag_of_an_object(answering: Callable[..., None], s3: S3, tag: str | None) -> None:
    """Where the tag cannot be asked for, another time or length tells that there is another object."""
    store = open_store(f"s3a://{s3.bucket}/root")
    headers = {"Last-Modified": AT["Last-Modified"], "Content-Range": "bytes 0-4/5"} | ({"ETag": tag} if tag is not None else {})
    answering(206, headers, b"01234")
    file, read = store.open_at("file", 0), store.reader("file")
    answering(200, headers, b"01234")
    opened = store.opened("file")  # type: ignore[attr-defined]
    answering(206, headers, b"01234")
    assert file.read(0, 5) == read(0, 10) == read(0, 10) == opened.read(0, 5) == b"01234"
    other = {"ETag": '"other"'} if tag == '"strong"' else {"Last-Modified": "Sat, 28 Nov 2026 12:00:01 GMT"}
    for changed in [other] if tag == '"strong"' else [other, {"Content-Range": "bytes 0-4/6"}]:
        answering(206, headers | changed, b"01234")
        for again in (read, opened.read):
            with pytest.raises(Absent):
                again(0, 5)


def test_two_first_reads_at_once_are_of_one_object(answering: Callable[..., None], s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither can ask for the tag that the other has met."""
    read = open_store(f"s3a://{s3.bucket}/root").reader("file")
    met = threading.Barrier(2)
    tags = iter(["first", "second"])

    def answer() -> tuple[int, dict[str, str], bytes]:
        tag = next(tags)
        met.wait(10)
        return 206, AT | {"ETag": f'"{tag}"', "Content-Range": "bytes 0-4/5"}, b"01234"

    answering(answer)
    with ThreadPoolExecutor(2) as threads:
        reads = [threads.submit(read, 0, 5) for _ in range(2)]
        failures = [each.exception(30) for each in reads]
    assert sorted(type(each).__name__ for each in failures) == ["Absent", "NoneType"]


def test_an_answer_of_more_bytes_than_it_tells_is_not_read_on(answering: Callable[..., None], s3: S3) -> None:
    program = (
        "import re, sys\n"
        "from pathlib import Path\n"
        "from sparklog.store.stores import open_store\n"
        "most = lambda: int(re.search('VmHWM:\\s*([0-9]+) kB', Path('/proc/self/status').read_text())[1]) << 10\n"
        "read = open_store(sys.argv[1]).reader('file')\n"
        "begun = most()\n"
        "try: read(0, 10)\n"
        "except OSError as error: assert 'more than 10 bytes' in str(error), error\n"
        "print(most() - begun)\n"
    )
    answering(206, AT | {"Content-Range": "bytes 0-9/10"}, bytes(200 << 20))
    url = f"s3a://{s3.bucket}/root"
    ran = subprocess.run([sys.executable, "-c", program, url], check=True, capture_output=True, text=True, timeout=120)
    assert int(ran.stdout) < 48 << 20


AT = {"ETag": '"tag"', "Last-Modified": "Sat, 28 Nov 2026 12:00:00 GMT"}


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (206, {"Content-Range": "bytes 0-9/20"}),
        (206, {"Content-Range": "bytes 5-9/20"}),
        (206, {"Content-Range": "bytes 0-4/4"}),
        (206, {"Content-Range": "bytes x"}),
        (206, {}),
        (200, {}),
    ],
)
def test_an_answer_with_other_bytes_than_those_asked_for_is_refused(
    answering: Callable[..., None], s3: S3, status: int, headers: dict[str, str]
) -> None:
    """The body has five bytes."""
    answering(status, AT | headers, b"01234")
    read = open_store(f"s3a://{s3.bucket}/root").reader("file")
    with pytest.raises((OSError, Absent, Damaged)):
        read(0, 10)


SECRETS = "<AWSAccessKeyId>AKIASECRET</AWSAccessKeyId><StringToSign>secret-string</StringToSign>"
ERROR = "<Code>SignatureDoesNotMatch</Code><Message>The signature is wrong.</Message>"
JSON = '{"AWSAccessKeyId": "AKIASECRET", "StringToSign": "secret-string"}'


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (403, f"<?xml version='1.0'?><Error>{ERROR}{SECRETS}</Error>", True),
        (403, f"<Error>{ERROR}{SECRETS}</Error>", True),
        (403, f"<?XML?><Error>{SECRETS}{ERROR}</Error>", True),
        (403, f"\ufeff<Error><Code>SignatureDoesNotMatch</Code>{SECRETS}<Message>The signature is wrong.</Message></Error>", True),
        (403, f"<Error>{SECRETS}", False),
        (403, "AKIASECRET secret-string", False),
        (403, JSON, False),
        (503, JSON, False),
        (200, JSON, False),
    ],
)
def test_no_message_has_a_key_or_a_signature(answering: Callable[..., None], s3: S3, status: int, body: str, told: bool) -> None:
    answering(status, {}, body.encode())
    store = open_store(f"s3a://{s3.bucket}/root")
    reads = [lambda name: store.read(name, 10), lambda name: store.open_at(name, 0)]
    for ask in (store.names, store.tree, *(reads if status == 403 else [])):
        with pytest.raises(
            OSError, match=r"SignatureDoesNotMatch: The signature is wrong\." if told else f"{status}|invalid list"
        ) as raised:
            ask("file")
        for secret in ("AKIASECRET", "secret-string", s3.secret_key):
            assert secret not in f"{raised.value}{raised.value!r}"
