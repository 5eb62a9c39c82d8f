"""The group of a consumer: what it has committed, in an offset commit table."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sparklog.consumer.records import OffsetAndMetadata, TopicPartition
from sparklog.errors import GenerationFenced, SparklogError

if TYPE_CHECKING:
    from sparklog.offsets import OffsetTable

_log = logging.getLogger(__name__)
_HEARTBEAT_S = 60
"""A group that wrote nothing for three minutes does not count as running."""


class Group:
    """A generation of a group. It begins when this is made, and ends the one before."""

    def __init__(self, root: str, name: str, table: str | os.PathLike[str] | OffsetTable, interval_s: float | None) -> None:
        """`interval_s`: how often `auto_commit` commits; None for never."""
        from sparklog.offsets import OffsetTable

        self._table = table if isinstance(table, OffsetTable) else OffsetTable(table, root)
        if self._table.root != root:
            reason = f"it was opened with the root {self._table.root}, and the consumer reads {root}"
            raise SparklogError("OPTION_VALUE", option="table", value=self._table.path, reason=reason)
        self._name = name
        self._interval_s = interval_s
        self._generation = self._table.begin(name)
        self._wrote = self._tried = time.monotonic()
        self._written: dict[tuple[TopicPartition, str], int] = {}
        """By partition and topic id, what this generation has committed or began with."""
        self.committed()

    def committed(self) -> dict[tuple[TopicPartition, str], OffsetAndMetadata]:
        """The committed offsets, by partition and topic id."""
        found = {
            (TopicPartition(each.topic, each.partition), each.topic_id): OffsetAndMetadata(each.offset, each.metadata)
            for each in self._table.positions(self._name)
        }
        self._written = {key: value.offset for key, value in found.items()}
        return found

    def commit(self, offsets: Mapping[TopicPartition, tuple[str, OffsetAndMetadata]]) -> None:
        """Commits offsets, each given with the topic id. GenerationFenced if another generation has begun."""
        by_topic: dict[str, dict[int, int]] = {}
        for (topic, number), (_, value) in offsets.items():
            by_topic.setdefault(topic, {})[number] = value.offset
        if self._goes_back(offsets):
            self._table.append(self._name, self._generation, {})  # only if it is still the group's
            self._generation = self._table.begin(self._name, by_topic)
            self.committed()
        by_metadata: dict[str | None, dict[str, dict[int, int]]] = {}
        for (topic, number), (_, value) in offsets.items():
            by_metadata.setdefault(value.metadata, {}).setdefault(topic, {})[number] = value.offset
        for metadata, those in by_metadata.items():
            self._table.append(self._name, self._generation, those, metadata=metadata)
        self._wrote = time.monotonic()
        self._written.update({(partition, id): value.offset for partition, (id, value) in offsets.items()})

    def _goes_back(self, offsets: Mapping[TopicPartition, tuple[str, OffsetAndMetadata]]) -> bool:
        """Whether an offset is lower than what is committed, or of a topic that was created again. In a generation, offsets only rise."""
        ids = {partition.topic: id for partition, (id, _) in offsets.items()}
        return any(
            ids.get(partition.topic, id) != id or (partition in offsets and offsets[partition][1].offset < offset)
            for (partition, id), offset in self._written.items()
        )

    def auto_commit(self, positions: Callable[[], Mapping[TopicPartition, tuple[str, int]]], *, at_once: bool = False) -> None:
        """Commits those positions that are not committed, if that is due or asked for; and once a minute, says that the consumer is there.

        What fails is tried again after an interval. GenerationFenced as in `commit`.
        """
        now = time.monotonic()
        due = self._interval_s is not None and (at_once or now - self._tried >= self._interval_s)
        try:
            if due:
                self._tried = now
                wanted = {partition: (id, OffsetAndMetadata(offset)) for partition, (id, offset) in positions().items()}
                changed = {key: value for key, value in wanted.items() if self._written.get((key, value[0])) != value[1].offset}
                if changed:
                    self.commit(changed)
            if now - self._wrote >= _HEARTBEAT_S:
                self._wrote = now
                self._table.append(self._name, self._generation, {})
        except GenerationFenced:
            raise
        except SparklogError as error:
            _log.warning("The positions of group %s could not be committed: %s", self._name, error)

    def end(self) -> None:
        """Says that the consumer ended."""
        self._table.end(self._name, self._generation)
