"""The page's answers about groups: their positions, and their lag, now and over time."""

from __future__ import annotations

import datetime
import time
from typing import Any

from starlette.requests import Request

from sparklog.errors import SparklogError
from sparklog.groups import lags
from sparklog.groups.all_groups import AllGroups
from sparklog.groups.snapshots import GroupSnapshot
from sparklog.groups.table.offset_table import OffsetTable
from sparklog.groups.topic.topic_groups import TopicGroups
from sparklog.groups.views import GroupMember
from sparklog.ondisk.topic_logs import TopicLogs
from sparklog.ui.responses import Refused, text_of

_GROUPS_MAX = 500
_LIST_S = 8
_ROWS_MAX = 1_000
_POINTS_MAX = 400
_TEXT_MAX = 500


class GroupPages:
    """The answers about groups of both homes: the offset table of the page, if there is one, and the root."""

    def __init__(self, logs: TopicLogs, path: str | None) -> None:
        self._logs = logs
        self._path = path
        self._topic = TopicGroups(logs)

    def groups(self, request: Request) -> dict[str, Any]:
        """All groups, each with its lag. Groups that it does not reach in time have only the name.

        If the root's topic of groups is damaged, the groups of the table are there, and `unreadable` says why the others are not.
        """
        table = None if self._path is None else OffsetTable(self._logs, self._path)
        exists = table is not None and table.exists()
        errors: list[SparklogError] = []
        there = AllGroups(table if exists else None, self._topic).snapshots(errors.append if exists else None)
        deadline = time.monotonic() + _LIST_S
        found = [_about(each) if time.monotonic() < deadline else _unknown(each) for each in there[:_GROUPS_MAX]]
        return {
            "table": None if table is None else table.path,
            "exists": exists,
            "groups": found,
            "more": max(0, len(there) - _GROUPS_MAX),
            "unreadable": [text_of(each) for each in errors],
        }

    def group(self, request: Request) -> dict[str, Any]:
        """A group: its positions, its lag, its lag over time, and the members that share it."""
        name = request.query_params.get("group", "")
        if request.query_params.get("home") == "topic":
            return {"table": None, **_whole(self._topic.group(name), [])}
        if self._path is None:
            raise Refused(404, "TABLE_NOT_GIVEN", "Such groups are rows of an offset table: start the page with --table PATH.")
        table = OffsetTable(self._logs, self._path)
        found = table.group(name)
        return {"table": table.path, **_whole(found, table.lag_history(name).to_pylist())}


def _whole(found: GroupSnapshot, history: list[dict[str, Any]]) -> dict[str, Any]:
    about = _about(found)
    shares = {(each.topic, each.partition): each for each in found.assignments()}
    for row in about["rows"]:
        share = shares.get((row["topic"], row["partition"]))
        row["owner"] = _text(share.consumer_id if share else None)
        row["waits_for"] = _text(share.waits_for if share else None)
    members = [_member(each) for each in found.members()[:_ROWS_MAX]]
    return {**about, "history": _over_time(history), "commits": len(history), "members": members}


def _member(member: GroupMember) -> dict[str, Any]:
    return {
        "id": _text(member.consumer_id),
        "client": _text(member.client_id),
        "instance": _text(member.instance),
        "host": _text(member.host),
        "partitions": member.partitions,
        "lag": member.lag,
        "to_release": member.to_release,
        "to_take": member.to_take,
        "heartbeat": _millis(member.heartbeat),
    }


def _text(text: str | None) -> str:
    return (text or "")[:_TEXT_MAX]


def _unknown(group: GroupSnapshot) -> dict[str, Any]:
    """A group whose lag is not known: its name and its home."""
    numbers = dict.fromkeys(("generation", "committed_at", "running", "records", "bytes", "seconds"))
    return {"group": group.name, "home": group.home, "topics": [], "rows": [], "errors": [], **numbers}


def _about(group: GroupSnapshot) -> dict[str, Any]:
    short = group.summary
    found: dict[str, Any] = {
        **_unknown(group),
        "generation": short.generation,
        "committed_at": _millis(short.committed_at),
        "running": short.running,
        "topics": short.topics,
    }
    if short.error is not None and short.error.id == "GROUP_STATE":
        found["errors"].append({"topic": None, "condition": short.error.condition, "text": text_of(short.error)})
    written = {(each.topic, each.partition): each for each in group.positions()}
    for topic in found["topics"]:
        try:
            rows = group.lag(topic).to_pylist()
        except SparklogError as error:
            found["errors"].append({"topic": topic, "condition": error.condition, "text": text_of(error)})
            continue
        for row in rows:
            position = written.get((topic, row["partition"]))
            row["committed_at"] = _millis(position.committed_at) if position else None
            row["metadata"] = _text(position.metadata if position else None)
            row["query"] = _text(position.query_id if position else None)
            row["epoch"] = position.epoch if position else None
        found["rows"] += rows
    sums = {key: sum(row[key] or 0 for row in found["rows"]) for key in ("records", "bytes")}
    seconds = [row["seconds"] for row in found["rows"] if row["seconds"] is not None]
    count = len(found["rows"])
    return found | sums | {"seconds": max(seconds, default=None), "rows": found["rows"][:_ROWS_MAX], "more_rows": max(0, count - _ROWS_MAX)}


def _over_time(history: list[dict[str, Any]]) -> list[list[Any]]:
    """The lag of all partitions together, after each commit: time and records. If these are too many, the greatest of each interval."""
    points = [[_millis(at), records] for at, records in lags.together(history)]
    size = -(-len(points) // _POINTS_MAX) or 1
    return [max(points[first : first + size], key=lambda point: point[1]) for first in range(0, len(points), size)]


def _millis(time: datetime.datetime | None) -> int | None:
    return None if time is None else round(time.timestamp() * 1000)
