"""Rules that writers keep and readers do not check: the changes that each kind of version may make. FORMAT.md sections 5 and 7."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from sparklog.batches.header import decompressed_max
from sparklog.ondisk.reroute import Binding, Reroute
from sparklog.ondisk.routing import Routing
from sparklog.ondisk.state import State
from sparklog.ondisk.version import Version
from sparklog.verify.checkpoints import Queries
from sparklog.verify.report import DAMAGE

# Which of these a version of an operation changes. An operation that is not listed is not of this format, and may change anything.
_CHANGES = {
    "create": {"ends", "added"},
    "write": {"ends", "added", "bindings"},
    "merge": {"removed", "added"},
    "delete-records": {"starts", "removed"},
    "alter": {"config"},
    "reroute": {"config", "partitions", "routing"},
    "vacuum": {"horizon"},
    "delete": {"horizon", "deleted"},
}


class Writers:
    """Remembers values that no later version may use again."""

    def __init__(self) -> None:
        self._txns: dict[str, int] = {}
        self._gone: dict[str, int] = {}
        self._times: dict[int, int] = {}

    def problems(self, before: State | None, version: Version, queries: Queries) -> Iterator[tuple[str, str, str]]:
        """Severity, condition and text of each rule that the version breaks, as the successor of the state before."""
        if version.txn in self._txns:
            yield DAMAGE, "EPOCH_TWICE", f"it has the `txn` of version {self._txns[version.txn]}"
        self._txns[version.txn] = version.version
        self._times[version.version] = version.time
        for segment in version.added:
            if segment.file in self._gone:
                yield DAMAGE, "VERSION_ODD", f"it adds {segment.file}, which version {self._gone[segment.file]} removed: it may be deleted"
        self._gone |= {segment.file: version.version for segment in version.removed}
        if version.horizon > version.version + 1:
            yield DAMAGE, "VERSION_ODD", f"its `horizon` is {version.horizon}: no write can commit before that version"
        passed = version.rebuilt.passed if version.rebuilt else ()
        for older, newer in itertools.pairwise(passed):
            if sum(newer.own) - sum(older.own) > sum(newer.origin) - sum(older.origin):
                yield DAMAGE, "VERSION_ODD", f"`rebuilt` has more records up to {list(newer.own)} than offsets up to {list(newer.origin)}"
        known = before if before and not before.deleted else None
        for name, offsets, named in (
            ("starts", known.starts if known else (), version.starts),
            ("ends", known.ends if known else (), version.ends),
        ):
            if still := named.keys() - _moved(offsets, named):
                yield DAMAGE, "VERSION_ODD", f"`{name}` names partition {min(still)}, whose offset stays"
        if before is None or before.deleted:
            return
        kept_ms = int(before.config.get("versions.keep.ms", "0"))
        if before.boundary < version.boundary and not version.deleted:
            above = [time for number, time in self._times.items() if version.boundary <= number < version.version]
            if above and all(abs(version.time - time) < kept_ms for time in above):
                problem = f"it raises the `boundary` to {version.boundary}, and no version from there on is `versions.keep.ms` old"
                yield DAMAGE, "VERSION_ODD", problem
        query = version.query
        if query and query.id in queries and query.epoch <= queries[query.id][0]:
            yield DAMAGE, "EPOCH_TWICE", f"it has epoch {query.epoch} of a query whose epoch {queries[query.id][0]} the topic has already"
        allowed = _CHANGES.get(version.operation)
        changed = _changed(before, version)
        if allowed is not None and (odd := sorted(changed - allowed)):
            yield DAMAGE, "VERSION_ODD", f"its operation is {version.operation}, and it changes {', '.join(f'`{name}`' for name in odd)}"
        slots = len(Routing.modulo(before.partitions).table)
        if isinstance(version.routing, Reroute) and not before.routing and version.routing.slots != slots:
            yield DAMAGE, "VERSION_ODD", f"it begins {version.routing.slots} slots for {before.partitions} partitions"
        yield from _over_cuts(before, version)
        config = {**before.config, **version.config}
        for key, default in (("partitioner", ""), ("placement", "modulo"), ("placement.slots", "65536")):
            if config.get(key, default) != before.config.get(key, default):
                yield DAMAGE, "VERSION_ODD", f"it changes the `{key}`: keys are no longer where readers look for them"
        if decompressed_max(int(config["max.message.bytes"])) < decompressed_max(int(before.config["max.message.bytes"])):
            yield DAMAGE, "VERSION_ODD", "it lowers `max.message.bytes`: larger batches can no longer be read"


def _over_cuts(before: State, version: Version) -> Iterator[tuple[str, str, str]]:
    routing = before.routing_if_known
    for segment in version.added if routing else ():
        assert routing
        first, last = (routing.reroutes_before(segment.partition, offset) for offset in (segment.base, segment.end - 1))
        if first < last:
            yield DAMAGE, "VERSION_ODD", f"it joins segments of partition {segment.partition} over a re-route, at offset {segment.base}"


def _moved(before: Sequence[int], named: Mapping[int, int]) -> set[int]:
    """The partitions that are named with another offset than before. The offset of a partition that was not there was 0."""
    return {partition for partition, offset in named.items() if offset != (before[partition] if partition < len(before) else 0)}


def _changed(before: State, version: Version) -> set[str]:
    parts = {
        "partitions": version.config.get("partitions", str(before.partitions)) != str(before.partitions),
        "starts": bool(_moved(before.starts, version.starts)),
        "ends": bool(_moved(before.ends, version.ends)),
        "config": bool(version.config),
        "routing": isinstance(version.routing, Reroute),
        "bindings": isinstance(version.routing, Binding),
        "removed": bool(version.removed),
        "added": bool(version.added),
        "horizon": version.horizon != before.horizon,
        "deleted": version.deleted,
    }
    return {name for name, differs in parts.items() if differs}
