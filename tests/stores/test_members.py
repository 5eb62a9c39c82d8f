"""Members of a group whose table is in S3: their heartbeats are objects beside it. Processes are killed and frozen."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from groups.member_world import Group, Process, events, got, partitions
from groups.test_member_storm import Storm, storm
from handmade import sample
from heartbeat_contract import HeartbeatContract, Make
from owners import Own, add
from stores.buckets import copied, environment, unique
from stores.faults import FaultProxy, Request, most_at_once
from stores.s3 import S3

import sparklog
from sparklog.groups import OffsetTable
from sparklog.groups.member.heartbeats import Heartbeats
from sparklog.ondisk.root import Root

DELAY_S = 0.03
SESSION_MS, HEARTBEAT_MS = 9_000, 3_000
WAIT_S = 120


def options(s3: S3, endpoint: str | None = None) -> dict[str, str]:
    """Storage options of a table, as deltalake takes them."""
    return {
        "AWS_ACCESS_KEY_ID": s3.access_key,
        "AWS_SECRET_ACCESS_KEY": s3.secret_key,
        "AWS_REGION": s3.region,
        "AWS_ENDPOINT_URL": endpoint or s3.endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_S3_ALLOW_UNSAFE_RENAME": "true",  # an option of deltalake alone
        "timeout": "120s",
    }


class TestInS3(HeartbeatContract):
    """The places on a disk and in the model of a bucket keep the same promises: `tests/groups/test_member_heartbeats.py`."""

    @pytest.fixture
    def make(self, s3: S3) -> Make:
        table = f"s3://{s3.bucket}/a b/{unique('offsets')}"
        return lambda group: Heartbeats(table, group, options(s3))

    def test_more_members_than_a_page_of_a_listing_has(self, make: Make) -> None:
        found = make("g")
        for number in range(1_001):
            found.write(f"member-{number}", 1, 1)
        assert len(found.marks()) == 1_001

    def test_what_the_options_leave_out_is_from_the_environment(self, s3: S3, make: Make, settings_in_environment: None) -> None:
        by_both = Heartbeats(make("g").table.replace("s3:", "s3a:"), "g", {"aws_allow_http": "true"})
        by_both.write("one", 1, 1)
        assert make("g").marks() == by_both.marks() != {}


def test_a_heartbeat_is_one_request_and_so_is_a_look(s3: S3, fault_proxy: Callable[[str], FaultProxy]) -> None:
    proxy = fault_proxy(s3.endpoint)
    found = Heartbeats(f"s3://{s3.bucket}/{unique('offsets')}", "g", options(s3, proxy.endpoint))

    def asked(call: Callable[[], object]) -> Counter[str]:
        proxy.clear()
        call()
        return Counter(each.kind for each in proxy.requests)

    for member in ("one", "two"):
        assert asked(lambda member=member: found.write(member, 1, 1)) == {"PUT": 1}  # type: ignore[misc]
    assert asked(found.marks) == {"LIST": 1}
    assert asked(lambda: found.called("one")) == {"HEAD": 1}
    assert asked(lambda: found.call("one")) == {"PUT": 1, "HEAD": 1}
    assert asked(found.read) == {"LIST": 1, "GET": 2}
    found.write("one", 2, 1)
    assert asked(found.read) == {"LIST": 1, "GET": 1}, "only what has changed is read again"
    assert asked(lambda: found.remove(["one", "two"])) == {"POST": 1}


def test_an_error_says_where_and_shows_no_secret(s3: S3) -> None:
    found = Heartbeats(f"s3://{s3.bucket}/offsets", "g", {**options(s3), "AWS_SECRET_ACCESS_KEY": "another-secret"})
    for call in (lambda: found.write("one", 1, 1), found.marks, lambda: found.call("one")):
        with pytest.raises(OSError, match=r"SignatureDoesNotMatch|403") as raised:
            call()
        assert not re.search("secret|Credential|Signature=", str(raised.value))
    with pytest.raises(OSError, match="the bucket does not exist"):
        Heartbeats("s3://no-such-bucket/offsets", "g", options(s3)).marks()


def test_a_table_that_was_made_again_is_another_one(s3: S3, tmp_path: Path) -> None:
    """Also where it has passed the version that a program knows."""
    table, root = f"s3://{s3.bucket}/{unique('offsets')}", sample(tmp_path / "root").root
    opened = [OffsetTable(root, table, storage_options=options(s3)) for _ in range(2)]
    before = Own(opened[0], "g", {"t": {0: 5}})
    assert [each.offset for each in opened[1].positions("g")] == [5]
    shutil.rmtree(s3.objects / table.removeprefix("s3://"))
    with pytest.raises(sparklog.RetryError, match="PARTLOG_OFFSETS_TABLE"):
        before.to({"t": {0: 6}})
    again = OffsetTable(root, table, storage_options=options(s3))
    own = Own(again, "g")
    for offset in (1, 2, 3, 4):
        for each in opened:
            for call in (lambda each=each: each.positions("g"), lambda each=each: add(each, "g", 1, {"t": {0: 9}})):
                with pytest.raises(sparklog.CallError, match="PARTLOG_OFFSETS_TABLE_REPLACED"):
                    call()
        own.to({"t": {0: offset}})
    assert [each.offset for each in OffsetTable(root, table, storage_options=options(s3)).positions("g")] == [4]


class BucketGroup(Group):
    """Members in processes of their own, with root and table in S3 behind a proxy."""

    def __init__(self, folder: Path, s3: S3, patch: pytest.MonkeyPatch, proxy: FaultProxy) -> None:
        self.s3, self.proxy = s3, proxy
        self.url = f"s3a://{s3.bucket}/{unique()}"
        super().__init__(folder, Process)
        for name, value in environment(s3, proxy.endpoint).items():
            patch.setenv(name, value)
        self.publish()
        # Not through the proxy, which is in this process: a query of deltalake lets no other thread run.
        root = Root.at(self.url, s3.filesystem())
        self.table = OffsetTable(root, f"{self.url}-offsets", storage_options=root.store.storage_options(f"{self.url}-offsets"))

    def publish(self) -> None:
        copied(self.s3, self.topic.root, self.url.removeprefix(f"s3a://{self.s3.bucket}/"))

    def append(self, count: int) -> None:
        super().append(count)
        self.publish()

    def open(self, member: Any, *, mortal: bool = False, **more: Any) -> Any:
        times = {"session_timeout_ms": SESSION_MS, "heartbeat_interval_ms": HEARTBEAT_MS} if mortal else {}
        return super().open(member, **{"root": self.url, "table": f"{self.url}-offsets", **times, **more})

    def objects(self) -> set[str]:
        """The names of the objects of heartbeats."""
        return set(self.table.generations.heartbeats("g").place.marks(""))


@pytest.fixture
def in_bucket(tmp_path: Path, s3: S3, monkeypatch: pytest.MonkeyPatch, fault_proxy: Callable[[str], FaultProxy]) -> Iterator[BucketGroup]:
    proxy = fault_proxy(s3.endpoint)
    proxy.delay_s = DELAY_S
    made = BucketGroup(tmp_path, s3, monkeypatch, proxy)
    try:
        yield made
    finally:
        made.end()


def test_three_processes_of_which_one_is_killed_and_one_is_frozen(in_bucket: BucketGroup) -> None:
    killed, frozen, lives = (in_bucket.open(each, mortal=True) for each in in_bucket.start(3))
    answers = in_bucket.until_even(killed, frozen, lives)
    answers += in_bucket.until_read(80 - sum(got(answers).values()), killed, frozen, lives)
    assert got(answers).total() == 80 and len(got(answers)) == 80, "nothing is read twice while all live"
    in_bucket.until(lambda: set(in_bucket.positions().values()) == {20}, [killed, frozen, lives])
    assert all(each.heartbeat for each in in_bucket.table.members("g"))
    assert not in_bucket.table.doctor("g", watch_s=WAIT_S).is_stuck, "it ends when it has seen a heartbeat of each"
    killed.kill()
    in_bucket.until_even(frozen, lives)
    mine = partitions(frozen.poll())
    frozen.freeze()
    in_bucket.append(5)
    answers = in_bucket.until_even(lives)
    answers += in_bucket.until_read(20 - sum(got(answers).values()), lives)
    assert got(answers).total() == 20 and len(got(answers)) == 20
    assert len([name for name in in_bucket.objects() if name.endswith(".json")]) == 1, "what the dead left is deleted"
    frozen.wake()
    first = frozen.poll()
    assert events([first], "lost") == [("t", each) for each in mine]
    assert first["got"] == {}
    in_bucket.until_even(frozen, lives)
    assert frozen.close() == lives.close() == {}
    assert in_bucket.objects() == set()
    assert set(in_bucket.positions().values()) == {25}


def test_the_requests_of_members_that_wait(in_bucket: BucketGroup) -> None:
    """One PUT for each heartbeat, and one LIST for each check of all others. No heartbeat is read."""
    members = [in_bucket.open(each, mortal=True) for each in in_bucket.start(2)]
    answers = in_bucket.until_even(*members)
    in_bucket.until_read(80 - sum(got(answers).values()), *members)
    in_bucket.until(lambda: set(in_bucket.positions().values()) == {20}, members)
    in_bucket.proxy.clear()

    def of() -> dict[str, Counter[str]]:
        found: dict[str, Counter[str]] = {"heartbeats": Counter(), "table": Counter(), "root": Counter()}
        for each in list(in_bucket.proxy.requests):
            found[where(each)][each.kind] += 1
        return found

    in_bucket.until(lambda: of()["heartbeats"]["PUT"] >= 10 * len(members), members)
    beats = of()["heartbeats"]
    print({name: dict(counts) for name, counts in of().items()}, "at once:", most_at_once(list(in_bucket.proxy.requests)))
    assert beats["GET"] == beats["POST"] == 0
    assert abs(beats["PUT"] - beats["LIST"]) <= len(members)


def where(request: Request) -> str:
    text = f"{request.key}?{request.query}"
    return "heartbeats" if ".members" in text else "table" if "-offsets" in text else "root"


class BucketStorm(Storm):
    """Root and table are in S3; each request of a member takes 30 ms. Three heartbeats make a session, as by default in a bucket."""

    beats = 3
    slack_s = 60.0
    """Others see the last heartbeat with heartbeats of their own, and each change of the group takes some seconds."""
    s3: S3
    proxy: FaultProxy

    def __init__(self, *given: Any) -> None:
        self.url = f"s3a://{self.s3.bucket}/{unique()}"
        super().__init__(*given)

    def opened(self) -> OffsetTable:
        root = Root.at(self.url, self.s3.filesystem())
        return OffsetTable(root, f"{self.url}-offsets", storage_options=root.store.storage_options(f"{self.url}-offsets"))

    def environment(self) -> dict[str, str]:
        return {**super().environment(), **environment(self.s3, self.proxy.endpoint)}

    def write(self, count: int) -> None:
        super().write(count)
        copied(self.s3, self.topic.root, self.url.removeprefix(f"s3a://{self.s3.bucket}/"))


@pytest.fixture
def in_storm(s3: S3, fault_proxy: Callable[[str], FaultProxy]) -> type[BucketStorm]:
    proxy = fault_proxy(s3.endpoint)
    proxy.delay_s = DELAY_S
    return type("InStorm", (BucketStorm,), {"s3": s3, "proxy": proxy})


def told(run: Storm) -> None:
    """Prints the requests of all members by the place that they are for."""
    assert isinstance(run, BucketStorm)
    asked = list(run.proxy.requests)
    print(dict(sorted(Counter((where(each), each.kind) for each in asked).items())), "at once:", most_at_once(asked))


@pytest.mark.soak
def test_three_processes_in_a_storm(tmp_path: Path, in_storm: type[BucketStorm]) -> None:
    told(
        storm(tmp_path, 1, processes=3, threads=1, partitions=6, kills=2, freezes=2, pause_s=4, session_s=SESSION_MS / 1000, kind=in_storm)
    )


@pytest.mark.soak
def test_twenty_processes_in_a_storm(tmp_path: Path, in_storm: type[BucketStorm]) -> None:
    told(storm(tmp_path, 2, processes=20, threads=1, partitions=40, kills=5, freezes=3, pause_s=10, session_s=45, kind=in_storm))
