"""Rules that the newest state must keep: segments among each other, the boundary, deletion markers. FORMAT.md sections 1 and 5."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from sparklog.ondisk.names import data_file, deleted_version_of, topic_file, version_file
from sparklog.ondisk.state import State
from sparklog.ondisk.version import Segment
from sparklog.verify.report import DAMAGE, GARBAGE, REPAIRABLE, Finding


def shared_bytes(topic: str, segments: Sequence[Segment]) -> Iterator[Finding]:
    """Segments that share bytes of a data file."""
    by_file: dict[str, list[Segment]] = {}
    for segment in segments:
        by_file.setdefault(segment.file, []).append(segment)
    for file, there in by_file.items():
        there.sort(key=lambda segment: segment.position)
        for one, other in itertools.pairwise(there):
            if one.position + one.bytes > other.position:
                problem = (
                    f"the segments at offset {one.base} of partition {one.partition} and at offset {other.base} of partition "
                    f"{other.partition} share bytes of it"
                )
                impact, fix = "records are there twice, or in two partitions", "restore the version files from a copy"
                place = (topic, other.partition, other.base, data_file(topic, file), other.position)
                yield Finding(DAMAGE, "SEGMENT_TWICE", problem, impact, fix, *place)


def boundary(state: State, checkpoints: Sequence[int]) -> Iterator[Finding]:
    """A boundary without a checkpoint that is at or above it.

    `checkpoints` are the versions of the checkpoints that are right by themselves.
    """
    file = topic_file(state.topic, version_file(state.version))
    if state.boundary > state.version:
        problem = f"its boundary is {state.boundary}, above the version itself: every version file may be deleted"
        impact, fix = "no record yet", "restore the file from a copy, before anything commits"
        yield Finding(DAMAGE, "VERSION_CORRUPT", problem, impact, fix, state.topic, file=file, byte=0)
    elif state.boundary > 0 and not any(version >= state.boundary for version in checkpoints):
        problem = f"the boundary is {state.boundary}, and no checkpoint at or above it can be read"
        impact = "no record, while the version files below the boundary are there; they may be deleted at any time"
        fix = "copy the topic's folder, then commit until there is another checkpoint"
        yield Finding(REPAIRABLE, "CHECKPOINT_MISSING", problem, impact, fix, state.topic, file=file)


def markers(state: State, names: Sequence[str], present: set[int], deletions: set[int]) -> Iterator[Finding]:
    """Deletion markers that are wrong or missing.

    `present` are the versions whose files are there; `deletions` are the present versions that deleted the topic.
    """
    found = {number for name in names if (number := deleted_version_of(name)) is not None}
    for number in sorted(found):
        file = topic_file(state.topic, f"{number:020d}.deleted")
        if number >= state.version and not (state.deleted and number == state.version):
            problem = f"it says that version {number} deleted the topic, and the newest version is {state.version}, which did not"
            yield Finding(
                DAMAGE, "MARKER_WRONG", problem, "no record, but the topic is not listed", "delete the file", state.topic, file=file
            )
        elif number >= state.boundary and number in present and number not in deletions:
            problem = f"version {number} did not delete the topic"
            yield Finding(GARBAGE, "MARKER_WRONG", problem, "nothing", "delete the file", state.topic, file=file)
    if state.deleted and state.version not in found:
        problem = f"version {state.version} deletes the topic, and there is no deletion marker"
        impact = "no record; the topic is listed, although it does not exist"
        fix = "CALL partlog.delete_topic for it, which ends the deletion"
        file = topic_file(state.topic, f"{state.version:020d}.deleted")
        yield Finding(REPAIRABLE, "MARKER_MISSING", problem, impact, fix, state.topic, file=file)
