"""The offsets that a streaming query has read of the topics of a root: as its progress says, or its checkpoint."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.groups.commits import OffsetCommit
from sparklog.groups.topics import Topics
from sparklog.spark.progress import source_offsets
from sparklog.store.stores import local

_OFFSET_LOG = "v1"
Source = tuple[Mapping[str, str], Mapping[tuple[str, int], int]]
"""The ids of the topics that a source of a query reads, and the offsets up to which it has read."""


@dataclass(frozen=True)
class Read:
    """The offsets up to which a query has read the topics of a root, after a micro-batch."""

    query_id: str
    epoch: int
    commits: list[OffsetCommit]
    """The offsets to commit. If several sources read a partition, the offsets that all of them have read."""


def of_progress(last: Mapping[str, Any], topics: Topics) -> Read | None:
    """The offsets that `lastProgress` of a query tells, which is a dict; None if the query has read nothing yet.

    CallError if it does not read this root.
    """
    sources: list[Source] = []
    of_topics = False
    for source in last.get("sources") or []:
        metrics = source.get("metrics") or {}
        of_topics |= "topicIds" in metrics
        sources.append((json.loads(metrics.get("topicIds", "{}")), source_offsets(source.get("endOffset"))))
    read = _read(str(last["id"]), int(last["batchId"]), sources, topics, of_topics)
    return read if read.commits else None


def of_checkpoint(checkpoint: str | os.PathLike[str], epoch: int, topics: Topics) -> Read:
    """The offsets that a query has read after a micro-batch that runs or is done, from its checkpoint; there may be none.

    CallError as in `of_progress`.
    """
    folder = Path(local(arguments.path("checkpoint", checkpoint)))
    query = _parsed(folder / "metadata")
    file = folder / "offsets" / str(epoch)
    version, _, *lines = _text(file).split("\n")
    if version != _OFFSET_LOG:
        raise SparklogError("QUERY_CHECKPOINT_CORRUPT", file=file, reason=f"it begins with {version[:20]!r}, not with {_OFFSET_LOG}")
    sources = []
    of_topics = False
    for number, line in enumerate(lines):
        begun = sorted((folder / "sources" / str(number)).glob("[0-9]*"), key=lambda found: (len(found.name), found.name))
        ids: dict[str, str] = {}
        for each in begun:
            if isinstance(about := _parsed(each).get("topics"), dict):
                of_topics = True
                ids.update({topic: str(of.get("id")) for topic, of in about.items() if isinstance(of, dict)})
        sources.append((ids, source_offsets(line)))
    return _read(str(query.get("id")), epoch, sources, topics, of_topics)


def _read(query_id: str, epoch: int, sources: Sequence[Source], topics: Topics, of_topics: bool) -> Read:
    """`of_topics`: whether a source reads topics, if any exist: a pattern may match no topic yet, or no topic any longer."""
    ids: dict[str, str] = {}
    offsets: dict[str, dict[int, int]] = {}
    for of_source, ends in sources:
        for topic, id in of_source.items():
            state = topics.find_state(topic)
            if state is not None and state.topic_id == id:
                ids[topic] = id
        for (topic, partition), end in ends.items():
            if topic in of_source and ids.get(topic) == of_source[topic]:
                before = offsets.setdefault(topic, {}).get(partition, end)
                offsets[topic][partition] = min(before, end)
    if not offsets and not (of_topics and not any(ends for _, ends in sources)):
        raise SparklogError("QUERY_NOT_OF_ROOT", query=query_id, root=topics.root)
    commits = [OffsetCommit(topic, number, ids[topic], end) for topic, its in offsets.items() for number, end in its.items()]
    return Read(query_id, epoch, commits)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise SparklogError("QUERY_CHECKPOINT_CORRUPT", file=file, reason=error) from None


def _parsed(file: Path) -> dict[str, Any]:
    """The object in the first line of a file, or in the second one if the first is a version as Spark writes them."""
    lines = _text(file).split("\n")
    try:
        found = json.loads(lines[1] if lines[0] in ("0", _OFFSET_LOG) and len(lines) > 1 else lines[0])
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {}
