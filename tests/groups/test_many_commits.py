"""A table that many commits were made to, by several processes, and that other libraries read."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from handmade import Topic, records
from owners import Own, add

from sparklog.groups import OffsetTable, rows
from sparklog.groups.table import generations as module
from sparklog.groups.table import lake

WRITER = """
import sys
from sparklog.groups import OffsetTable
from sparklog.groups.commits import OffsetCommit
from sparklog.groups.table.owner import Owner

path, root, number, rounds = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
table = OffsetTable(root, path)
own, topic_id = Owner(table, f"own-{number}"), table.topics.state("t").topic_id
for offset in range(1, rounds + 1):
    own.commit([OffsetCommit("t", 0, topic_id, offset)])
    print(Owner(table, "shared").generation)
"""


def filled(tmp_path: Path, commits: int) -> OffsetTable:
    """A table after that many commits of group `g`, each of four positions."""
    topic = Topic(tmp_path / "root", "t", partitions=4)
    for partition in range(4):
        topic.append(records(100), partition)
    table = OffsetTable(topic.root, tmp_path / "offsets")
    own = Own(table, "g")
    for number in range(1, commits + 1):
        add(table, "g", own.generation, {"t": dict.fromkeys(range(4), number * 100 // commits)})
    return table


def files(table: OffsetTable) -> int:
    import deltalake

    return len(deltalake.DeltaTable(table.path).file_uris())


def seconds_of_a_look_up(table: OffsetTable) -> tuple[float, float]:
    """The median of five in a table that is opened each time, and the same of the CPU."""
    took, cpu = [], []
    for _ in range(5):
        begun, used = time.perf_counter(), time.process_time()
        found = OffsetTable(None, table.path).positions("g")
        took.append(time.perf_counter() - begun)
        cpu.append(time.process_time() - used)
        assert [each.offset for each in found] == [100] * 4
    return sorted(took)[2], sorted(cpu)[2]


def test_a_table_maintains_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_MAINTAINED_AFTER", 10)
    table = filled(tmp_path, 25)
    assert files(table) == 8, "one of 18 commits and the claim, and seven of later ones"
    assert len(table.history("g")) == 100
    assert table.maintain() == {"joined": 8, "deleted": 0}
    assert files(table) == 1
    assert len(table.history("g")) == 100
    seconds_of_a_look_up(table)


def test_a_table_is_maintained_although_each_program_commits_once(tmp_path, monkeypatch):
    """So is that of a large group, whose members make few commits each."""
    monkeypatch.setattr(module, "_MAINTAINED_AFTER", 10)
    table = filled(tmp_path, 1)
    for number in range(40):
        add(OffsetTable(table.root, table.path), "g", 1, {"t": {number % 4: 100}})
        assert files(table) <= 11
    assert len(table.history("g")) == 44


def test_replaced_files_are_deleted_when_they_are_due(tmp_path, monkeypatch):
    """An hour later; here, a table of the same schema says that it is a moment."""
    monkeypatch.setattr(rows, "PROPERTIES", {**rows.PROPERTIES, "delta.deletedFileRetentionDuration": "interval 1 milliseconds"})
    monkeypatch.setattr(lake, "PROPERTIES", rows.PROPERTIES)
    table = filled(tmp_path, 5)
    history, data = table.history("g"), lambda: sorted(Path(table.path).glob("*.parquet"))
    assert len(data()) == 6
    assert table.maintain() == {"joined": 6, "deleted": 6}
    assert len(data()) == 1
    assert table.history("g") == OffsetTable(None, table.path).history("g") == history


@pytest.mark.soak
def test_a_look_up_after_ten_thousand_commits(tmp_path):
    begun = time.perf_counter()
    table = filled(tmp_path, 10_000)
    a_commit = (time.perf_counter() - begun) / 10_000
    before = seconds_of_a_look_up(table)
    for number in range(49):
        add(table, "g", 1, {"t": {number % 4: 100}})
    after = seconds_of_a_look_up(table)
    print(f"a commit {a_commit * 1000:.1f} ms")
    for name, (took, cpu) in (("a look-up", before), ("before the next maintenance", after)):
        print(f"{name}: {took * 1000:.0f} ms, CPU {cpu * 1000:.0f} ms")
    print(f"{files(table)} data files, {len(list(Path(table.path, '_delta_log').iterdir()))} files in the log")
    assert max(min(before), min(after)) < 0.2  # in time, and where others use the processors too, in CPU


def test_a_table_whose_maintenance_fails_is_still_written(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(module, "_MAINTAINED_AFTER", 2)
    table = filled(tmp_path, 1)

    def broken(*_: object) -> None:
        raise OSError("the disk is full")

    import deltalake

    monkeypatch.setattr(deltalake.DeltaTable, "create_checkpoint", broken)
    assert add(table, "g", 1, {"t": {0: 100}}) == 1
    assert "the disk is full" in caplog.text


def test_four_processes_lose_nothing(tmp_path):
    topic = Topic(tmp_path / "root")
    topic.append(records(20))
    given = [str(tmp_path / "offsets"), str(topic.root)]
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, *given, str(number), "5"], stdout=subprocess.PIPE, text=True) for number in range(4)
    ]
    said = [writer.communicate()[0] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 4
    assert sorted(int(line) for lines in said for line in lines.split()) == list(range(1, 21))
    table = OffsetTable(given[1], given[0])
    for number in range(4):
        assert [each.offset for each in table.history(f"own-{number}")] == [1, 2, 3, 4, 5]


def test_other_libraries_read_the_table(tmp_path):
    """The query of the reference page, on the files that the table consists of."""
    import deltalake
    import duckdb
    import polars

    table = filled(tmp_path, 3)
    Own(table, "g", {"t": {1: 42}})
    Own(table, "h", {"t": {1: 7}})
    query = (Path(__file__).parents[2] / "docs" / "reference" / "offset-tables.md").read_text().split("```sql\n")[1].split("```")[0]
    expected = [(each.group, each.topic, each.partition, each.offset) for name in ("g", "h") for each in table.positions(name)]
    assert expected[1] == ("g", "t", 1, 42)
    assert polars.SQLContext(offsets=polars.scan_delta(table.path)).execute(query, eager=True).rows() == expected
    offsets = duckdb.read_parquet(deltalake.DeltaTable(table.path).file_uris())
    assert offsets.query("offsets", query).fetchall() == expected
