"""Reading the newest state and putting a version: sections 9 and 7 of docs/FORMAT.md."""

from model.world import EMPTY, Segment, Version, Violation, apply


# ---- reading the state: FORMAT.md section 9 -----------------------------------------------------------
def same(world, state):
    """Whether the version file of a state is still the file that it was."""
    there = world.folder.get(("v", state.number))
    return there is not None and there.hash == state.hash


def replay(world, state):
    """The versions after a state; None where the next one does not belong to it."""
    while True:
        yield
        version = world.folder.get(("v", state.number + 1))
        if version is None:
            return state
        if state.number >= 0 and (version.previous != state.hash or (version.topic_id == state.topic_id) == state.deleted):
            return None
        state = apply(state, version)


def newest(process):
    world = process.world
    since = world.mark()
    known = process.known
    seen = []
    while True:
        if known is not None:
            if world.has("a reader looks first whether its version is still there, then for the next"):
                yield
                state = (yield from replay(world, known)) if same(world, known) else None
            else:
                state = yield from replay(world, known)
                yield
                if state is not None and not same(world, known):
                    state = None
            if state is not None:
                break
            known = None
        yield
        numbers = [name[1] for name in world.folder if name[0] in "vc"]
        if not numbers:
            state = None
            break
        start, base = None, EMPTY
        for number in sorted((name[1] for name in world.folder if name[0] == "c"), reverse=True):
            yield
            start = world.folder.get(("c", number))
            if start is not None:
                base = start
                yield world.nap()
                break
        if base is EMPTY:
            yield world.nap()
        state = yield from replay(world, base)
        yield
        right = state is not None and state.number >= max(numbers)
        # At a checkpoint: whether its version's file is still there. With nothing: whether there is still no checkpoint.
        if base is not EMPTY and not world.has("a reader does not look whether its start is still there"):
            right = right and same(world, base)
        if base is EMPTY and not world.has("a reader that began without a checkpoint does not look whether there is one now"):
            right = right and not any(name[0] == "c" for name in world.folder)
        if right:
            break
        # A file that is missing was deleted since it was listed, if a new listing shows something else; otherwise the topic is damaged.
        seen.append((tuple(sorted(numbers)), state.number if state else -1))
        if seen.count(seen[-1]) > 2 or world.has("a reader that misses a version does not list again"):
            raise Violation(f"I7: a version is missing ({seen[-1]})")
    world.check_snapshot(since, state)
    process.known = state
    return state


# ---- putting a version: FORMAT.md section 7 -----------------------------------------------------------
def put(process, state, version):
    """DONE, LOST (another's stands there: not done), FAILED (not done) or UNCLEAR (what it extends is gone: the newest state tells)."""
    world = process.world
    name = ("v", version.number)
    for _ in range(3):
        yield world.nap() or (world.nap() if state is None else 0)
        answer = "done"
        if world.faults and world.chance(25):
            answer = "exception"
        if answer == "exception" and world.chance(2):
            pass  # without effect
        elif name in world.folder and not world.has("a put that replaces"):
            answer = answer if answer == "exception" else "exists"
        else:
            world.linked(version)
            world.folder[name] = version
        yield
        if answer != "done":
            if world.has("no read-back: an exception is taken for not done"):
                return "LOST"
            there = world.folder.get(name)
            if there is None:
                continue  # the same bytes at the same version again
            if there.txn != version.txn:
                return "LOST"
        # It stands there. It counts only if the version that it extends was never deleted, for files are deleted upwards.
        yield
        if world.has("nobody looks after the put whether the version it extends is still there"):
            return "DONE"
        if state is not None and not same(world, state):
            return "UNCLEAR"
        if state is None:
            # A first version: the topic must not have had one that was cleaned up since.
            process.known = None
            now = yield from newest(process)
            if now is None or now.topic_id != version.topic_id:
                return "UNCLEAR"
        return "DONE"
    # It is not there; but what it extends may have been cleaned up since, and with it what was there once.
    yield
    if state is not None:
        return "FAILED" if same(world, state) else "UNCLEAR"
    process.known = None
    now = yield from newest(process)
    if now is None:
        return "FAILED"
    return "DONE" if now.topic_id == version.topic_id else "UNCLEAR"


def boundary(process, state):
    world = process.world
    if world.has("the boundary rises although replaced files are still there"):
        checkpoints = sorted(name[1] for name in world.folder if name[0] == "c" and name[1] <= state.number)
        return max(state.boundary, checkpoints[-2] if len(checkpoints) > 1 else 0)
    return max(state.boundary, process.swept) if process.swept <= state.number else state.boundary


def commit(process, records, planned, topic_id, file, txn, query, inputs):
    """(True when done, False when not done, None when that cannot be told, or REFUSED; whether a put was tried)"""
    world = process.world
    looked = tried = unclear = False
    while True:
        state = yield from newest(process)
        if unclear and not query and state is not None and state.txn == txn:
            return True, tried
        if unclear and not query and not world.has("a write whose put was unclear takes a later reason not to commit for its outcome"):
            return None, tried
        gone = state is None or state.deleted
        if not gone and query and not (looked and world.has("the epoch is looked up once, not after each lost race")):
            epoch, given = state.epoch(query[0])
            if (
                0 <= epoch < query[1]
                and inputs.get(epoch, given) != given
                and not world.has("an epoch that follows another's is taken for new")
            ):
                return "REFUSED", tried
            if epoch >= query[1]:
                found = given if epoch == query[1] else None
                if epoch > query[1]:
                    for number in range(state.number, state.boundary - 1, -1):
                        yield
                        version = world.folder.get(("v", number))
                        if version is not None and version.query and version.query[:2] == query[:2]:
                            found = version.query[2]
                if found is None and not records:
                    return True, tried
                if found != query[2] and not world.has("an epoch is known by its number alone"):
                    return "REFUSED", tried
                return True, tried
        looked = True
        if not gone and state.txn == txn:
            return True, tried
        if not gone and not records:
            return True, tried
        if topic_id is not None and (gone or state.topic_id != topic_id):
            return False, tried
        if state is not None and planned < state.horizon and not world.has("a writer does not heed the horizon"):
            return False, tried
        yield
        if file not in world.folder:
            return False, tried
        base = state or EMPTY
        ends = list(EMPTY.ends if gone else base.ends)
        added = []
        for partition, part in sorted(records.items()):
            added.append(Segment(partition, ends[partition], ends[partition] + len(part), file))
            ends[partition] += len(part)
        version = Version(
            base.number + 1,
            world.new_hash() if gone else base.topic_id,
            txn,
            world.new_hash(),
            base.hash,
            "write",
            query,
            base.horizon,
            boundary(process, base),
            EMPTY.starts if gone else base.starts,
            tuple(ends),
            (),
            tuple(added),
        )
        tried = True
        outcome = yield from put(process, state, version)
        if outcome == "DONE":
            return True, tried
        if outcome == "FAILED":
            return False, tried
        if outcome == "UNCLEAR":
            unclear, process.known = True, None


def write(process, records, query, inputs=None):
    """One write of records {partition: […]}: a task's data file, then the commit. `inputs` says what the query read in each epoch."""
    world = process.world
    life = world.life
    state = yield from newest(process)
    planned = state.number + 1 if state else 0
    topic_id = state.topic_id if state and not state.deleted else None
    txn = world.txn()
    file = ("d", planned, txn, "pool")
    flat = [record for part in records.values() for record in part]
    yield
    world.folder[file] = dict(records)
    yield world.nap()
    done, tried = yield from commit(process, records, planned, topic_id, file, txn, query, inputs)
    world.say(process.name, "write", query, done)
    if done is True:
        world.reported_done(flat, life)
    elif done is False and query is None and life == world.life:
        world.not_done.append(flat)
    if done is not True and (not tried or world.has("abort deletes although a put was tried")):
        yield
        world.delete_data(file)
    return done


def administer(process, change):
    """A commit without records: what it changes is computed from the state it extends, and to repeat it changes nothing."""
    while True:
        state = yield from newest(process)
        if state is None or state.deleted:
            return None
        version = change(state)
        if version is None:
            return state
        outcome = yield from put(process, state, version)
        if outcome == "DONE":
            return (yield from newest(process))
        if outcome == "FAILED":
            return None
        if outcome == "UNCLEAR":
            process.known = None


def next_version(process, state, operation, txn, **changes):
    fields = {
        "query": None,
        "horizon": state.horizon,
        "boundary": boundary(process, state),
        "starts": state.starts,
        "ends": state.ends,
        "removed": (),
        "added": (),
    }
    fields.update(changes)
    return Version(state.number + 1, state.topic_id, txn, process.world.new_hash(), state.hash, operation, **fields)
