"""Processes race for version files and commits on real HDFS and real S3: nothing is lost, doubled or torn, also where requests go wrong."""

import random
import re
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from audits import POOLS, Writer, audit
from handmade import seeded
from logtool import MERGE_BYTES, LogTool
from stores.faults import Fault, FaultProxy, Request
from stores.hdfs import Hdfs
from stores.roots import in_hdfs, in_s3
from stores.s3 import S3
from stores.webhdfs import WebHdfs

PROCESSES, THREADS = 3, 3
OUTCOMES = {"won", "lost", "unknown", "failed"}
FAULTS = [
    Fault("cut"),
    Fault("lose"),
    Fault("late", seconds=0.7),
    Fault("delay", seconds=0.2),
    Fault("tear"),
    *(Fault("answer", status=status) for status in (409, 412, 500, 503)),
    *(Fault("belie", status=status) for status in (409, 412, 500, 503)),
]
VERSION_FILE = re.compile(r"_partlog/t/\d{20}\.json$")
IMPATIENT = {"fs.s3a.attempts.maximum": "1", "fs.s3a.retry.limit": "1", "fs.s3a.retry.interval": "10ms"}
"""The client of S3 repeats hardly anything by itself, so that most faults are told."""
UNCLEAR_VERSIONS = {10: Fault("late", seconds=0.7), 20: Fault("cut"), 30: Fault("lose")}
"""Versions whose first puts have no answer, from whichever thread they come."""
BUSY = {"pace": 10, "merge": MERGE_BYTES, "file.delete.delay.ms": 0, "partitions": 2}
"""So that merges and clean-up happen within a few commits."""


def race(tool: LogTool, versions: int) -> list[tuple[str, str]]:
    """How each put of all threads ended: the outcome, and the put's name."""
    words = [f"root={tool.root}", f"threads={THREADS}", f"versions={versions}", *(f"{key}={value}" for key, value in tool.settings.items())]
    command = ["java", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp", tool.classpath, "io.sparklog.kit.PutTool"]
    racing = [
        subprocess.Popen([*command, f"writer={writer}", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for writer in range(PROCESSES)
    ]
    outs = [""] * PROCESSES
    try:
        for process in racing:
            assert process.stdout and process.stdout.readline() == "ready\n"

        def listen(writer: int) -> None:
            outs[writer] = racing[writer].communicate("\n", timeout=3600)[0]

        listeners = [threading.Thread(target=listen, args=(writer,)) for writer in range(PROCESSES)]
        for listener in listeners:
            listener.start()
        for listener in listeners:
            listener.join()
    finally:
        for process in racing:
            process.kill()
    assert [out.splitlines()[-1] for out in outs] == ["over"] * PROCESSES
    ends = [line.partition(" ") for out in outs for line in out.splitlines()]
    return [(outcome, put) for outcome, _, put in ends if outcome in OUTCOMES]


def java_hash(text: str) -> int:
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def owner(content: bytes) -> str:
    """The put that the content is of, which must be whole."""
    put = content.partition(b"\n")[0].decode()
    assert content == f"{put}\n".encode() * (1 + java_hash(put) % 2000), f"the content of {put} is torn"
    return put


def check(outcomes: list[tuple[str, str]], there: dict[int, str], versions: int) -> Counter[str]:
    """
    there: by version, the put whose content is there in the end, after all that came late
    Returns how many puts ended in which way; "came later" are those that were unknown.
    """
    told: dict[str, set[str]] = {}
    for outcome, put in outcomes:
        told.setdefault(put, set()).add(outcome)
    won = {put for put, each in told.items() if "won" in each}
    counts = Counter(outcome for outcome, _ in outcomes)
    doubled = [version for version, times in Counter(int(put.rpartition(".")[2]) for put in won).items() if times > 1]
    assert not doubled, f"won twice: {doubled[:5]}"
    lost = [put for put in won if there.get(int(put.rpartition(".")[2])) != put]
    assert not lost, f"won, and not there: {lost[:5]}"
    for version, put in there.items():
        assert int(put.rpartition(".")[2]) == version
        last = told[put]
        assert "lost" not in last, f"{put} was told that it lost, and is there"
        assert last & {"won", "unknown"}, f"{put} was told that it failed, and is there: {last}"
    counts["came later"] = sum("won" not in told[put] for put in there.values())
    counts["versions"] = len(there)
    assert len(there) <= versions
    return counts


def in_bucket(s3: S3, tool: LogTool) -> dict[int, str]:
    return in_folder(s3.objects / str(tool.root).removeprefix("s3a://"))


def in_folder(root: Path) -> dict[int, str]:
    return {int(file.stem): owner(file.read_bytes()) for file in (root / "_partlog" / "t").glob("*.json")}


def in_name_node(hdfs: Hdfs, tool: LogTool, versions: int) -> dict[int, str]:
    files = WebHdfs(hdfs.webhdfs)
    folder = str(tool.root).removeprefix(hdfs.uri) + "/_partlog/t"
    return {version: owner(files.read(f"{folder}/{version:020d}.json")) for version in range(versions)}


def race_alone(store: str, tool: LogTool, versions: int, found: Callable[[], dict[int, str]]) -> None:
    """A race where nothing goes wrong: each version is won by one put, and all others are told that they lost."""
    counts = check(race(tool, versions), found(), versions)
    assert counts == Counter(won=versions, lost=versions * (PROCESSES * THREADS - 1), versions=versions, **{"came later": 0}), counts
    print(f"{store}: {dict(counts)}")


def race_in_s3(s3: S3, jvm: str, versions: int) -> None:
    tool = in_s3(s3, jvm)
    race_alone("S3", tool, versions, lambda: in_bucket(s3, tool))


def race_in_hdfs(hdfs: Hdfs, jvm: str, versions: int) -> None:
    tool = in_hdfs(hdfs, jvm)
    race_alone("HDFS", tool, versions, lambda: in_name_node(hdfs, tool, versions))


def race_over_faults(s3: S3, jvm: str, proxy: FaultProxy, versions: int, seed: int) -> None:
    tool = in_s3(s3, jvm, proxy.endpoint, **IMPATIENT)
    proxy.inject_at_random(0.1, FAULTS, seed)
    for version, fault in UNCLEAR_VERSIONS.items():
        proxy.inject(fault.kind, method="PUT", key=f"_partlog/t/{version:020d}.json$", times=2 * PROCESSES * THREADS, seconds=fault.seconds)
    outcomes = race(tool, versions)
    proxy.wait_for_late()
    wrong = Counter(request.fault.kind for request in proxy.requests if request.fault)
    counts = check(outcomes, in_bucket(s3, tool), versions)
    print(f"faults, seed {seed}: {dict(counts)}; faults {dict(wrong)}")
    assert set(wrong) == {fault.kind for fault in FAULTS}
    unclear = {put for outcome, put in outcomes if outcome == "unknown"}
    assert unclear, "no put ended unknown: the run shows nothing"
    without = unclear - {put_of(request) for request in proxy.requests if is_unanswered(request)}
    assert not without, f"unknown, though each request was answered: {sorted(without)[:5]}"


def put_of(request: Request) -> str:
    """The put that a request for a version file makes; "" if it is another request."""
    content = re.search(rb"(?:^|\n)(\d\.\d\.\d+)\n", request.begins) if request.is_conditional else None
    return content[1].decode() if content else ""


def is_unanswered(request: Request) -> bool:
    """Whether the client cannot know from it what the server did: there was no answer, or one that any machine on the way can give."""
    return request.told is None or request.told >= 500


class Outage:
    """Cuts writers off in the middle of a commit: nothing that they ask is answered, until they have said how that commit ended.

    It begins with a put of a version, which gets a fault of its own; the writer cannot look.
    """

    LOOKS = (Fault("cut"), Fault("lose"))

    def __init__(self, at: Mapping[int, Fault], seed: int) -> None:
        """at: the fault of a writer's n-th put of a version, counted from 0"""
        self.writers: dict[str, Writer] = {}
        """By tag. Each has to name its tag first to the server."""
        self._at = at
        self._draw = random.Random(seed)
        self._puts: Counter[str] = Counter()
        self._now: dict[str, tuple[int, Fault]] = {}
        """By the tag of a writer that is cut off: how many errors it had told before, and the fault of its put."""
        self._lock = threading.Lock()

    def before(self, request: Request) -> None:
        tag = request.headers.get("user-agent", "").partition(",")[0]
        if tag not in self.writers:
            return
        puts = request.is_conditional and VERSION_FILE.search(request.key) is not None
        with self._lock:
            told = len(self.writers[tag].outcomes)
            since, fault = self._now.get(tag, (-1, None))
            if since == told:
                request.fault = fault if puts else self._draw.choice(self.LOOKS)
            elif puts:
                if begins := self._at.get(self._puts[tag]):
                    self._now[tag], request.fault = (told, begins), begins
                self._puts[tag] += 1


def commit_together(
    tool: LogTool, writers: int, commits: int, then: Callable[[], object] = lambda: None, named: dict[str, Writer] | None = None
) -> Counter[str]:
    """
    Writers that go on after an error. The audit requires that each was told the truth.

    then: is done when they have ended, before the audit
    named: gets the writers by their tags when they start, for a server of S3, to which each names its tag
    Returns how many commits were acknowledged, how many ended with which error, and how many of these are there
    """
    started = []
    for tag in (f"W{number}" for number in range(writers)):
        own = tool if named is None else replace(tool, settings={**tool.settings, "fs.s3a.user.agent.prefix": tag})
        started.append(Writer(own, tag, POOLS, commits, goesOn="true", **BUSY))
        if named is not None:
            named[tag] = started[-1]
    for writer in started:
        assert writer.join() == 0, writer.errors
    then()
    acknowledged = {commit: POOLS for writer in started for commit in writer.acknowledged}
    found = audit(tool, acknowledged, {writer.tag: POOLS for writer in started})
    outcomes = {commit: error for writer in started for commit, error in writer.outcomes.items()}
    assert len(acknowledged) + len(outcomes) == writers * commits
    untrue = {commit: error for commit, error in outcomes.items() if error != "COMMIT_UNKNOWN" and commit in found}
    assert not untrue, f"said to have failed, and there: {untrue}"
    longest = max(after - before for writer in started for before, after in zip(writer.at, writer.at[1:], strict=False))
    counts = Counter(error.partition(" ")[0] for error in outcomes.values())
    counts["acknowledged"], counts["there"] = len(acknowledged), sum(commit in found for commit in outcomes)
    print(f"{tool.root}: {dict(counts)}; the longest commit took {longest:.1f} s")
    return counts


def test_a_race_for_versions_in_s3(s3: S3, jvm: str) -> None:
    race_in_s3(s3, jvm, 60)


def test_a_race_for_versions_in_hdfs(hdfs: Hdfs, jvm: str) -> None:
    race_in_hdfs(hdfs, jvm, 40)


def test_a_race_for_versions_where_requests_go_wrong(s3: S3, jvm: str, fault_proxy: Callable[[str], FaultProxy]) -> None:
    race_over_faults(s3, jvm, fault_proxy(s3.endpoint), 40, 28)


in_parts = pytest.mark.parametrize("versions", [pytest.param(1_000, id=f"part{part}") for part in range(5)])
"""Together 5,000 versions. A run can take one of the parts: `-k part2`."""


@pytest.mark.soak
def test_a_long_race_for_versions_on_a_disk(java_classpath: str, tmp_path: Path) -> None:
    race_alone("local disk", LogTool(java_classpath, tmp_path), 5_000, lambda: in_folder(tmp_path))


@pytest.mark.soak
@in_parts
def test_a_long_race_for_versions_in_s3(s3: S3, jvm: str, versions: int) -> None:
    race_in_s3(s3, jvm, versions)


@pytest.mark.soak
@in_parts
def test_a_long_race_for_versions_in_hdfs(hdfs: Hdfs, jvm: str, versions: int) -> None:
    race_in_hdfs(hdfs, jvm, versions)


@pytest.mark.soak
def test_a_long_race_where_requests_go_wrong(s3: S3, jvm: str, fault_proxy: Callable[[str], FaultProxy]) -> None:
    race_over_faults(s3, jvm, fault_proxy(s3.endpoint), 1_000, seeded().randrange(1 << 32))


@pytest.mark.soak
@pytest.mark.usefixtures("settings_in_environment")
@pytest.mark.parametrize("store", ["disk", "hdfs", "s3"])
def test_four_writers_commit_together(request: pytest.FixtureRequest, jvm: str, java_classpath: str, tmp_path: Path, store: str) -> None:
    if store == "disk":
        tool = LogTool(java_classpath, tmp_path)
    elif store == "hdfs":
        tool = in_hdfs(request.getfixturevalue("hdfs"), jvm)
    else:
        tool = in_s3(request.getfixturevalue("s3"), jvm)
    assert commit_together(tool, 4, 250)["acknowledged"] == 1_000


def commit_over_faults(s3: S3, jvm: str, proxy: FaultProxy, writers: int, commits: int, seed: int, cut_off: Mapping[int, Fault]) -> None:
    """
    One request in ten goes wrong, and each writer is cut off at some of its puts, so that commits end unknown.

    cut_off: what becomes of these puts
    """
    tool = in_s3(s3, jvm, proxy.endpoint, **IMPATIENT)
    outage = Outage(cut_off, seed)
    proxy.inject_at_random(0.1, FAULTS, seed)
    proxy.before = outage.before

    def end() -> None:
        wrong = Counter(request.fault.kind for request in proxy.requests if request.fault)
        proxy.wait_for_late()
        proxy.clear()
        print(f"seed {seed}, faults {dict(wrong)}")

    counts = commit_together(tool, writers, commits, end, outage.writers)
    assert counts["COMMIT_UNKNOWN"] >= writers
    assert counts["COMMIT_UNKNOWN"] > counts["there"] > 0, "some unknown commits are there, and some are not"


UNCLEAR = (Fault("lose"), Fault("cut"), Fault("late", seconds=1), Fault("belie", status=500))


@pytest.mark.usefixtures("settings_in_environment")
def test_commits_where_requests_go_wrong(s3: S3, jvm: str, fault_proxy: Callable[[str], FaultProxy]) -> None:
    commit_over_faults(s3, jvm, fault_proxy(s3.endpoint), 2, 6, 28, {1: Fault("lose"), 3: Fault("cut"), 4: Fault("lose")})


@pytest.mark.soak
@pytest.mark.usefixtures("settings_in_environment")
def test_many_commits_where_requests_go_wrong(s3: S3, jvm: str, fault_proxy: Callable[[str], FaultProxy]) -> None:
    draw = seeded()
    cut_off = {put: draw.choice(UNCLEAR) for put in draw.sample(range(250), 8)}
    commit_over_faults(s3, jvm, fault_proxy(s3.endpoint), 4, 250, draw.randrange(1 << 32), cut_off)
