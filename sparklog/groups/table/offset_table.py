"""An offset commit table: the positions of named groups in the topics of a root."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.groups import doctor, kafka_files, lags, plans, reset, rows, views
from sparklog.groups.assignors import Member
from sparklog.groups.doctor import WATCH_S, GroupDiagnosis
from sparklog.groups.member.state import GroupState
from sparklog.groups.plans import GroupPlan
from sparklog.groups.reset import Move, Placing, Target
from sparklog.groups.rows import Group, Position, Positions
from sparklog.groups.snapshots import GroupSnapshot
from sparklog.groups.summaries import GroupSummaries
from sparklog.groups.table import places, sql
from sparklog.groups.table.generations import Generations
from sparklog.groups.table.lake import Lake
from sparklog.groups.topics import Topics, require_same
from sparklog.groups.views import GroupChanges, GroupMembers, GroupShare
from sparklog.ondisk.root import Root
from sparklog.ondisk.topic_logs import TopicLogs

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem
    from pyspark.sql import SparkSession

    from sparklog.groups.plots import GroupPlots


class OffsetTable:
    """A Delta table of positions, one row for each position that a group ever committed. The first write creates it.

    Consumers share a group as its members, if each has the same `partition_assignment_strategy`. Otherwise a group has one owner at a time:
    a tracker, `write_delta` or a consumer, which takes the next generation and commits with it. The positions of a group are the greatest
    offset of each partition in the greatest generation; no clock decides. Each generation begins with the positions of the generation
    before.

    Every read and write goes through deltalake, which needs no JVM. The methods raise SparklogErrors: CallError if the call is wrong, and
    RetryError if the table cannot be read or written. Threads may share a table.

    Example:
        >>> from sparklog.groups import OffsetTable
        >>> table = OffsetTable("events", "offsets")
        >>> table.groups(), table.lag("billing")["records"].to_pylist()
        (['billing'], [2, 5])
    """

    topics: Topics
    """The topics of the root, which owners and consumers of groups share."""
    lake: Lake
    """The rows, as deltalake reads and writes them."""
    generations: Generations
    """The groups, as their owners commit to them."""

    def __init__(
        self,
        root: str | os.PathLike[str] | Root | TopicLogs | None,
        path: str | os.PathLike[str],
        *,
        storage_options: Mapping[str, str] | None = None,
        filesystem: FileSystem | None = None,
    ) -> None:
        """Opens a table, which need not exist yet.

        Args:
            root: The root that holds the topics. Calls that do not look at topics work with None.
            path: The path or the URL of the table. Nothing in a path is decoded or expanded.
            storage_options: The options with which deltalake reaches a URL; by default the settings of the root. Settings of a session do
                not count.
            filesystem: The file system of the root, as in `Log`. The table does not use it.

        Raises:
            CallError: OFFSETS_EXTRA if deltalake is not installed; OPTION_VALUE if the path has characters that deltalake decodes or
                expands, such as "%41", a backslash, [, ], ^, | or a control character; TABLE_IN_ROOT.

        Example:
            >>> from sparklog.groups import OffsetTable
            >>> OffsetTable("events", "offsets").exists()
            True
        """
        self.path = places.named(path)
        self.topics = Topics(root, self.path, filesystem)
        self.lake = Lake(self.path, self.topics.storage_options if storage_options is None else storage_options)
        self.generations = Generations(self.path, self.lake)

    @property
    def root(self) -> str | None:
        """The absolute path of the root; None if none was given."""
        return None if self.topics.root is None else str(self.topics.root)

    # ---- reading

    def groups(self) -> list[str]:
        """Lists the groups.

        Returns:
            The names, sorted.

        Raises:
            CallError: OFFSETS_TABLE_NOT_FOUND if there is no table yet; `exists` asks for that.

        Example:
            >>> table.groups()
            ['billing']
        """
        return list(self.generations.all())

    def exists(self) -> bool:
        """Returns whether there is a Delta table at the path; the first write creates it.

        Returns:
            True if there is one.

        Raises:
            RetryError: OFFSETS_TABLE if the table cannot be read.

        Example:
            >>> table.exists()
            True
        """
        return self.lake.exists()

    def group(self, group: str) -> GroupSnapshot:
        """Returns a group at one moment: its positions, lag, members and shares, which agree with each other.

        Args:
            group: The name of the group.

        Returns:
            The group, from one query of the table and one state of each of its topics. In a notebook it shows its lag.

        Raises:
            CallError: OFFSETS_TABLE_NOT_FOUND or GROUP_NOT_FOUND.
            RetryError: OFFSETS_TABLE if the table cannot be read.

        Example:
            >>> billing = table.group("billing")
            >>> billing.summary.lag, [each.offset for each in billing.positions()], len(billing.members())
            (7, [3, 10], 0)
        """
        found = self.generations.existing(group)
        return GroupSnapshot(found, self.topics.pinned(each.topic for each in found.positions), self.generations.heartbeats)

    def snapshots(self, groups: Sequence[str] | str | None = None) -> list[GroupSnapshot]:
        """Returns groups at one moment each, as `group` does. One query reads all groups.

        Args:
            groups: The names of the groups; by default all, sorted by name.

        Returns:
            The groups.

        Raises:
            CallError: OFFSETS_TABLE_NOT_FOUND or GROUP_NOT_FOUND.

        Example:
            >>> [each.summary.lag for each in table.snapshots()]
            [7]
        """
        found = self.generations.some(groups)
        topics = self.topics.pinned(each.topic for group in found for each in group.positions)
        return [GroupSnapshot(each, topics, self.generations.heartbeats) for each in found]

    def summaries(self, groups: Sequence[str] | str | None = None) -> GroupSummaries:
        """Describes groups in short: topics, lag, last commit.

        Args:
            groups: The names of the groups; by default all, sorted by name.

        Returns:
            The summaries. A group whose lag is not known has an `error`.

        Raises:
            CallError: OFFSETS_TABLE_NOT_FOUND or GROUP_NOT_FOUND.

        Example:
            >>> [(each.group, each.lag) for each in table.summaries()]
            [('billing', 7)]
        """
        return GroupSummaries([each.summary for each in self.snapshots(groups)], self.path)

    def positions(self, group: str, topic: str | None = None) -> Positions:
        """Returns the positions of a group.

        Args:
            group: The name of the group.
            topic: Only positions in this topic; by default all.

        Returns:
            The positions, sorted by topic and partition. A position whose topic was deleted or created again has a `note`.

        Raises:
            CallError: OFFSETS_TABLE_NOT_FOUND or GROUP_NOT_FOUND.

        Example:
            >>> [(each.topic, each.partition, each.offset) for each in table.positions("billing")]
            [('orders', 0, 3), ('orders', 1, 10)]
        """
        return self.group(group).positions(topic)

    def history(self, group: str) -> list[Position]:
        """Returns all positions that a group ever committed; a heartbeat is a repeated position.

        Args:
            group: The name of the group.

        Returns:
            The positions, the oldest first.

        Raises:
            CallError: OFFSETS_TABLE_NOT_FOUND or GROUP_NOT_FOUND.

        Example:
            >>> [each.offset for each in table.history("billing")]
            [3, 10]
        """
        return [row for row in self._rows(group) if not rows.is_note(row)]

    def members(self, group: str) -> GroupMembers:
        """Returns the members of a group, with the partitions that each owns and waits for.

        Args:
            group: The name of the group.

        Returns:
            The members, sorted by id; empty if one owner runs the group alone.

        Raises:
            CallError: OFFSETS_TABLE_NOT_FOUND or GROUP_NOT_FOUND.

        Example:
            >>> table.members("billing")
            Group billing: 0 members
        """
        return self.group(group).members()

    def assignments(self, group: str) -> list[GroupShare]:
        """Returns the partitions that members share.

        Args:
            group: The name of the group.

        Returns:
            The partitions, sorted: the owner of each, and the reason for which it waits.

        Raises:
            CallError: OFFSETS_TABLE_NOT_FOUND or GROUP_NOT_FOUND.

        Example:
            >>> table.assignments("billing")
            []
        """
        return self.group(group).assignments()

    def changes(self, group: str) -> GroupChanges:
        """Returns every change of a group: why members came and went, and how many partitions moved.

        Args:
            group: The name of the group.

        Returns:
            The changes, the oldest first.

        Raises:
            CallError: OFFSETS_TABLE_NOT_FOUND or GROUP_NOT_FOUND.

        Example:
            >>> [each.event for each in table.changes("billing")]
            ['begin', 'end']
        """
        return GroupChanges(group, views.changes(self._rows(group)))

    def doctor(self, group: str, *, watch_s: float = WATCH_S) -> GroupDiagnosis:
        """Finds the reasons why a group is stuck or slow. It changes nothing.

        The call ends when:

        * each member has shown that it is alive,
        * no partition is on its way to another member, and
        * a commit came for each partition that others wait for at a re-route.

        For a group that is well, this takes one heartbeat interval.

        Args:
            group: The name of the group.
            watch_s: The longest time for which the group is watched, in seconds, at least 0; default 30. A silent member is an error after
                a third of its session; before, a warning.

        Returns:
            The findings, errors first; an empty list for a group that is well. `is_stuck` says whether one is an error.

        Raises:
            CallError: OFFSETS_TABLE_NOT_FOUND or GROUP_NOT_FOUND; OFFSETS_ROOT if the table was opened without a root.
            DataError: GROUP_STATE if the state of the group is damaged.
            RetryError: OFFSETS_TABLE if the table cannot be read.

        Example:
            >>> for finding in table.doctor("billing"):
            ...     print(finding.severity, finding.text)
            error No program runs the group. Records that wait: 7.
        """
        watch_s = arguments.duration("watch_s", watch_s)
        return doctor.diagnose(group, self.generations, self.topics, self.path, self.lake.upkeep(), watch_s)

    def create_views(self, spark: SparkSession) -> None:
        """Makes temporary views of a Spark session that has Delta: `group_members`, `group_assignments` and `group_history`, of all groups.

        The views read the table when they are asked. Delta's own connector reads it: a store needs the settings of the session, and
        `storage_options` do not count.

        Args:
            spark: The session, such as that of `sparklog.session(delta=True)`.

        Raises:
            AnalysisException: If the session does not have Delta, or there is no table.

        Example:
            >>> spark = sparklog.session(delta=True)
            >>> table.create_views(spark)
            >>> spark.table("group_members").count()
            0
        """
        for statement in sql.views(self.path).values():
            spark.sql(statement)

    def starting_offsets(self, group: str, topic: str | None = None, *, share: str | None = None) -> str:
        """Makes the option `startingOffsets` with which a batch read or a stream begins where the group is.

        A partition without a position of the group begins at its first record.

        Args:
            group: The name of the group.
            topic: Only this topic, for a query that does not read the others; by default all topics of the group.
            share: Only the partitions that a query with this option `share` reads, such as `2/5`.

        Returns:
            JSON, by topic and partition.

        Raises:
            CallError: GROUP_NOT_FOUND; OPTION_VALUE; GROUP_OF_OTHER_TOPIC if a topic was created again.

        Example:
            >>> table.starting_offsets("billing")
            '{"orders": {"0": 3, "1": 10}}'
        """
        place, parts = (1, 1) if share is None else arguments.share(share)
        found: dict[str, dict[str, int]] = {}
        for position in self.positions(group, topic):
            of = found.get(position.topic)
            if of is None:
                state = self.topics.state(position.topic)
                require_same(self.topics.root, position, state)
                of = found[position.topic] = {str(number): -2 for number in range(place - 1, state.partitions, parts)}
            if str(position.partition) in of:
                of[str(position.partition)] = position.offset
        return json.dumps(found)

    # ---- for operators

    def reset(
        self,
        group: str,
        to: Target,
        topics: Sequence[str] | Mapping[str, Sequence[int]] | None = None,
        *,
        dry_run: bool = True,
        force: bool = False,
    ) -> list[Move]:
        """Moves a group. By default it only shows the moves: `dry_run=False` makes them.

        All partitions of a topic move; with a dict the partitions that it names; with a shift the partitions with a position. The others
        stay. A topic that was created again is forgotten, but for the partitions that are reset.

        Args:
            group: The name of the group.
            to: One of these:

                * `"earliest"` or `"latest"`;
                * a time, as in `Topic.offsets_for_time`: the first record at or after it, or else the end offset;
                * a timedelta: that time before now;
                * a dict of offsets by topic and partition;
                * an integer, by which the positions are shifted, within the log.
            topics: Only these topics, or in a dict only these partitions of them; by default the topics of the group, or those that `to`
                names.
            dry_run: Whether nothing is moved; default True.
            force: Whether a group that runs is moved too; default False. Its owner gets GenerationFencedError at its next commit; its
                members go on from the new positions. Without `force`, a dry run of a group that runs is refused, too.

        Returns:
            The moves: topic, partition, position before and after.

        Raises:
            CallError: GROUP_NOT_FOUND; GROUP_RUNNING without `force`; OFFSETS_OUT_OF_RANGE; TIMESTAMP_NOT_FOUND if a time is after all
                records; OPTION_VALUE.

        Example:
            >>> [(each.partition, each.was, each.now) for each in table.reset("billing", "earliest")]
            [(0, 3, 0), (1, 10, 0)]
            >>> moves = table.reset("billing", "earliest", dry_run=False)
            >>> [each.offset for each in table.positions("billing")]
            [0, 0]
        """
        given, to = to, reset.target(to)
        if topics is not None and isinstance(to, Mapping):
            raise SparklogError("OPTION_VALUE", option="topics", value=topics, reason="`to` names topics already; leave it out")
        asked = list(to) if isinstance(to, Mapping) else None if topics is None else arguments.texts("topics", topics)
        only = topics if isinstance(topics, Mapping) else {}

        def plan(found: Group) -> list[Move]:
            of = asked if asked is not None else sorted({each.topic for each in found.positions})
            return reset.reached(given, [each for t in of for each in Placing(self.topics.log(t), found).moves(to, only.get(t))])

        self.generations.existing(group)
        return self._move(group, "reset", plan, dry_run=dry_run, force=force)

    def load(self, group: str, text: str, format: str = "json", *, dry_run: bool = False, force: bool = False) -> list[Move]:
        """Moves a group, which need not exist yet, to the offsets in a file of Kafka's tools.

        If the records at an offset have expired, the group moves to the log start offset, and the `note` of the move has the offset of the
        file. An offset beyond the end offset is refused.

        Args:
            group: The name of the group.
            text: The contents of the file.
            format: `json`, the form of kafka-delete-records.sh: `{"partitions": [{"topic": "t", "partition": 0, "offset": 5}], "version":
                1}`; or `csv`: lines `topic,partition,offset`, or `group,topic,partition,offset`, where only lines of this group count.
                Default `json`.
            dry_run: Whether nothing is moved; default False.
            force: Whether a group that runs is moved too; default False.

        Returns:
            The moves: topic, partition, position before and after, and the note.

        Raises:
            CallError: As `reset`; OFFSETS_FILE if the text cannot be read. Nothing is moved then.

        Example:
            >>> moves = table.load("mail", "orders,0,2", format="csv")
            >>> [(each.partition, each.was, each.now) for each in moves]
            [(0, None, 2)]
        """
        to = kafka_files.read(text, format, rows.require_group(group))

        def plan(found: Group) -> list[Move]:
            return [move for topic, offsets in to.items() for move in Placing(self.topics.log(topic), found).loaded(offsets)]

        return self._move(group, "load", plan, dry_run=dry_run, force=force)

    def export(self, group: str, format: str = "json") -> str:
        """Returns the positions of a group in a format that `load` and Kafka's tools take.

        Args:
            group: The name of the group.
            format: `json` or `csv`; default `json`.

        Returns:
            The text.

        Raises:
            CallError: GROUP_NOT_FOUND; OPTION_VALUE if the format is unknown.

        Example:
            >>> print(table.export("billing", format="csv"))
            orders,0,3
            orders,1,10
            <BLANKLINE>
        """
        return kafka_files.written(self.generations.existing(group).positions, format)

    def carry(self, group: str, topic: str, to: str, *, dry_run: bool = True, force: bool = False) -> list[Move]:
        """Carries a group over to a topic that was rebuilt from its topic. By default it only shows the moves: `dry_run=False` makes them.

        The group goes to the last frontier that it has passed in each partition (docs/FORMAT.md section D.1). It misses no record, and
        reads records beyond the frontier again. Its positions in `topic` stay until `delete(group, topics=topic)`.

        Args:
            group: The name of the group.
            topic: The topic that the group has read.
            to: The topic that `CALL partlog.rebuild` made from it.
            dry_run: Whether nothing is moved; default True.
            force: Whether a group that runs is moved too; default False.

        Returns:
            The moves in `to`: topic, partition, position before and after.

        Raises:
            CallError: As `reset`; also if `to` was not rebuilt from `topic`, if the version that says so was cleaned up, or if the group
                has no positions in `topic`.

        Example:
            >>> try:
            ...     table.carry("billing", "orders", "orders")
            ... except sparklog.CallError as error:
            ...     print(error.condition)
            PARTLOG_OPTION_VALUE
        """
        origin, made = arguments.topic(topic), self.topics.log(to)

        def plan(found: Group) -> list[Move]:
            return Placing(made, found).moves(reset.carried(made, found, origin))

        self.generations.existing(group)
        return self._move(group, "load", plan, dry_run=dry_run, force=force)

    def delete(self, group: str, *, topics: Sequence[str] | str | None = None, force: bool = False) -> None:
        """Deletes a group, or with `topics` its positions in these. Rows stay in the table, and do not count.

        Args:
            group: The name of the group.
            topics: The topics whose positions are deleted; by default the whole group is. Members that read such a topic begin it as a new
                one.
            force: Whether a group that runs is deleted too; default False.

        Raises:
            CallError: GROUP_NOT_FOUND; GROUP_RUNNING without `force`.

        Example:
            >>> table.delete("billing")
            >>> table.groups()
            []
        """
        force = arguments.boolean("force", force)

        def moved(found: Group) -> list[Position]:
            self.generations.require_still(found, force=force)
            return []

        self.generations.existing(group)
        if topics is None:
            self.generations.claim(group, "delete", moved, carry=False)
        else:
            self.generations.claim(group, "forget", moved, dropped=arguments.texts("topics", topics))

    def plan(
        self,
        group: str,
        members: int | Iterable[str | Member] | None = None,
        topics: Sequence[str] | str | None = None,
        *,
        joining: str | Iterable[str | Member] = (),
        leaving: Iterable[str] | str = (),
        assignor: str = "sticky",
        weight: str = "count",
    ) -> GroupPlan:
        """Plans a group, which need not exist: it shows the partitions that an assignor would give to members. Nothing is changed.

        Args:
            group: The name of the group.
            members: The number of members, which are then called consumer-1, consumer-2 and so on; or their ids, each of which reads all
                topics; or `Member` objects. By default the members of the group, with the partitions that they own.
            topics: The topics that the group reads; by default those with positions, or those that members name.
            joining: Members that come.
            leaving: The ids of members that go.
            assignor: One of `sparklog.groups.assignors.ASSIGNORS`; default `sticky`.
            weight: For `sticky`, the measure by which it evens out: `count` (default), `lag` or `rate`.

        Returns:
            The plan: the partitions of each member before and after.

        Raises:
            CallError: OPTION_VALUE if there are no topics, or members cannot be told apart; TOPIC_NOT_FOUND.

        Example:
            >>> plan = table.plan("billing", 1, joining="consumer-2")
            >>> [(each.partition, each.was, each.consumer_id) for each in plan.moved]
            [(1, 'consumer-1', 'consumer-2')]
        """
        found = self.generations.group(group)
        owners = None
        if members is None:
            state = found.state or GroupState(assignor)
            members = state.as_members()
            owners = {each: share.owner for each, share in state.shares.items() if share.owner is not None}
        return plans.plan(
            self.topics.logs,
            group,
            members,
            topics,
            joining=joining,
            leaving=leaving,
            assignor=assignor,
            weight=weight,
            positions=found.positions,
            owners=owners,
        )

    def lag(self, group: str, topic: str | None = None) -> pa.Table:
        """Measures how far a group is behind, with a row for each partition of its topics.

        Args:
            group: The name of the group.
            topic: Only this topic; by default all topics of the group.

        Returns:
            An Arrow table with these columns:

            * `offset`: the position, None without one; `start`, `end`: the log start offset and the end offset.
            * `records`: the offsets from the position to the end that have not expired: end − offset, or end − start if that is less.
            * `bytes`: the stored bytes of these records, interpolated within a segment.
            * `seconds`: from the time of the first unread record to the greatest time of all unread records; 0 if all is read. None if the
              first unread record does not have a time, or was deleted meanwhile.

        Raises:
            CallError: GROUP_NOT_FOUND; GROUP_OF_OTHER_TOPIC if a topic was created again; TOPIC_NOT_FOUND.

        Example:
            >>> table.lag("billing").select(["partition", "offset", "end", "records", "seconds"]).to_pylist()
            [{'partition': 0, 'offset': 3, 'end': 5, 'records': 2, 'seconds': 4.0},
             {'partition': 1, 'offset': 10, 'end': 15, 'records': 5, 'seconds': 5.0}]
        """
        return self.group(group).lag(topic)

    def show(self, group: str) -> None:
        """Prints the lag of a group as text; in a notebook, as a table.

        Args:
            group: The name of the group.

        Raises:
            CallError: As `lag`.

        Example:
            >>> table.show("billing")
            Group billing...
        """
        self.group(group).show()

    def lag_history(self, group: str) -> pa.Table:
        """Measures the lag of a group at each of its commits, with a row for each position that it committed.

        Args:
            group: The name of the group.

        Returns:
            An Arrow table, the oldest commit first. `end` is the end offset at that time, and `records` the
            unread records of the log as it was then, counted as by `lag`. Both are None if the log's version files of that time were
            deleted, or if the topic was created again since.

        Raises:
            CallError: GROUP_NOT_FOUND.

        Example:
            >>> table.lag_history("billing")["records"].to_pylist()
            [2, 5]
        """
        history = self.history(group)
        found = {each.topic for each in history}
        logs = {topic: self.topics.log(topic) for topic in found if self.topics.find_state(topic)}
        return pa.Table.from_pylist(lags.over_time(history, logs), lags.HISTORY)

    @property
    def plot(self) -> GroupPlots:
        """Plots of groups: `table.plot.lag(group)`."""
        from sparklog.groups.plots import GroupPlots

        return GroupPlots(self.lag_history)

    def retain_from(self, groups: Sequence[str] | str | None = None) -> dict[str, dict[int, int]]:
        """Finds the lowest offset that any of these groups still needs, for the argument `keep` of `CALL partlog.expire`.

        A group needs all of a partition of its topics in which it has no position. Topics that were deleted or created again are left out.

        Args:
            groups: The names of the groups; by default all.

        Returns:
            The offsets, by topic and partition.

        Raises:
            CallError: OFFSETS_TABLE_NOT_FOUND or GROUP_NOT_FOUND.

        Example:
            >>> table.retain_from()
            {'orders': {0: 3, 1: 10}}
        """
        found: dict[str, dict[int, int]] = {}
        for group in self.generations.some(groups):
            by_topic: dict[str, dict[int, int]] = {}
            for each in group.positions:
                state = self.topics.find_state(each.topic)
                if state and state.topic_id == each.topic_id:
                    by_topic.setdefault(each.topic, dict(enumerate(state.starts)))[each.partition] = each.offset
            for topic, needed in by_topic.items():
                lowest = found.setdefault(topic, {})
                lowest.update({partition: min(offset, lowest.get(partition, offset)) for partition, offset in needed.items()})
        return found

    def maintain(self) -> dict[str, int]:
        """Makes the table quick to read: joins small files, writes a checkpoint, and deletes files that were replaced an hour ago.

        The program that makes every 50th commit of the table does this too. No position is lost.

        Returns:
            The numbers of files that were joined and deleted.

        Raises:
            CallError: OFFSETS_TABLE_NOT_FOUND.
            RetryError: OFFSETS_TABLE if the table cannot be written.

        Example:
            >>> sorted(table.maintain())
            ['deleted', 'joined']
        """
        return self.lake.maintain()

    # ---- within

    def _rows(self, group: str) -> list[Position]:
        """All rows of a group, the oldest first. CallError if the group does not exist."""
        found = rows.positions(self.lake.rows(rows.require_group(group), current=False))
        if not Group(group, []).after(found).exists:
            self.generations.existing(group)
        return found

    def _move(self, name: str, event: str, plan: Callable[[Group], list[Move]], *, dry_run: bool, force: bool) -> list[Move]:
        dry_run, force = arguments.boolean("dry_run", dry_run), arguments.boolean("force", force)
        group = self.generations.group(name)
        planned = plan(group)
        if planned:
            self.generations.require_still(group, force=force)
        if dry_run or not planned:
            return planned

        def moved(found: Group) -> list[Position]:
            self.generations.require_still(found, force=force)
            planned[:] = plan(found)
            return [Position(name, 0, each.topic, each.topic_id, each.partition, each.now, rows.now()) for each in planned]

        self.generations.claim(name, event, moved)
        return planned
