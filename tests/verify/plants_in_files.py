"""Faults of whole files and of single bits, for `planting`."""

import os
import random
import shutil
import struct
from pathlib import Path

from handmade import split
from planting import (
    CHECKPOINT,
    DATA,
    VERSION,
    Planted,
    Root,
    any_version,
    batch_at,
    flip,
    plant,
    view_files,
)

from sparklog import Log


@plant
def a_bit_of_a_version_file(root: Root, some: random.Random) -> Planted:
    file = any_version(root, some)
    octets = root.read(file)
    root.write(file, flip(octets, some.randrange(8 * len(octets))))
    return Planted(
        "a bit", (file,), root.weight(file) if file != root.versions(file.split("/")[1])[-1] else {"damage"}, VERSION, (0, len(octets))
    )


@plant
def a_bit_of_a_checkpoint(root: Root, some: random.Random) -> Planted:
    file = some.choice(root.files("_partlog/*/*.jsonl"))
    octets = root.read(file)
    bit = some.randrange(8 * len(octets))
    line = octets.rfind(b"\n", 0, bit // 8) + 1
    root.write(file, flip(octets, bit))
    return Planted(f"bit {bit}", (file,), {"repairable"}, CHECKPOINT, (line, bit // 8 + 1))


@plant
def a_bit_of_a_batch(root: Root, some: random.Random) -> Planted | None:
    live = some.choice(root.live)
    position, batch = batch_at(root, live, some)
    bit = some.randrange(64, 8 * len(batch))  # the base offset is below
    octets = root.read(live.file)
    root.write(live.file, flip(octets, 8 * position + bit))
    where = (position, position + len(batch)) if bit >= 8 * 16 else (live.position, position + len(batch))
    return Planted(f"bit {bit} of a batch at {position}", (live.file,), {"damage"}, DATA, where)


@plant
def a_bit_of_a_base_offset(root: Root, some: random.Random) -> Planted | None:
    live = some.choice(root.live)
    octets = root.read(live.file)
    batches = split(octets[live.position : live.position + live.bytes])
    number = some.randrange(len(batches))
    position = live.position + sum(map(len, batches[:number]))
    relative = sum(struct.unpack_from(">i", each, 57)[0] for each in batches[:number])
    bit = some.randrange(64)
    root.write(live.file, flip(octets, 8 * position + bit))
    field = flip(batches[number][:8], bit)
    allowed = zip(field, struct.pack(">q", relative), struct.pack(">q", live.base + relative), strict=True)
    if all(one in others for one, *others in allowed):
        # Readers accept it, but it is not stamped any more, which Kafka's tools do not.
        return Planted("a bit that is of the other offset", (live.file,), {"repairable"}, {"STAMP_WRONG"}) if live.own else None
    return Planted(f"bit {bit} of a base offset", (live.file,), {"damage"}, {"BATCH_CORRUPT"}, (position, position + 1))


@plant
def a_bit_of_the_view(root: Root, some: random.Random) -> Planted:
    file = some.choice(view_files(root, some.choice([(".log",), (".index",), (".timeindex",)])))
    octets = root.read(file)
    bit = some.randrange(8 * len(octets))
    root.write(file, flip(octets, bit))
    return Planted(f"bit {bit}", (file,), {"repairable"}, {"VIEW_WRONG", "INDEX_WRONG"}, (max(0, bit // 8 - 8), bit // 8 + 1))


@plant
def a_file_that_is_cut(root: Root, some: random.Random) -> Planted | None:
    live = some.choice(root.live)
    kinds: dict[str, tuple[str, set[str], set[str]]] = {
        "version": (any_version(root, some), {"damage", "garbage"}, VERSION),
        "checkpoint": (some.choice(root.files("_partlog/*/*.jsonl")), {"repairable"}, CHECKPOINT),
        "data": (live.file, {"damage"}, DATA),
        "view": (some.choice(view_files(root, (".log",))), {"repairable"}, {"VIEW_WRONG"}),
        "index": (some.choice(view_files(root, (".index", ".timeindex"))), {"repairable"}, {"INDEX_WRONG"}),
    }
    kind = some.choice(sorted(kinds))
    file, severities, conditions = kinds[kind]
    octets = root.read(file)
    length = some.randrange(len(octets))
    if kind == "data":
        length = some.randrange(live.position, live.position + live.bytes)
    root.write(file, octets[:length])
    return Planted(f"{kind} of {len(octets)} bytes, cut to {length}", (file,), severities, conditions)


@plant
def a_file_that_is_longer(root: Root, some: random.Random) -> Planted:
    kinds: dict[str, tuple[str, set[str], set[str]]] = {
        "version": (any_version(root, some), {"damage", "garbage"}, VERSION),
        "checkpoint": (some.choice(root.files("_partlog/*/*.jsonl")), {"repairable"}, CHECKPOINT),
        "view": (some.choice(view_files(root, (".log",))), {"repairable"}, {"VIEW_WRONG"}),
        "index": (some.choice(view_files(root, (".index", ".timeindex"))), {"repairable"}, {"INDEX_WRONG"}),
    }
    kind = some.choice(sorted(kinds))
    file, severities, conditions = kinds[kind]
    octets = root.read(file)
    root.write(file, octets + some.randbytes(some.randrange(1, 99)))
    return Planted(f"{kind}, longer", (file,), severities, conditions)


@plant
def a_missing_version(root: Root, some: random.Random) -> Planted | None:
    file = any_version(root, some)
    topic = file.split("/")[1]
    number = int(Path(file).name[:20])
    newest = root.versions(topic)[-1] == file
    if number < root.boundary(topic) and not newest:
        return None  # it may go at any time
    added = root.content(file)["added"]
    lost = tuple(f"{topic}-{each['partition']}/{each['base']:020d}.log" for each in added)
    (root.path / file).unlink()
    if newest and not root.files(f"_partlog/{topic}/{Path(file).stem}.checkpoint*"):
        # Nothing but the Kafka view knows of it.
        return Planted("the newest version is missing", lost, {"damage"}, {"COMMIT_LOST"}) if lost else None
    return Planted("a version is missing", (file,), {"damage"}, {"VERSION_MISSING"})


@plant
def a_missing_file(root: Root, some: random.Random) -> Planted | None:
    live = some.choice(root.live)
    suffix = some.choice([".log", ".index", ".timeindex"])
    markers = root.files("_partlog/*/*.deleted")
    deleted = [each for each in markers if root.versions(each.split("/")[1])[-1][:-5] == each[:-8]]
    kinds: dict[str, tuple[str, str, str]] = {
        "data": (live.file, "damage", "SEGMENT_MISSING"),
        "view": (f"{live.view}{suffix}", "repairable", "VIEW_MISSING"),
        "marker": (some.choice(deleted), "repairable", "MARKER_MISSING"),
    }
    kind = some.choice(sorted(kinds))
    file, severity, condition = kinds[kind]
    (root.path / file).unlink()
    return Planted(f"{kind}, missing", (file,), {severity}, {condition})


@plant
def two_files_that_are_swapped(root: Root, some: random.Random) -> Planted | None:
    live = some.choice(root.live)
    data = [each.file for each in root.live if each.topic == live.topic]
    kinds = {
        "versions": (root.files("_partlog/*/*.json"), {"damage", "garbage"}, VERSION),
        "checkpoints": (root.files("_partlog/*/*.jsonl"), {"repairable"}, CHECKPOINT),
        "data": (data, {"damage"}, DATA),
        "indexes": (view_files(root, (".index", ".timeindex")), {"repairable"}, {"INDEX_WRONG"}),
        "copies": (view_files(root, (".log",)), {"repairable"}, {"VIEW_WRONG"}),
    }
    kind = some.choice(sorted(kinds))
    files, severities, conditions = kinds[kind]
    one, other = some.sample(sorted(set(files)), 2)
    here, there = root.read(one), root.read(other)
    if here == there:
        return None
    root.write(one, there)
    root.write(other, here)
    return Planted(f"{kind}, swapped: {one} and {other}", (one,), severities, conditions)


@plant
def a_file_that_is_doubled(root: Root, some: random.Random) -> Planted | None:
    kind = some.choice(["version", "checkpoint", "view", "later version"])
    if kind == "view":
        live = some.choice(root.live)
        copy = f"{live.topic}-{live.partition}/{live.base + 1:020d}.log"
        if (root.path / copy).exists():
            return None
        shutil.copy(root.path / f"{live.view}.log", root.path / copy)
        return Planted("a segment twice in the view", (copy,), {"repairable"}, {"VIEW_STRAY"})
    if kind == "checkpoint":
        file = some.choice(root.files("_partlog/*/*.jsonl"))
        copy = f"{file[: file.index('.')][:-20]}{int(Path(file).name[:20]) - 1:020d}{file[file.index('.') :]}"
        (root.path / copy).write_bytes(root.read(file))
        return Planted("a checkpoint under the name of another version", (copy,), {"repairable"}, CHECKPOINT)
    file = any_version(root, some)
    later = root.versions(file.split("/")[1])[-1] if kind == "later version" else any_version(root, some)
    number = int(Path(later).name[:20]) + (kind == "later version")
    copy = f"{Path(later).parent}/{number:020d}.json"
    if copy == file or root.weight(later) == {"garbage"}:
        return None
    (root.path / copy).write_bytes(root.read(file))
    return Planted(f"{kind}: {file} again as {copy}", (copy,), {"damage"}, VERSION)


@plant
def an_orphan(root: Root, some: random.Random) -> Planted:
    topic = some.choice(Log(root.path).topics())
    newest = root.versions(topic)[-1]
    horizon = root.content(newest)["horizon"]
    below = horizon > 0 and some.random() < 0.5
    planned = some.randrange(horizon) if below else int(Path(newest).name[:20]) + 2 + some.randrange(9)
    file = f"_partlog/{topic}/data/{planned:020d}-AAAAAAAAAAAAAAAAAAAAAw/{some.choice(['pool', 't3-7', 'p0-t0-1-2'])}.log"
    (root.path / file).parent.mkdir(parents=True, exist_ok=True)
    (root.path / file).write_bytes(b"orphan")
    return Planted(f"an orphan of version {planned}", (file,), {"garbage"}, {"ORPHAN"})


@plant
def an_unknown_file(root: Root, some: random.Random) -> Planted:
    topic = some.choice(root.topics())
    version = root.versions(topic)[0]
    folder = str(next((root.path / "_partlog" / topic / "data").iterdir()).relative_to(root.path)) if topic != "d" else f"_partlog/{topic}"
    name = some.choice(
        [f"_partlog/{topic}/.{Path(version).name}.crc", f"_partlog/{topic}/notes", f"_partlog/{topic}/{1:019d}.json", f"{folder}/x.log"]
    )
    (root.path / name).write_bytes(b"x")
    return Planted("an unknown file", (name,), {"garbage"}, {"UNKNOWN_FILE"})


@plant
def an_old_temporary_file(root: Root, some: random.Random) -> Planted:
    folder = root.path / "_partlog" / some.choice(root.topics()) / "tmp"
    folder.mkdir(exist_ok=True)
    (folder / "left").write_bytes(b"x")
    os.utime(folder / "left", (1, 1))
    return Planted("an old temporary file", (str((folder / "left").relative_to(root.path)),), {"garbage"}, {"LEFTOVER"})


@plant
def a_file_of_another_kind(root: Root, some: random.Random) -> Planted:
    live = some.choice(root.live)
    kinds = {
        "version": (root.versions(live.topic)[-1], {"damage"}, VERSION),
        "checkpoint": (some.choice(root.files("_partlog/*/*.jsonl")), {"repairable"}, CHECKPOINT),
        "data": (live.file, {"damage"}, {"SEGMENT_CORRUPT"}),
        "view": (f"{live.view}{some.choice(['.log', '.index', '.timeindex'])}", {"repairable"}, {"VIEW_WRONG"}),
    }
    kind = some.choice(sorted(kinds))
    file, severities, conditions = kinds[kind]
    path = root.path / file
    moved = path.with_name(f"moved-{path.name}")
    path.rename(moved)
    made = some.choice(["link", "folder", "pipe"])
    if made == "link":
        path.symlink_to(moved)
    elif made == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    return Planted(f"a {made} in place of a {kind}", (file,), severities, conditions)


@plant
def a_view_that_is_copied(root: Root, some: random.Random) -> Planted:
    live = some.choice([live for live in root.live if live.own])
    file = f"{live.view}.log"
    octets = root.read(file)
    (root.path / file).unlink()
    (root.path / file).write_bytes(octets)
    return Planted("a copy in place of a hard link", (file,), {"repairable"}, {"VIEW_WRONG"})


@plant
def a_marker_that_is_wrong(root: Root, some: random.Random) -> Planted:
    topic = some.choice(Log(root.path).topics())
    marker = f"{root.versions(topic)[-1][:-5]}.deleted"
    (root.path / marker).touch()
    return Planted("a marker of a topic that was not deleted", (marker,), {"damage"}, {"MARKER_WRONG"})
