"""The groups of a table, and who owns them: generations."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

from sparklog.errors import SparklogError
from sparklog.offsets import rows
from sparklog.offsets.rows import Group, Position

_LISTED = 20
"""An error lists this many groups."""


class Engine(Protocol):
    """What reads and writes the Delta table. A table that does not exist has no rows, and the first `append` creates it."""

    def rows(self, group: str | None = None, *, current: bool, generation: int | None = None) -> pa.Table:
        """The rows of a group, or of all; of a generation, or of all; in the order in which they were committed.

        With `current`, only the greatest (generation, offset) of each group, topic and partition.
        """

    def claimed(self, group: str) -> int:
        """The newest generation of a group; 0 if it has none."""

    def append(self, rows: pa.Table, claim: tuple[str, int] | None = None) -> bool:
        """Adds rows in one commit.

        With `claim`, a group and a generation, only if no commit claimed this generation of it or a later one: False otherwise.
        """

    def maintain(self) -> dict[str, int]:
        """Joins small files, writes a checkpoint, and deletes files that were replaced longer ago than the table's properties say.

        Returns how many files it joined, and how many it deleted.
        """


class Generations:
    """The groups that an engine's rows tell of."""

    def __init__(self, path: str, engine: Engine) -> None:
        self._path = path
        self._engine = engine

    def all(self) -> dict[str, Group]:
        """The groups that exist, by name, sorted."""
        return {name: group for name, group in rows.current(self._engine.rows(current=True)).items() if group.exists}

    def some(self, names: Sequence[str] | None) -> list[Group]:
        """The groups of these names, one or several, or all that exist. CallError if one does not exist."""
        if names is None:
            return list(self.all().values())
        return [self.existing(name) for name in ([names] if isinstance(names, str) else names)]

    def group(self, name: str) -> Group:
        """The group of this name, which need not exist."""
        return Group(name, rows.positions(self._engine.rows(rows.require_group(name), current=True)))

    def existing(self, name: str) -> Group:
        """The group of this name. CallError if it does not exist."""
        group = self.group(name)
        if not group.exists:
            names = list(self.all())
            listed = ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
            raise SparklogError("GROUP_NOT_FOUND", group=name, table=self._path, groups=listed or "none")
        return group

    def require_newest(self, name: str, generation: int) -> None:
        """GenerationFenced if the newest generation of a group is another one."""
        newest = self._engine.claimed(name)
        if newest != generation or generation < 1:
            raise SparklogError("GENERATION_FENCED", group=name, generation=generation, newest=newest, table=self._path)

    def require_still(self, group: Group, *, force: bool) -> None:
        """CallError if the group is running, unless `force`."""
        if not force and group.is_running(rows.now()):
            raise SparklogError("GROUP_RUNNING", group=group.name, table=self._path, last=group.last)

    def claim(
        self, name: str, event: str, moved: Callable[[Group], list[Position]], *, carry: bool = True, after: int | None = None
    ) -> int:
        """Takes the next generation of a group in one commit with its first positions.

        Those are the ones that `moved` makes from what the group is just before, and with `carry` the other ones of the group. With
        `after`, only if that is still the newest generation: GenerationFenced otherwise.
        """
        generation = 0
        while True:
            if after is not None:
                self.require_newest(name, after)
            group = self.group(name)
            # A generation that another writer took but whose rows were deleted by hand stays taken.
            generation = (max(group.generation, generation) if after is None else after) + 1
            first = moved(group)
            keys = {(each.topic, each.partition) for each in first}
            ids = {each.topic: each.topic_id for each in first}
            kept = [each for each in group.positions if carry and group.exists and _stays(each, keys, ids)]
            begun = [rows.note(name, generation, event)]
            begun += [dataclasses.replace(each, generation=generation, committed_at=rows.now()) for each in kept + first]
            if self._engine.append(rows.table_of(begun), (name, generation)):
                break
        if carry and group.exists:
            # An owner of the generation before may have committed after its positions were read, and was told that it did.
            last = Group(name, rows.positions(self._engine.rows(name, current=True, generation=group.generation)))
            known = {(each.topic, each.topic_id, each.partition): each.offset for each in kept}
            late = [
                dataclasses.replace(each, generation=generation)
                for each in last.positions
                if _stays(each, keys, ids) and known.get((each.topic, each.topic_id, each.partition), -1) < each.offset
            ]
            if late:
                self._engine.append(rows.table_of(late))
        return generation


def _stays(position: Position, moved: set[tuple[str, int]], ids: Mapping[str, str]) -> bool:
    """Whether a position goes over to the next generation: it was not moved, nor is it in a topic that was created again."""
    return (position.topic, position.partition) not in moved and ids.get(position.topic, position.topic_id) == position.topic_id
