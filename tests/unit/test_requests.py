"""Requests that are made at once: their order, their bounds, their failures, and the end of the process."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import pytest
from unit.far_store import FarStore

from sparklog import SparklogError
from sparklog.store.local import LocalStore
from sparklog.store.requests import Requests, requests_of
from sparklog.store.stores import open_store

WAIT_S = 120


class Gate:
    """A call that ends when it is let through. It knows the calls that began, in order."""

    def __init__(self) -> None:
        self.began: list[int] = []
        self._open: set[int] = set()
        self._change = threading.Condition()

    def ask(self, number: int) -> int:
        with self._change:
            self.began.append(number)
            self._change.notify_all()
            assert self._change.wait_for(lambda: number in self._open, WAIT_S)
        return 10 * number

    def open(self, *numbers: int) -> None:
        with self._change:
            self._open.update(numbers)
            self._change.notify_all()

    def wait_for(self, count: int) -> None:
        with self._change:
            assert self._change.wait_for(lambda: len(self.began) >= count, WAIT_S), self.began


def test_answers_come_in_the_order_of_the_questions():
    gate, requests = Gate(), Requests(4)
    opener = threading.Thread(target=lambda: (gate.wait_for(4), gate.open(3), gate.open(2), gate.open(1), gate.open(*range(20))))
    opener.start()
    assert list(requests.in_order(gate.ask, range(20))) == [10 * number for number in range(20)]
    opener.join(WAIT_S)
    assert sorted(gate.began) == list(range(20))


def test_no_more_than_the_bound_is_under_way_or_waits():
    """Memory holds a few arguments and answers, and not all 1,000."""
    gate, requests, taken = Gate(), Requests(4), []
    gate.open(*range(1000))
    answers = requests.in_order(gate.ask, (taken.append(number) or number for number in range(1000)))
    assert next(answers) == 0
    gate.wait_for(4)
    assert taken == [0, 1, 2, 3]
    assert next(answers) == 10
    assert taken == [0, 1, 2, 3, 4]
    answers.close()


@pytest.mark.parametrize("most", [1, 2, 3, 16])
def test_each_bound_gives_all_answers(most):
    requests = Requests(most)
    threads = set()
    asked = requests.in_order(lambda number: (threads.add(threading.get_ident()), number)[1], range(200))
    assert list(asked) == list(range(200))
    assert len(threads) <= most
    assert (most > 1) or threads == {threading.get_ident()}


def test_one_question_is_asked_by_the_thread_that_waits():
    assert list(Requests(16).in_order(lambda _: threading.get_ident(), [1])) == [threading.get_ident()]


def test_calls_that_no_thread_will_make_do_not_wait_for_one(monkeypatch):
    """A store of one request at once, and a process that can start no thread."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    one, none = Requests(1), Requests(16)
    assert [one.begin(abs, -number).has_thread() for number in range(3)] == [False] * 3
    monkeypatch.setattr(threading.Thread, "start", refuse)
    answers = [none.begin(abs, -number) for number in range(1000)]
    assert not any(answer.has_thread() for answer in answers)
    assert not one.are_busy() and not none.are_busy()
    assert [answer.result() for answer in answers] == list(range(1000))
    monkeypatch.undo()
    assert none.begin(abs, -1).has_thread()


def test_a_thread_that_has_yet_to_start_is_free(monkeypatch):
    """On a busy machine a thread starts late. The thread that waits need not make its call."""
    monkeypatch.setattr(threading.Thread, "start", lambda _: None)
    requests = Requests(3)
    answers = [requests.begin(abs, -number) for number in range(2)]
    assert not any(answer.waits_for_others() for answer in answers)
    answers.append(requests.begin(abs, -2))
    assert all(answer.waits_for_others() for answer in answers), "two threads, three calls"
    assert [answer.result() for answer in answers] == [0, 1, 2]


def test_a_failure_comes_in_its_turn_and_the_rest_is_left_out():
    asked = []

    def ask(number: int) -> int:
        asked.append(number)
        if number == 2:
            raise OSError("number 2 is not there")
        return number

    answers = Requests(4).in_order(ask, range(1000))
    assert [next(answers), next(answers)] == [0, 1]
    with pytest.raises(OSError, match="number 2 is not there"):
        next(answers)
    assert max(asked) < 10
    assert list(answers) == []


def test_a_call_may_ask_at_once_itself():
    """More calls than threads wait for calls of their own, three levels deep."""
    requests = Requests(3)

    def ask(depth: int) -> int:
        return sum(requests.in_order(ask, [depth - 1] * 5)) if depth else 1

    found = []
    asking = threading.Thread(target=lambda: found.append(list(requests.in_order(ask, [3] * 8))), daemon=True)
    asking.start()
    asking.join(WAIT_S)
    assert found == [[125] * 8]


def test_all_stores_of_a_process_in_one_place_share_threads(tmp_path):
    one, other = (FarStore(str(tmp_path)) for _ in range(2))
    assert requests_of(one.place, one.max_requests) is requests_of(other.place, other.max_requests)
    before = threading.active_count()
    for store in (one, other):
        assert list(store.at_once(store.look, ["a"] * 100)) == [None] * 100
    assert threading.active_count() - before <= 15
    again = pickle.loads(pickle.dumps(one))
    assert list(again.at_once(again.look, ["a"] * 20)) == [None] * 20


def test_a_disk_is_asked_one_after_another(tmp_path):
    store, asked = LocalStore(str(tmp_path)), []
    answers = store.at_once(lambda number: asked.append(number) or threading.get_ident(), range(10))
    assert asked == []
    assert next(answers) == threading.get_ident()
    assert asked == [0]


def test_requests_are_made_at_once(tmp_path):
    store = FarStore(str(tmp_path), 0.02, max_requests=8)
    assert list(store.at_once(store.look, map(str, range(64)))) == [None] * 64
    assert 1 < store.asked.most_at_once <= 8
    assert store.asked.rows() < 64


@pytest.mark.parametrize("settings", ["max_requests=3", "x=1&max_requests=3", "max_requests=3&x=1"])
def test_the_url_says_how_many_at_once(settings):
    store = open_store(f"s3a://bucket/events?{settings}")
    assert (store.max_requests, store.above().max_requests, pickle.loads(pickle.dumps(store)).max_requests) == (3, 3, 3)
    assert (store.root, store.above().root) == ("s3a://bucket/events", "s3a://bucket")
    assert store._make_client.args == ("bucket/events", settings.replace("max_requests=3", "").strip("&"))


def test_the_url_of_hdfs_says_how_many_at_once():
    store = open_store("hdfs://h:8020/data/events?webhdfs=h:1&max_requests=7")
    assert (store.max_requests, store.above().max_requests, store.root) == (7, 7, "hdfs://h:8020/data/events")
    assert open_store("hdfs://h:8020/data/events").max_requests == 16


@pytest.mark.parametrize("wrong", ["0", "-1", "", "1001", "x", "1e3", "99999999999"])
@pytest.mark.parametrize("root", ["s3a://bucket/events", "hdfs://h/events"])
def test_a_wrong_number_is_refused(root, wrong):
    with pytest.raises(SparklogError, match=r"PARTLOG_OPTION_VALUE.*max_requests.*from 1 to 1000"):
        open_store(f"{root}?max_requests={wrong}")


# ---- the process


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_fork_asks_with_threads_of_its_own():
    """Also with an iteration that it goes on with, whose calls ran in threads that were not copied, and while a lock was held."""
    gate, requests = Gate(), requests_of("a fork", 4)
    gate.open(0)
    answers = requests.in_order(gate.ask, range(8))
    assert next(answers) == 0
    gate.wait_for(4)

    def go_on() -> None:
        gate.__init__()
        gate.open(*range(100))
        assert list(answers) == [10 * number for number in range(1, 8)]
        assert list(requests.in_order(gate.ask, range(100))) == [10 * number for number in range(100)]

    held, forked = threading.Event(), threading.Event()

    def hold() -> None:
        with requests._change:
            held.set()
            assert forked.wait(WAIT_S)

    holding = threading.Thread(target=hold)
    holding.start()
    assert held.wait(WAIT_S)
    child = multiprocessing.get_context("fork").Process(target=go_on)
    child.start()
    forked.set()
    child.join(WAIT_S)
    holding.join(WAIT_S)
    assert child.exitcode == 0
    gate.open(*range(100))
    assert list(answers) == [10 * number for number in range(1, 8)]


_SCRIPT = """
import sys, threading, time
from sparklog.store.requests import requests_of
never = threading.Event()
def ask(number):
    if number == {hangs}:
        sys.stdout.write("began\\n")
        sys.stdout.flush()
        never.wait()
    return number
answers = requests_of("here", 4).in_order(ask, range(100))
sys.stdout.write("%d\\n" % next(answers))
sys.stdout.flush()
{then}
"""


def test_a_thread_that_waits_does_not_keep_the_process():
    ended = subprocess.run([sys.executable, "-c", _SCRIPT.format(hangs=2, then="")], capture_output=True, text=True, timeout=WAIT_S)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_an_interrupt_ends_a_wait():
    process = subprocess.Popen(
        [sys.executable, "-c", _SCRIPT.format(hangs=2, then="list(answers)")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert {process.stdout.readline() for _ in range(2)} == {"0\n", "began\n"}
    deadline = time.monotonic() + WAIT_S
    while process.poll() is None and time.monotonic() < deadline:  # the first may come before the wait
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
    assert "KeyboardInterrupt" in process.communicate(timeout=WAIT_S)[1]
    assert process.returncode != 0
