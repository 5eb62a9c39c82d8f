"""The page's answers about topics: partitions, segments, commits."""

from __future__ import annotations

from itertools import islice
from typing import Any

from starlette.requests import Request

from sparklog import arguments
from sparklog.log.commits import Commit
from sparklog.log.description import describe, routing_now
from sparklog.log.hot_slots import HotSlots
from sparklog.log.keys import Key
from sparklog.log.summary import Summary
from sparklog.ondisk.reader import PartitionReader
from sparklog.ondisk.routing import Past
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog
from sparklog.ondisk.topic_logs import TopicLogs
from sparklog.ondisk.totals import Totals
from sparklog.ondisk.version import Segment
from sparklog.ui import query
from sparklog.ui.records import KEY_BYTES, MERGED_MAX, ROWS_MAX, PagedRecords, Search, header_of, rows_of, shown
from sparklog.ui.responses import text_of

_SEGMENTS_MAX = 200
_MAP_PARTITIONS = 64
_MAP_RUNS = 256
_COMMITS_MAX = 200
_COMMITS_BACK = 5_000
_PART_BYTES = 65_536
_PART_BYTES_MAX = 1 << 20
_HEADERS_MAX = 200
_REROUTES_MAX = 50
_TAKERS = 10
_HOT_SLOTS = 5
_SAMPLE = 1_000
_HEADER_BYTES = 4_096


def opened(logs: TopicLogs, request: Request) -> tuple[TopicLog, State]:
    """The topic that a request names, in its newest state."""
    log = logs.log(arguments.topic(request.path_params["topic"]))
    return log, log.newest()


def topic(logs: TopicLogs, request: Request) -> dict[str, Any]:
    """A topic, and each of its partitions."""
    log, _ = opened(logs, request)
    return describe(log)


def records(logs: TopicLogs, request: Request) -> dict[str, Any]:
    """A page of records, or the records of a search. If there are too many partitions, it has no records, and `most` is the limit."""
    log, state = opened(logs, request)
    count = min(max(query.number(request, "limit", 100), 1), ROWS_MAX)
    partition = query.maybe_number(request, "partition")
    begin, before = query.cursor(request, "from", state, partition), query.cursor(request, "before", state, partition)
    newest_first = query.word(request, "order", ("newest", "oldest")) == "newest"
    partitions = arguments.partitions(state, log.root, partition)
    wanted = Search(query.given_bytes(request, "key"), None, query.given_bytes(request, "contains"))
    searched = wanted != (None, None, None)
    if wanted.key is not None and partition is None:
        key = Key.of(state, wanted.key)
        partitions, wanted = key.partitions(log, state), wanted._replace(routes=key.may_be_in)
    too_many = len(partitions) > MERGED_MAX and not searched
    if too_many:
        partitions = []
    since, until = query.millis(request, "since"), query.millis(request, "until")
    if since is not None and until is not None and until <= since:
        raise query.refused("until", request.query_params["until"], "it is not after the time to begin at, so no record can be in between")
    found = PagedRecords(log, state, partitions, since, until)
    ranges = found.ranges
    about = {
        "topic": state.topic,
        "partitions": state.partitions,
        "searched": len(partitions),
        "version": state.version,
        "ranges": [[each.partition, each.low, each.high] for each in ranges[:MERGED_MAX]],
        "offsets": sum(each.high - each.low for each in ranges),
    }
    if searched:
        given = (before if newest_first else begin) or {}
        at = next(iter(given.items()), None)
        result = found.search(wanted, at, count, newest_first=newest_first)
        return about | {
            "rows": result.rows,
            "scanned": result.scanned,
            "next": None if result.next is None else f"{result.next[0]}:{result.next[1]}",
        }
    backwards = before is not None or (begin is None and newest_first)
    page = found.before(before or {}, count) if backwards else found.after(begin or {}, count)
    return about | {
        "rows": page.rows,
        "older": _cursor(page.older),
        "newer": _cursor(page.newer),
        "most": MERGED_MAX if too_many else None,
        "moved": _moved(state, begin or before or {}),
    }


def _cursor(positions: dict[int, int] | None) -> str | None:
    return None if positions is None else ",".join(f"{partition}:{offset}" for partition, offset in positions.items())


def _moved(state: State, asked: dict[int, int]) -> list[dict[str, int]]:
    """The requested offsets that do not exist, or no longer exist."""
    return [
        {"partition": each, "asked": offset, "start": state.starts[each], "end": state.ends[each]}
        for each, offset in asked.items()
        if not state.starts[each] <= offset <= state.ends[each]
    ]


def record(logs: TopicLogs, request: Request) -> dict[str, Any]:
    """One record: its segment, and a part of its key and of its value, in hex."""
    log, state = opened(logs, request)
    (partition,) = arguments.partitions(state, log.root, request.path_params["partition"])
    offset = request.path_params["offset"]
    arguments.offsets(state, log.root, "offset", offset, [partition], state.starts)
    size = min(query.number(request, "bytes", _PART_BYTES), _PART_BYTES_MAX)
    for batch in PartitionReader(log, state, partition).records(offset, min(offset + 1, state.ends[partition])):
        (row,) = rows_of(batch)
        headers = batch.column("headers")[0]
        listed = headers.values.slice(0, _HEADERS_MAX) if headers.is_valid else []
        (segment,) = log.segments(state, partition, offset, offset + 1)
        return row | {
            "topic": state.topic,
            "start": state.starts[partition],
            "end": state.ends[partition],
            "key": _part(batch.column("key")[0].as_buffer(), query.number(request, "key", 0), size),
            "value": _part(batch.column("value")[0].as_buffer(), query.number(request, "value", 0), size),
            "headers": [header_of(each, _HEADER_BYTES) for each in listed],
            "segment": _segment(segment),
        }
    return {"topic": state.topic, "partition": partition, "offset": offset, "start": state.starts[partition], "end": state.ends[partition]}


def _part(data: Any, begin: int, size: int) -> dict[str, Any] | None:
    if data is None:
        return None
    return {"size": len(data), "from": begin, "hex": bytes(memoryview(data)[begin : begin + size]).hex()}


def value(logs: TopicLogs, request: Request) -> tuple[str, bytes]:
    """A name for a file, and the whole value (or key) of a record."""
    log, state = opened(logs, request)
    (partition,) = arguments.partitions(state, log.root, request.path_params["partition"])
    offset = request.path_params["offset"]
    arguments.offsets(state, log.root, "offset", offset, [partition], state.starts)
    column = query.word(request, "column", ("value", "key"))
    for batch in PartitionReader(log, state, partition).records(offset, min(offset + 1, state.ends[partition]), columns=[column]):
        return f"{state.topic}-{partition}-{offset}.{column}", batch.column(0)[0].as_py() or b""
    raise query.refused("offset", offset, "no record has this offset")


def segments(logs: TopicLogs, request: Request) -> dict[str, Any]:
    """Segments of a partition, from a number on; and the segments of many partitions as runs, for a picture."""
    log, state = opened(logs, request)
    partition = query.maybe_number(request, "partition")
    about = {"topic": state.topic, "partitions": state.partitions, "version": state.version, "committed_at": state.time}
    if partition is None:
        first = min(query.number(request, "first", 0), state.partitions)
        shown = range(first, min(first + _MAP_PARTITIONS, state.partitions))
        return about | {"first": first, "map": [_runs(log, state, each) for each in shown]}
    (partition,) = arguments.partitions(state, log.root, partition)
    first = query.number(request, "first", 0)
    found = list(islice(log.segments(state, partition), first, first + _SEGMENTS_MAX))
    total = Totals.of(log.segments(state, partition))
    return about | {
        "partition": partition,
        "start": state.starts[partition],
        "end": state.ends[partition],
        "first": first,
        "total": total._asdict(),
        "segments": [_segment(each) for each in found],
    }


def _segment(segment: Segment) -> dict[str, Any]:
    return segment._asdict()


def _runs(log: TopicLog, state: State, partition: int) -> dict[str, Any]:
    """The segments of a partition, the smallest neighbours joined if there are too many: base, end, bytes, segments, newest time."""
    found = [[each.base, each.end, each.bytes, 1, each.max_timestamp] for each in log.segments(state, partition)]
    count = len(found)
    joined = -(-count // _MAP_RUNS) or 1
    runs = []
    for first in range(0, count, joined):
        part = found[first : first + joined]
        runs.append([part[0][0], part[-1][1], sum(each[2] for each in part), len(part), max(each[4] for each in part)])
    return {"partition": partition, "start": state.starts[partition], "end": state.ends[partition], "segments": count, "runs": runs}


def commits(logs: TopicLogs, request: Request) -> dict[str, Any]:
    """Commits, the newest first; `before` is a version."""
    log, state = opened(logs, request)
    before = query.number(request, "before", state.version + 1)
    count = min(max(query.number(request, "limit", 50), 1), _COMMITS_MAX)
    back = max(0, state.version + 1 - before)
    if back > _COMMITS_BACK:
        raise query.refused("before", before, f"the page shows the newest {_COMMITS_BACK:,} commits; Topic.commits() has all of them")
    listed = log.history(back + count)
    versions = listed[: len(listed) - back][-count:]
    more = bool(versions) and versions[0].version > 0 and len(listed) == back + count
    return {
        "topic": state.topic,
        "version": state.version,
        "commits": [_commit(Commit.of(each), each.time) for each in versions[::-1]],
        "next": versions[0].version if more else None,
    }


def _commit(commit: Commit, millis: int) -> dict[str, Any]:
    names = ("version", "operation", "writer", "txn", "query", "epoch", "input", "records", "bytes", "segments", "removed")
    return {name: getattr(commit, name) for name in names} | {"time": millis}


def slots(logs: TopicLogs, request: Request) -> dict[str, Any]:
    """How the topic routes, its newest re-routes, the newest first, and the busiest slots of a sample. `routing` is None without slots."""
    log, state = opened(logs, request)
    found, routing = HotSlots.of(log, state, _HOT_SLOTS, _SAMPLE), state.routing
    return {
        "topic": state.topic,
        "partitions": state.partitions,
        "pending_weights": state.pending_weights,
        "routing": routing and {**routing_now(state, routing), "reroutes": len(routing.past)},
        "reroutes": [_reroute(each) for each in routing.past[: -_REROUTES_MAX - 1 : -1]] if routing else [],
        "sampled": [[partition, records] for partition, records in found.sampled.items()],
        "with_slots": found.partitions,
        "hot": [{**vars(each), "busiest": [[shown(key, KEY_BYTES), records] for key, records in each.busiest]} for each in found],
    }


def _reroute(past: Past) -> dict[str, Any]:
    return {
        "version": past.version,
        "slots": sum(len(slots) for _, slots in past.moved),
        "partitions": len(past.moved),
        "to": [partition for partition, _ in past.moved[:_TAKERS]],
    }


def line(summary: Summary) -> dict[str, Any]:
    """A line about a topic: its content, or why it cannot be read."""
    found = summary.as_dict()
    if summary.error is not None:
        found["error"] = {"condition": summary.error.condition, "text": text_of(summary.error)}
    return found
