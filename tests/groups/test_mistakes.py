"""A new user's mistakes without Spark, and what the tables in tests/mistakes come to."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from mistakes import ACTION, GRADES, Mistake, check, python, reading, sql, streams, writing

import sparklog
from sparklog.groups import OffsetTable

ALL = [*reading.TABLE, *writing.TABLE, *sql.TABLE, *streams.TABLE, *python.TABLE]


@dataclass
class World:
    root: Path
    tmp: Path
    table: OffsetTable

    @property
    def topic(self) -> sparklog.Topic:
        return sparklog.Log(self.root)["t"]

    def running(self) -> None:
        with sparklog.Consumer(self.root, "t", group_id="g", table=self.table, auto_offset_reset="earliest") as consumer:
            consumer.poll()
            consumer.commit()
            self.table.reset("g", "earliest", dry_run=False)

    def file(self) -> Path:
        (self.tmp / "file").write_text("mine")
        return self.tmp / "file"

    def folder(self) -> Path:
        (self.tmp / "folder").mkdir()
        return self.tmp / "folder"


@pytest.mark.parametrize("mistake", python.TABLE, ids=lambda mistake: mistake.what)
def test_a_mistake(topic, table: OffsetTable, tmp_path: Path, mistake: Mistake) -> None:
    check(mistake, World(topic.root, tmp_path, table), topic.root)


def test_most_mistakes_are_told_where_they_are_made() -> None:
    """A mistake is in grade A only if its row says where it is made and how to put it right, and the call that makes it tells of it.

    Each answer that sparklog gives is an A. Spark answers the others before it asks a source, a sink or a table.
    """
    grades = Counter(mistake.grade for mistake in ALL)
    print(dict(grades), "of Spark:", dict(Counter(mistake.grade for mistake in ALL if not mistake.is_ours)))
    assert grades.keys() <= set(GRADES)
    assert grades["A"] >= 72 and grades["A"] > 3 * (grades.total() - grades["A"])
    assert [mistake.what for mistake in ALL if mistake.grade != "A" and mistake.is_ours] == []
    for mistake in ALL:
        if mistake.grade == "A":
            assert mistake.right or len(mistake.says) >= 2, mistake.what
            assert mistake.late in (None, ACTION), mistake.what
        else:
            assert mistake.why, mistake.what


@pytest.mark.parametrize("table", [reading.TABLE, writing.TABLE, sql.TABLE, streams.TABLE, python.TABLE])
def test_no_mistake_is_in_a_table_twice(table: list[Mistake]) -> None:
    assert len({mistake.what for mistake in table}) == len(table)
