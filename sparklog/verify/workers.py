"""Processes that check parts of a root.

They are started as programs of their own, and not with multiprocessing. Multiprocessing would import the caller's main module again, and so
run a script without a `__main__` guard a second time.
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

Task = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function of a module, and its arguments. Both are pickled."""


_ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": str(1 << 28), "MALLOC_TRIM_THRESHOLD_": str(1 << 29)}
"""glibc keeps freed memory, instead of giving each array of some hundred kilobytes back. That takes a third of the time away."""


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Workers:
    """Up to `jobs` processes, which are started when they are worthwhile. A context: they end with it."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._idle: queue.SimpleQueue[subprocess.Popen[bytes]] = queue.SimpleQueue()
        self._started: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._started:
            process.kill()
        for process in self._started:
            for pipe in (process.stdin, process.stdout):
                if pipe:
                    pipe.close()
            process.wait()

    def run(self, tasks: Iterable[Task], worthwhile: bool) -> Iterator[tuple[int, Any]]:
        """The number and the result of each task, in the order in which they end. Unless processes are `worthwhile`, in this one."""
        listed = list(tasks)
        if not worthwhile:
            for number, (function, arguments) in enumerate(listed):
                yield number, function(*arguments)
            return
        while len(self._started) < min(self._jobs, len(listed)):
            self._start()
        with ThreadPoolExecutor(len(self._started)) as threads:
            futures = {threads.submit(self._ask, task): number for number, task in enumerate(listed)}
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            except BaseException:
                for future in futures:
                    future.cancel()
                for process in self._started:
                    process.kill()
                raise

    def _start(self) -> None:
        # The same modules as here, wherever they were found.
        paths = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
        process = subprocess.Popen(
            [sys.executable, "-c", "from sparklog.verify.workers import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **_ALLOCATOR, "PYTHONPATH": paths},
        )
        self._started.append(process)
        self._idle.put(process)

    def _ask(self, task: Task) -> Any:
        process = self._idle.get()
        assert process.stdin and process.stdout
        try:
            pickle.dump(task, process.stdin)
            process.stdin.flush()
            done, result = pickle.load(process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            raise RuntimeError(f"a process that checks a part of the root ended with status {process.wait()}") from None
        finally:
            self._idle.put(process)
        if not done:
            raise result
        return result


def main() -> None:
    """Answers tasks until there are no more."""
    answers = os.fdopen(os.dup(1), "wb")
    # Output that a library prints must not come between answers.
    os.dup2(2, 1)
    while True:
        try:
            function, arguments = pickle.load(sys.stdin.buffer)
        except (EOFError, KeyboardInterrupt):
            return
        try:
            answer = (True, function(*arguments))
        except KeyboardInterrupt:
            return
        except Exception as error:
            answer = (False, error)
        pickle.dump(answer, answers)
        answers.flush()
