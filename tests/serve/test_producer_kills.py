"""The server of a `sparklog.Producer` is killed at each step of a commit. A model has the records that were acknowledged."""

import contextlib
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from serve.serving import server_pid

import sparklog

STEPS = (
    "commit.pool",
    "commit.read",
    "commit.put",
    "commit.link",
    "commit.linked",
    "commit.synced",
    "commit.look",
    "commit.done",
)
PARTITIONS = 2
WAIT_S = 600


def paused(root: Path, step: str) -> int:
    """The server of a root, when it has paused at the step of a commit."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        if pid := server_pid(root):
            with contextlib.suppress(OSError):  # it may end meanwhile
                if f"partlog: pause at {step}" in Path(f"/proc/{pid}/fd/2").read_text(encoding="utf-8"):
                    return pid
        time.sleep(0.02)
    raise TimeoutError(step)


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_server_that_is_killed_at_a_step_loses_and_doubles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """Two servers after each other are killed, each at its second commit. The third commits the rest."""
    root = tmp_path / "log"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Dpartlog.stop={step}:pause:2")
    sent, over = list[sparklog.RecordFuture](), threading.Event()
    with sparklog.Producer(root, delivery_timeout_ms=0) as producer:

        def send() -> None:
            while not over.wait(0.005):
                sent.append(producer.send("t", str(len(sent)), partition=len(sent) % PARTITIONS))

        thread = threading.Thread(target=send)
        thread.start()
        try:
            for options in (f"-Dpartlog.stop={step}:pause:2", ""):
                pid = paused(root, step)
                with pytest.raises(sparklog.UnknownOutcomeError, match="SEND_UNANSWERED"):
                    producer.flush(0)
                monkeypatch.setenv("JAVA_TOOL_OPTIONS", options)  # of the next server
                os.kill(pid, signal.SIGKILL)
        finally:
            over.set()
            thread.join()
        producer.flush(WAIT_S)
    assert server_pid(root) is None
    model = {(each.partition, each.offset): str(number) for number, each in enumerate(future.result(0) for future in sent)}
    found = sparklog.Log(root)["t"].read().to_pylist()
    assert {(each["partition"], each["offset"]): each["value"].decode() for each in found} == model
    assert len(model) == len(sent)
    for partition in range(PARTITIONS):
        numbers = [int(value) for (of, _), value in sorted(model.items()) if of == partition]
        assert numbers == sorted(numbers)
    assert sparklog.Log(root).verify().ok
