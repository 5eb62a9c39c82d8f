"""Where keys belong over re-routes and bindings, beside a model that keeps a copy of everything. FORMAT.md annex A."""

import random
from array import array
from pathlib import Path

import pytest
from broken_bindings import UNBOUND, Bound
from broken_reroutes import Routed
from handmade import Record, Topic, batch, draw_seed, either, records
from numbered import KEYS as NUMBERED
from numbered import Written, WrittenUnbound

from sparklog import Log
from sparklog.ondisk.root import Root
from sparklog.ondisk.routing import Past, Routing
from sparklog.ondisk.topic_log import TopicLog

KEYS = [f"key-{number}".encode() for number in range(12)] + [b"", b"\0", b"\xff" * 1024]


class Copies:
    """The slot table after each re-route; that before the first one comes first."""

    def __init__(self, routed: Routed) -> None:
        self.routed = routed
        self.kept: list[list[int]] = []
        self.keep()

    def keep(self) -> None:
        self.kept.append(list(self.routed.table))

    def bind(self, moves: dict[int, list[int]]) -> None:
        """A slot that is bound counts as if it had always been in its partition."""
        for table in self.kept:
            for partition, slots in moves.items():
                for slot in slots:
                    table[slot] = partition

    def home(self, key: bytes, number: int) -> int:
        return self.kept[number][self.routed.slot(key)]

    def donors(self, number: int) -> dict[int, set[int]]:
        """The partitions that gave slots in a re-route, by the one that took them."""
        found: dict[int, set[int]] = {}
        for before, after in zip(self.kept[number], self.kept[number + 1], strict=True):
            if before != after:
                found.setdefault(after, set()).add(before)
        return found


class History:
    """Random re-routes, bindings and deletions of records, written by hand."""

    def __init__(self, root: Path, seed: int, unbound: bool) -> None:
        self.random = random.Random(seed)
        self.topic = Topic(root, partitions=3)
        self.routed = Bound(self.topic) if unbound else Routed(self.topic)
        if isinstance(self.routed, Bound):
            self.routed.weights = [1, 1, 1]
            self.routed.begin({0: [1]})
        else:
            self.topic.commit()
            self.routed.table = [slot % 3 for slot in range(4098)]
            self.routed.weights = [1, 1, 1]
        self.copies = Copies(self.routed)
        self.cuts: list[list[int]] = []

    def act(self) -> None:
        open_ = [number for number, weight in enumerate(self.routed.weights) if weight]
        match self.random.randrange(6):
            case 0:
                self._write()
            case 1 | 2 | 3:
                self._move(open_)
            case 4 if isinstance(self.routed, Bound):
                free = [self.routed.slot(key) for key in self.random.sample(KEYS, 3)]
                free = sorted({slot for slot in free if self.routed.table[slot] == UNBOUND})
                if free:
                    moves = {self.random.choice(open_): free}
                    self.copies.bind(moves)
                    self.routed.take(self.routed.bind(moves))
            case 5:
                starts = [self.random.randint(start, end) for start, end in zip(*self._bounds(), strict=True)]
                if self.random.random() < 0.5:
                    self.topic.commit(features=self._features(), operation="delete-records", starts=starts)

    def _move(self, open_: list[int]) -> None:
        """Slots of some keys and others move; now and then a partition is added."""
        weights = [*self.routed.weights, *([1] if self.random.random() < 0.3 else [])]
        slots = {self.routed.slot(key) for key in self.random.sample(KEYS, 4)} | {self.random.randrange(4096)}
        moves: dict[int, list[int]] = {}
        for slot in sorted(slots):
            to = self.random.choice([*open_, len(weights) - 1])
            if self.routed.table[slot] not in (to, UNBOUND):
                moves.setdefault(to, []).append(slot)
        self._put(self.routed.reroute(weights, {to: moves[to] for to in sorted(moves)}))

    def _put(self, content: dict) -> None:
        content["routing"]["slots"] = len(self.routed.table)
        self.routed.put(content)
        self.cuts.append(self.routed.past[-1]["cut"])
        self.copies.keep()

    def _write(self) -> None:
        partitions = self.random.sample(range(len(self.routed.weights)), 2)
        self.topic.commit(*(self.topic.data(batch(records(3)), partition) for partition in partitions), features=self._features())

    def _features(self) -> list[dict[str, str]]:
        return self.routed.features if self.routed.epoch or isinstance(self.routed, Bound) else []

    def _bounds(self) -> tuple[list[int], list[int]]:
        return self.topic.versions[-1]["starts"], self.topic.versions[-1]["ends"]

    def check(self, root: Path) -> int:
        """Compares everything with the copies. Returns how many re-routes there are."""
        state = TopicLog(Root.at(str(root)), "t").newest()
        routing = state.routing
        if not self.cuts:
            return 0
        starts = self._bounds()[0]
        gone = 0
        while gone < len(self.cuts) and all(cut <= start for cut, start in zip(self.cuts[gone], starts, strict=False)):
            gone += 1
        assert routing and len(routing.past) == len(self.cuts) - gone
        for number in range(len(routing.past) + 1):
            assert list(routing.table_after(number)) == self.copies.kept[gone + number]
            for key in KEYS:
                assert routing.partition(self.routed.slot(key), number) == self.copies.home(key, gone + number)
        assert routing.donors() == [self.copies.donors(gone + number) for number in range(len(routing.past))]
        for key in KEYS:
            home = self.copies.home(key, -1)
            if home != UNBOUND:
                assert Log(root)["t"].partition_for(key) == home
        return len(routing.past)


@pytest.mark.parametrize("unbound", [False, True])
def test_each_key_belongs_where_a_model_says(tmp_path: Path, unbound: bool) -> None:
    seed, most = draw_seed(), 0
    for each in range(either(6, 200)):
        history = History(tmp_path / str(each), seed + each, unbound)
        for _ in range(25):
            history.act()
        most = max(most, history.check(tmp_path / str(each)))
    assert most > 5


@pytest.mark.parametrize("kind", [Written, WrittenUnbound])
def test_a_read_by_key_finds_what_a_full_read_holds(tmp_path: Path, kind: type[Written]) -> None:
    seed = draw_seed()
    for each in range(either(4, 60)):
        root = tmp_path / str(each)
        written = kind(root, seed + each)
        for _ in range(12):
            written.change_somehow()
            written.write()
        topic = Log(root)["t"]
        everything = topic.read(columns=["partition", "offset", "key"]).to_pylist()
        for key in NUMBERED:
            its = [(row["partition"], row["offset"]) for row in everything if row["key"] == key]
            found = topic.read(key=key, columns=["partition", "offset"]).to_pylist()
            assert [(row["partition"], row["offset"]) for row in found] == its
            assert {partition for partition, _ in its} <= set(topic.partitions_holding(key))
        for row in topic.recent_keys().to_pylist():
            assert row["partition"] == written.home(row["key"])


def test_segments_that_cannot_hold_a_key_that_moved_are_not_read(tmp_path: Path) -> None:
    """Their data files may even be gone: those of the partition of its slot of before, and the others before and after."""
    routed = Routed(Topic(tmp_path, partitions=2))
    home = routed.home(b"k")

    def write(has: int) -> list[Path]:
        """A segment in each partition, of which this one may have the key."""
        added = [routed.topic.data(batch([Record(b"v", b"k")]), number, name=f"p{number}-t0-0-0.log") for number in (0, 1)]
        routed.topic.commit(*added, features=routed.features if routed.epoch else [])
        return [routed.topic.data_file(len(routed.topic.versions) - 1, 1 - has)]

    gone = write(home)
    routed.put(routed.move({b"k": 1 - home}))
    gone += write(1 - home)
    routed.put(routed.move({b"k": home}))
    gone += write(home)
    for file in gone:
        file.unlink()
    topic = Log(tmp_path)["t"]
    assert topic.partitions_holding("k") == [0, 1]
    found = topic.read(key="k", columns=["partition", "offset"]).to_pylist()
    assert sorted((row["offset"], row["partition"]) for row in found) == [(0, home), (1, 1 - home), (2, home)]


def test_a_slot_that_moves_all_the_time_costs_no_more_each_time() -> None:
    """100,000 re-routes of one slot: a reader that looked at all of them for each of them would take hours."""
    first = array("H", (slot % 2 for slot in range(4096)))
    past = [Past(number, (number, number), [(number % 2, (0,))]) for number in range(1, 100_001)]
    routing = Routing(100_000, (1, 1), first, first, past)
    assert [routing.partition(0, number) for number in (0, 1, 2, 99_999, 100_000)] == [0, 1, 0, 1, 0]
    donors = routing.donors()
    assert [sum(partition in each for each in donors) for partition in (0, 1)] == [50_000, 50_000]
    assert donors[-1] == {0: {1}}
    assert routing.since((50_000, 50_000)).partition(0, 0) == 0
