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


class Group:
    """A generation of a group. It begins when this is made, and ends the one before."""

    def __init__(self, root: str, name: str, table: str | os.PathLike[str] | OffsetTable, interval_s: float | None) -> None:
        """`interval_s`: how often `auto_commit` commits; None for never."""
        from sparklog.offsets import OffsetTable, Owner
        from sparklog.offsets.topics import Topics

        opened = table if isinstance(table, OffsetTable) else OffsetTable(table, root)
        if opened.root != root:
            reason = f"it was opened with the root {opened.root}, and the consumer reads {root}: give one of the same root"
            raise SparklogError("OPTION_VALUE", option="table", value=opened.path, reason=reason)
        self._name = name
        self._interval_s = interval_s
        self._tried = time.monotonic()
        self._topics = Topics(root, opened.path)
        self._owner = Owner(opened, name)

    def committed(self) -> dict[tuple[TopicPartition, str], OffsetAndMetadata]:
        """The committed offsets, by partition and topic id."""
        return {
            (TopicPartition(each.topic, each.partition), each.topic_id): OffsetAndMetadata(each.offset, each.metadata)
            for each in self._owner.positions()
        }

    def commit(self, offsets: Mapping[TopicPartition, tuple[str, OffsetAndMetadata]]) -> None:
        """Commits offsets, each given with the topic id. GenerationFenced if another generation has begun."""
        ids = {topic: id for (topic, _), (id, _) in offsets.items()}
        by_topic: dict[str, dict[int, int]] = {}
        for (topic, number), (_, value) in offsets.items():
            by_topic.setdefault(topic, {})[number] = value.offset
        self._owner.commit(by_topic, ids, metadata={partition: value.metadata for partition, (_, value) in offsets.items()})

    def auto_commit(self, positions: Callable[[], Mapping[TopicPartition, tuple[str, int]]], *, at_once: bool = False) -> None:
        """Commits those positions that are not committed, if that is due or asked for; and once a minute, says that the consumer is there.

        What fails is tried again after an interval. GenerationFenced as in `commit`. A topic that was deleted or created again is left
        out, and does not keep the others from being committed.
        """
        now = time.monotonic()
        due = self._interval_s is not None and (at_once or now - self._tried >= self._interval_s)
        try:
            if due:
                self._tried = now
                changed = {
                    partition: (id, OffsetAndMetadata(offset))
                    for partition, (id, offset) in positions().items()
                    if not self._owner.is_committed(partition.topic, id, partition.partition, offset) and self._has(partition.topic, id)
                }
                if changed:
                    self.commit(changed)
            self._owner.beat()
        except GenerationFenced:
            raise
        except SparklogError as error:
            _log.warning("The positions of group %s could not be committed: %s", self._name, error)

    def end(self) -> None:
        """Says that the consumer ended."""
        self._owner.end()

    def _has(self, topic: str, id: str) -> bool:
        state = self._topics.find_state(topic)
        return state is not None and state.topic_id == id
