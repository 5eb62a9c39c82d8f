"""The Delta table of positions: which writer has the number of a commit, columns of other versions, and files that no commit has yet."""

import dataclasses
import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from handmade import Topic
from owners import Own, add

import sparklog
from sparklog.groups import OffsetTable, rows
from sparklog.groups.table import lake


def places(table: OffsetTable, group: str = "g") -> dict[tuple[str, int], int]:
    return {(each.topic, each.partition): each.offset for each in table.positions(group)}


def with_a_commit_that_fails(*, before: Any = lambda: None, written: bool = False) -> None:
    """The next commit fails with a text that says nothing; `written`: it counts nevertheless, as a put whose answer was lost."""
    patch = pytest.MonkeyPatch()
    write = deltalake.write_deltalake

    def failing(*given: Any, **named: Any) -> None:
        patch.undo()
        before()
        if written:
            write(*given, **named)
        raise deltalake.exceptions.CommitFailedError("it did not work")

    patch.setattr(deltalake, "write_deltalake", failing)


def test_a_commit_that_lost_its_number_is_known_by_the_table(table: OffsetTable, topic: Topic) -> None:
    """The text of deltalake's error does not matter."""
    rival = OffsetTable(topic.root, table.path)
    first = Own(rival, "g")
    with_a_commit_that_fails(before=lambda: first.to({"t": {0: 9}}))
    second = Own(table, "g")
    assert second.generation == 2
    assert places(rival) == {("t", 0): 9}
    with_a_commit_that_fails(before=lambda: Own(rival, "g"))
    with pytest.raises(sparklog.GenerationFencedError, match="newest generation is 3"):
        second.to({"t": {0: 20}})
    assert [each.offset for each in rival.history("g")] == [9, 9, 9]


def test_a_commit_that_failed_while_nobody_has_its_number_is_an_error(table: OffsetTable) -> None:
    own = Own(table, "g")
    own.to({"t": {0: 5}})
    with_a_commit_that_fails()
    with pytest.raises(sparklog.RetryError, match=r"PARTLOG_OFFSETS_TABLE.*it did not work"):
        own.to({"t": {0: 9}})
    assert places(table) == {("t", 0): 5}
    own.to({"t": {0: 9}})
    assert places(table) == {("t", 0): 9}


def test_a_commit_whose_answer_was_lost_counts(table: OffsetTable) -> None:
    own = Own(table, "g")
    with_a_commit_that_fails(written=True)
    own.to({"t": {0: 5}})
    assert places(table) == {("t", 0): 5}
    with_a_commit_that_fails(written=True)
    assert Own(table, "g").generation > own.generation
    assert places(table) == {("t", 0): 5}


def made_before(path: Path) -> None:
    """A table as it was created when it had a column for groups of several consumers, with a group in it."""
    fields = list(rows.SCHEMA)
    fields.insert(rows.SCHEMA.get_field_index("seq"), pa.field("assignment_epoch", pa.int64()))
    schema = pa.schema(fields)
    deltalake.DeltaTable.create(path, schema, configuration=dict(rows.PROPERTIES))
    begun = rows.note("g", 1, "begin")
    position = rows.Position("g", 1, "t", "id", 0, 5, rows.now())
    for number, row in enumerate([begun, position], 1):
        named = {name: getattr(row, name, None) for name in schema.names} | {"seq": number}
        application = deltalake.Transaction("sparklog.offsets/g", number)
        properties = deltalake.CommitProperties(app_transactions=[application])
        deltalake.write_deltalake(path, pa.Table.from_pylist([named], schema), mode="append", commit_properties=properties)


def test_a_table_that_was_made_before_is_read_and_written(tmp_path: Path, topic: Topic) -> None:
    made_before(tmp_path / "offsets")
    table = OffsetTable(topic.root, tmp_path / "offsets")
    assert places(table) == {("t", 0): 5}
    assert [(each.seq, each.generation) for each in table.history("g")] == [(2, 1)]
    own = Own(table, "g", {"t": {0: 7, 1: 1}})
    own.to({"t": {0: 8}})
    assert own.generation == 3, "it went on from a topic that has another id now"
    assert table.maintain()["joined"] == 5
    assert places(OffsetTable(None, table.path)) == {("t", 0): 8, ("t", 1): 1}
    found = deltalake.DeltaTable(table.path).to_pyarrow_table()
    assert set(found["assignment_epoch"].to_pylist()) == {None}
    assert found.num_rows == 8


def test_a_column_that_must_not_be_null_is_refused(tmp_path: Path) -> None:
    schema = rows.SCHEMA.append(pa.field("more", pa.string(), nullable=False))
    deltalake.DeltaTable.create(tmp_path / "offsets", schema)
    with pytest.raises(sparklog.CallError, match=r"PARTLOG_OFFSETS_SCHEMA.* differ: unknown: more"):
        OffsetTable(None, tmp_path / "offsets").groups()


@pytest.mark.parametrize("call", [lambda table: table.groups(), lambda table: Own(table, "g"), lambda table: table.exists()])
def test_a_store_that_deltalake_does_not_know(call: Any) -> None:
    with pytest.raises(sparklog.CallError, match=r"PARTLOG_OFFSETS_STORE.* wasbs://c@a/offsets\. .*abfss://.*storage_options"):
        call(OffsetTable(None, "wasbs://c@a/offsets"))


def test_a_file_that_may_still_be_committed_is_kept(table: OffsetTable) -> None:
    """A writer sleeps between its data file and its commit: for two hours, and for eight days."""
    Own(table, "g")
    slept = [Path(table.path, f"part-{hours}-0-c000.snappy.parquet") for hours in (2, 8 * 24)]
    for file, hours in zip(slept, (2, 8 * 24), strict=True):
        file.write_bytes(b"")
        os.utime(file, times=(time.time() - hours * 3600,) * 2)
    assert table.maintain()["deleted"] == 0
    assert all(file.exists() for file in slept)


def test_commits_that_conflict_with_none_are_all_made(table: OffsetTable) -> None:
    """As many at once as deltalake by itself does not try: it gives up after 15 others were first."""
    own = Own(table, "g")
    lakes = [OffsetTable(None, table.path).lake for _ in range(24)]
    assert {lake.last("g") for lake in lakes} == {1}
    begins = threading.Barrier(len(lakes))

    def commit(number: int) -> bool:
        note = rows.table_of([dataclasses.replace(rows.note("g", own.generation, "begin"), seq=1)])
        begins.wait(60)
        return lakes[number].append(note, "g", None, {f"m{number}": 0})

    with ThreadPoolExecutor(len(lakes)) as threads:
        assert all(threads.map(commit, range(len(lakes))))
    assert table.lake.versions(f"m{number}" for number in range(24)) == {f"m{number}": 1 for number in range(24)}


def with_a_version_that_cannot_be_put(table: OffsetTable) -> Path:
    """Whichever commit is the next one finds that another one was first, each time, until this file is removed."""
    version = deltalake.DeltaTable(table.path).version() + 1
    taken = Path(table.path, "_delta_log", f"{version:020d}.json")
    taken.symlink_to(Path(table.path, "nowhere"))
    return taken


def with_compactions(monkeypatch: pytest.MonkeyPatch, ends: list[object], after: Any) -> None:
    """Notes in `ends` how each compaction ended, and calls `after` then."""
    compact = deltalake.table.TableOptimizer.compact

    def compacts(*given: Any, **named: Any) -> Any:
        try:
            ends.append(found := compact(*given, **named))
        except deltalake.exceptions.CommitFailedError as error:
            ends.append(error)
            raise
        else:
            return found
        finally:
            after()

    monkeypatch.setattr(deltalake.table.TableOptimizer, "compact", compacts)


def with_six_files(table: OffsetTable) -> None:
    own = Own(table, "g")
    for number in range(5):
        own.to({"t": {0: number}})


def test_files_are_joined_although_other_commits_are_first(table: OffsetTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as after which deltalake gives up."""
    with_six_files(table)
    taken = with_a_version_that_cannot_be_put(table)
    ends: list[object] = []
    with_compactions(monkeypatch, ends, lambda: taken.unlink() if len(ends) == 1 else None)
    assert table.maintain()["joined"] == 6
    assert "Failed to commit transaction: 15" in str(ends[0])
    assert len(ends) == 2
    assert places(table) == {("t", 0): 4}


def test_upkeep_is_done_although_files_cannot_be_joined(table: OffsetTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each compaction is overtaken, until the last one has been given up."""
    with_six_files(table)
    taken = with_a_version_that_cannot_be_put(table)
    ends: list[object] = []
    with_compactions(monkeypatch, ends, lambda: taken.unlink() if len(ends) == lake.COMPACTIONS else None)
    with pytest.raises(sparklog.RetryError, match=r"PARTLOG_OFFSETS_TABLE.*Failed to commit transaction: 15"):
        table.maintain()
    assert Path(table.path, "_delta_log", "_last_checkpoint").exists()
    assert len(ends) == lake.COMPACTIONS
    assert table.maintain()["joined"] == 6
    assert places(table) == {("t", 0): 4}


def test_the_error_says_why_files_could_not_be_joined_although_the_rest_of_the_upkeep_fails_too(
    table: OffsetTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_six_files(table)
    with_a_version_that_cannot_be_put(table)
    log = Path(table.path, "_delta_log")

    def cannot_be_read() -> None:
        for each in log.glob("*.json"):
            each.unlink()

    with_compactions(monkeypatch, ends := [], lambda: cannot_be_read() if len(ends) == lake.COMPACTIONS else None)
    with pytest.raises(sparklog.RetryError, match=r"PARTLOG_OFFSETS_TABLE.*Failed to commit transaction: 15"):
        table.maintain()


def test_upkeep_ends_at_once_where_the_operator_interrupts_it(table: OffsetTable, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with_six_files(table)
    with_compactions(monkeypatch, [], interrupted)
    with pytest.raises(KeyboardInterrupt):
        table.maintain()
    assert not Path(table.path, "_delta_log", "_last_checkpoint").exists()


def test_replaced_files_are_deleted_although_a_file_is_gone(table: OffsetTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lake, "PROPERTIES", {**rows.PROPERTIES, "delta.deletedFileRetentionDuration": "interval 1 milliseconds"})
    with_six_files(table)
    deltalake.DeltaTable(table.path).optimize.compact()
    Own(table, "g")
    (newest,) = [file for file in deltalake.DeltaTable(table.path).file_uris() if Path(file).stat().st_mtime_ns == last_written(table)]
    Path(newest).unlink()
    with pytest.raises(sparklog.RetryError, match=r"PARTLOG_OFFSETS_TABLE.*" + Path(newest).name):
        table.maintain()
    assert len(list(Path(table.path).glob("*.parquet"))) == 1


def last_written(table: OffsetTable) -> int:
    return max(file.stat().st_mtime_ns for file in Path(table.path).glob("*.parquet"))


def test_a_thread_looks_at_the_table_while_another_one_maintains_it(table: OffsetTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """Heartbeats do: members whose upkeep takes long are not expired."""
    with_six_files(table)
    with ThreadPoolExecutor(1) as thread:
        seen: list[int] = []
        with_compactions(monkeypatch, [], lambda: seen.append(thread.submit(table.lake.last, "g").result(60)))
        assert table.maintain()["joined"] == 6
    assert seen == [6]


def test_an_open_table_is_not_taken_for_the_one_that_was_made_again_in_its_place(table: OffsetTable, topic: Topic) -> None:
    """Both have the same numbers and versions."""
    own = Own(table, "g", {"t": {0: 5}})
    shutil.move(table.path, f"{table.path}-before")
    with pytest.raises(sparklog.RetryError, match="PARTLOG_OFFSETS_TABLE"):
        table.positions("g")
    again = OffsetTable(topic.root, table.path)
    Own(again, "g", {"t": {0: 1}})
    for call in (lambda: table.positions("g"), lambda: own.to({"t": {0: 9}}), lambda: Own(table, "g")):
        with pytest.raises(sparklog.CallError, match="PARTLOG_OFFSETS_TABLE_REPLACED"):
            call()
    assert places(again) == places(OffsetTable(topic.root, table.path)) == {("t", 0): 1}
    shutil.rmtree(table.path)
    shutil.move(f"{table.path}-before", table.path)
    assert places(table) == {("t", 0): 5}


def test_a_table_that_was_set_back_to_an_earlier_version_is_another_one(table: OffsetTable, topic: Topic) -> None:
    own = Own(table, "g", {"t": {0: 5}})
    shutil.copytree(table.path, f"{table.path}-before")
    own.to({"t": {0: 6}})
    shutil.rmtree(table.path)
    shutil.copytree(f"{table.path}-before", table.path)
    with pytest.raises(sparklog.CallError, match="PARTLOG_OFFSETS_TABLE_REPLACED"):
        own.to({"t": {0: 7}})
    assert places(OffsetTable(topic.root, table.path)) == {("t", 0): 5}


def test_a_table_that_was_set_back_and_went_on_is_another_one(table: OffsetTable, topic: Topic) -> None:
    """It has passed the version that the program knows."""
    own = Own(table, "g", {"t": {0: 5}})
    shutil.copytree(table.path, f"{table.path}-before")
    own.to({"t": {0: 6}})
    shutil.rmtree(table.path)
    shutil.copytree(f"{table.path}-before", table.path)
    again = OffsetTable(topic.root, table.path)
    for offset in (7, 8, 9):
        add(again, "g", 1, {"t": {0: offset}})
    with pytest.raises(sparklog.CallError, match="PARTLOG_OFFSETS_TABLE_REPLACED"):
        own.to({"t": {0: 7}})
    assert places(again) == {("t", 0): 9}


def test_a_table_stays_open_from_commit_to_commit(table: OffsetTable, monkeypatch: pytest.MonkeyPatch) -> None:
    own = Own(table, "g")
    opens = with_opens(monkeypatch)
    for offset in range(5):
        own.to({"t": {0: offset}})
        assert places(table) == {("t", 0): offset}
    assert opens == []
    shutil.move(table.path, f"{table.path}-before")
    with pytest.raises(sparklog.RetryError, match="PARTLOG_OFFSETS_TABLE"):
        table.positions("g")
    assert opens == [table.path]


def with_opens(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the tables that are opened from now on."""
    open_table, opens = deltalake.DeltaTable.__init__, list[str]()

    def opened(self: deltalake.DeltaTable, path: str, **named: Any) -> None:
        opens.append(path)
        open_table(self, path, **named)

    monkeypatch.setattr(deltalake.DeltaTable, "__init__", opened)
    return opens


def test_a_table_that_was_copied_back_is_the_same(table: OffsetTable) -> None:
    own = Own(table, "g", {"t": {0: 5}})
    shutil.move(table.path, f"{table.path}-before")
    shutil.copytree(f"{table.path}-before", table.path)
    own.to({"t": {0: 6}})
    assert places(table) == {("t", 0): 6}
