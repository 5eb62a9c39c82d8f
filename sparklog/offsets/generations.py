"""The groups of a table, and who owns them: generations."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.offsets import rows
from sparklog.offsets.lake import Lake
from sparklog.offsets.rows import Group, Position

_LISTED = 20
"""An error lists this many groups."""


class Generations:
    """The groups that the rows of a table tell of.

    Each commit of a group has the next number, so it is made only if nothing was committed to the group since its writer looked. By that
    a claim begins with every commit that was acknowledged, and a writer whose generation is over adds nothing.
    """

    def __init__(self, path: str, lake: Lake) -> None:
        self._path = path
        self._lake = lake
        self._known: dict[str, _Known] = {}

    def all(self) -> dict[str, Group]:
        """The groups that exist, by name, sorted."""
        return {name: group for name, group in rows.current(self._lake.rows(current=True)).items() if group.exists}

    def some(self, names: Sequence[str] | str | None) -> list[Group]:
        """The groups of these names, one or several, or all that exist. CallError if one does not exist."""
        if names is None:
            return list(self.all().values())
        return [self.existing(name) for name in arguments.texts("groups", names)]

    def group(self, name: str) -> Group:
        """The group of this name, which need not exist."""
        return Group(name, rows.positions(self._lake.rows(rows.require_group(name), current=True)))

    def existing(self, name: str) -> Group:
        """The group of this name. CallError if it does not exist."""
        group = self.group(name)
        if not group.exists:
            if not self._lake.exists():
                raise SparklogError("OFFSETS_TABLE_NOT_FOUND", table=self._path)
            names = list(self.all())
            listed = ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
            raise SparklogError("GROUP_NOT_FOUND", group=name, table=self._path, groups=listed or "none")
        return group

    def require_newest(self, name: str, generation: int) -> None:
        """GenerationFenced if the newest generation of a group is another one."""
        self._newest(name, generation)

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
        while True:
            last = self._lake.last(name)
            group = self.group(name)
            if after is not None and after != group.generation:
                raise self._fenced(name, after, group.generation)
            # Rows that were deleted by hand leave the number of their commit, and no generation of theirs was above it.
            generation = (group.generation or last) + 1
            first = moved(group)
            keys = {(each.topic, each.partition) for each in first}
            ids = {each.topic: each.topic_id for each in first}
            kept = [each for each in group.positions if carry and group.exists and _stays(each, keys, ids)]
            begun = [dataclasses.replace(each, committed_at=rows.now()) for each in kept + first]
            if self._commit(name, last + 1, generation, [rows.note(name, generation, event), *begun]):
                return generation

    def add(self, name: str, generation: int, made: Callable[[Mapping[str, Position]], list[Position]]) -> list[Position]:
        """Adds to the newest generation of a group, in one commit, the rows that `made` makes. GenerationFenced if it is another one.

        `made` is given a position in each topic that the group has one in.
        """
        while True:
            known = self._newest(name, generation)
            added = made(known.in_topics)
            if self._commit(name, known.number + 1, generation, added):
                in_topics = {**known.in_topics, **{each.topic: each for each in added if not rows.is_note(each)}}
                self._known[name] = _Known(known.number + 1, generation, in_topics)
                return added

    def _newest(self, name: str, generation: int) -> _Known:
        """What is known of a group as it is now. GenerationFenced if its newest generation is not this one."""
        last, known = self._lake.last(name), self._known.get(name)
        if known is None or known.number != last:
            group = self.group(name)
            known = self._known[name] = _Known(last, group.generation, {each.topic: each for each in group.positions})
        if generation != known.generation or generation < 1:
            raise self._fenced(name, generation, known.generation)
        return known

    def _commit(self, name: str, number: int, generation: int, added: list[Position]) -> bool:
        numbered = [dataclasses.replace(each, generation=generation, seq=number) for each in added]
        return self._lake.append(rows.table_of(numbered), name, number)

    def _fenced(self, name: str, generation: int, newest: int) -> SparklogError:
        return SparklogError("GENERATION_FENCED", group=name, generation=generation, newest=newest, table=self._path)


@dataclasses.dataclass(frozen=True)
class _Known:
    """A group after its commit of this number: its newest generation, and a position in each topic."""

    number: int
    generation: int
    in_topics: Mapping[str, Position]


def _stays(position: Position, moved: set[tuple[str, int]], ids: Mapping[str, str]) -> bool:
    """Whether a position goes over to the next generation: it was not moved, nor is it in a topic that was created again."""
    return (position.topic, position.partition) not in moved and ids.get(position.topic, position.topic_id) == position.topic_id
