"""The connector's log without Spark. Each process is a JVM that starts in a fraction of a second and can be stopped at any step."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

HALTED = 42
MERGE_BYTES = 32 << 20
"""The default of the option `merge.budget.bytes`."""
TIMEOUT_S = 120


@dataclass(frozen=True)
class LogTool:
    """Runs `LogTool` of the Java tests, whose comment explains the words."""

    classpath: str
    root: Path
    java: tuple[str, ...] = ()
    """More arguments for the JVM."""
    prefix: tuple[str, ...] = ()
    """A command that starts it."""

    def start(self, *words: object, stop: str | None = None, release: Path | None = None, **arguments: object) -> subprocess.Popen[str]:
        command = [*self.prefix, "java", "-XX:TieredStopAtLevel=1", *self.java, "-cp", self.classpath]
        if stop:
            command.append(f"-Dpartlog.stop={stop}")
        if release:
            command.append(f"-Dpartlog.stop.release={release}")
        command += ["io.sparklog.log.LogTool", *map(str, words), f"root={self.root}"]
        command += [f"{key.replace('_', '.')}={value}" for key, value in arguments.items()]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *words: object, status: int = 0, stop: str | None = None, **arguments: object) -> list[str]:
        """The lines that it prints. It must exit with `status`."""
        process = self.start(*words, stop=stop, **arguments)
        out, err = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == status, f"status {process.returncode}, not {status}\n{out}\n{err}"
        return out.splitlines()

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
        command = ["java", "-Xmx512m", "-cp", self.classpath, "io.sparklog.format.BatchTool", mode]
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
