"""Refreshes of a group that read on from an earlier one: they find the rows that a query over all rows finds, and open only new files."""

import dataclasses
import datetime
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from groups.programs import count_refreshes
from handmade import Topic, batch, draw_seed, records
from owners import Own, add, commits

from sparklog.groups import OffsetTable, rows
from sparklog.groups.rows import Group
from sparklog.groups.table import lake

GROUPS = ("g", "it's")
CHANGES = rows.SCHEMA.append(pa.field("_change_type", pa.string()))
AT_ONCE = {"delta.logRetentionDuration": "interval 0 seconds", "delta.deletedFileRetentionDuration": "interval 0 seconds"}


class World:
    """Two groups in one table, to which owners, members and operators commit at random while others maintain it.

    Each of them has the table open all the time. `fault` says where one of them sees another group than a program that opens it now.
    """

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random.Random(seed)
        self.path, root = folder / "offsets", folder / "root"
        for name in ("t", "u"):
            topic = Topic(root, name, partitions=3)
            topic.commit(*(topic.data(batch(records(99)), number) for number in range(3)))
        self.tables = [OffsetTable(root, self.path) for _ in range(3)]
        self.refreshes: Counter[bool] = Counter()
        for table in self.tables:
            count_refreshes(table, self.refreshes)
        for group in GROUPS:
            Own(self.table, group, {"t": {0: 1}})

    @property
    def table(self) -> OffsetTable:
        return self.random.choice(self.tables)

    @property
    def group(self) -> str:
        return self.random.choice(GROUPS)

    def run(self, steps: int) -> str | None:
        """Acts and refreshes so often; the first refresh that saw another group than there is."""
        acts, weights = zip(*self._acts().items(), strict=True)
        for number in range(steps):
            act = self.random.choices(acts, weights)[0]
            act()
            if self.random.random() < 0.5:
                name = self.group
                found, there = _seen(self.table, name), _seen(OffsetTable(None, self.path), name)
                if found != there:
                    return f"step {number}, {act.__name__}: {found}, not {there}"
        return None

    def _acts(self) -> dict[Callable[[], object], float]:
        return {
            self._member_commits: 10,
            self._owner_commits: 4,
            self._begins: 2,
            self._resets: 2,
            self._ends: 1,
            self._deletes: 0.5,
            self._drops: 0.5,
            self._compacts: 1,
            self._cleans: 0.5,
            self._vacuums: 0.5,
            self._maintains: 0.5,
            self._removes_rows: 0.5,
        }

    def _offsets(self, up_to: int = 99) -> dict[str, dict[int, int]]:
        return {self.random.choice("tu"): {number: self.random.randrange(up_to) for number in self.random.sample(range(3), 2)}}

    def _member_commits(self) -> None:
        generations, name, member = self.table.generations, self.group, f"m{self.random.randrange(4)}"
        group = generations.group(name)
        placed = self.tables[0].topics.rows(name, commits(self.tables[0].topics, self._offsets()))
        # Its clock is wrong, and two members say something of one offset.
        early = [dataclasses.replace(each, committed_at=each.committed_at - _minutes(self.random), metadata=member) for each in placed]
        assert generations.commit_of_member(
            name, generations.last(name), max(group.generation, 1), early, member, generations.version(member)
        )

    def _owner_commits(self) -> None:
        table, name = self.table, self.group
        if generation := table.generations.group(name).generation:
            add(table, name, generation, self._offsets())

    def _begins(self) -> None:
        Own(self.table, self.group, self._offsets() if self.random.random() < 0.5 else None)

    def _resets(self) -> None:
        table, name = self.table, self.group
        if table.generations.group(name).exists:
            table.reset(name, self._offsets(50), dry_run=False, force=True)

    def _ends(self) -> None:
        table, name = self.table, self.group
        if generation := table.generations.group(name).generation:
            table.generations.end(name, generation)

    def _deletes(self) -> None:
        table, name = self.table, self.group
        if table.generations.group(name).exists:
            table.delete(name, force=True)

    def _drops(self) -> None:
        table, name = self.table, self.group
        if table.generations.group(name).exists:
            table.delete(name, topics=self.random.choice("tu"), force=True)

    def _compacts(self) -> None:
        deltalake.DeltaTable(self.path).optimize.compact()

    def _cleans(self) -> None:
        table = deltalake.DeltaTable(self.path)
        table.create_checkpoint()
        table.cleanup_metadata()

    def _vacuums(self) -> None:
        deltalake.DeltaTable(self.path).vacuum(dry_run=False)

    def _maintains(self) -> None:
        self.table.maintain()

    def _removes_rows(self) -> None:
        by_hand = self.random.choice(['"offset" > 60', '"partition" = 1', "topic = 'u'", "\"group\" = 'it''s'"])
        deltalake.DeltaTable(self.path).delete(by_hand)


def _minutes(of: random.Random) -> datetime.timedelta:
    return datetime.timedelta(minutes=of.randrange(3))


def _seen(table: OffsetTable, name: str) -> tuple[object, ...]:
    group = table.generations.group(name)
    return group.generation, group.event, group.note_seq, group.last, group.at


@pytest.fixture(autouse=True)
def kept_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Delta's log and replaced files can be deleted at once."""
    monkeypatch.setattr(lake, "PROPERTIES", {**rows.PROPERTIES, **AT_ONCE})


@pytest.mark.slow
def test_a_refresh_that_reads_on_finds_all_that_a_whole_one_finds(tmp_path: Path) -> None:
    refreshes: Counter[bool] = Counter()
    for seed in range(2):
        world = World(seed, tmp_path / str(seed))
        assert (fault := world.run(80)) is None, (seed, fault)
        refreshes += world.refreshes
    assert refreshes[False] > 150, refreshes
    assert refreshes[True] > 15, refreshes


_changes = deltalake.DeltaTable.load_cdf


def _skips_a_version(table: deltalake.DeltaTable, since: int, until: int, **given: Any) -> Any:
    return _changes(table, min(since + 2, until), until, **given)


def _is_blind_to_deletions(table: deltalake.DeltaTable, since: int, until: int, **given: Any) -> Any:
    found = pa.table(_changes(table, since, until, **given)).to_pylist()
    return pa.Table.from_pylist([row for row in found if row["_change_type"] == "insert"], CHANGES)


def _trusts_a_log_with_gaps(table: deltalake.DeltaTable, since: int, until: int, **given: Any) -> Any:
    try:
        return _changes(table, since, until, **given)
    except Exception:
        return CHANGES.empty_table()


@pytest.mark.slow
@pytest.mark.parametrize("fault", [_skips_a_version, _is_blind_to_deletions, _trusts_a_log_with_gaps])
def test_a_refresh_that_leaves_something_out_is_found(fault: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deltalake.DeltaTable, "load_cdf", fault)
    assert any(World(seed, tmp_path / str(seed)).run(80) for seed in range(6))


def test_the_row_that_the_query_would_rank_first_counts_in_whatever_order_rows_come(tmp_path: Path) -> None:
    at = rows.now()
    ties = [
        rows.Position("", generation, "t", "id", 0, offset, at + datetime.timedelta(seconds=late), seq=seq, metadata=text)
        for generation in (1, 2) for offset in (4, 5) for seq in (None, 1, 2) for late in (0, 1) for text in (None, "a", "b")
    ]  # fmt: skip
    came = {f"g{seed}": random.Random(seed).sample(ties, 5) for seed in range(100)}
    came = {name: [dataclasses.replace(each, group=name) for each in some] for name, some in came.items()}
    deltalake.write_deltalake(tmp_path / "offsets", rows.table_of(each for some in came.values() for each in some))
    found = OffsetTable(None, tmp_path / "offsets").generations
    assert {name: Group(name, []).after(some).at for name, some in came.items()} == {name: found.group(name).at for name in came}


def test_a_refresh_opens_only_the_files_that_came_since(tmp_path: Path) -> None:
    """The other files are not there any more."""
    world = World(1, tmp_path)
    table, writer = world.tables[:2]
    generation = table.generations.group("g").generation
    for number in range(2, 20):
        add(writer, "g", generation, {"t": {0: number}})
    assert table.positions("g")[0].offset == 19
    before = {*Path(table.path).glob("*.parquet")}
    table.positions("g")
    newest = max(before, key=lambda file: file.stat().st_mtime_ns)
    for file in before - {newest}:
        file.rename(file.with_suffix(".away"))
    for number in range(20, 24):
        add(writer, "g", generation, {"t": {0: number}})
        assert table.positions("g")[0].offset == number
    with pytest.raises(Exception, match=r"OFFSETS_TABLE"):
        OffsetTable(None, table.path).positions("g")


@pytest.mark.soak
def test_the_same_for_new_seeds(tmp_path: Path) -> None:
    first = draw_seed()
    for seed in range(first, first + 200):
        assert (fault := World(seed, tmp_path / str(seed)).run(200)) is None, (seed, fault)
