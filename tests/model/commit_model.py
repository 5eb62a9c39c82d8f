"""A model of one topic's commit log: what the writers, readers and cleaners of docs/FORMAT.md do to a topic, without their bytes.

    make model SEEDS=200000                                           the protocol as designed, over that many seeds
    PYTHONPATH=tests python -m model.commit_model                     45 s of it, then every mutant; two minutes in all
    PYTHONPATH=tests python -m model.commit_model --mutant NAME       one mutant alone
    PYTHONPATH=tests python -m model.commit_model --trace SEED        the steps of one run

Every `yield` is a point between two atomic acts on the store. A seeded scheduler decides which acts next, which sleeps (for up to hundreds
of acts of the others), which stops for ever, and which answers are lost (the act took effect, or it did not, and the caller hears only an
exception). In one world, on one topic, these run:

  * two streaming queries; each has up to three drivers, one after another or beside each other (zombies); a checkpoint may be restored to
    an older copy; its next epochs then read other offsets
  * appenders without any identity, one of which plans before the topic exists
  * every writer tidies after its commit: merge, publish, checkpoint, deletion of replaced data files, version clean-up
  * a vacuum that raises the horizon, and an operator that deletes records (raises log starts)
  * readers that planned before and come to their files late; readers that keep a state and go on from it
  * in every third world an operator that deletes the topic, by a version that says so; the writers create it again

The truth is kept beside the store: the versions in the order in which they were linked first. Checked all the time, by the names of
docs/FORMAT.md section 11: I1 I2 I3 I4 I5 I6 I7, and when all is quiet I9 (nothing dead is left where it should be gone), I10 (a fresh
writer and a fresh reader go on), and that the Kafka view is right. No clock takes part: every delay may be 0.
"""

import argparse
import time

from model.actors import appender, driver, reader, restore
from model.protocol import administer, newest, next_version, write
from model.upkeep import delete_records, delete_topic, tidy, vacuum
from model.world import CHECKPOINT_EVERY, PARTITIONS, Process, Violation, World

STEPS = 2600


# ---- a run --------------------------------------------------------------------------------------------
def run(seed, mutant=None, trace=False):
    world = World(seed, mutant, trace)
    chance = world.random
    processes = {}

    def start(name, make, *more):
        process = Process(world, name)
        processes[name] = [make(process, *more), 0]

    start("a", appender, "a", 4)
    start("b", appender, "b", 3)
    for query in "pq":
        start(f"{query}0", driver, query, 5)
    spares = [f"{query}{n}" for query in "pq" for n in (1, 2)]
    start("r0", reader, 6, False)
    start("r1", reader, 8, True)
    start("vacuum", vacuum)
    start("records", delete_records)
    if seed % 3 == 0:
        start("remover", delete_topic)
    if seed % 5 == 0:
        start("restorer", restore, "p")
    deaths = 3
    while processes and world.steps < STEPS:
        world.steps += 1
        awake = [name for name, entry in processes.items() if entry[1] <= world.steps]
        if not awake:
            continue
        name = awake[chance.randrange(len(awake))]
        entry = processes[name]
        if chance.random() < 0.04:
            entry[1] = world.steps + int(2 ** chance.uniform(2, 10.5))
            continue
        if deaths and chance.random() < 0.002:
            deaths -= 1
            world.say("DEATH of", name)
            del processes[name]
        else:
            try:
                entry[1] = world.steps + (next(entry[0]) or 0)
            except StopIteration:
                del processes[name]
        # Another driver of a query, because the first one is dead, or only seems to be.
        if spares and (chance.random() < 0.003 or (spares[0][0] + "0" not in processes and chance.random() < 0.02)):
            spare = spares.pop(chance.randrange(len(spares)))
            start(spare, driver, spare[0], 4)
    quiet(world)
    return world


def alone(generator):
    try:
        while True:
            next(generator)
    except StopIteration as end:
        return end.value


def quiet(world):
    """A process that still sleeps sleeps for ever. A fresh writer goes on by itself."""
    world.faults = False
    fresh = Process(world, "fresh")
    for n in range(1):
        if alone(write(fresh, {0: [("fresh", n)]}, None)) is not True:
            raise Violation("I10: the next write fails")
    alone(tidy(fresh))
    state = world.top()
    if world.view != {(s.partition, s.base): (s.end, s.file) for s in state.live}:
        raise Violation("view: after the next commit the Kafka view is not what is live")
    for n in range(1, 4 * CHECKPOINT_EVERY + 1):
        if alone(write(fresh, {0: [("fresh", n)]}, None)) is not True:
            raise Violation("I10: a later write fails")
        alone(tidy(fresh))
    if world.view != {(s.partition, s.base): (s.end, s.file) for s in world.top().live}:
        raise Violation("view: it is not what is live in the end")
    state = alone(newest(Process(world, "late")))
    if state != world.top():
        raise Violation("I10: a fresh reader sees another state")
    needed = state.files() | {segment.file for version in world.truth[state.boundary :] for segment in version.removed}
    for version in world.truth[: state.boundary]:
        if any(segment.file in world.folder for segment in version.removed if segment.file not in needed):
            raise Violation("I9: a replaced file is left though the boundary passed it")
    if (
        len([name for name in world.folder if name[0] == "v"]) > 6 * CHECKPOINT_EVERY + 4
        or len([name for name in world.folder if name[0] == "c"]) > 3
    ):
        raise Violation("I9: version files or checkpoints pile up")
    # With a horizon above all, only what is live, and what is to be deleted at the next housekeeping, remains.
    keeper = Process(world, "keeper")
    txn = world.txn()
    horizon = state.number + 1
    state = alone(administer(keeper, lambda now: next_version(keeper, now, "vacuum", txn, horizon=horizon)))
    for file in [name for name in world.folder if name[0] == "d" and name[1] < horizon and name not in state.files()]:
        world.delete_data(file)
    for partition in range(PARTITIONS):
        for segment in (s for s in state.live if s.partition == partition):
            if segment.file not in world.folder:
                raise Violation("I1: a live file is gone in the end")
    for records in world.not_done:
        if any(world.counts.get(record) for record in records):
            raise Violation("I6: a write that was reported as not done is there")


MUTANTS = {  # each with the first seed at which it is found
    "a put that replaces": 0,
    "no read-back: an exception is taken for not done": 18,
    "a write whose put was unclear takes a later reason not to commit for its outcome": 420,
    "the epoch is looked up once, not after each lost race": 0,
    "an epoch is known by its number alone": 185,
    "an epoch that follows another's is taken for new": 1580,
    "abort deletes although a put was tried": 467,
    "a writer does not heed the horizon": 16,
    "vacuum without a horizon": 17,
    "a merge is checked against the state once, not after each lost race": 0,
    "a merge does not heed the horizon": 1561,
    "a merge's replaced files are deleted before its commit": 0,
    "a dropped merge deletes its files though a put was unclear": 115,
    "a reader whose file is gone gives up": 0,
    "a reader that misses a version does not list again": 0,
    "a reader does not look whether its start is still there": 237,
    "a reader that began without a checkpoint does not look whether there is one now": 1262,
    "a reader looks first whether its version is still there, then for the next": 4,
    "version files are deleted downwards": 50,
    "version files are deleted without a checkpoint that holds them": 0,
    "nobody looks after the put whether the version it extends is still there": 26,
    "the boundary rises although replaced files are still there": 15,
    "a commit publishes only what it added": 0,
    "after a deletion nobody waits for its checkpoint": 12,
    "a deletion of the topic does not raise the horizon": 1341,
}


def find(mutant, seeds, seconds):
    """A seed at which a mutant is found: the one that is known, or else the first."""
    begun = time.time()
    tried = 0
    for seed in seeds:
        tried += 1
        try:
            run(seed, mutant)
        except Violation as violation:
            return seed, str(violation), time.time() - begun
        if time.time() - begun > seconds:
            break
    return None, f"not found in {tried} seeds", time.time() - begun


def as_designed(seeds, seconds):
    """Runs the protocol without a mutant; says how much was seen, and raises the first violation."""
    begun = time.time()
    runs = steps = versions = merges = cleaned = 0
    for seed in seeds:
        try:
            world = run(seed)
        except Violation as violation:
            raise Violation(f"seed {seed}: {violation}") from None
        runs += 1
        steps += world.steps
        versions += len(world.truth)
        merges += sum(v.operation == "merge" for v in world.truth)
        cleaned += world.cleaned
        if time.time() - begun > seconds:
            break
    seen = f"{runs} seeds, {steps} steps, {versions} versions ({merges} merges), {cleaned} version files cleaned up"
    return f"{seen}: 0 violations ({time.time() - begun:.0f} s)"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=45)
    parser.add_argument("--mutant")
    parser.add_argument("--trace", type=int)
    given = parser.parse_args()
    if given.trace is not None:
        try:
            run(given.trace, given.mutant, True)
        except Violation as violation:
            print(violation)
    elif given.mutant:
        print(find(given.mutant, range(given.seeds or 100_000), given.seconds))
    elif given.seeds:
        print(as_designed(range(given.seeds), float("inf")))
    else:
        print("as designed:", as_designed(range(10**9), given.seconds), flush=True)
        for mutant, known in MUTANTS.items():
            seed, violation, seconds = find(mutant, [known, *range(60_000)], given.seconds)
            found = f"NOT FOUND: {violation}" if seed is None else f"seed {seed} ({seconds:.1f} s): {violation}"
            print(f"{mutant:<86} {found}", flush=True)


if __name__ == "__main__":
    main()
