"""The requests of the core of a consumer: all that it has done outside. Each request names the type of its reply."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

import pyarrow as pa

from sparklog.consumer.records import OffsetAndMetadata, TopicPartition
from sparklog.errors import SparklogError
from sparklog.groups.commits import OffsetCommit
from sparklog.ondisk.state import State
from sparklog.steps import Request

if TYPE_CHECKING:
    from sparklog.groups.rows import Position

Known = dict[tuple[TopicPartition, str], OffsetAndMetadata]
"""Committed positions by partition and topic id."""
Refused = dict[tuple[str, int], SparklogError]
"""The partitions of a commit that were not committed, each with the error."""
Committed = Callable[[dict[TopicPartition, OffsetAndMetadata], BaseException | None], object]
"""Is called with the offsets of a commit, and its error; None if it was made."""


class Holding(Protocol):
    """How a member holds a share: equal to another one only if the member has not lost the share in between."""

    @property
    def topic_id(self) -> str: ...


class View(NamedTuple):
    """The group, as a member sees it when it polls the group."""

    held: Mapping[TopicPartition, Holding]
    """The shares of this member whose positions are known."""
    asked_for: Sequence[TopicPartition]
    """Those of them that another member waits for."""
    topics: Mapping[str, str]
    """The topics that the group reads, each with its id."""
    positions: Mapping[TopicPartition, Position]
    """The positions that are committed in these shares."""
    generation: int = 0
    """The generation of the group: positions go back only with another one."""


class FetchReply(NamedTuple):
    """The records of a partition from an offset on, up to `offset`. `state` is the newest state of the topic that is known."""

    batches: list[pa.RecordBatch]
    offset: int
    state: State | None


@dataclass(slots=True)
class Now(Request[float]):
    """The seconds of a clock that only rises."""


@dataclass(slots=True)
class Wait(Request[None]):
    """Some seconds pass. A call of `wakeup` does not end them."""

    seconds: float


@dataclass(slots=True)
class ListTopics(Request[list[str]]):
    """The names of the topics that exist and are wanted. The others need no request."""

    wanted: Callable[[str], bool]


@dataclass(slots=True)
class RefreshTopics(Request[dict[str, State | SparklogError]]):
    """The newest states of topics by name. A topic that cannot be read has its error, such as TOPIC_NOT_FOUND.

    `surely`: also if versions were put and deleted meanwhile.
    """

    topics: Collection[str]
    surely: bool = False


@dataclass(slots=True)
class News(Request[dict[str, State | SparklogError]]):
    """The newest known states of these topics, and errors. Not every topic is refreshed each time.

    `idle`: the program waits for records. Then the reply comes with the first news, or when all refreshes have ended.
    """

    topics: Collection[str]
    idle: bool


@dataclass(slots=True)
class Fetch(Request[FetchReply]):
    """About so many bytes. The reply is empty if the topic is another topic now, or if its files are gone."""

    partition: TopicPartition
    topic_id: str
    offset: int
    bytes_max: int


@dataclass(slots=True)
class Expect(Request[None]):
    """The fetches that come next, in their order. Their bytes are requested now, and the bytes that no such fetch needs are dropped."""

    fetches: list[Fetch]


@dataclass(slots=True)
class Notify(Request[BaseException | None]):
    """The program learns that partitions were `assigned`, `revoked` or `lost`. The error of its callback is returned."""

    event: str
    partitions: list[TopicPartition]


@dataclass(slots=True)
class PollGroup(Request[View | None]):
    """The group as it is now; None if it did not change since the last complete view."""


@dataclass(slots=True)
class Take(Request[View]):
    """Takes the shares that this member wants and no member has."""


@dataclass(slots=True)
class Release(Request[View]):
    """Gives up shares and commits positions of them, in one commit."""

    shares: list[TopicPartition]
    commits: list[OffsetCommit]


@dataclass(slots=True)
class Join(Request[None]):
    """Names the subscription: topics, or a pattern. Gives up these shares, and commits these positions of them, in the same commit."""

    topics: Collection[str]
    pattern: str | None
    shares: list[TopicPartition]
    commits: list[OffsetCommit]


@dataclass(slots=True)
class Leave(Request[None]):
    """Leaves the group; the next `PollGroup` joins it again. `for_good`: there will be none."""

    for_good: bool


@dataclass(slots=True)
class IsLive(Request[bool]):
    """Whether no other member may have taken the shares of this one."""


@dataclass(slots=True)
class ReadCommitted(Request[Known]):
    """The committed positions of the group."""


@dataclass(slots=True)
class CommitSync(Request[Refused]):
    """Commits positions, each partition by itself."""

    commits: list[OffsetCommit]


@dataclass(slots=True)
class CommitAsync(Request[Future[None]]):
    """Begins a commit. When the commit has ended, `Committing.ended` is called, and then the callback."""

    commits: list[OffsetCommit]
    callback: Committed | None


@dataclass(slots=True)
class AwaitCommits(Request[list[BaseException]]):
    """Waits until all commits that were begun have ended, so that a later one comes after them. `end`: there will be no more.

    The errors of their callbacks are returned.
    """

    end: bool = False


@dataclass(slots=True)
class NotifyCommits(Request[list[BaseException]]):
    """The callbacks of commits that have ended are called. Their errors are returned."""


@dataclass(slots=True)
class Beat(Request[None]):
    """Says now and then that the group is running."""
