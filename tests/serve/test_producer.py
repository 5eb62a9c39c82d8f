"""`sparklog.Producer`: it starts a server for a root, shares it with other programs, and sends records with kafka-python's calls."""

import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from handmade import Record, Topic
from kafka.admin import KafkaAdminClient
from kafka.errors import IllegalStateError, KafkaTimeoutError
from serve.clients import assert_refused
from serve.serving import end_shared_servers

import sparklog
from sparklog.serve import shared
from sparklog.serve.process import Server
from sparklog.serve.shared import SharedServer, delete_old

PROGRAM = """
import json, sys, sparklog
with sparklog.Producer(sys.argv[1]) as producer:
    sent = [producer.send("visits", key=b"ann", value=str(n).encode()) for n in range(int(sys.argv[2]))]
    print(json.dumps([each.get(timeout=60).offset for each in sent]), producer._server.address)
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache of the test alone. Servers that are left are ended."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder
    end_shared_servers(folder)


@pytest.fixture(scope="module")
def root(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("log") / "my-log"
    Topic(root, "visits", partitions=2).append([Record(b"0", b"ann")], 0)
    return root


def states(pid: int) -> set[str]:
    """The states of the threads of a process, as Linux names them by a letter; none if the process is gone."""
    found = set()
    for thread in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found.add(thread.read_text().rpartition(") ")[2][0])
    return found


def stop(pid: int) -> None:
    """Stops a process. On a busy machine, its threads run on for a moment after the signal."""
    os.kill(pid, signal.SIGSTOP)
    until(lambda: states(pid) == {"T"})


def kill(pid: int) -> None:
    """Kills a process. On a busy machine, its address is taken for a moment after the signal."""
    os.kill(pid, signal.SIGKILL)
    until(lambda: states(pid) <= {"Z", "X"})


def program(root: Path, records: int) -> tuple[list[int], str]:
    command = [sys.executable, "-c", PROGRAM, str(root), str(records)]
    offsets, _, address = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().rpartition(" ")
    return json.loads(offsets), address


def test_records_are_in_the_topic_when_their_futures_are_done(root: Path) -> None:
    with sparklog.Producer(root, compression_type="zstd") as producer:
        assert producer.partitions_for("visits") == {0, 1}
        sent = producer.send("visits", value=b"1", key=b"bob", headers=[("page", b"home")], timestamp_ms=1_700_000_000_000).get(timeout=60)
        found = [each for each in sparklog.Log(root)["visits"].read(partition=sent.partition).to_pylist() if each["offset"] == sent.offset]
        assert [(each["key"], each["value"], each["headers"]) for each in found] == [(b"bob", b"1", [{"key": "page", "value": b"home"}])]
        assert sparklog.partition_for(b"bob", 2, "murmur2") == sent.partition
        producer.flush(60)
        assert producer.metrics()
    producer.close()  # a second time does nothing


def test_programs_share_a_server_which_lives_on(root: Path) -> None:
    first, address = program(root, 3)
    second, again = program(root, 2)
    assert again == address
    assert second == [first[-1] + 1, first[-1] + 2]
    with SharedServer(str(root)) as server:
        assert server.address == address


def test_a_server_that_was_killed_is_started_again(root: Path, cache: Path) -> None:
    with SharedServer(str(root)) as server:
        before = server.address
    [note] = cache.glob("sparklog/servers/*.pid")
    kill(int(note.read_text()))
    offsets, address = program(root, 1)
    assert address == before
    assert len(offsets) == 1


def test_an_address_is_used_as_it_is(root: Path, tmp_path: Path) -> None:
    with Server(str(root), tmp_path / "log") as server, sparklog.Producer(server.address) as producer:
        assert producer.send("visits", b"x").get(timeout=60).offset >= 0
        assert producer._server is None


def test_no_program_without_the_password_uses_the_server(root: Path, cache: Path) -> None:
    with SharedServer(str(root)) as server:
        for wrong in ({}, {**server.settings, "sasl_plain_password": "x" * 43}):
            settings: dict[str, Any] = {"bootstrap_servers": server.address, "bootstrap_timeout_ms": 5_000, **wrong}
            assert_refused(lambda settings=settings: KafkaAdminClient(**settings))
    assert {each.stat().st_mode & 0o077 for each in cache.glob("sparklog/servers/*.password")} == {0}


@pytest.mark.parametrize("number_is_used_again", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_server_at_the_port_of_a_dead_one_gets_no_record(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, number_is_used_again: bool
) -> None:
    """The port of a server that died has a server of another user, and its process number may be used again too."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with SharedServer(str(root)) as server:
        address = server.address
    [note] = tmp_path.glob("sparklog/servers/*.pid")
    kill(int(note.read_text()))
    with Server(str(tmp_path / "strange"), tmp_path / "log", ("--listen", address)):
        if number_is_used_again:
            note.write_text(str(os.getpid()))
            assert_refused(lambda: sparklog.Producer(root, bootstrap_timeout_ms=5_000))
        else:
            with sparklog.Producer(root) as producer:
                assert producer.send("visits", b"1").get(timeout=60).offset >= 0
            os.kill(int(note.read_text()), signal.SIGTERM)
    assert sparklog.Log(tmp_path / "strange").topics() == []


def test_a_folder_of_servers_that_others_can_write_is_refused(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "sparklog" / "servers").mkdir(parents=True)
    (tmp_path / "sparklog" / "servers").chmod(0o777)
    with pytest.raises(sparklog.CallError, match=r"SERVE_FOLDER.*others can write"):
        sparklog.Producer(root)


def test_the_first_record_makes_the_root_and_the_topic(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the locale, as of a container, has no letter of the root's name."""
    monkeypatch.setenv("LC_ALL", "C")
    root = tmp_path / "Grüße 100% #1"
    with sparklog.Producer(root) as producer:
        assert producer.send("visits", b"1", key=b"ann").get(timeout=60).offset == 0
    assert sparklog.Log(root)["visits"].read().num_rows == 1


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def pid_of_the_server(cache: Path, producer: sparklog.Producer) -> int:
    assert producer._server
    [note] = [each for each in cache.glob("sparklog/servers/*.address") if each.read_text() == producer._server.address]
    return int(note.with_suffix(".pid").read_text())


def values(root: Path, topic: str) -> list[str]:
    return [each.decode() for each in sparklog.Log(root)[topic].read()["value"].to_pylist()]


def test_a_producer_outlives_its_servers(root: Path, cache: Path) -> None:
    """Two threads send while the server is killed three times. kafka-python sends again what was not acknowledged."""
    Topic(root, "lives", partitions=1).append([Record(b"first")], 0)
    with sparklog.Producer(root) as producer:
        producer.send("lives", b"second").get(timeout=60)
        over, sent = threading.Event(), dict[str, Any]()

        def send(thread: int) -> None:
            number = 0
            while not over.wait(0.01):
                value = f"{thread}:{number:05d}"
                sent[value] = producer.send("lives", value.encode(), partition=0)
                number += 1

        threads = [threading.Thread(target=send, args=(number,)) for number in range(2)]
        for each in threads:
            each.start()
        for _ in range(3):
            done = len(sent)
            while not any(each.is_done for each in list(sent.values())[done:]):
                time.sleep(0.05)
            os.kill(pid_of_the_server(cache, producer), signal.SIGKILL)
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


def test_a_server_that_says_nothing_is_kept(root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "_CONNECT_S", 0.2)
    with sparklog.Producer(root) as producer:
        pid = pid_of_the_server(cache, producer)
        time.sleep(1)
        assert producer._server and producer._server._use.connection is not None
        producer.send("visits", b"1").get(timeout=60)
        assert pid_of_the_server(cache, producer) == pid


def test_a_forked_process_is_refused_at_once_and_does_not_disturb_its_parent(root: Path, cache: Path) -> None:
    """A record of the parent is under way, so that a flush would wait."""
    with sparklog.Producer(root, linger_ms=60_000) as producer:
        server, waiting = producer._server, producer.send("visits", b"of the parent")
        assert server
        connection, child = server._use.connection, os.fork()
        if child == 0:
            try:
                for call in (lambda: producer.send("visits", b"1"), producer.flush, lambda: producer.partitions_for("visits")):
                    with pytest.raises(sparklog.CallError, match="PRODUCER_FORKED"):
                        call()
                producer.close()
                assert connection.fileno() == -1  # otherwise the server would run for as long as this process
                assert producer._producer._cleanup is None  # otherwise it would flush at its end
            except BaseException:
                os._exit(2)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        time.sleep(0.2)
        assert server._use.connection is connection
        producer.flush(60)
        assert waiting.get(timeout=0).offset >= 0


@pytest.mark.slow
def test_records_that_wait_in_a_flush_fail_when_the_server_gets_another_address(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No call follows the server: the thread that watches it does."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(shared, "_STEADY_S", 0)
    with sparklog.Producer(root) as producer:
        producer.send("visits", b"1").get(timeout=60)
        assert producer._server
        pid = pid_of_the_server(tmp_path, producer)
        monkeypatch.setattr(shared, "_is_free", lambda address: False)
        stop(pid)
        waiting = producer.send("visits", b"2")
        os.kill(pid, signal.SIGKILL)
        producer.flush(60)
        with pytest.raises(IllegalStateError):
            waiting.get(timeout=0)
        assert producer.send("visits", b"3").get(timeout=60).offset >= 0
        os.kill(pid_of_the_server(tmp_path, producer), signal.SIGTERM)


def test_a_producer_leaves_an_address_that_another_program_has_taken(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(shared, "_STEADY_S", 600)  # so that the next call starts the server again, and no other thread does
    monkeypatch.setattr(shared, "_PAUSE_S", 600)
    Topic(root, "taken", partitions=1).append([Record(b"first")], 0)
    with sparklog.Producer(root) as producer:
        producer.send("taken", b"1").get(timeout=60)
        address, pid = producer._server.address, pid_of_the_server(tmp_path, producer)
        stop(pid)
        waiting = producer.send("taken", b"2")
        with pytest.raises(KafkaTimeoutError):
            waiting.get(timeout=0.5)
        os.kill(pid, signal.SIGKILL)
        while producer._server._use.connection is not None:
            time.sleep(0.01)
        assert shared._is_free(address)  # after a moment: a dying server closes its connections first
        host, _, port = address.rpartition(":")
        with socket.create_server((host, int(port))):
            last = producer.send("taken", b"3").get(timeout=60).offset
        with pytest.raises(IllegalStateError):
            waiting.get(timeout=0)
        assert producer._server.address != address
    assert values(root, "taken") == ["first", "1", "3"]
    assert last == 2
    os.kill(pid_of_the_server(tmp_path, producer), signal.SIGTERM)


def test_a_producer_goes_on_after_its_server_was_silent_for_longer_than_records_may_take(root: Path, cache: Path) -> None:
    """A server that is stopped, and not dead, is kept: its address is not free. All records fail in time, and not the first alone."""
    Topic(root, "silent", partitions=1).append([Record(b"first")], 0)
    with sparklog.Producer(root) as patient:
        assert patient.send("silent", b"1").get(timeout=120).offset == 1
        producer = sparklog.Producer(root, request_timeout_ms=500, delivery_timeout_ms=1_500)
        acknowledged, number = {1: "1"}, 2

        def outcome() -> int | None:
            """The offset of the next record; None if the record has failed."""
            nonlocal number
            value, number = str(number), number + 1
            sent = producer.send("silent", value.encode())
            until(lambda: sent.is_done)  # A `get` that waits for too long raises the error of a record that has failed.
            try:
                offset: int = sent.get(timeout=0).offset
            except KafkaTimeoutError:
                return None
            acknowledged[offset] = value
            return offset

        until(outcome)  # On a busy machine the first may have waited for too long.
        pid = pid_of_the_server(cache, producer)
        stop(pid)
        try:
            assert [outcome() for _ in range(3)] == [None] * 3
            flushed = [producer.send("silent", b"flushed") for _ in range(3)]
            producer.flush(120)
            for each in flushed:
                assert each.is_done
                with pytest.raises(KafkaTimeoutError):
                    each.get(timeout=0)
        finally:
            os.kill(pid, signal.SIGCONT)
        until(outcome)
        assert pid_of_the_server(cache, producer) == pid
        producer.close(120)
    found = values(root, "silent")
    assert {offset: found[offset] for offset in acknowledged} == acknowledged
    assert len(set(found) - {"flushed"}) == len(found) - found.count("flushed")
    assert found.count("flushed") <= 3


def test_records_that_wait_for_a_producer_id_are_committed_once_when_the_server_answers(root: Path, cache: Path) -> None:
    Topic(root, "later", partitions=1).append([Record(b"first")], 0)
    with sparklog.Producer(root, request_timeout_ms=500, delivery_timeout_ms=1_500) as producer:
        until(lambda: producer.partitions_for("later"))
        inner, numbers = producer._producer, itertools.count()
        pid = pid_of_the_server(cache, producer)
        stop(pid)
        try:
            while inner._transaction_manager.has_producer_id():  # until a record has failed after its request
                producer.send("later", f"early {next(numbers)}".encode())
                time.sleep(0.05)
            inner._accumulator.config["delivery_timeout_ms"] = 120_000
            waiting = [producer.send("later", f"late {number}".encode()) for number in range(2)]
            time.sleep(2)
            assert not any(each.is_done for each in waiting)
        finally:
            os.kill(pid, signal.SIGCONT)
        offsets = [each.get(timeout=120).offset for each in waiting]
    found = values(root, "later")
    assert [found[offset] for offset in offsets] == ["late 0", "late 1"]
    assert len(set(found)) == len(found)


def test_a_producer_goes_on_after_its_server_was_silent_when_it_was_asked_for_a_producer_id(root: Path, cache: Path) -> None:
    with sparklog.Producer(root, request_timeout_ms=500, delivery_timeout_ms=1_500) as producer:
        until(lambda: producer.partitions_for("visits") and producer._producer._transaction_manager.has_producer_id())
        pid = pid_of_the_server(cache, producer)
        stop(pid)
        try:
            producer._producer._transaction_manager.reset_producer_id()
            failed = producer.send("visits", b"1")
            producer.flush(120)
            with pytest.raises(KafkaTimeoutError):
                failed.get(timeout=0)
        finally:
            os.kill(pid, signal.SIGCONT)
        producer._producer._accumulator.config["delivery_timeout_ms"] = 120_000
        assert producer.send("visits", b"2").get(timeout=120).offset >= 0


def break_storage(root: Path, topic: str) -> None:
    """As a full disk does, the next commits of the topic fail, and reads go on."""
    data = root / "_partlog" / topic / "data"
    data.rename(data.with_name("kept"))
    data.touch()


def test_a_record_that_the_storage_refuses_fails_with_the_answer_of_the_server(root: Path) -> None:
    Topic(root, "refused", partitions=1).append([Record(b"first")], 0)
    with sparklog.Producer(root, request_timeout_ms=1_000, delivery_timeout_ms=3_000) as producer:
        until(lambda: producer.partitions_for("refused"))
        break_storage(root, "refused")
        failed = producer.send("refused", b"1")
        producer.flush(120)
        with pytest.raises(KafkaTimeoutError, match=r"The last answer of the server: \[Error 56\] KafkaStorageError"):
            failed.get(timeout=0)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"bootstrap_servers": "prod.example:9092"}, "`bootstrap_servers` .*first argument"),
        ({"transactional_id": "t"}, "`transactional_id` .*no transactions"),
        ({"sasl_plain_password": "secret"}, "`sasl_plain_password` .*leave it out"),
    ],
)
def test_an_argument_without_effect_is_refused(tmp_path: Path, settings: dict[str, str], told: str) -> None:
    with pytest.raises(TypeError, match=told) as refused:
        sparklog.Producer(root=tmp_path / "log", **settings)
    assert "secret" not in str(refused.value)
    with pytest.raises(TypeError, match="`root` is of type dict") as refused:
        sparklog.Producer({"sasl.password": "secret"})  # type: ignore[arg-type]
    assert "secret" not in str(refused.value)


def test_a_topic_that_no_client_may_write_is_refused_at_once(root: Path) -> None:
    with sparklog.Producer(root) as producer:
        with pytest.raises(sparklog.CallError, match="servers alone write the positions"):
            producer.send("__consumer_offsets", b"1")
        with pytest.raises(sparklog.CallError, match="TOPIC_NAME_ILLEGAL"):
            producer.send("no topic", b"1")
        with pytest.raises(TypeError, match="`topic` is 5"):
            producer.send(5, b"1")  # type: ignore[arg-type]


def test_a_root_whose_name_java_cannot_open_is_refused(tmp_path: Path) -> None:
    with pytest.raises(sparklog.CallError, match=r"root.*log\\xff.*UTF-8"):
        sparklog.Producer(tmp_path / os.fsdecode(b"log\xff"))


def test_callbacks_may_raise_and_send_and_close(root: Path) -> None:
    Topic(root, "called", partitions=1).append([Record(b"first")], 0)
    told = list[str]()

    def raises(_: object) -> None:
        told.append("raised")
        raise ValueError

    def flushes(_: object) -> None:
        with pytest.raises(sparklog.CallError, match="PRODUCER_IN_CALLBACK"):
            producer.flush()
        told.append("flushed")

    def closes(_: object) -> None:
        producer.send("called", b"2")
        producer.close()
        told.append("closed")

    producer = sparklog.Producer(root, linger_ms=200)
    sent = producer.send("called", b"1")
    for each in (raises, flushes, closes):
        sent.add_callback(each)
    until = time.monotonic() + 120
    while values(root, "called") != ["first", "1", "2"]:
        assert time.monotonic() < until, values(root, "called")
        time.sleep(0.1)
    assert told == ["raised", "flushed", "closed"]
    producer.close()
    with pytest.raises(IllegalStateError):
        producer.send("called", b"3")


def test_records_that_wait_when_the_time_of_close_is_over_have_failed(root: Path, cache: Path) -> None:
    producer = sparklog.Producer(root)
    producer.send("visits", b"1").get(timeout=60)
    pid = pid_of_the_server(cache, producer)
    stop(pid)
    try:
        waiting = producer.send("visits", b"2")
        with pytest.raises(KafkaTimeoutError):
            producer.close(0.2)
        with pytest.raises(IllegalStateError):
            waiting.get(timeout=0)
    finally:
        os.kill(pid, signal.SIGCONT)


def test_files_of_servers_that_are_gone_are_deleted(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    for name, pid, age in (("old", ended.pid, 100_000), ("runs", os.getpid(), 100_000), ("new", ended.pid, 1_000)):
        for kind in ("address", "lock", "log", "password"):
            (tmp_path / f"{name}.{kind}").touch()
        (tmp_path / f"{name}.pid").write_text(str(pid))
        os.utime(tmp_path / f"{name}.lock", (time.time() - age,) * 2)
    delete_old(tmp_path)
    assert {each.stem for each in tmp_path.iterdir()} == {"runs", "new"}
    assert len(list(tmp_path.iterdir())) == 10
