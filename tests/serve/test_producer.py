"""`sparklog.Producer`: it starts a server for a root, keeps it running, and sends each record once."""

import asyncio
import contextlib
import gc
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from handmade import Record, Topic
from serve.serving import RunningServer, server_pid

import sparklog
from sparklog.serve.command import command
from sparklog.serve.process import Server

PROGRAM = """
import sys, time, sparklog
producer = sparklog.Producer(sys.argv[1])
producer.send("visits", "1").get(timeout=600)
print("sent", flush=True)
time.sleep(600)
"""

USER_PROGRAM = Path(__file__).with_name("user_program.py")
SLIPS = """
import sparklog
sparklog.Producer("root", linger_msx=5)
sparklog.Producer("root", compression_type="rar")
sparklog.Producer(bootstrap_servers="host:9092", acks=7)
sparklog.Producer("root").send("visits", 5)
sparklog.Producer("root").send("visits", b"1").get(timeout=30).offest
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("log") / "my-log"
    Topic(root, "visits", partitions=2).append([Record(b"0", b"ann")], 0)
    return root


@pytest.fixture(scope="module")
def shared(root: Path) -> Iterator[sparklog.Producer]:
    """A producer of tests that leave its server alone."""
    with sparklog.Producer(root) as producer:
        yield producer


def states(pid: int) -> set[str]:
    """The states of the threads of a process, as Linux names them by a letter; none if the process is gone."""
    found = set()
    for thread in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found.add(thread.read_text().rpartition(") ")[2][0])
    return found


@contextlib.contextmanager
def stopped(root: Path) -> Iterator[None]:
    """The server of a root is stopped within. On a busy machine, its threads run on for a moment after the signal."""
    pid = server_pid(root)
    assert pid
    os.kill(pid, signal.SIGSTOP)
    try:
        until(lambda: states(pid) == {"T"})
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def kill(root: Path) -> None:
    """Kills the server of a root. On a busy machine, its threads run on for a moment after the signal."""
    pid = server_pid(root)
    assert pid
    os.kill(pid, signal.SIGKILL)
    until(lambda: states(pid) <= {"Z", "X"})


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def values(root: Path, topic: str) -> list[str]:
    return [each.decode() for each in sparklog.Log(root)[topic].read()["value"].to_pylist()]


def test_records_are_in_the_topic_when_their_futures_are_done(root: Path) -> None:
    with sparklog.Producer(root, compression_type="zstd") as producer:
        sent = producer.send("visits", "1", key="bob", headers=[("page", b"home"), ("page", None)], timestamp_ms=1_700_000_000_000)
        where = sent.get(timeout=math.inf)
        [found] = [each for each in sparklog.Log(root)["visits"].read(partition=where.partition).to_pylist() if each["key"] == b"bob"]
        assert (where.topic, where.offset, where.timestamp) == ("visits", found["offset"], 1_700_000_000_000)
        assert (found["value"], found["headers"]) == (b"1", [{"key": "page", "value": b"home"}, {"key": "page", "value": None}])
        assert sparklog.partition_for("bob", 2, "murmur2") == where.partition
        producer.flush(600)
    producer.close()  # a second time does nothing
    assert server_pid(root) is None
    with pytest.raises(sparklog.CallError, match="PRODUCER_CLOSED"):
        producer.send("visits", b"2")


def test_the_first_record_makes_the_root_and_the_topic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the locale, as of a container, has no letter of the root's name."""
    monkeypatch.setenv("LC_ALL", "C")
    root = tmp_path / "Grüße 100% #1"
    with sparklog.Producer(root) as producer:
        assert producer.send("visits", b"1", key=b"ann").get(timeout=600).offset == 0
    assert values(root, "visits") == ["1"]


@pytest.mark.parametrize("partitioner", ["murmur3", "murmur2"])
def test_a_key_goes_where_spark_puts_it(root: Path, shared: sparklog.Producer, partitioner: str) -> None:
    name = f"by-{partitioner}"
    Topic(root, name, partitions=6, config={"partitioner": partitioner}).append([Record(b"0", b"first")], 0)
    keys = ["", "ann", "bob", *(f"key-{number}" for number in range(100))]
    sent = [shared.send(name, "1", key=key) for key in keys]
    assert [each.get(timeout=600).partition for each in sent] == [sparklog.partition_for(key, 6, partitioner) for key in keys]
    assert shared.send(name, "1", key="ann", partition=5).get(timeout=600).partition == 5
    assert {shared.send(name, "1").get(timeout=600).partition for _ in range(3)} <= set(range(6))


def test_a_topic_that_the_producer_makes_routes_keys_as_kafka_does(root: Path, shared: sparklog.Producer) -> None:
    assert shared.send("made-for-a-key", "1", key="ann").get(timeout=600).offset == 0
    assert sparklog.Log(root)["made-for-a-key"].describe()["config"]["partitioner"] == "murmur2"


def test_a_topic_that_was_made_again_is_asked_about_again(serve_classpath: str, tmp_path: Path) -> None:
    """A record for a partition that is gone fails, and the next key is routed by the topic that is there."""
    key = next(key for key in map(str, range(100)) if sparklog.partition_for(key, 9) == 8)
    with (
        RunningServer(serve_classpath, tmp_path / "log") as server,
        sparklog.Producer(bootstrap_servers=server.address, delivery_timeout_ms=5_000) as producer,
    ):
        admin = AdminClient({"bootstrap.servers": server.address})
        admin.create_topics([NewTopic("again", num_partitions=9, config={"partitioner": "murmur3"})])["again"].result()
        assert producer.send("again", "1", key=key).get(timeout=600).partition == 8
        admin.delete_topics(["again"])["again"].result()
        admin.create_topics([NewTopic("again", num_partitions=2)])["again"].result()
        sent = [producer.send("again", "1", key=key)]
        until(lambda: sent[-1].exception(600) is None or sent.append(producer.send("again", "1", key=key)))
    assert sent[-1].get().partition == sparklog.partition_for(key, 2, "murmur2")


def test_a_key_without_an_answer_of_a_server_is_not_sent(tmp_path: Path) -> None:
    with sparklog.Producer(tmp_path / "log", max_block_ms=200) as producer:
        with stopped(tmp_path / "log"):
            with pytest.raises(sparklog.RetryError, match=r"SEND_UNROUTED.*topic visits.*0\.2 s"):
                producer.send("visits", b"1", key=b"ann")
            waiting = producer.send("visits", b"2")
        assert waiting.get(timeout=600).offset == 0
    assert values(tmp_path / "log", "visits") == ["2"]


def test_addresses_of_servers_are_used_as_they_are(root: Path) -> None:
    with Server(str(root)) as server, sparklog.Producer(bootstrap_servers=["127.0.0.1:1", server.address]) as producer:
        assert producer.send("visits", b"x").get(timeout=600).offset >= 0


@pytest.mark.slow
def test_a_producer_outlives_its_servers(tmp_path: Path) -> None:
    """Two threads send while the server is killed three times. Each record is committed once, and in its order."""
    root = tmp_path / "log"
    Topic(root, "lives", partitions=1).append([Record(b"first")], 0)
    with sparklog.Producer(root) as producer:
        producer.send("lives", b"second").get(timeout=600)
        over, sent = threading.Event(), dict[str, sparklog.RecordFuture]()

        def send(thread: int) -> None:
            number = 0
            while not over.wait(0.01):
                value = f"{thread}:{number:05d}"
                sent[value] = producer.send("lives", value, partition=0)
                number += 1

        threads = [threading.Thread(target=send, args=(number,)) for number in range(2)]
        for each in threads:
            each.start()
        for _ in range(3):
            begun = len(sent)
            until(lambda begun=begun: any(each.done() for each in list(sent.values())[begun:]))
            kill(root)
        over.set()
        for each in threads:
            each.join()
        producer.flush(120)
    offsets = {value: future.get(timeout=0).offset for value, future in sent.items()}
    there = values(root, "lives")
    assert [there[offset] for offset in offsets.values()] == list(offsets)
    assert len(there) == len(offsets) + 2
    for thread in "01":
        of_one = [value for value in there if value.startswith(f"{thread}:")]
        assert of_one == sorted(of_one)


def test_ten_thousand_records_are_sent_in_a_second_of_processor_time(root: Path, shared: sparklog.Producer) -> None:
    shared.send("many", b"first").get(timeout=600)
    begun = time.process_time()
    sent = [shared.send("many", b"%d" % number, partition=0) for number in range(10_000)]
    shared.flush(600)
    assert time.process_time() - begun < 1
    assert [each.get(timeout=0).offset for each in sent] == sorted(each.get(timeout=0).offset for each in sent)
    assert [each for each in values(root, "many") if each != "first"] == [str(number) for number in range(10_000)]


def test_no_program_without_the_password_uses_the_server(root: Path, shared: sparklog.Producer) -> None:
    assert shared.send("visits", b"1").get(timeout=600)
    wrong = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "own", "sasl.password": "x"}
    for settings in ({}, wrong):
        client = confluent_kafka.Producer({"bootstrap.servers": own_address(root), "log_level": 0, **settings})
        with pytest.raises(confluent_kafka.KafkaException):
            client.list_topics(timeout=3)


def own_address(root: Path) -> str:
    """The address of the server of a producer, which its command has."""
    pid = server_pid(root)
    [found] = re.findall(r"listeners=OWN_[0-9A-F]+://([0-9.:]+)", Path(f"/proc/{pid}/cmdline").read_text())
    return str(found)


@pytest.mark.slow
def test_a_server_at_the_port_of_a_dead_one_gets_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server cannot be started again, and one of another user listens at its port."""
    root = tmp_path / "log"
    with sparklog.Producer(root, delivery_timeout_ms=5_000) as producer:
        until(lambda: producer.send("visits", b"1").exception(600) is None)
        strange = command(str(tmp_path / "strange"), ("--listen", own_address(root)))
        monkeypatch.setenv("JAVA_HOME", "/nowhere")
        kill(root)
        with subprocess.Popen(strange, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout and other.stdout.readline().startswith("Serving")
            with pytest.raises(sparklog.UnknownOutcomeError, match="SEND_FAILED"):
                producer.send("visits", b"2").get(timeout=600)
            other.terminate()
    assert sparklog.Log(tmp_path / "strange").topics() == []


def test_a_failure_names_why_the_server_is_not_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "log"
    with sparklog.Producer(root, delivery_timeout_ms=3_000) as producer:
        until(lambda: producer.send("visits", b"1").exception(600) is None)  # on a busy machine the first may take longer
        with monkeypatch.context() as patch:
            patch.setenv("JAVA_HOME", "/nowhere")
            kill(root)
            with pytest.raises(sparklog.UnknownOutcomeError, match=r"SEND_FAILED.*JAVA_NEEDED"):
                producer.send("visits", b"2").get(timeout=600)
        until(lambda: producer.send("visits", b"3").exception(600) is None)


def test_close_does_not_wait_for_the_start_of_a_server(tmp_path: Path) -> None:
    """Had `close` waited for the start, the record would fail with its SERVE_START."""
    root = tmp_path / "log"
    producer = sparklog.Producer(root)
    producer.send("visits", b"1").get(timeout=600)
    kill(root)
    until(lambda: server_pid(root))
    with stopped(root):
        waiting = producer.send("visits", b"2")
        with pytest.raises(sparklog.UnknownOutcomeError, match="SEND_UNANSWERED"):
            producer.close(0.3)
        assert server_pid(root) is None
    with pytest.raises(sparklog.UnknownOutcomeError, match="SEND_FAILED") as failed:
        waiting.result(0)
    assert "SERVE_START" not in str(failed.value)


@pytest.mark.slow
def test_a_server_is_started_again_once_its_output_has_a_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with sparklog.Producer(tmp_path / "log", delivery_timeout_ms=3_000) as producer:
        until(lambda: producer.send("visits", b"1").exception(600) is None)
        with monkeypatch.context() as patch:
            patch.setattr(tempfile, "tempdir", "/nowhere")
            kill(tmp_path / "log")
            with pytest.raises(sparklog.UnknownOutcomeError, match=r"SEND_FAILED.*/nowhere"):
                producer.send("visits", b"2").get(timeout=600)
        until(lambda: producer.send("visits", b"3").exception(600) is None)


def test_an_interrupt_of_flush_loses_no_answer(shared: sparklog.Producer) -> None:
    """It comes with the answer of the first record."""

    def flush() -> None:
        sent.extend(shared.send("interrupted", b"1") for _ in range(2_000))
        sent[0].add_done_callback(lambda _: os.kill(os.getpid(), signal.SIGINT))
        shared.flush()
        until(lambda: False)

    for _ in range(5):
        sent = list[sparklog.RecordFuture]()
        with pytest.raises(KeyboardInterrupt):
            flush()
        assert all(each.get(timeout=600).offset >= 0 for each in sent)
    shared.flush(600)


def test_flush_waits_for_no_record_that_is_sent_later(shared: sparklog.Producer) -> None:
    over = threading.Event()

    def send() -> None:
        while not over.wait(0.001):
            shared.send("others", b"1")

    other = threading.Thread(target=send)
    other.start()
    try:
        for _ in range(3):
            sent = shared.send("visits", b"1")
            shared.flush(10)
            assert sent.done()
    finally:
        over.set()
        other.join()


def test_a_program_that_is_killed_leaves_no_server_and_no_file(tmp_path: Path) -> None:
    root, scratch = tmp_path / "log", tmp_path / "scratch"
    scratch.mkdir()
    environment = {**os.environ, "TMPDIR": str(scratch), "XDG_CACHE_HOME": str(scratch), "HOME": str(scratch)}
    with subprocess.Popen([sys.executable, "-c", PROGRAM, str(root)], stdout=subprocess.PIPE, text=True, env=environment) as program:
        assert program.stdout and program.stdout.readline() == "sent\n"
        assert server_pid(root)
        program.kill()
    until(lambda: server_pid(root) is None)
    assert [each.name for each in (root / "_servers").iterdir()] in (["cluster.json", "tmp"], ["tmp", "cluster.json"], ["cluster.json"])
    assert list(scratch.iterdir()) == []


def test_a_producer_that_is_forgotten_ends_its_server(tmp_path: Path) -> None:
    producer = sparklog.Producer(tmp_path / "log")
    producer.send("visits", b"1").get(timeout=600)
    del producer
    gc.collect()
    until(lambda: server_pid(tmp_path / "log") is None)


async def answer(sent: sparklog.RecordFuture) -> sparklog.RecordMetadata:
    return await asyncio.wrap_future(sent)


def test_a_forked_process_is_refused_at_once_and_does_not_disturb_its_parent(root: Path) -> None:
    """A record of the parent is under way, so that a flush would wait."""
    with sparklog.Producer(root, linger_ms=60_000) as producer:
        waiting = producer.send("visits", b"of the parent")
        child = os.fork()
        if child == 0:
            try:
                futures = (waiting.get, waiting.result, lambda: asyncio.run(answer(waiting)))
                for call in (lambda: producer.send("visits", b"1"), producer.flush, *futures):
                    with pytest.raises(sparklog.CallError, match="PRODUCER_FORKED"):
                        call()
                producer.close()
                del producer
                gc.collect()
            except BaseException:
                os._exit(2)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        producer.flush(600)
        assert waiting.get(timeout=0).offset >= 0


def test_a_forked_process_that_lives_on_does_not_keep_the_server(tmp_path: Path) -> None:
    """It ends as any program does, with its own clean-up, although it has a copy of the producer."""
    program = """
import os, signal, sys, sparklog
producer = sparklog.Producer(sys.argv[1])
child = os.fork()
if child == 0:
    signal.sigwait({signal.SIGTERM})
    sys.exit(7)
producer.close()
print("closed", flush=True)
sys.stdin.read()
os.kill(child, signal.SIGTERM)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
    blocked = f"import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\n{program}"
    with subprocess.Popen(
        [sys.executable, "-c", blocked, str(tmp_path / "log")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout and running.stdin
        assert running.stdout.readline() == "closed\n"
        assert server_pid(tmp_path / "log") is None
        running.stdin.close()
        assert running.stdout.readline() == "7\n"


def test_a_producer_goes_on_after_its_server_was_silent(tmp_path: Path) -> None:
    """A server that is stopped, and not dead, is kept. All records fail in time, and each of them is committed once or never."""
    root = tmp_path / "log"
    Topic(root, "silent", partitions=1).append([Record(b"first")], 0)
    with sparklog.Producer(root, delivery_timeout_ms=2_000) as producer:
        acknowledged, number = dict[int, str](), 0

        def outcome() -> int | None:
            """The offset of the next record; None if the record has failed."""
            nonlocal number
            value, number = str(number), number + 1
            sent = producer.send("silent", value)
            if isinstance(sent.exception(600), sparklog.UnknownOutcomeError):
                return None
            offset = sent.get(timeout=0).offset
            acknowledged[offset] = value
            return offset

        until(outcome)  # on a busy machine the first may have waited for too long
        pid = server_pid(root)
        with stopped(root):
            assert [outcome() for _ in range(3)] == [None] * 3
            flushed = [producer.send("silent", "flushed") for _ in range(3)]
            producer.flush(600)
            assert all(isinstance(each.exception(0), sparklog.UnknownOutcomeError) for each in flushed)
            with pytest.raises(sparklog.UnknownOutcomeError, match="SEND_UNANSWERED"):
                producer.send("silent", "waits").get(timeout=0.1)
        until(outcome)
        assert server_pid(root) == pid
    found = values(root, "silent")
    assert {offset: found[offset] for offset in acknowledged} == acknowledged
    assert len(set(found) - {"flushed"}) == len(found) - found.count("flushed")
    assert found.count("flushed") <= 3


def test_records_that_wait_for_a_server_are_committed_once_when_it_answers(tmp_path: Path) -> None:
    """The server is silent before the producer has its id."""
    root = tmp_path / "log"
    Topic(root, "later", partitions=1).append([Record(b"first")], 0)
    with Server(str(root)) as server, stopped(root), sparklog.Producer(bootstrap_servers=server.address) as producer:
        waiting = [producer.send("later", f"late {number}") for number in range(2)]
        time.sleep(2)
        assert not any(each.done() for each in waiting)
        os.kill(server.pid, signal.SIGCONT)
        assert [each.get(timeout=600).offset for each in waiting] == [1, 2]
    assert values(root, "later") == ["first", "late 0", "late 1"]


def test_a_record_that_the_storage_refuses_fails_with_the_reason(root: Path) -> None:
    """As at a full disk, the next commits of the topic fail, and reads go on."""
    Topic(root, "refused", partitions=1).append([Record(b"first")], 0)
    with sparklog.Producer(root, delivery_timeout_ms=4_000) as producer:
        data = root / "_partlog" / "refused" / "data"
        data.rename(data.with_name("kept"))
        data.touch()
        reason = re.compile("SEND_FAILED.*not committed.*COMMIT_FAILED")  # on a busy machine the first may fail before the server answers
        until(lambda: reason.search(str(producer.send("refused", b"1").exception(600))))


def test_a_failure_reads_no_more_than_the_end_of_the_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each record that fails looks there for a reason."""
    root, read, pread = tmp_path / "log", list[int](), os.pread

    def counted(file: int, most: int, at: int) -> bytes:
        found = pread(file, most, at)
        read.append(len(found))
        return found

    with sparklog.Producer(root, delivery_timeout_ms=2_000) as producer:
        until(lambda: producer.send("visits", b"1").exception(600) is None)
        os.truncate(f"/proc/{server_pid(root)}/fd/1", 32 << 20)
        with stopped(root), monkeypatch.context() as patch:
            patch.setattr(os, "pread", counted)
            assert isinstance(producer.send("visits", b"2").exception(600), sparklog.UnknownOutcomeError)
    assert read
    assert max(read) <= 1 << 20


def test_a_root_that_is_deleted_begins_again(tmp_path: Path) -> None:
    """The server does so for each client, and the page says so."""
    root = tmp_path / "log"
    with sparklog.Producer(root) as producer:
        producer.send("visits", b"1").get(timeout=600)
        until(lambda: shutil.rmtree(root, ignore_errors=True) or not root.exists())  # beside the heartbeats of the server
        assert producer.send("visits", b"2").get(timeout=600).offset == 0
    assert values(root, "visits") == ["2"]


def test_a_server_that_may_only_be_read_refuses_records_and_the_producer_goes_on(serve_classpath: str, tmp_path: Path) -> None:
    """librdkafka ends for good then, and the producer takes another client."""
    root = tmp_path / "log"
    Topic(root, "visits", partitions=1).append([Record(b"first")], 0)
    with RunningServer(serve_classpath, root, ("--read-only",)) as server:
        producer = sparklog.Producer(bootstrap_servers=server.address, delivery_timeout_ms=20_000)
        assert isinstance(producer.send("visits", b"1").exception(600), sparklog.SparklogError)
        until(lambda: "uthorization failed" in str(producer.send("visits", b"2").exception(600)))
        # A record that waited for its time would fail by that, with another text.
        assert all("uthorization failed" in str(producer.send("visits", b"2").exception(600)) for _ in range(3))
        address = server.address
    with RunningServer(serve_classpath, root, ("--listen", address)):
        until(lambda: producer.send("visits", b"3").exception(600) is None)
        producer.close()
    assert set(values(root, "visits")) == {"first", "3"}


def test_a_record_that_is_refused_is_surely_not_committed(root: Path, shared: sparklog.Producer) -> None:
    shared.send("strict", b"1", partition=0).get(timeout=600)
    for given in ({"partition": 99}, {"value": b"x" * (2 << 20)}, {"timestamp_ms": 4_000_000_000_000}):
        refused = shared.send("strict", **{"value": b"2", "partition": 0, **given})
        with pytest.raises(sparklog.CallError, match=r"SEND_REFUSED.*topic strict"):
            refused.get(timeout=600)
    assert values(root, "strict") == ["1"]


def test_records_that_find_no_memory_are_not_sent(tmp_path: Path) -> None:
    with sparklog.Producer(tmp_path / "log", buffer_memory=10_000, max_block_ms=200) as producer:
        producer.send("visits", b"1").get(timeout=600)
        with stopped(tmp_path / "log"):
            waiting = list[sparklog.RecordFuture]()
            with pytest.raises(sparklog.RetryError, match="SEND_FULL"):
                waiting.extend(producer.send("visits", b"x" * 1_000) for _ in range(100))
            assert 0 < len(waiting) < 100
        assert all(each.get(timeout=600).partition >= 0 for each in waiting)


def test_callbacks_may_raise_and_send_and_must_not_wait(root: Path, shared: sparklog.Producer) -> None:
    Topic(root, "called", partitions=1).append([Record(b"first")], 0)
    told, again = list[str](), list[sparklog.RecordFuture]()

    def raises(_: object) -> None:
        told.append("raised")
        raise ValueError

    def waits(_: object) -> None:
        for call in (shared.flush, shared.close, shared.send("called", b"2").get):
            with pytest.raises(sparklog.CallError, match="PRODUCER_IN_CALLBACK"):
                call()
        told.append("refused")

    def exits(_: object) -> None:
        sys.exit(1)

    sent = shared.send("called", b"1")
    for each in (raises, waits, lambda _: again.append(shared.send("called", b"3")), exits):
        sent.add_done_callback(each)
    until(lambda: again)
    again[0].get(timeout=600)
    assert told == ["raised", "refused"]
    assert values(root, "called") == ["first", "1", "2", "3"]


def test_records_that_wait_when_the_time_of_close_is_over_have_failed(tmp_path: Path) -> None:
    producer = sparklog.Producer(tmp_path / "log")
    producer.send("visits", b"1").get(timeout=600)
    pid = server_pid(tmp_path / "log")
    with stopped(tmp_path / "log"):
        waiting = producer.send("visits", b"2")
        with pytest.raises(sparklog.UnknownOutcomeError, match="SEND_UNANSWERED"):
            producer.close(0.2)
        assert isinstance(waiting.exception(0), sparklog.UnknownOutcomeError)
        assert pid and states(pid) <= {"Z", "X"}


def test_a_program_of_a_user_reads_what_it_sent(tmp_path: Path) -> None:
    words = [str(USER_PROGRAM), str(tmp_path / "log"), str(tmp_path / "offsets")]
    ran = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.returncode) == ("0\n", 0), ran.stderr


@pytest.mark.slow
def test_a_checker_of_types_finds_slips(tmp_path: Path) -> None:
    def checked(program: str) -> list[str]:
        (tmp_path / "program.py").write_text(program)
        (tmp_path / "mypy.ini").write_text("[mypy-pyarrow.*]\nignore_missing_imports = True\n")  # Arrow has no types without stubs
        environment = {**os.environ, "MYPYPATH": str(Path(sparklog.__file__).parents[1])}
        line = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "program.py"]
        said = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True).stdout
        return [each for each in said.splitlines() if each.startswith("program.py") and "error" in each]

    assert checked(USER_PROGRAM.read_text()) == []
    slips = checked(SLIPS)
    assert [line.split(":")[1] for line in slips] == ["3", "4", "5", "6", "7"], slips
    assert "linger_msx" in slips[0]
