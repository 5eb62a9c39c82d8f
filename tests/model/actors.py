"""Writers and readers."""

from model.protocol import newest, write
from model.upkeep import tidy
from model.world import PARTITIONS, Violation


# ---- writers and readers ------------------------------------------------------------------------------
def driver(process, query, epochs):
    """A query as Spark drives it: plan an epoch (in the offset log, which refuses another plan), commit it, note it in the commit log."""
    world = process.world
    spark = world.spark.setdefault(query, {"planned": {}, "done": -1})
    yield
    done = spark["done"]
    mine = dict(spark["planned"])
    for _ in range(epochs):
        yield
        epoch = done + 1
        if epoch not in mine:
            if epoch in spark["planned"] or (epoch and epoch - 1 not in mine):
                return  # Spark finds that another driver is at work
            first = mine[epoch - 1][1] if epoch else 0
            records = world.random.randrange(4) if world.chance(2) else 0  # an epoch may be empty
            spark["planned"][epoch] = mine[epoch] = (first, first + records)
        first, end = mine[epoch]
        life = world.life
        records = {}
        for n in range(first, end):
            records.setdefault(n % PARTITIONS, []).append((query, n))
        outcome = yield from write(process, records, (query, epoch, (first, end)), mine)
        if outcome is not True:
            return  # the query fails; another driver may come
        yield
        if life != world.life:
            return
        done = epoch
        spark["done"] = max(spark["done"], epoch)
        yield from tidy(process)


def restore(process, query):
    """Somebody puts an older copy of a checkpoint in the query's place, and starts it; drivers that still run keep the one they have."""
    world = process.world
    for _ in range(world.random.randrange(100, 900)):
        yield
    spark = world.spark.get(query)
    if spark and spark["done"] > 0:
        done = world.random.randrange(spark["done"])
        last = done if world.chance(2) else done + 1  # later epochs read others; or one still reads the same
        world.spark[query] = {"planned": {epoch: cut for epoch, cut in spark["planned"].items() if epoch <= last}, "done": done}
        world.say("RESTORE", query, "to", done, "planned to", last)
        yield from driver(process, query, 4)


def appender(process, name, commits):
    world = process.world
    for commit_number in range(commits):
        yield
        life = world.life
        begun = world.top().topic_id, world.top().ends
        records = {
            p: [(name, commit_number, p, i) for i in range(world.random.randrange(1, 3))]
            for p in range(PARTITIONS)
            if world.chance(2) or p == 0
        }
        done = yield from write(process, records, None)
        if done is True and life == world.life:
            # I5: what returned before this write began lies before it.
            for (topic_id, partition, offset), record in world.log.items():
                if (
                    topic_id == world.top().topic_id
                    and record[:2] == (name, commit_number)
                    and begun[0] == topic_id
                    and offset < begun[1][partition]
                ):
                    raise Violation("I5: a write lies before one that had returned when it began")
        if done is True:
            yield from tidy(process)


def reader(process, reads, forgetful):
    """Plans, sleeps, reads its files late; goes on elsewhere when one is gone. Keeps the state that it knows, or forgets it."""
    world = process.world
    for _ in range(reads):
        for _ in range(world.random.randrange(40)):
            yield
        if forgetful:
            process.known = None
        state = yield from newest(process)
        if state is None or state.deleted:
            continue
        partition = world.random.randrange(PARTITIONS)
        at, end = state.starts[partition], state.ends[partition]
        if world.chance(3) and end > at:
            at = world.random.randrange(at, end)
        topic_id = state.topic_id
        while at < end:
            segment = next((s for s in sorted(state.live) if s.partition == partition and s.base <= at < s.end), None)
            if segment is None:
                raise Violation(f"I7: a reader finds no segment with offset {at}")
            yield
            there = world.folder.get(segment.file)
            if there is None:
                if world.has("a reader whose file is gone gives up"):
                    raise Violation("I7: an error where the record is there")
                version = state.number
                state = yield from newest(process)
                if state is None or state.deleted or state.topic_id != topic_id:
                    if not any(v.deleted and v.topic_id == topic_id for v in world.truth):
                        raise Violation("I7: a reader says that the topic was replaced, and it was not")
                    break
                if state.starts[partition] > at:
                    at = state.starts[partition]  # expired: an error or a warning, and rightly so
                    continue
                if state.number == version:
                    raise Violation("I7: a segment is missing")
                continue
            records = there[partition]
            for offset in range(at, min(end, segment.end)):
                if world.log.get((topic_id, partition, offset)) != records[offset - segment.base]:
                    raise Violation(f"I7: a reader gives another record at offset {offset}")
            at = min(end, segment.end)
