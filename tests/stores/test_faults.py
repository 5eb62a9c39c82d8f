"""The fault proxy lets requests go wrong as it says, in front of a real S3 server."""

import json
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException

import pytest
from stores.faults import KINDS, Fault, FaultProxy, Request, most_at_once, rounds
from stores.hdfs import Hdfs
from stores.s3 import S3

IF_ABSENT = {"If-None-Match": "*"}


@pytest.fixture
def proxy(s3: S3, fault_proxy: Callable[[str], FaultProxy]) -> FaultProxy:
    return fault_proxy(s3.endpoint)


def put(s3: S3, proxy: FaultProxy, key: str) -> int | None:
    """The status that a writer is told; None if its connection ends without one."""
    try:
        return s3.ask("PUT", key, b"12345", IF_ABSENT, endpoint=proxy.endpoint)[0]
    except (OSError, HTTPException):
        return None


def stands(s3: S3, key: str) -> bool:
    """Whether the server, asked without the proxy, has the object."""
    status, body = s3.ask("GET", key)
    assert (status, body) == (200, b"12345") or status == 404
    return status == 200


@pytest.mark.parametrize(
    ("fault", "told", "done"),
    [
        (Fault("cut"), None, None),
        (Fault("lose"), None, 200),
        (Fault("delay", seconds=0.3), 200, 200),
        (Fault("answer", status=412), 412, None),
        (Fault("answer", status=503), 503, None),
        (Fault("belie", status=409), 409, 200),
        (Fault("belie", status=500), 500, 200),
    ],
    ids=str,
)
def test_a_put_goes_wrong(s3: S3, proxy: FaultProxy, fault: Fault, told: int | None, done: int | None):
    key = f"put/{fault}"
    proxy.inject(fault.kind, method="PUT", key="put/", status=fault.status, seconds=fault.seconds)
    begun = time.monotonic()
    assert put(s3, proxy, key) == told
    assert time.monotonic() - begun >= (0.3 if fault.kind == "delay" else 0)
    assert stands(s3, key) == (done == 200)
    assert [(each.told, each.done, each.fault, each.is_conditional) for each in proxy.requests] == [(told, done, fault, True)]
    assert put(s3, proxy, key) == (412 if done else 200), "only the first request went wrong"


def test_a_put_lands_late(s3: S3, proxy: FaultProxy):
    proxy.inject("late", method="PUT", seconds=1)
    begun = time.monotonic()
    assert put(s3, proxy, "late/1") is None
    assert not stands(s3, "late/1")
    assert time.monotonic() - begun < 1
    proxy.wait_for_late()
    assert stands(s3, "late/1")
    assert put(s3, proxy, "late/1") == 412


def test_an_answer_is_torn(s3: S3, proxy: FaultProxy):
    assert put(s3, proxy, "torn") == 200
    proxy.inject("tear", method="GET")
    with pytest.raises(HTTPException, match="2 bytes read, 3 more expected"):
        s3.ask("GET", "torn", endpoint=proxy.endpoint)
    assert s3.ask("GET", "torn", endpoint=proxy.endpoint) == (200, b"12345")


def test_pyarrow_meets_the_faults(s3: S3, proxy: FaultProxy):
    """It asks again. (It would not if the text of an error were longer than what it reads: 5 bytes of a file, say.)"""
    files, name, content = s3.filesystem(proxy.endpoint), f"{s3.bucket}/arrow/a b", b"12345" * 400
    with files.open_output_stream(name) as out:
        out.write(content)
    for kind in KINDS:
        file = files.open_input_file(name)
        proxy.clear()
        proxy.inject(kind, method="GET", seconds=0.1)
        assert file.read() == content, kind
        proxy.wait_for_late()
        assert [request.fault and request.fault.kind for request in proxy.requests] == [kind] + [None] * (kind != "delay")


def test_requests_are_counted(s3: S3, proxy: FaultProxy):
    files = s3.filesystem(proxy.endpoint)
    assert put(s3, proxy, "counted/a b") == 200
    with proxy.counting("^bucket/counted/a b$") as asked:
        file = files.open_input_file(f"{s3.bucket}/counted/a b")
        assert file.read_at(2, 1) == b"23"
    assert asked == Counter(HEAD=1, GET=1)
    assert proxy.requests[-1].headers["range"] == "bytes=1-2"
    assert proxy.count() == Counter(PUT=1, HEAD=1, GET=1)


def test_requests_at_once_and_in_a_row_are_told_apart(s3: S3, proxy: FaultProxy):
    assert (most_at_once([]), rounds([])) == (0, 0)
    for number in range(3):
        put(s3, proxy, f"rounds/{number}")
    assert (most_at_once(proxy.requests), rounds(proxy.requests)) == (1, 3)
    together = threading.Barrier(4)

    def meet(_: Request) -> None:
        together.wait(60)

    proxy.before = meet
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda number: put(s3, proxy, f"rounds/together/{number}"), range(4))) == [200] * 4
    assert (most_at_once(proxy.requests), rounds(proxy.requests)) == (4, 4)
    proxy.inject("cut")
    proxy.before = lambda _: None
    assert put(s3, proxy, "rounds/cut") is None
    assert (most_at_once(proxy.requests), rounds(proxy.requests)) == (4, 5)


def test_requests_have_the_kinds_of_the_prices_of_s3(s3: S3, proxy: FaultProxy):
    assert put(s3, proxy, "kinds/b") == 200
    proxy.clear()
    s3.ask("GET", "", endpoint=proxy.endpoint, query={"list-type": "2", "prefix": "kinds/"})
    s3.ask("GET", "kinds/b", endpoint=proxy.endpoint)
    s3.ask("PUT", "kinds/c", b"", {"x-amz-copy-source": f"{s3.bucket}/kinds/b"}, endpoint=proxy.endpoint)
    put(s3, proxy, "kinds/d")
    assert [request.kind for request in proxy.requests] == ["LIST", "GET", "COPY", "PUT"]


def test_a_store_is_as_far_as_it_is_told(s3: S3):
    with FaultProxy(s3.endpoint, delay_s=0.2, bytes_per_s=1_000_000) as proxy:
        begun = time.monotonic()
        assert put(s3, proxy, "far/small") == 200
        assert time.monotonic() - begun >= 0.2
        begun = time.monotonic()
        assert s3.ask("PUT", "far/large", bytes(500_000), endpoint=proxy.endpoint)[0] == 200
        assert time.monotonic() - begun >= 0.7
        begun = time.monotonic()
        assert s3.ask("GET", "far/large", endpoint=proxy.endpoint) == (200, bytes(500_000))
        assert time.monotonic() - begun >= 0.7


def test_a_seed_decides_which_requests_go_wrong(s3: S3, proxy: FaultProxy):
    def statuses(seed: int) -> list[int | None]:
        proxy.clear()
        proxy.inject_at_random(0.5, [Fault("answer", status=503), Fault("lose")], seed, method="GET")
        for _ in range(40):
            try:
                s3.ask("GET", "none", endpoint=proxy.endpoint)
            except (OSError, HTTPException):
                continue
        return [request.told for request in proxy.requests]

    assert set(statuses(1)) == {404, 503, None}
    assert statuses(1) == statuses(1) != statuses(2)


def test_another_process_can_inject_and_see_by_http(s3: S3, proxy: FaultProxy):
    control = f"{proxy.endpoint}/.faults"
    rules = json.dumps([{"kind": "lose", "method": "PUT", "times": 2}]).encode()
    with urllib.request.urlopen(urllib.request.Request(control, rules, method="POST")) as answer:
        assert json.load(answer) == []
    assert [put(s3, proxy, f"control/{n}") for n in range(3)] == [None, None, 200]
    with urllib.request.urlopen(control) as answer:
        assert [(each["key"], each["told"], each["done"], each["conditional"]) for each in json.load(answer)] == [
            ("bucket/control/0", None, 200, True),
            ("bucket/control/1", None, 200, True),
            ("bucket/control/2", 200, 200, True),
        ]


def test_a_server_that_is_killed_ends_the_connection(s3: S3, proxy: FaultProxy):
    s3.kill()
    try:
        assert put(s3, proxy, "killed") is None
    finally:
        s3.start()
    assert not stands(s3, "killed")


def test_webhdfs_goes_through_it_to_the_data_node(hdfs: Hdfs, fault_proxy: Callable[[str], FaultProxy]):
    proxy = fault_proxy(hdfs.webhdfs[0])
    url = f"{proxy.endpoint}/webhdfs/v1/through?op="
    create = urllib.request.Request(f"{url}CREATE&user.name=root", method="PUT")
    with pytest.raises(urllib.error.HTTPError) as redirect:
        urllib.request.urlopen(create)
    with redirect.value as answer:
        assert answer.code == 307, answer.read()
    with urllib.request.urlopen(urllib.request.Request(redirect.value.headers["Location"], b"12345", method="PUT")) as answer:
        assert answer.status == 201
    with urllib.request.urlopen(f"{url}OPEN") as answer:
        assert answer.read() == b"12345"
    assert [(request.method, request.told) for request in proxy.requests] == [("PUT", 307), ("PUT", 201), ("GET", 307), ("GET", 200)]
