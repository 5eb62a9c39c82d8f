"""The requests of the core of a consumer: all that it has done outside. Each request names its reply."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from sparklog.consumer.records import OffsetAndMetadata, TopicPartition
from sparklog.errors import SparklogError
from sparklog.ondisk.state import State


class At(NamedTuple):
    """A position that is committed or to be committed: in the topic of this id, and in the share as it was held.

    Without a holding, the program named a partition that the consumer does not read.
    """

    topic_id: str
    holding: Any
    offset: int
    metadata: str | None = None


Ats = dict[TopicPartition, At]
Refused = dict[TopicPartition, SparklogError]
"""The partitions of a commit that were not committed, each with the error."""
Committed = Callable[[dict[TopicPartition, OffsetAndMetadata], BaseException | None], object]
"""Is called with the offsets of a commit, and its error; None if it was made."""


class Holding(Protocol):
    """How a member holds a share: equal to another one if it is the same member, topic and assignment epoch."""

    @property
    def topic_id(self) -> str: ...


class View(NamedTuple):
    """A look of a member at its group."""

    held: Mapping[TopicPartition, Holding]
    """The shares of this member whose positions are known."""
    asked_for: Sequence[TopicPartition]
    """Those of them that another member waits for."""
    topics: Mapping[str, str]
    """The topics that the group reads, each with its id."""
    positions: Mapping[TopicPartition, At]
    """The positions that are committed in these shares."""
    generation: int = 0
    """The generation of the group: positions go back only with another one."""


class FetchReply(NamedTuple):
    """The records of a partition from an offset on, up to `offset`. `state` is the newest state of the topic that is known."""

    batches: list[pa.RecordBatch]
    offset: int
    state: State | None


@dataclass(slots=True)
class Now:
    """The seconds of a clock that only rises."""


@dataclass(slots=True)
class Wait:
    """Some seconds pass, or fewer if the consumer is woken."""

    seconds: float


@dataclass(slots=True)
class ListTopics:
    """The names of the topics that exist and are wanted. A look at the others is not needed."""

    wanted: Callable[[str], bool]


@dataclass(slots=True)
class LookAtTopics:
    """The newest states of topics by name; None for a topic that does not exist.

    `surely`: also if versions were put and deleted meanwhile.
    """

    topics: Collection[str]
    surely: bool = False


@dataclass(slots=True)
class News:
    """The newest states of these topics that are known, and errors. Not every topic is looked at each time.

    `idle`: the program waits for records. Then the reply comes with the first news, or when all looks have ended.
    """

    topics: Collection[str]
    idle: bool


@dataclass(slots=True)
class Fetch:
    """A `FetchReply` of about so many bytes. It is empty if the topic is another topic now, or if its files are gone."""

    partition: TopicPartition
    topic_id: str
    offset: int
    bytes_max: int


@dataclass(slots=True)
class Expect:
    """The fetches that come next, in their order. Their bytes are requested now, and the bytes that no such fetch needs are dropped."""

    fetches: list[Fetch]


@dataclass(slots=True)
class Tell:
    """The program learns that partitions were `assigned`, `revoked` or `lost`. The error of its callback comes back; else None."""

    event: str
    partitions: list[TopicPartition]


@dataclass(slots=True)
class LookAtGroup:
    """A `View` of the group; None if the group did not change since the last complete view."""


@dataclass(slots=True)
class Take:
    """Takes the shares that this member wants and no member has. A `View`."""


@dataclass(slots=True)
class Release:
    """Gives up shares and commits positions of them, in one commit. A `View`."""

    shares: list[TopicPartition]
    ats: Ats


@dataclass(slots=True)
class Join:
    """Names the subscription: topics, or a pattern. Gives up these shares, and commits these positions of them, in the same commit."""

    topics: Collection[str]
    pattern: str | None
    shares: list[TopicPartition]
    ats: Ats


@dataclass(slots=True)
class Leave:
    """Leaves the group; the next look joins it again. `for_good`: there will be none."""

    for_good: bool


@dataclass(slots=True)
class IsLive:
    """Whether no other member may have taken the shares of this one."""


@dataclass(slots=True)
class LookAtPositions:
    """The committed positions of the group by partition and topic id: `dict[tuple[TopicPartition, str], OffsetAndMetadata]`."""


@dataclass(slots=True)
class CommitSync:
    """Commits positions, each partition by itself. `Refused`."""

    ats: Ats


@dataclass(slots=True)
class CommitAsync:
    """Begins a commit. It ends with a call of `Core.ended`, before the callback is called."""

    ats: Ats
    callback: Committed | None


@dataclass(slots=True)
class Settle:
    """Waits until all commits that were begun have ended, so that a later one comes after them. `end`: there will be no more.

    The errors of their callbacks come back.
    """

    end: bool = False


@dataclass(slots=True)
class TellCommits:
    """The callbacks of commits that have ended are called. The errors that these raised come back."""


@dataclass(slots=True)
class Beat:
    """Says now and then that the group is running."""


Request = (
    Now | Wait | ListTopics | LookAtTopics | News | Fetch | Expect | Tell | LookAtGroup | Take | Release | Join | Leave | IsLive
    | LookAtPositions | CommitSync | CommitAsync | Settle | TellCommits | Beat
)  # fmt: skip
Reply = Any
