"""An offset commit table: the positions of named groups in the topics of a root."""

from __future__ import annotations

import dataclasses
import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.offsets import rows
from sparklog.offsets.lake import Lake
from sparklog.offsets.rows import Group, Position
from sparklog.ondisk.commitlog import CommitLog
from sparklog.ondisk.root import local, require
from sparklog.ondisk.state import State

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LISTED = 20
"""An error lists this many groups."""


class OffsetTable:
    """A Delta table of positions, one row for each position that a group ever committed. The first write creates it.

    A group is read by one owner at a time. An owner takes the next generation with `begin`, and commits with it. The positions of a group
    are those of its greatest generation, and in it the greatest offset of each partition; no clock decides. Each generation begins with
    the positions of the one before it.

    With a Spark session, every read and write goes through delta-spark, otherwise through deltalake, which needs no JVM. Tables of both are
    the same. The methods raise SparklogErrors: CallError if the call is wrong, and RetryError if the table cannot be read or written.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        root: str | os.PathLike[str] | None = None,
        *,
        spark: SparkSession | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        """Opens a table at a path or URL. `root` is the root that holds the topics; what does not look at topics works without one.

        `storage_options` are deltalake's. CallError if Delta is not installed.
        """
        text = os.fspath(path)
        self.path = text if "://" in text else str(Path(text.removeprefix("file:")).absolute())
        self.root: str | None = None
        if root is not None:
            self.root = local(os.fspath(root))
            require(self.root)
        self._engine = Lake(self.path, storage_options)
        self._logs: dict[str, CommitLog] = {}
        self._lock = threading.Lock()

    # ---- what the table says

    def groups(self) -> list[str]:
        """The names of the groups, sorted."""
        return [name for name, group in rows.current(self._engine.rows(current=True)).items() if group.exists]

    def positions(self, group: str, topic: str | None = None) -> list[Position]:
        """The positions of a group, sorted by topic and partition; with `topic`, only those in that topic.

        A position whose topic was created again or deleted has a `note`.
        """
        found = self._existing(group).positions
        return [self._noted(each) for each in found if topic is None or each.topic == topic]

    def history(self, group: str) -> list[Position]:
        """All positions that a group ever committed, the oldest first; a heartbeat is a repeated one."""
        self._existing(group)
        return [row for row in rows.positions(self._engine.rows(group, current=False)) if not rows.is_note(row)]

    def starting_offsets(self, group: str) -> str:
        """The option `startingOffsets` with which a batch read or a stream begins where the group is: JSON, by topic and partition.

        A partition that the group has no position in begins at its first record. CallError if a topic was created again.
        """
        found: dict[str, dict[str, int]] = {}
        for position in self._existing(group).positions:
            of = found.get(position.topic)
            if of is None:
                state = self._state(position.topic)
                _require_same(self.root, group, position, state)
                of = found[position.topic] = dict.fromkeys(map(str, range(state.partitions)), -2)
            of[str(position.partition)] = position.offset
        return json.dumps(found)

    # ---- what owners of a group do

    def begin(self, group: str, offsets: Mapping[str, Mapping[int, int]] | None = None) -> int:
        """Takes the next generation of a group, which need not exist yet, and returns it. It begins with the positions of the one before.

        With `offsets`, given by topic and partition, the group moves there, back too. What it read of a topic that was created again is
        then forgotten, if the topic is named. From now on `append` refuses every earlier generation.
        """
        before: list[Group] = []
        moved = self._rows(rows.require_group(group), offsets or {})
        ids = {each.topic: each.topic_id for each in moved}
        keys = {(each.topic, each.partition) for each in moved}

        def stays(each: Position) -> bool:
            return (each.topic, each.partition) not in keys and ids.get(each.topic, each.topic_id) == each.topic_id

        def carried(group: Group) -> list[Position]:
            before.append(group)
            return [each for each in group.positions if stays(each)] + moved if group.exists else moved

        generation = self._claim(group, "begin", carried)
        # An owner of the generation before may have committed after its positions were read, and was told that it did.
        kept = {(each.topic, each.topic_id, each.partition): each.offset for each in before[-1].positions}
        if before[-1].exists:
            last = Group(group, rows.positions(self._engine.rows(group, current=True, generation=before[-1].generation)))
            late = [
                each for each in last.positions if stays(each) and kept.get((each.topic, each.topic_id, each.partition), -1) < each.offset
            ]
            if late:
                self._engine.append(rows.table_of(dataclasses.replace(each, generation=generation) for each in late))
        return generation

    def append(
        self,
        group: str,
        generation: int,
        offsets: Mapping[str, Mapping[int, int]],
        *,
        query_id: str | None = None,
        epoch: int | None = None,
        metadata: str | None = None,
    ) -> int:
        """Commits positions, given by topic and partition, as one commit of the table. Returns the number of rows.

        The current positions given again are a heartbeat; so is an empty dict, for a group without positions. GenerationFenced if the group
        has another generation by now: then nothing was moved. CallError if a topic or partition does not exist or was created again, or an
        offset is not between 0 and the end offset.
        """
        found = self._of_generation(group, generation)
        added = [
            dataclasses.replace(each, generation=generation, query_id=query_id, epoch=epoch, metadata=metadata)
            for each in self._rows(group, offsets, found.positions)
        ]
        self._engine.append(rows.table_of(added or [rows.note(group, generation, "begin")]))
        # Rows that were added beside the claim of another owner may have come too late for it.
        self._of_generation(group, generation)
        return len(added)

    def end(self, group: str, generation: int) -> None:
        """Says that the owner of this generation ends, so that the group is not running. GenerationFenced as in `append`."""
        self._of_generation(group, generation)
        self._engine.append(rows.table_of([rows.note(group, generation, "end")]))

    # ---- within

    def _group(self, name: str) -> Group:
        return Group(name, rows.positions(self._engine.rows(rows.require_group(name), current=True)))

    def _existing(self, name: str) -> Group:
        group = self._group(name)
        if not group.exists:
            names = self.groups()
            listed = ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
            raise SparklogError("GROUP_NOT_FOUND", group=name, table=self.path, groups=listed or "none")
        return group

    def _of_generation(self, name: str, generation: int) -> Group:
        group = self._group(name)
        if group.generation != generation or not group.exists:
            raise SparklogError("GENERATION_FENCED", group=name, generation=generation, newest=group.generation, table=self.path)
        return group

    def _claim(self, name: str, event: str, first: Callable[[Group], list[Position]]) -> int:
        """Takes the next generation of a group in one commit with its first positions, made from what the group is just before."""
        generation = 0
        while True:
            group = self._group(name)
            # A generation that another writer took but whose rows were deleted by hand stays taken.
            generation = max(group.generation, generation) + 1
            begun = [rows.note(name, generation, event)]
            begun += [dataclasses.replace(each, generation=generation, committed_at=rows.now()) for each in first(group)]
            if self._engine.append(rows.table_of(begun), (f"sparklog.offsets/{name}", generation)):
                return generation

    def _state(self, topic: str) -> State:
        if self.root is None:
            raise SparklogError("OFFSETS_ROOT", table=self.path)
        with self._lock:
            if topic not in self._logs:
                from sparklog.topic import Topic

                Topic(self.root, topic)  # checks the name
                self._logs[topic] = CommitLog(self.root, topic)
            return self._logs[topic].newest()

    def _rows(self, group: str, offsets: Mapping[str, Mapping[int, int]], before: Iterable[Position] = ()) -> list[Position]:
        """Rows for these offsets, still without a generation. CallError if a topic is not the one of the positions `before`."""
        known = {position.topic: position for position in before}
        made: list[Position] = []
        for topic, by_partition in offsets.items():
            state = self._state(topic)
            if topic in known:
                _require_same(self.root, group, known[topic], state)
            for given, offset in by_partition.items():
                made.append(Position(group, 0, topic, state.topic_id, self._placed(state, given, offset), offset, rows.now()))
        return made

    def _placed(self, state: State, partition: object, offset: object) -> int:
        """The partition, after a check that it exists and that a group can be at this offset of it, which may have expired."""
        assert self.root is not None
        (placed,) = arguments.partitions(state, self.root, arguments.integer("partition", partition), "offsets")
        if not 0 <= arguments.integer("offset", offset) <= state.ends[placed]:
            raise SparklogError(
                "OFFSETS_OUT_OF_RANGE",
                option="offsets",
                offset=offset,
                topic=state.topic,
                partition=placed,
                root=self.root,
                start=state.starts[placed],
                end=state.ends[placed],
            )
        return placed

    def _noted(self, position: Position) -> Position:
        if self.root is None:
            return position
        try:
            state = self._state(position.topic)
        except SparklogError as error:
            if error.id != "TOPIC_NOT_FOUND":
                raise
            return dataclasses.replace(position, note="the topic does not exist")
        if state.topic_id != position.topic_id:
            return dataclasses.replace(position, note=f"the topic was created again, with the id {state.topic_id}")
        return position


def _require_same(root: str | None, group: str, position: Position, state: State) -> None:
    if position.topic_id != state.topic_id:
        raise SparklogError(
            "GROUP_OF_OTHER_TOPIC", group=group, topic=position.topic, root=root, expected=position.topic_id, found=state.topic_id
        )
