"""The topic of the model as the store has it, what is known to be true of it, and the rules that a version must keep."""

import random
from typing import NamedTuple

PARTITIONS = 2
CHECKPOINT_EVERY = 2
MERGE_AT = 2


class Violation(Exception):
    pass


class Segment(NamedTuple):
    partition: int
    base: int
    end: int
    file: tuple  # ("d", planned version, txn, name)


class Version(NamedTuple):
    number: int
    topic_id: int
    txn: str
    hash: int
    previous: int
    operation: str
    query: tuple  # (id, epoch, input) or None
    horizon: int
    boundary: int
    starts: tuple
    ends: tuple
    removed: tuple
    added: tuple
    deleted: bool = False


class State(NamedTuple):
    number: int
    topic_id: int
    txn: str
    hash: int
    queries: tuple  # of (id, epoch, input)
    horizon: int
    boundary: int
    starts: tuple
    ends: tuple
    live: frozenset
    deleted: bool = False

    def epoch(self, query):
        return next(((epoch, given) for name, epoch, given in self.queries if name == query), (-1, None))

    def files(self):
        return {segment.file for segment in self.live}


EMPTY = State(-1, 0, "", 0, (), 0, 0, (0,) * PARTITIONS, (0,) * PARTITIONS, frozenset())


def apply(state, version):
    """Applies the next version as a reader does; a broken rule of FORMAT.md section 5 is a violation here, since no file is damaged."""
    if any(gone not in state.live for gone in version.removed):
        raise Violation(f"I2: version {version.number} removes what is not live")
    if version.deleted:
        return State(
            version.number,
            version.topic_id,
            version.txn,
            version.hash,
            (),
            version.horizon,
            version.boundary,
            version.starts,
            version.ends,
            frozenset(),
            True,
        )
    if state.deleted:  # another topic begins, in the same numbers of versions
        state = state._replace(queries=(), starts=EMPTY.starts, ends=EMPTY.ends)
    live = (state.live - set(version.removed)) | set(version.added)
    for partition in range(PARTITIONS):
        at = version.starts[partition]
        for segment in sorted(s for s in live if s.partition == partition and s.end > at):
            if segment.base > at or (segment.base < at and at != version.starts[partition]):
                raise Violation(f"I4: gap or overlap at {at} of partition {partition} in version {version.number}")
            at = segment.end
        if at != version.ends[partition]:
            raise Violation(f"I4: partition {partition} ends at {at}, not at {version.ends[partition]}, in version {version.number}")
    if (
        version.horizon < state.horizon
        or version.boundary < state.boundary
        or any(a < b for a, b in zip(version.starts + version.ends, state.starts + state.ends, strict=False))
    ):
        raise Violation(f"I4: something falls in version {version.number}")
    queries = state.queries
    if version.query:
        queries = (*tuple(q for q in queries if q[0] != version.query[0]), version.query)
    return State(
        version.number,
        version.topic_id,
        version.txn,
        version.hash,
        queries,
        version.horizon,
        version.boundary,
        version.starts,
        version.ends,
        frozenset(live),
    )


class World:
    def __init__(self, seed, mutant=None, trace=False):
        self.random = random.Random(seed)
        self.mutant = mutant
        self.trace = trace
        self.faults = True
        # The topic's folder: ("v", n) → Version, ("c", n) → State, ("d", …) → {partition: records}, ("t", txn) → Version.
        self.folder = {}
        self.view = {}  # (partition, base) → (end, file)
        self.truth = []  # the versions in the order they were linked first
        self.states = [EMPTY]
        self.log = {}  # by topic id, partition and offset the record, for ever
        self.counts = {}  # record → how often it was committed to the topic that is there now
        self.life = 0  # how often the topic was deleted
        self.not_done = []
        self.hashes = 0
        self.spark = {}  # query → {"planned": {epoch: (first, end)}, "done": epoch}: what Spark keeps in a checkpoint
        self.steps = 0
        self.cleaned = 0  # version files

    # ---- faults and order ------------------------------------------------------------------------
    def chance(self, one_in):
        return self.random.randrange(one_in) == 0

    def has(self, name):
        return self.mutant == name

    def say(self, *words):
        if self.trace:
            print(f"   {self.steps:4}", *words)

    def nap(self):
        """How long to sleep at a place where it hurts."""
        return int(2 ** self.random.uniform(3, 10.5)) if self.faults and self.chance(7) else 0

    def new_hash(self):
        self.hashes += 1
        return self.hashes

    def txn(self):
        return f"x{self.new_hash()}"

    # ---- the truth -------------------------------------------------------------------------------
    def top(self):
        return self.states[-1]

    def mark(self):
        return len(self.truth)

    def linked(self, version):
        """A version file came to be."""
        truth = self.truth
        self.say(
            "LINK", version.number, version.txn, version.operation, version.query or "", "stale" if version.number < len(truth) else ""
        )
        if version.number < len(truth):
            if self.has("a put that replaces") and ("v", version.number) in self.folder:
                raise Violation(f"I1: version {version.number} was replaced")
            return  # of a writer that slept through the clean-up: no reader may ever take it for a commit
        if version.number > len(truth) or version.previous != self.top().hash:
            raise Violation(f"I10: a stray version file {version.number} stands in a topic that has {len(truth)}")
        for segment in version.added:
            if segment.partition not in self.folder.get(segment.file, {}):
                raise Violation(f"I2: version {version.number} names bytes that are gone")
        state = apply(self.top(), version)
        for segment in version.added:
            records = self.folder[segment.file][segment.partition]
            if len(records) != segment.end - segment.base:
                raise Violation(f"I2: a segment of version {version.number} has another length")
            for offset, record in zip(range(segment.base, segment.end), records, strict=False):
                known = self.log.setdefault((version.topic_id, segment.partition, offset), record)
                if known != record:
                    raise Violation(f"I4: the record at {offset} of partition {segment.partition} changes in version {version.number}")
                if version.operation == "write":
                    self.counts[record] = self.counts.get(record, 0) + 1
                    if self.counts[record] > 1:
                        raise Violation(f"I3: {record} was committed twice")
        truth.append(version)
        self.states.append(state)
        if version.deleted:
            self.life += 1
            self.counts = {}
            self.not_done = []

    def check_snapshot(self, since, state):
        """The newest state that a call gave was the newest at some moment of the call."""
        number = state.number if state else -1
        if number < since - 1 or number >= len(self.truth) or (state and self.truth[number].hash != state.hash):
            raise Violation(
                f"I1: a snapshot at version {number} that was not the newest at any moment of the call "
                f"({since - 1} to {len(self.truth) - 1})"
            )

    def reported_done(self, records, life):
        for record in records:
            if life == self.life and self.counts.get(record, 0) != 1:
                raise Violation(f"I1: {record} was reported done and is there {self.counts.get(record, 0)} times")

    def delete_data(self, name):
        if name in self.folder and name in self.top().files():
            raise Violation("I2: a live data file is deleted")
        self.folder.pop(name, None)


class Process:
    """A process, with the state of the topic that it keeps in memory."""

    def __init__(self, world, name):
        self.world = world
        self.name = name
        self.known = None  # the newest state it knows
        self.swept = 0  # all that versions below it removed is deleted
