"""The state of a topic at one version, and how a version changes it. FORMAT.md sections 5, 6 and 9."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sparklog.batches.faults import TooNew, Unreadable
from sparklog.errors import SparklogError
from sparklog.ondisk.checkpoint import Checkpoint
from sparklog.ondisk.config import PARTITIONS_MAX, binds_slots, is_known_to, require_known_to, require_placement, require_readable, usable
from sparklog.ondisk.features import Binds, Feature, Features
from sparklog.ondisk.reroute import Binding, Reroute
from sparklog.ondisk.routing import SLOTS, Routing
from sparklog.ondisk.version import Segment, Version
from sparklog.store.store import Damaged


class LiveSegments:
    """The live segments of one partition in order of offsets: segments of a checkpoint, then segments that later versions added.

    The lines of the checkpoint are parsed when they are needed. Unreadable if that fails.
    """

    def __init__(self, partition: int, checkpoint: Checkpoint | None, later: Iterable[Segment] = ()) -> None:
        self._partition = partition
        self._checkpoint = checkpoint
        self._later = list(later)
        self._lines = checkpoint.segments(partition) if checkpoint else ()

    def followed_by(self, added: Iterable[Segment]) -> LiveSegments:
        """These segments, then the segments that a version added."""
        return LiveSegments(self._partition, self._checkpoint, [*self._later, *added])

    def __len__(self) -> int:
        return len(self._lines) + len(self._later)

    def __getitem__(self, number: int) -> Segment:
        lines = self._lines
        if number >= len(lines):
            return self._later[number - len(lines)]
        assert self._checkpoint
        return self._checkpoint.segment(lines[number], self._partition)

    def all(self) -> list[Segment]:
        """All of them. Unreadable if the segments of the checkpoint do not hold the offsets that it gives the partition."""
        segments = [self[number] for number in range(len(self))]
        if self._checkpoint:
            head = self._checkpoint.head
            own = segments[: len(self._lines)]
            if lack := _lack(own, head.starts[self._partition], head.ends[self._partition]):
                raise Unreadable(f"it leaves partition {self._partition} {lack}")
        return segments

    def find(self, offset: int) -> int:
        """The number of the last segment whose base offset is `offset` or lower; −1 without such a segment."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self[middle].base <= offset:
                low = middle + 1
            else:
                high = middle
        return low - 1


@dataclass(frozen=True, eq=False)
class State:
    """The committed state of a topic at one version. It never changes: a later version makes another state."""

    topic: str
    topic_id: str
    version: int
    hash: str
    time: int
    horizon: int
    boundary: int
    deleted: bool
    """Whether its version deleted the topic: then only the facts count that the next version must follow."""
    features: Features
    config: Mapping[str, str]
    routing_if_known: Routing | None
    """None while the topic has no slots, or if a feature or a setting that decides where keys go is unknown."""
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    checkpoint: str | None
    """The name of the checkpoint that this state was loaded from."""
    live: tuple[LiveSegments, ...]

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> State:
        """The state that a checkpoint holds."""
        live = (LiveSegments(partition, checkpoint) for partition in range(len(checkpoint.head.ends)))
        head = checkpoint.head._asdict()
        del head["producers"]
        return cls(topic=checkpoint.topic, **head, checkpoint=checkpoint.name, live=tuple(live))

    @classmethod
    def first(cls, topic: str, version: Version, checkpoint: str | None = None) -> State:
        """The state at a version that begins a topic. Damaged if that version breaks a rule."""
        require_readable(version.config)
        partitions = int(version.config["partitions"])
        starts, ends = _bounds_after((), (), version, partitions)
        if version.rebuilt and not version.rebuilt.leads(starts, ends):
            raise Damaged("`passed` does not lead from the starts of the topic to its ends")
        none = tuple(LiveSegments(partition, None) for partition in range(partitions))
        routing = None
        routes = _routes(version, version.config)
        if routes and isinstance(version.routing, Binding) and version.features.has(Feature.UNBOUND):
            slots = int(version.config.get("placement.slots", SLOTS))
            routing = Routing.unbound(partitions, slots).bound(version.routing)
        elif routes and (version.routing or version.features.has(Feature.UNBOUND)):
            raise Damaged("it begins a topic, and is a re-route, or lacks the routing of slots without partitions")
        # A topic may begin at any offsets.
        live = _live_after(none, starts, version, starts, ends)
        return cls._at(topic, version, version.config, routing, checkpoint, live, starts, ends)

    @classmethod
    def _at(
        cls,
        topic: str,
        version: Version,
        config: Mapping[str, str],
        routing: Routing | None,
        checkpoint: str | None,
        live: tuple[LiveSegments, ...],
        starts: tuple[int, ...],
        ends: tuple[int, ...],
    ) -> State:
        if routes := _routes(version, config):
            require_placement(config, version.features, routed=routing is not None)
        return cls(
            topic=topic,
            topic_id=version.topic_id,
            version=version.version,
            hash=version.hash,
            time=version.time,
            horizon=version.horizon,
            boundary=version.boundary,
            deleted=version.deleted,
            features=version.features,
            config=config,
            routing_if_known=routing if routes else None,
            starts=ends if version.deleted else starts,
            ends=ends,
            checkpoint=checkpoint,
            live=tuple(LiveSegments(partition, None) for partition in range(len(ends))) if version.deleted else live,
        )

    @property
    def routing(self) -> Routing | None:
        """None while the topic has no slots. FORMAT_TOO_NEW if a feature or a setting that decides where keys go is unknown."""
        self.require_known_to(Binds.KEY_READERS)
        return self.routing_if_known

    def require_known_to(self, programs: Binds) -> None:
        """Refuses the topic to programs that an unknown feature or an unknown value of a setting binds: FORMAT_TOO_NEW."""
        try:
            require_known_to(programs, self.features, None if self.deleted else self.config)
        except TooNew as reason:
            file = f"Version {self.version} of topic {self.topic}"
            raise SparklogError("FORMAT_TOO_NEW", file=file, reason=reason) from None

    def is_known_to(self, programs: Binds) -> bool:
        """Whether this version of sparklog knows all features and settings that bind these programs."""
        return is_known_to(programs, self.features, None if self.deleted else self.config)

    @property
    def binds(self) -> bool:
        """Whether slots get a partition when they are first used."""
        return binds_slots(self.config)

    @property
    def partitions(self) -> int:
        """The number of partitions."""
        return len(self.ends)

    @property
    def pending_weights(self) -> list[int] | None:
        """The weights that the topic is to be re-routed to before the next write; there may be more than partitions."""
        return self._wanted("routing.pending.weights")

    def shares(self, now_ms: float) -> list[int] | None:
        """The shares of partitions in the slots that get a partition next. If this is None, the weights are the shares."""
        shares = self._wanted("placement.shares", now_ms) if self.binds else None
        return shares if shares and len(shares) == self.partitions else None

    def _wanted(self, key: str, now_ms: float = 0) -> list[int] | None:
        """The numbers by partition that a value asks for. None if the value has no effect on this state. FORMAT.md section A.6."""
        epoch, *rest = usable(self.config, key, "none").split(":")
        routing = self.routing_if_known
        now, weights = (routing.epoch, routing.weights) if routing else (0, (1,) * self.partitions)
        if not self.is_known_to(Binds.KEY_READERS) or epoch != str(now) or (len(rest) > 1 and int(rest[0]) <= now_ms):
            return None
        wanted = [int(number) for number in rest[-1].split(",")]
        opens = any(number and not weight for weight, number in zip(weights, wanted, strict=False))
        return wanted if len(weights) <= len(wanted) <= PARTITIONS_MAX and any(wanted) and not opens else None

    def unread(self, partition: int, position: int) -> int:
        """How many offsets a reader at this position has before it: only offsets of the log, so expired offsets do not count as lag."""
        return unread(position, self.starts[partition], self.ends[partition])

    def segments(self, partition: int, start: int, end: int) -> Iterator[Segment]:
        """The segments that hold the offsets from `start` to before `end`. These offsets must be between the partition's start and its end.

        Unreadable if the checkpoint proves to be damaged, which a reader can notice after the first segments.
        """
        if start >= end:
            return
        live = self.live[partition]
        number = live.find(start)
        segment = live[number] if number >= 0 else None
        if not segment or segment.end <= start:
            raise Unreadable(f"it has no segment of partition {partition} with offset {start}")
        reached = live[number - 1].end if number else 0
        if not reached <= segment.base <= max(reached, self.starts[partition]):
            raise Unreadable(f"it leaves partition {partition} with a gap or an overlap at offset {segment.base}")
        while start < end:
            assert segment
            number += 1
            following = live[number] if number < len(live) else None
            if segment.end != (following.base if following else self.ends[partition]):
                raise Unreadable(f"it leaves partition {partition} with a gap or an overlap at offset {segment.end}")
            yield segment
            start, segment = segment.end, following

    def agrees_with(self, version: Version) -> bool:
        """Whether a checkpoint agrees with the file of its version."""
        names = ("topic_id", "time", "horizon", "boundary", "deleted", "features")
        routing, change = self.routing_if_known, version.routing if self.is_known_to(Binds.KEY_READERS) else None
        return (
            (change is None or (routing is not None and routing.agrees_with(change)))
            and all(getattr(self, name) == getattr(version, name) for name in names)
            and self.has_offsets(version)
            and version.config.items() <= self.config.items()
        )

    def has_offsets(self, version: Version) -> bool:
        """Whether each offset that a version names is the one here."""
        return all(
            partition < len(here) and here[partition] == offset
            for here, named in ((self.starts, version.starts), (self.ends, version.ends))
            for partition, offset in named.items()
        )

    def precedes(self, version: Version) -> bool:
        """Whether a version was written as the successor of this state's version."""
        return version.previous == self.hash and (version.topic_id == self.topic_id) != self.deleted

    def followed_by(self, version: Version) -> State:
        """The state after the next version, which this state must precede.

        Damaged if that version cannot come next; Unreadable if the checkpoint is damaged.
        """
        assert self.precedes(version)
        if version.horizon < self.horizon or version.boundary < self.boundary:
            raise Damaged("its horizon or its boundary falls")
        if self.deleted:
            return self.first(self.topic, version, self.checkpoint)
        if version.rebuilt:
            raise Damaged("it is of a topic that was rebuilt, and begins none")
        if not version.deleted and self.features.words.items() - version.features.words.items():
            raise Damaged("it lacks a feature that the topic has")
        config = {**self.config, **version.config}
        require_readable(config)
        partitions = int(config["partitions"])
        if partitions < self.partitions:
            raise Damaged(f"it has {partitions} partitions where there were {self.partitions}")
        starts, ends = _bounds_after(self.starts, self.ends, version, partitions)
        # Partitions that are added to a topic begin at offset 0.
        new = range(self.partitions, partitions)
        reached = (*self.ends, *[0] * len(new))
        routing = self._routing_after(version, reached, starts) if _routes(version, config) else None
        live = (*self.live, *(LiveSegments(partition, None) for partition in new))
        live = _live_after(live, reached, version, starts, ends)
        return self._at(self.topic, version, config, routing, self.checkpoint, live, starts, ends)

    def _routing_after(self, version: Version, reached: tuple[int, ...], starts: tuple[int, ...]) -> Routing | None:
        """The routing after the next version, which does not end the topic. Before it, the partitions end at `reached`."""
        routing, change = self.routing_if_known, version.routing
        if isinstance(change, Reroute):
            if not routing and change.slots % self.partitions:
                raise Damaged(f"its slots are no multiple of {self.partitions} partitions")
            routing = routing or Routing.modulo(self.partitions, change.slots)
            routing = routing.followed_by(change, version.version, reached)
        elif len(reached) != self.partitions:
            raise Damaged("it adds partitions without a re-route")
        elif change:
            if not routing:
                raise Damaged("it binds slots, and the topic has none")
            routing = routing.bound(change)
        return routing and routing.since(starts)

    def reroutes_before(self, segment: Segment) -> int:
        """The number of re-routes that a segment comes after. Only re-routes with records from before them count."""
        return self.routing.reroutes_before(segment.partition, segment.base) if self.routing else 0


def unread(position: int, start: int, end: int) -> int:
    """How many offsets of a partition, from its log start offset to its end offset, are at a position or after it."""
    return max(0, end - max(position, start))


def _routes(version: Version, config: Mapping[str, str]) -> bool:
    """Whether the topic exists after this version, and all that decides where its keys go is known."""
    return not version.deleted and is_known_to(Binds.KEY_READERS, version.features, config)


def _bounds_after(
    starts: tuple[int, ...], ends: tuple[int, ...], version: Version, partitions: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The starts and ends after a version, by those before; of none where it begins a topic. Damaged if the version breaks a rule."""
    segments = (each.partition for entries in (version.added, version.removed) for each in entries)
    if (greatest := max(itertools.chain(version.starts, version.ends, segments), default=0)) >= partitions:
        raise Damaged(f"it names partition {greatest} of {partitions}")
    starts, ends = _put(starts, version.starts, partitions), _put(ends, version.ends, partitions)
    if any(starts[partition] > ends[partition] for partition in version.starts):
        raise Damaged("a partition starts after its end")
    return starts, ends


def _put(before: tuple[int, ...], named: Mapping[int, int], partitions: int) -> tuple[int, ...]:
    if not named and len(before) == partitions:
        return before
    after = [*before, *[0] * (partitions - len(before))]
    for partition, offset in named.items():
        if offset < after[partition]:
            raise Damaged(f"the offset where partition {partition} starts or ends falls")
        after[partition] = offset
    return tuple(after)


def _live_after(
    before: Sequence[LiveSegments], reached_before: Sequence[int], version: Version, starts: Sequence[int], ends: Sequence[int]
) -> tuple[LiveSegments, ...]:
    """The live segments after a version. Before it, the partitions have these live segments and these end offsets."""
    live = list(before)
    added: dict[int, list[Segment]] = {}
    for segment in version.added:
        added.setdefault(segment.partition, []).append(segment)
    removed: dict[int, set[tuple[str, int]]] = {}
    for segment_removed in version.removed:
        removed.setdefault(segment_removed.partition, set()).add((segment_removed.file, segment_removed.position))
    if sum(map(len, removed.values())) < len(version.removed):
        raise Damaged("it removes a segment twice")
    for partition in sorted({*added, *removed, *version.ends}):
        end_before, end = reached_before[partition], ends[partition]
        reached = end_before
        replaces = partition in removed
        for segment in added.get(partition, ()):
            # A segment that begins below the old end takes the place of segments that are gone.
            if segment.base < end_before:
                replaces = True
            elif segment.base != reached:
                raise Damaged(f"it adds to partition {partition}, which ends at offset {reached}, at offset {segment.base}")
            else:
                reached = segment.end
        if reached != end:
            raise Damaged(f"what it adds to partition {partition} ends at offset {reached}, not at {end}")
        if replaces:
            live[partition] = _replaced(live[partition], partition, removed.get(partition, set()), added.get(partition, []))
            if lack := _lack(live[partition].all(), starts[partition], end):
                raise Damaged(f"it leaves partition {partition} {lack}")
        elif partition in added:
            live[partition] = live[partition].followed_by(added[partition])
    return tuple(live)


def _replaced(before: LiveSegments, partition: int, removed: set[tuple[str, int]], added: list[Segment]) -> LiveSegments:
    """The live segments of a partition after others were added and some removed: all with these files and positions."""
    live = before.all()
    kept = [segment for segment in live if (segment.file, segment.position) not in removed]
    if removed - {(segment.file, segment.position) for segment in live}:
        raise Damaged(f"it removes a segment of partition {partition} that is not live")
    return LiveSegments(partition, None, sorted(kept + added, key=lambda segment: segment.base))


def _lack(segments: Sequence[Segment], start: int, end: int) -> str | None:
    """The reason why segments in order of offsets do not hold each offset from `start` to before `end` once; None if they do."""
    reached = segments[0].base if segments else end
    if reached > start:
        return "without its first offsets"
    for segment in segments:
        # Segments below the start may be gone, so only what begins above it must follow the one before it.
        if segment.base < reached or segment.base > max(reached, start):
            return f"with a gap or an overlap at offset {reached}"
        reached = segment.end
    return None if max(reached, start) == end else "without its last offsets"
