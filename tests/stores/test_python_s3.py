"""The stores of Python on a real S3 server: their contract, whole roots, what they cost, and what goes wrong."""

import json
import os
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path

import pytest
from handmade import Record, Topic, batch
from pyarrow import fs
from store_contract import Place, StoreContract
from stores.buckets import copied, environment, put, unique
from stores.conftest import Reach
from stores.faults import most_at_once, rounds
from stores.s3 import S3
from typer.testing import CliRunner

import sparklog
from sparklog import Consumer, Log, SparklogError
from sparklog.arguments import named_root
from sparklog.cli.app import app
from sparklog.ondisk.root import Root
from sparklog.store.store import Damaged
from sparklog.store.stores import open_store

REPOSITORY = Path(__file__).resolve().parents[2]


class TestS3(StoreContract):
    keeps_open_files = False

    @pytest.fixture
    def place(self, s3: S3, reach: Reach) -> Place:
        files, prefix = s3.filesystem(), unique()
        store = open_store(f"s3a://{s3.bucket}/{prefix}", **reach(s3))

        put_at = {}

        def put_again(name: str, content: bytes) -> None:
            # S3 tells the time of an object in seconds, and equal bytes may have one ETag.
            time.sleep(max(0, put_at.get(content, 0) + 2 - time.monotonic()) if content else 0)
            put(s3, f"{prefix}/{name}", content)
            put_at[content] = time.monotonic()

        put_again("folder/inner/file", b"0123456789")
        return Place(store, put_again, lambda name: files.delete_file(f"{s3.bucket}/{prefix}/{name}"))

    def test_a_listing_of_several_pages(self, place):
        names = [f"{number:04d}" for number in range(1_250)]
        for name in names:
            place.put(f"many/{name}", b"")
        assert sorted(place.store.names("many")) == names
        assert [entry.name for entry in place.store.entries("many")] == names


def test_a_root_is_the_same_there(s3, reach, topic):
    url = copied(s3, topic.root)
    there, here = Log(url, **reach(s3)), Log(topic.root)
    assert there.root == url
    assert there.topics() == here.topics() == [topic.name]
    assert there[topic.name].read() == here[topic.name].read()
    assert there[topic.name].tail(3) == here[topic.name].tail(3)
    assert there[topic.name].commits() == here[topic.name].commits()
    assert list(there[topic.name].batches(0))[-1].crc == list(here[topic.name].batches(0))[-1].crc
    assert there[topic.name].stats().records == here[topic.name].stats().records
    assert there[topic.name].describe() == {**here[topic.name].describe(), "root": url}
    assert there[topic.name].offsets_for_time(0) == here[topic.name].offsets_for_time(0)
    report, local = there.verify(), here.verify()
    assert report.findings == local.findings
    assert [each for each in report.waiting if each.what != "view"] == [each for each in local.waiting if each.what != "view"]
    assert not [each for each in report.waiting if each.what == "view"], "there is no view that waits to be made"


def test_one_root_has_one_name(s3, topic, settings_in_environment):
    url = copied(s3, topic.root)
    for spelling in (url, url.replace("s3a", "s3"), f"{url}/", url.replace("s3a", "S3A"), url.replace("/root", "//x/../root")):
        log = Log(spelling)
        assert (log.root, log.topics()) == (url, [topic.name])
    address = s3.endpoint.partition("://")[2]
    assert Log(f"{url}?endpoint_override={address}&scheme=http&region={s3.region}").root == url


def test_what_is_no_root_there(s3, topic, settings_in_environment):
    url = copied(s3, topic.root)
    put(s3, "single/file", b"x")
    base = f"s3a://{s3.bucket}"
    for root, condition in {
        f"{base}/nothing": "ROOT_NOT_FOUND",
        "s3a://no-such-bucket/x": "ROOT_NOT_FOUND",
        f"{base}/single": "ROOT_WITHOUT_LOG",
        f"{base}/single/file": "ROOT_NOT_A_DIRECTORY",
        f"{url}/_partlog": "LOG_DIRECTORY",
        f"{url}/_partlog/t": "LOG_DIRECTORY",
        "s3a:///x": "OPTION_VALUE",
        "s3a:x": "OPTION_VALUE",
        "gs://bucket/x": "STORE_UNSUPPORTED",
    }.items():
        with pytest.raises(SparklogError) as raised:
            Log(root)
        assert raised.value.id == condition, raised.value
        with pytest.raises(SparklogError) as raised:
            sparklog.Topic(root, "t")
        assert raised.value.id == condition, raised.value
    with pytest.raises(SparklogError, match=r"PARTLOG_TOPIC_NOT_FOUND.*Existing topics: t"):
        Log(url).topic("other")


def test_no_message_shows_credentials(s3, topic, monkeypatch):
    url = copied(s3, topic.root)
    for wrong in (f"s3a://key:very-secret@{s3.bucket}/x", f"s3://key:very-secret/x@{s3.bucket}/x"):
        with pytest.raises(SparklogError, match="without credentials") as raised:
            Log(wrong)
        assert "very-secret" not in f"{raised.value}{raised.value!r}"
    settings = {"secret_key": "very-secret"}
    for root in (url, topic.root):
        with pytest.raises((TypeError, SparklogError), match="`filesystem`") as refused:
            Log(root, filesystem=settings)
        assert "very-secret" not in f"{refused.value}{refused.value!r}"
    for name, value in (environment(s3) | {"AWS_SECRET_ACCESS_KEY": "very-secret"}).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SparklogError, match="PARTLOG_IO") as raised:
        Log(url)
    assert "very-secret" not in f"{raised.value}{raised.value!r}"
    del os.environ["AWS_SECRET_ACCESS_KEY"]
    secret = s3.filesystem()
    assert s3.secret_key not in repr(Root.at(url, secret)) + repr(Root.at(url, secret).store)


def test_a_filesystem_is_one_of_pyarrow_and_for_a_bucket(s3, topic):
    with pytest.raises(TypeError, match=r"must be a pyarrow.fs.FileSystem"):
        Log(f"s3a://{s3.bucket}/x", filesystem=object())
    with pytest.raises(SparklogError, match=r"`filesystem`.*the root must be a URL"):
        Log(topic.root, filesystem=s3.filesystem())


# ---- what it costs


def test_requests(s3, reach, topic, fault_proxy):
    proxy = fault_proxy(s3.endpoint)
    root = named_root(copied(s3, topic.root), **reach(s3, proxy.endpoint))
    log = Log(root)
    found, opening, _ = asked(proxy, lambda: log.topic(topic.name))
    expected = reach.reads(3, absent=1) + Counter(LIST=1, HEAD=1)
    assert opening == expected, "the checkpoint, its version, the next version, an absent version, and the first version again"
    with proxy.counting() as polling:
        found.end_offsets()
    assert polling == reach.reads(0, absent=1) + Counter(HEAD=1)
    with proxy.counting("json$") as reading:
        found.commits(1)
    assert reading == reach.reads(1, absent=1) + Counter(HEAD=1)
    root.store.look("")
    with proxy.counting(r"\.log$") as scanning:
        rows = found.read().num_rows
    assert rows == 40
    assert scanning["GET"] == len({segment.file for segment in found.segments()}), "a GET for the small segments of a file"


def test_a_scan_reads_no_byte_twice(s3, reach, tmp_path, fault_proxy):
    topic = Topic(tmp_path / "root")
    octets = b"".join(batch([Record(os.urandom(1000)) for _ in range(100)], 100 * number) for number in range(60))
    topic.commit(topic.data(octets))
    proxy = fault_proxy(s3.endpoint)
    found = Log(copied(s3, topic.root), **reach(s3, proxy.endpoint))["t"]
    for read in (lambda: found.read().num_rows, lambda: sum(each.records for each in found.batches(0))):
        proxy.clear()
        assert read() == 6000
        ranges = [request.headers["range"] for request in proxy.requests if request.method == "GET" and request.key.endswith(".log")]
        spans = sorted(tuple(map(int, each.removeprefix("bytes=").split("-"))) for each in ranges)
        assert all(last < following for (_, last), (following, _) in pairwise(spans))
        assert sum(last + 1 - first for first, last in spans) <= len(octets)
        assert len(spans) <= 6
    proxy.clear()
    assert found.head(1).num_rows == 1
    assert sum(request.sent for request in proxy.requests if request.key.endswith(".log")) <= 1 << 18


def test_a_large_file_is_looked_at_once(s3, reach, tmp_path, fault_proxy):
    """It is read by several requests, which begin at the same time. Each of them may be the first."""
    topic = Topic(tmp_path / "root")
    octets = b"".join(batch([Record(bytes(1_000)) for _ in range(1_000)], 1_000 * number) for number in range(40))
    topic.commit(topic.data(octets))
    proxy = fault_proxy(s3.endpoint)
    url, files = copied(s3, topic.root), reach(s3, proxy.endpoint)

    def scan() -> int:
        return sum(batch.num_rows for batch in Log(url, **files)["t"].scan())

    def consume() -> int:
        with Consumer(url, "t", **files, auto_offset_reset="earliest", max_partition_fetch_bytes=8 << 20) as consumer:
            rows = 0
            while rows < 40_000:
                rows += sum(map(len, consumer.poll(timeout_ms=60_000, max_records=10_000).values()))
            return rows

    proxy.delay_s = 0.01
    for read in (scan, consume):
        rows, _, requests = asked(proxy, read)
        counts = Counter(request.kind for request in requests if request.key.endswith(".log"))
        assert rows == 40_000
        assert counts["HEAD"] == reach.reads(1)["HEAD"], counts
        assert len(octets) // (8 << 20) <= counts["GET"] <= 12, counts
        assert most_at_once(requests) > 1


def test_many_segments_are_read_at_once(s3, reach, tmp_path, fault_proxy):
    topic = Topic(tmp_path / "root")
    for _ in range(60):
        topic.append([Record(b"x")])
    proxy = fault_proxy(s3.endpoint)
    change, under_way = threading.Condition(), []
    first = "HEAD" if reach.reads(1)["HEAD"] else "GET"

    def wait_for_others(request):
        if request.method == first and request.key.endswith(".log"):
            with change:
                under_way.append(request)
                change.notify_all()
                assert change.wait_for(lambda: len(under_way) >= 15, 120)

    found = Log(copied(s3, topic.root), **reach(s3, proxy.endpoint))["t"]
    proxy.before = wait_for_others
    assert found.read().num_rows == 60
    assert proxy.count(r"\.log$") == reach.reads(60)


def asked(proxy, ask):
    """The answer, the number of requests of each kind, and the requests."""
    proxy.clear()
    answer = ask()
    return answer, Counter(request.kind for request in proxy.requests), list(proxy.requests)


def test_many_topics(s3, reach, tmp_path, fault_proxy):
    """54 topics of one version each, where a request takes 30 ms."""
    for number in range(54):
        Topic(tmp_path / "root", f"t{number:02}", partitions=2).append([Record(b"v")])
    proxy = fault_proxy(s3.endpoint)
    url = copied(s3, tmp_path / "root")
    proxy.delay_s = 0.03
    log = Log(url, **reach(s3, proxy.endpoint))
    found, counts, _ = asked(proxy, lambda: "t07" in log)
    assert (found, counts) == (True, Counter(LIST=1))
    found, counts, requests = asked(proxy, log.topics)
    assert (len(found), counts) == (54, Counter(LIST=55))
    assert 8 < most_at_once(requests) <= 16, "pyarrow lists folders with eight threads by default"
    assert rounds(requests) <= 16, "some 5 if no answer is late, and 55 one after another"
    if reach.client == "pyarrow":
        return  # a command takes no FileSystem
    began = time.monotonic()
    shown, counts, requests = asked(proxy, lambda: CliRunner().invoke(app, ["topics", url, "--json"]))
    took = time.monotonic() - began
    assert [each["offsets"] for each in json.loads(shown.stdout)] == [1] * 54
    assert sum(counts.values()) <= 4 * 54 + 4, "two to see the root, and one to list it"
    assert 8 < most_at_once(requests) <= 16
    assert rounds(requests) <= 28, "some 20 if no answer is late"
    print(f"54 topics: {dict(counts)}, {most_at_once(requests)} at once, {rounds(requests)} in a row, {took:.1f} s")


def test_many_versions_and_segments(s3, reach, tmp_path, fault_proxy):
    topic = Topic(tmp_path / "root")
    for number in range(100):
        topic.append([Record(f"v{number}".encode())])
    proxy = fault_proxy(s3.endpoint)
    url = copied(s3, topic.root)
    proxy.delay_s = 0.03
    few_rounds = 28 if reach.client == "pyarrow" else 19
    log = Log(url, **reach(s3, proxy.endpoint))
    began = time.monotonic()
    found, counts, requests = asked(proxy, lambda: log["t"].end_offsets())
    took = time.monotonic() - began
    assert found == {0: 100}
    assert counts == reach.reads(100, absent=1) + Counter(LIST=2, HEAD=1), "each version file, and two to ask again for the newest state"
    assert 8 < most_at_once(requests) <= 16
    assert rounds(requests) <= few_rounds, "two thirds of them if no answer is late"
    print(f"100 versions: {dict(counts)}, {most_at_once(requests)} at once, {rounds(requests)} in a row, {took:.1f} s")
    rows, counts, requests = asked(proxy, lambda: log["t"].read().num_rows)
    assert (rows, counts) == (100, reach.reads(100, absent=2) + Counter(HEAD=2)), "each data file, and two looks for new versions, twice"
    assert rounds(requests) <= few_rounds, "two thirds of them if no answer is late"
    print(f"read(): {most_at_once(requests)} at once, {rounds(requests)} in a row")
    began = time.monotonic()
    report, counts, requests = asked(proxy, lambda: log.verify(quick=True))
    took = time.monotonic() - began
    assert (report.findings, report.checked.segments) == ([], 100)
    assert not [request for request in requests if request.key.endswith(".log")]
    assert sum(request.kind == "LIST" and "_partlog%2Ft%2Fdata" in request.query for request in requests) == 1
    assert rounds(requests) < 60
    print(f"verify(quick): {dict(counts)}, {most_at_once(requests)} at once, {rounds(requests)} in a row, {took:.1f} s")


def test_a_consumer_reads_many_segments(s3, reach, tmp_path, fault_proxy):
    topic = Topic(tmp_path / "root")
    for number in range(40):
        topic.append([Record(f"v{number}".encode())])
    proxy = fault_proxy(s3.endpoint)
    url, files = copied(s3, topic.root), reach(s3, proxy.endpoint)
    proxy.delay_s = 0.03

    def consume() -> int:
        with Consumer(url, "t", **files, auto_offset_reset="earliest") as consumer:
            rows = 0
            while rows < 40:
                rows += sum(map(len, consumer.poll(timeout_ms=60_000).values()))
            return rows

    began = time.monotonic()
    rows, counts, requests = asked(proxy, consume)
    took = time.monotonic() - began
    assert rows == 40
    assert counts - reach.reads(80) <= Counter(LIST=3, HEAD=6, GET=3), "each version file, and each data file"
    assert rounds(requests) <= 26, "some 18 if no answer is late"
    print(f"consumer: {dict(counts)}, {most_at_once(requests)} at once, {rounds(requests)} in a row, {took:.1f} s")


def test_a_consumer_that_waits_makes_one_request_a_second_and_topic(s3, reach, tmp_path, fault_proxy):
    topics = [Topic(tmp_path / "root", f"t{number}") for number in range(20)]
    for topic in topics:
        topic.append([Record(b"x")])
    url, proxy = copied(s3, tmp_path / "root"), fault_proxy(s3.endpoint)
    with Consumer(url, **reach(s3, proxy.endpoint), metadata_max_age_ms=600_000) as consumer:
        consumer.subscribe(pattern="t")
        assert consumer.poll(3_000) == {}, "its looks come further and further apart"
        proxy.clear()
        began = time.monotonic()
        assert consumer.poll(5_000) == {}
        took = time.monotonic() - began
        print(f"{sum(proxy.count().values()) / took / 20:.2f} requests a second and topic")
        assert sum(proxy.count().values()) <= 20 * (took + 1)


# ---- what goes wrong


@pytest.mark.parametrize("how", ["scan", "consumer"])
def test_a_file_that_goes_in_mid_read_is_read_where_it_went(s3, reach, tmp_path, how):
    """A merge takes the place of two data files, which are deleted when a read of the first has begun."""
    topic, files = Topic(tmp_path / "root"), s3.filesystem()
    octets = [b"".join(batch([Record(os.urandom(1000)) for _ in range(100)], 100 * n) for n in range(at, at + 20)) for at in (0, 20)]
    for each in octets:
        topic.commit(topic.data(each))
    expected = Log(topic.root)["t"].read()["value"].to_pylist()
    url = copied(s3, topic.root)
    place = url.removeprefix("s3a://")

    def merge():
        old = topic.live[0]
        segments = [(topic.folder / part["file"]).read_bytes()[part["position"] :][: part["bytes"]] for part in old]
        topic.commit(topic.data(b"".join(segments), base=0, end=4000, name="p0-t0-0-0.log"), removed=old)
        fs.copy_files(str(topic.root), place, destination_filesystem=files)
        for part in old:
            files.delete_file(f"{place}/_partlog/t/{part['file']}")

    got = []
    if how == "scan":
        for part in Log(url, **reach(s3))["t"].scan():
            got += part.column("value").to_pylist()
            if len(got) == part.num_rows:
                merge()
    else:
        with Consumer(url, "t", **reach(s3), auto_offset_reset="earliest", consumer_timeout_ms=5000) as consumer:
            for record in consumer:
                got.append(record.value)
                if len(got) == 1:
                    merge()
                if len(got) == 4000:
                    break
    assert got == expected


def test_a_server_that_fails_is_an_error_that_names_the_file(s3, reach, topic, fault_proxy):
    proxy = fault_proxy(s3.endpoint)
    log = Log(copied(s3, topic.root), **reach(s3, proxy.endpoint))
    proxy.inject("answer", method="GET", key="pool.log", times=100, status=500)
    with pytest.raises(SparklogError, match=r"PARTLOG_IO.*s3a://.*pool.log"):
        log[topic.name].read()
    proxy.clear()
    proxy.inject("answer", key="pool.log", times=2, status=503)
    assert log[topic.name].read().num_rows == 40, "the client tries again"


def test_the_failure_of_one_of_many_requests_names_its_file(s3, reach, tmp_path, fault_proxy):
    topic = Topic(tmp_path / "root")
    for _ in range(30):
        topic.append([Record(b"v")])
    proxy = fault_proxy(s3.endpoint)
    log = Log(copied(s3, topic.root), **reach(s3, proxy.endpoint))
    proxy.inject("answer", method="GET", key="17.json", times=100, status=403)
    with pytest.raises(SparklogError, match=r"PARTLOG_IO.*s3a://.*/_partlog/t/0{18}17.json"):
        log["t"]
    proxy.clear()
    assert log["t"].end_offsets() == {0: 30}


# ---- listings that no server may send


def listing(*keys: str, prefixes: tuple[str, ...] = ()) -> bytes:
    contents = "".join(
        f"<Contents><Key>{key}</Key><Size>1</Size><LastModified>2026-01-01T00:00:00Z</LastModified></Contents>" for key in keys
    )
    common = "".join(f"<CommonPrefixes><Prefix>{each}</Prefix></CommonPrefixes>" for each in prefixes)
    return f"<ListBucketResult><IsTruncated>false</IsTruncated>{contents}{common}</ListBucketResult>".encode()


@pytest.mark.parametrize(
    "sent",
    [
        listing("root/_partlog/../../other"),
        listing("root/_partlog/.."),
        listing("root/_partlog/a/b"),
        listing("elsewhere/x"),
        listing("/etc/passwd"),
        listing(prefixes=("root/_partlog/../",)),
        listing(prefixes=("root/_partlog//",)),
        listing(prefixes=("root/_partlog/./",)),
    ],
)
def test_a_listing_with_names_that_lead_elsewhere_is_refused(s3, sent, reach):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        root = Root.at("s3a://bucket/root", **reach(s3, f"http://127.0.0.1:{server.server_port}"))
        for ask in (root.store.names, root.store.entries, *([] if b"a/b" in sent else [root.store.tree])):
            with pytest.raises((Damaged, OSError)):
                ask("_partlog")
        with pytest.raises(SparklogError, match="PARTLOG_IO"):
            root.topics()
        server.shutdown()
