"""The connector's log without Spark. Each process is a JVM that starts in a fraction of a second and can be stopped at any step."""

import atexit
import json
import os
import re
import subprocess
import threading
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

HALTED = 42
MERGE_BYTES = 32 << 20
"""The default of the option `merge.budget.bytes`."""
TIMEOUT_S = 300
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""For a JVM that lives for seconds: it does not gain from the second compiler, nor from the collector that Java would choose, what they
take."""


def small_jvm(classpath: str, archives: bool = False) -> list[str]:
    """The command of a JVM that lives for seconds, without its program. It uses an archive of classes, if one fits.

    With `archives` it makes the archive of this class path, when it ends.
    """
    own = _archive(classpath)
    # A class path may begin with a shorter one, and can use the archive of that.
    found = own if own.is_file() else next(iter(sorted(own.parent.glob(f"{own.name.partition('.')[0]}.*.jsa"))), own)
    archive = [f"-XX:ArchiveClassesAtExit={own}"] if archives else [f"-XX:SharedArchiveFile={found}", "-Xshare:auto"]
    return ["java", *SHORT_LIVED, *archive, "-Xlog:cds*=off", "-cp", classpath]


def _archive(classpath: str) -> Path:
    """The archive of classes lies beside the first jar."""
    jars = classpath.split(os.pathsep)
    return Path(jars[0]).with_suffix(f".{len(jars)}.jsa")


def put_into_jar(classes: Path, jar: Path) -> Path:
    """A jar of the classes of a folder. A JVM makes no archive of the classes of folders."""
    with zipfile.ZipFile(jar, "w") as out:
        for file in sorted(each for each in classes.rglob("*") if each.is_file()):
            out.write(file, file.relative_to(classes))
    return jar


def archive_classes(classpath: str, folder: Path) -> None:
    """Makes the archive of the classes that a write, a read, a merge and a warning take. It saves a third of the CPU time of a start."""
    command = [*small_jvm(classpath, archives=True), "-Dpartlog.stop=publish.log:throw"]
    write = ["append", "tag=A", "query=q", "epoch=0", "records=40", "big=10000"]
    commands = [[*words, f"root={folder}"] for words in (write, ["read"], ["merge"], ["publish"])]
    lines = "\n".join(map(json.dumps, commands))
    # A JVM that has the archive of tests/spark makes none.
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_TOOL_OPTIONS"}
    program = [*command, "io.sparklog.kit.WarmLogTool"]
    subprocess.run(program, input=lines, env=environment, capture_output=True, encoding="utf-8", timeout=TIMEOUT_S, check=True)


class _Warm:
    """A `LogTool` that stays, for commands that nothing stops: starting a JVM takes longer than most commands."""

    _all: ClassVar[dict[str, "_Warm"]] = {}

    def __init__(self, classpath: str) -> None:
        command = [*small_jvm(classpath), "io.sparklog.kit.WarmLogTool"]
        self._free = threading.Lock()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8")
        atexit.register(self._end)

    @classmethod
    def of(cls, classpath: str) -> "_Warm":
        there = cls._all.get(classpath)
        if there is None or there.process.poll() is not None:
            there = cls._all[classpath] = cls(classpath)
        return there

    def _end(self) -> None:
        with self.process:
            self.process.kill()

    def ask(self, words: list[str]) -> dict[str, Any] | None:
        """The outcome of a command: `status`, `out`, `err`. None if another thread has one at work here."""
        if not self._free.acquire(blocking=False):
            return None
        try:
            assert self.process.stdin is not None and self.process.stdout is not None
            print(json.dumps(words), file=self.process.stdin, flush=True)
            answer: dict[str, Any] = json.loads(self.process.stdout.readline() or '{"status": -1, "out": "", "err": "it was killed"}')
            return answer
        finally:
            self._free.release()


@dataclass(frozen=True)
class LogTool:
    """Runs `LogTool` of the Java tests, whose comment explains the words."""

    classpath: str
    root: Path | str
    """A folder, or the URI of a root in HDFS or S3."""
    java: tuple[str, ...] = ()
    """More arguments for the JVM."""
    prefix: tuple[str, ...] = ()
    """A command that starts it."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Those of Hadoop, for a root that is not on a disk."""
    seen_as: str | None = None
    """The root as Python takes it, where that differs."""

    def start(self, *words: object, stop: str | None = None, release: Path | None = None, **arguments: object) -> subprocess.Popen[str]:
        command = [*self.prefix, *small_jvm(self.classpath), *self.java]
        if stop:
            command.append(f"-Dpartlog.stop={stop}")
        if release:
            command.append(f"-Dpartlog.stop.release={release}")
        command += ["io.sparklog.kit.LogTool", *self._words(words, arguments)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def _words(self, words: tuple[object, ...], arguments: dict[str, object]) -> list[str]:
        named = [f"{key.replace('_', '.')}={value}" for key, value in arguments.items()]
        return [*map(str, words), f"root={self.root}", *named, *(f"{key}={value}" for key, value in self.settings.items())]

    @property
    def python_root(self) -> str:
        """The root, for `Log` and `verify`."""
        return self.seen_as or str(self.root)

    def run(self, *words: object, status: int = 0, stop: str | None = None, **arguments: object) -> list[str]:
        """The lines that it prints. It must exit with `status`."""
        ended, out, err = self.ended(*words, stop=stop, **arguments)
        assert ended == status, f"status {ended}, not {status}\n{out}\n{err}"
        return out.splitlines()

    def failure(self, *words: object, **arguments: object) -> str:
        """The errors of a command that must fail."""
        ended, out, err = self.ended(*words, **arguments)
        assert ended, out
        return err

    def outcome(self, *words: object, **arguments: object) -> list[str]:
        """As `run`, or the id of the error that ended it."""
        ended, out, err = self.ended(*words, **arguments)
        if not ended:
            return out.splitlines()
        found = re.search(r"PARTLOG_([A-Z_]+)", err)
        assert found, err
        return [found[1]]

    def ended(self, *words: object, stop: str | None = None, **arguments: object) -> tuple[int, str, str]:
        """Its status, its output and its errors. A command that may be stopped, or needs a JVM of its own, gets one."""
        alone = stop or self.java or self.prefix
        if not alone and (answer := _Warm.of(self.classpath).ask(self._words(words, arguments))):
            return answer["status"], answer["out"], answer["err"]
        process = self.start(*words, stop=stop, **arguments)
        out, err = process.communicate(timeout=TIMEOUT_S)
        return process.returncode, out, err

    def read(self, topic: str = "t") -> dict[int, list[str]]:
        """The values of each partition by offset. `LogTool` checks that offsets are dense, and every checksum."""
        partitions: dict[int, list[str]] = {}
        for line in self.run("read", topic=topic):
            word, *rest = line.split(" ")
            if word not in ("version", "none"):
                offset, value = rest
                values = partitions.setdefault(int(word), [])
                assert int(offset) == len(values), f"partition {word} has offset {offset} where {len(values)} should be"
                values.append(value)
        return partitions


@dataclass(frozen=True)
class BatchTool:
    """Runs `io.sparklog.format.BatchTool` of the Java tests, whose comment explains the words. It answers each line with one line."""

    classpath: str

    def __call__(self, mode: str, lines: list[str]) -> list[str]:
        command = [*small_jvm(self.classpath), "-Xmx512m", "io.sparklog.format.BatchTool", mode]
        done = subprocess.run(command, input="\n".join(lines), capture_output=True, encoding="utf-8", timeout=TIMEOUT_S)
        assert done.returncode == 0, done.stderr
        out = done.stdout.splitlines()
        assert len(out) == len(lines)
        return out


def commits(partitions: dict[int, list[str]]) -> dict[str, int]:
    """The number of records of each commit, from values `<tag>-<commit>:<task>:<n>`."""
    counts: dict[str, int] = {}
    for values in partitions.values():
        for value in values:
            tag = value.split(":")[0]
            counts[tag] = counts.get(tag, 0) + 1
    return counts
