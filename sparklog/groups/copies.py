"""Copies of groups between their homes: rows of an offset table, and records that a server for Kafka's clients keeps in the root."""

from __future__ import annotations

import base64
import dataclasses
import uuid
from typing import TYPE_CHECKING, Any

from sparklog.errors import SparklogError
from sparklog.groups.commits import OffsetCommit
from sparklog.groups.reset import Move
from sparklog.groups.rows import Position, require_group

if TYPE_CHECKING:
    from sparklog.groups.snapshots import GroupSnapshot
    from sparklog.groups.table.offset_table import OffsetTable
    from sparklog.groups.topic.topic_groups import TopicGroups

_TIMEOUT_MS = 30_000


@dataclasses.dataclass(frozen=True)
class Copy:
    """The moves of a group in its other home. `left_out` has the positions whose topic was deleted or created again."""

    moves: list[Move]
    left_out: list[Position]

    @classmethod
    def of(cls, source: GroupSnapshot, before: list[Position]) -> Copy:
        """The copy of a group. `before` has the positions of the group in the other home."""
        at = {(each.topic, each.partition): each for each in before}
        positions = source.positions()
        moves = []
        for each in positions:
            if each.note is None:
                was = at.get((each.topic, each.partition))
                stays = was is not None and (was.topic_id, was.offset) == (each.topic_id, each.offset)
                now = each.offset
                moves.append(Move(each.topic, each.topic_id, each.partition, None if was is None else was.offset, now, stays=stays))
        return cls(moves, [each for each in positions if each.note is not None])


def into_table(source: GroupSnapshot, table: OffsetTable, *, dry_run: bool, force: bool) -> Copy:
    """Copies a group of the root into an offset table, in one commit, by the ids of its topics. A dry run is refused where the copy is.

    Raises:
        CallError: GROUP_RUNNING if a program runs the group in the table, unless `force`; OFFSETS_OUT_OF_RANGE.
        RetryError: TOPIC_RECREATED; OFFSETS_TABLE.
    """
    found = table.generations.group(source.name)
    copy = Copy.of(source, found.positions if found.exists else [])
    if copy.moves:
        table.generations.require_still(found, force=force)
        commits = [OffsetCommit(each.topic, each.partition, each.topic_id, each.now) for each in copy.moves]
        placed = table.topics.rows(require_group(source.name), commits)
        if not dry_run:
            table.generations.follow(source.name, placed)
    return copy


def into_topic(source: GroupSnapshot, groups: TopicGroups, server: str, *, dry_run: bool) -> Copy:
    """Copies a group of an offset table into the root, through a server that serves the root, as a client of the server.

    Raises:
        CallError: SERVE_EXTRA.
        RetryError: GROUP_NOT_COPIED if the server refuses it, such as while the group has members, or serves another root.
    """
    copy = Copy.of(source, _there(groups, source.name))
    if dry_run or not copy.moves:
        return copy
    try:
        _commit(source.name, server, copy)
    except SparklogError:
        raise
    except Exception as error:
        raise _refused(source.name, server, f"{type(error).__name__}: {error}") from error
    after = {(each.topic, each.partition): each.offset for each in _there(groups, source.name)}
    if any(after.get((each.topic, each.partition)) != each.now for each in copy.moves):
        raise _refused(source.name, server, "the root does not have the positions: clients have moved the group on")
    return copy


def _there(groups: TopicGroups, group: str) -> list[Position]:
    return list(groups.group(group).positions()) if group in groups.groups() else []


def _commit(group: str, server: str, copy: Copy) -> None:
    try:
        from kafka import KafkaConsumer, TopicPartition
        from kafka.admin import KafkaAdminClient
        from kafka.structs import OffsetAndMetadata
    except ModuleNotFoundError as error:
        raise SparklogError("SERVE_EXTRA", module=error.name) from None

    servers = server.split(",")
    admin = KafkaAdminClient(bootstrap_servers=servers, bootstrap_timeout_ms=_TIMEOUT_MS)
    try:
        served = {
            str(each["name"]): str(each.get("topic_id")) for each in admin.describe_topics(sorted({each.topic for each in copy.moves}))
        }
    finally:
        admin.close()
    for each in copy.moves:
        if served.get(each.topic) != _as_kafka_shows(each.topic_id):
            raise _refused(group, server, f"it serves another root: its topic {each.topic} does not have the id {each.topic_id}")
    offsets: dict[Any, Any] = {TopicPartition(each.topic, each.partition): OffsetAndMetadata(each.now, "", -1) for each in copy.moves}
    consumer = KafkaConsumer(bootstrap_servers=servers, group_id=group, enable_auto_commit=False, bootstrap_timeout_ms=_TIMEOUT_MS)
    try:
        consumer.assign(list(offsets))
        consumer.commit(offsets, timeout_ms=_TIMEOUT_MS)
    finally:
        consumer.close(autocommit=False)


def _as_kafka_shows(topic_id: str) -> str:
    return str(uuid.UUID(bytes=base64.urlsafe_b64decode(topic_id + "==")))


def _refused(group: str, server: str, cause: str) -> SparklogError:
    return SparklogError("GROUP_NOT_COPIED", group=group, server=server, cause=cause)
