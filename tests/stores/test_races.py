"""Processes race for version files and commits on real HDFS and real S3: nothing is lost, doubled or torn, also where requests go wrong."""

import subprocess
import threading
from collections import Counter
from collections.abc import Callable

import pytest
from audits import POOLS, Writer, audit
from handmade import seeded
from logtool import MERGE_BYTES, LogTool
from stores.faults import Fault, FaultProxy
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
    folder = s3.objects / str(tool.root).removeprefix("s3a://") / "_partlog" / "t"
    return {int(file.stem): owner(file.read_bytes()) for file in folder.glob("*.json")}


def in_name_node(hdfs: Hdfs, tool: LogTool, versions: int) -> dict[int, str]:
    files = WebHdfs(hdfs.webhdfs)
    folder = str(tool.root).removeprefix(hdfs.uri) + "/_partlog/t"
    return {version: owner(files.read(f"{folder}/{version:020d}.json")) for version in range(versions)}


def race_in_s3(s3: S3, jvm: str, versions: int) -> None:
    tool = in_s3(s3, jvm)
    counts = check(race(tool, versions), in_bucket(s3, tool), versions)
    assert (counts["won"], counts["lost"]) == (versions, versions * (PROCESSES * THREADS - 1)), counts
    print(f"S3: {dict(counts)}")


def race_in_hdfs(hdfs: Hdfs, jvm: str, versions: int) -> None:
    tool = in_hdfs(hdfs, jvm)
    counts = check(race(tool, versions), in_name_node(hdfs, tool, versions), versions)
    assert (counts["won"], counts["lost"]) == (versions, versions * (PROCESSES * THREADS - 1)), counts
    print(f"HDFS: {dict(counts)}")


def race_over_faults(s3: S3, jvm: str, proxy: FaultProxy, versions: int, seed: int) -> Counter[str]:
    """The client of S3 repeats nothing by itself, so that each fault is told."""
    tool = in_s3(s3, jvm, proxy.endpoint, **{"fs.s3a.attempts.maximum": "1", "fs.s3a.retry.limit": "1", "fs.s3a.retry.interval": "10ms"})
    proxy.inject_at_random(0.1, FAULTS, seed)
    outcomes = race(tool, versions)
    wrong = Counter(request.fault.kind for request in proxy.requests if request.fault)
    proxy.wait_for_late()
    counts = check(outcomes, in_bucket(s3, tool), versions)
    print(f"faults, seed {seed}: {dict(counts)}; faults {dict(wrong)}")
    assert set(wrong) == {fault.kind for fault in FAULTS}
    return counts


def commit_together(tool: LogTool, writers: int, commits: int, then: Callable[[], object] = lambda: None) -> list[Writer]:
    """
    Writers that go on after an error. The audit requires that each was told the truth.

    then: is done when they have ended, before the audit
    """
    started = [Writer(tool, f"W{number}", POOLS, commits, goesOn="true", **BUSY) for number in range(writers)]
    for writer in started:
        assert writer.join() == 0, writer.errors
    then()
    acknowledged = {commit: POOLS for writer in started for commit in writer.acknowledged}
    found = audit(tool, acknowledged, {writer.tag: POOLS for writer in started})
    outcomes = {commit: error for writer in started for commit, error in writer.outcomes.items()}
    assert len(acknowledged) + len(outcomes) == writers * commits
    untrue = {commit: error for commit, error in outcomes.items() if error != "COMMIT_UNKNOWN" and commit in found}
    assert not untrue, f"said to have failed, and there: {untrue}"
    later = sum(commit in found for commit in outcomes)
    longest = max(after - before for writer in started for before, after in zip(writer.at, writer.at[1:], strict=False))
    ends = dict(Counter(error.partition(" ")[0] for error in outcomes.values()))
    print(f"{tool.root}: {len(acknowledged)} acknowledged, errors {ends}, {later} of them there; the longest commit took {longest:.1f} s")
    return started


def test_a_race_for_versions_in_s3(s3: S3, jvm: str) -> None:
    race_in_s3(s3, jvm, 60)


def test_a_race_for_versions_in_hdfs(hdfs: Hdfs, jvm: str) -> None:
    race_in_hdfs(hdfs, jvm, 40)


def test_a_race_for_versions_where_requests_go_wrong(s3: S3, jvm: str, fault_proxy: Callable[[str], FaultProxy]) -> None:
    race_over_faults(s3, jvm, fault_proxy(s3.endpoint), 40, 28)


@pytest.mark.soak
def test_a_long_race_for_versions_in_s3(s3: S3, jvm: str) -> None:
    race_in_s3(s3, jvm, 5_000)


@pytest.mark.soak
def test_a_long_race_for_versions_in_hdfs(hdfs: Hdfs, jvm: str) -> None:
    race_in_hdfs(hdfs, jvm, 5_000)


@pytest.mark.soak
def test_a_long_race_where_requests_go_wrong(s3: S3, jvm: str, fault_proxy: Callable[[str], FaultProxy]) -> None:
    counts = race_over_faults(s3, jvm, fault_proxy(s3.endpoint), 1_000, seeded().randrange(1 << 32))
    assert counts["unknown"] > counts["came later"] > 0, "some unknown puts come later, and some never"


@pytest.mark.soak
@pytest.mark.usefixtures("settings_in_environment")
@pytest.mark.parametrize("store", ["hdfs", "s3"])
def test_four_writers_commit_together(request: pytest.FixtureRequest, jvm: str, store: str) -> None:
    server = request.getfixturevalue(store)
    tool = in_hdfs(server, jvm) if store == "hdfs" else in_s3(server, jvm)
    assert not any(writer.outcomes for writer in commit_together(tool, 4, 250))


def commit_over_faults(s3: S3, jvm: str, proxy: FaultProxy, writers: int, commits: int, seed: int) -> None:
    tool = in_s3(s3, jvm, proxy.endpoint, **{"fs.s3a.attempts.maximum": "2", "fs.s3a.retry.limit": "2", "fs.s3a.retry.interval": "50ms"})
    proxy.inject_at_random(0.1, FAULTS, seed)

    def end() -> None:
        wrong = Counter(request.fault.kind for request in proxy.requests if request.fault)
        proxy.wait_for_late()
        proxy.clear()
        print(f"seed {seed}, faults {dict(wrong)}")

    assert any(writer.acknowledged for writer in commit_together(tool, writers, commits, end))


@pytest.mark.usefixtures("settings_in_environment")
def test_commits_where_requests_go_wrong(s3: S3, jvm: str, fault_proxy: Callable[[str], FaultProxy]) -> None:
    commit_over_faults(s3, jvm, fault_proxy(s3.endpoint), 2, 6, 28)


@pytest.mark.soak
@pytest.mark.usefixtures("settings_in_environment")
def test_many_commits_where_requests_go_wrong(s3: S3, jvm: str, fault_proxy: Callable[[str], FaultProxy]) -> None:
    commit_over_faults(s3, jvm, fault_proxy(s3.endpoint), 4, 250, seeded().randrange(1 << 32))
