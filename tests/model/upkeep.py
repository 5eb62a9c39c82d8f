"""The work that follows a commit, and that of an operator: merging, publishing, deleting and cleaning up."""

from model.protocol import administer, newest, next_version, put
from model.world import CHECKPOINT_EVERY, MERGE_AT, PARTITIONS, Segment


# ---- what follows a commit ----------------------------------------------------------------------------
def tidy(process):
    yield from merge(process)
    yield from publish(process)
    yield from housekeeping(process)


def merge(process):
    """Runs of neighbours become one segment in a new data file: a commit of its own, valid while all that it replaces is live."""
    world = process.world
    state = yield from newest(process)
    if state is None or state.deleted:
        return
    planned = state.number + 1
    txn = world.txn()
    removed, added, files = [], [], []
    for partition in range(PARTITIONS):
        live = sorted(segment for segment in state.live if segment.partition == partition and segment.end > state.starts[partition])
        if len(live) <= MERGE_AT:
            continue
        first = world.random.randrange(len(live) - MERGE_AT + 1)
        run = live[first : first + world.random.randrange(MERGE_AT, len(live) - first + 1)]
        records = []
        for segment in run:
            yield
            there = world.folder.get(segment.file)
            if there is None:
                return (yield from drop(world, files))  # somebody else merged it and the file is gone
            records += there[segment.partition]
        file = ("d", planned, txn, f"p{partition}")
        yield
        world.folder[file] = {partition: records}
        files.append(file)
        removed += run
        added.append(Segment(partition, run[0].base, run[-1].end, file))
    if not added:
        return
    if world.has("a merge's replaced files are deleted before its commit"):
        yield from delete_replaced(world, removed, state.live - set(removed))
    careless = world.has("a dropped merge deletes its files though a put was unclear")
    looked = False
    while True:
        now = yield from newest(process)
        if now is None:
            return
        if now.txn == txn:
            break
        ok = not now.deleted and all(segment in now.live for segment in removed)
        if looked and not now.deleted and world.has("a merge is checked against the state once, not after each lost race"):
            ok = True
        looked = True
        if not ok or (planned < now.horizon and not world.has("a merge does not heed the horizon")):
            return (yield from drop(world, files))
        outcome = yield from put(process, now, next_version(process, now, "merge", txn, removed=tuple(removed), added=tuple(added)))
        if outcome == "DONE":
            break
        if outcome != "LOST":
            process.known = None
            if careless:
                yield from drop(world, files)
            return  # it may have been done, or be done yet: its files stay for the vacuum
    state = yield from newest(process)
    if state is not None and world.chance(2):
        yield from delete_replaced(world, removed, state.live)


def drop(world, files):
    for file in files:
        yield
        world.delete_data(file)


def delete_replaced(world, removed, live):
    named = {segment.file for segment in live}
    for file in {segment.file for segment in removed} - named:
        yield
        world.delete_data(file)


def publish(process):
    """Brings the view up to the state: names that are not live, or not what is live, go; then what is missing comes."""
    world = process.world
    yield
    names = dict(world.view)
    state = yield from newest(process)
    if state is None:
        return
    want = {(s.partition, s.base): (s.end, s.file) for s in state.live}
    if world.has("a commit publishes only what it added"):
        added = world.truth[state.number].added if state.number < len(world.truth) else ()
        want = {(s.partition, s.base): (s.end, s.file) for s in added}
        names = {}
    for name in names:
        if want.get(name) != names[name]:
            yield
            if world.view.get(name) == names[name]:
                del world.view[name]
    for name in sorted(want):
        if world.view.get(name) != want[name]:
            yield
            world.view[name] = want[name]


def housekeeping(process):
    """A checkpoint if due; what versions before the last but one removed is deleted; then version files below the committed boundary."""
    world = process.world
    state = yield from newest(process)
    if state is None:
        return
    yield
    checkpoints = sorted(name[1] for name in world.folder if name[0] == "c" and name[1] <= state.number)
    due = state.deleted and state.number not in checkpoints and not world.has("after a deletion nobody waits for its checkpoint")
    if due or state.number - (checkpoints[-1] if checkpoints else -1) >= CHECKPOINT_EVERY:
        yield
        world.folder[("c", state.number)] = state
        checkpoints.append(state.number)
    if world.has("version files are deleted without a checkpoint that holds them"):
        process.swept = state.number
    elif len(checkpoints) > 1 or state.deleted:
        upto = checkpoints[-2] if not state.deleted else state.number + 1
        swept = True
        for number in range(state.boundary, upto):
            yield
            version = world.folder.get(("v", number))
            if version is None:
                swept = False  # somebody else came this far and further
                break
            if version.deleted:
                yield from delete_below(world, number + 1, state)
            else:
                yield from delete_replaced(world, version.removed, state.live)
        if swept and not state.deleted:
            process.swept = max(process.swept, upto)
        for number in checkpoints[:-2]:
            yield
            world.folder.pop(("c", number), None)
    yield
    careless = world.has("version files are deleted without a checkpoint that holds them") or world.has(
        "after a deletion nobody waits for its checkpoint"
    )
    if not careless and not any(name[0] == "c" and name[1] >= state.boundary for name in world.folder):
        return
    old = sorted(name[1] for name in world.folder if name[0] == "v" and name[1] < state.boundary)
    if world.has("version files are deleted downwards"):
        old.reverse()
    for number in old:
        yield
        world.folder.pop(("v", number), None)
        world.cleaned += 1


def delete_below(world, horizon, state):
    """Data files planned below a horizon that is committed, and named by no state since."""
    named = state.files()
    for file in [name for name in world.folder if name[0] == "d" and name[1] < horizon and name not in named]:
        yield
        world.delete_data(file)


def raising(process, horizon):
    txn = process.world.txn()
    return lambda now: next_version(process, now, "vacuum", txn, horizon=horizon) if horizon > now.horizon else None


def vacuum(process):
    world = process.world
    for _ in range(world.random.randrange(1, 3)):
        for _ in range(world.random.randrange(60)):
            yield
        state = yield from newest(process)
        if state is None or state.deleted:
            continue
        horizon = world.random.randrange(state.horizon, state.number + 2) if state.horizon < state.number + 2 else state.horizon
        if not world.has("vacuum without a horizon"):
            state = yield from administer(process, raising(process, horizon))
            if state is None:
                continue
        yield
        yield from delete_below(world, horizon, state)


def delete_records(process):
    world = process.world
    for _ in range(world.random.randrange(250)):
        yield
    share, txn, drop_segments = world.random.random(), world.txn(), world.chance(2)

    def change(state):
        starts = tuple(max(a, a + int((b - a) * share)) for a, b in zip(state.starts, state.ends, strict=False))
        gone = tuple(s for s in sorted(state.live) if s.end <= starts[s.partition]) if drop_segments else ()
        return next_version(process, state, "delete-records", txn, starts=starts, removed=gone) if starts != state.starts else None

    yield from administer(process, change)


def delete_topic(process):
    world = process.world
    for _ in range(world.random.randrange(50, 500)):
        yield
    txn = world.txn()

    def change(state):
        horizon = state.horizon if world.has("a deletion of the topic does not raise the horizon") else state.number + 2
        return next_version(process, state, "delete", txn, deleted=True, horizon=horizon, boundary=state.number + 1, starts=state.ends)

    yield from administer(process, change)
    yield from publish(process)
    yield from housekeeping(process)
