"""An offset commit table: the positions of named groups in the topics of a root."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sparklog import arguments
from sparklog.assignors import Member
from sparklog.errors import SparklogError
from sparklog.offsets import doctor, kafka_files, lags, places, plans, reset, rows, sql, views
from sparklog.offsets.doctor import WATCH_S, GroupDiagnosis
from sparklog.offsets.generations import Generations
from sparklog.offsets.lake import Lake
from sparklog.offsets.members import GroupState
from sparklog.offsets.plans import GroupPlan
from sparklog.offsets.reset import Move, Placing, Target
from sparklog.offsets.rows import Group, Position, Positions
from sparklog.offsets.snapshots import GroupSnapshot
from sparklog.offsets.summaries import GroupSummaries
from sparklog.offsets.topics import Ids, Offsets, Topics, require_same
from sparklog.offsets.views import GroupChanges, GroupMembers, GroupShare
from sparklog.ondisk.root import Root
from sparklog.ondisk.topic_logs import TopicLogs

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem
    from pyspark.sql import SparkSession

    from sparklog.offsets.plots import GroupPlots


class OffsetTable:
    """A Delta table of positions, one row for each position that a group ever committed. The first write creates it.

    Many consumers share a group as its members, if each has the same `assignor`. Without one, a group has one owner at a time, which takes
    the next generation with `begin` and commits with it. The positions of a group are the greatest offset of each partition in the
    greatest generation; no clock decides. Each generation begins with the positions of the generation before.

    Every read and write goes through deltalake, which needs no JVM. The methods raise SparklogErrors: CallError if the call is wrong, and
    RetryError if the table cannot be read or written.
    """

    topics: Topics
    """The topics of the root, which owners and consumers of groups share."""
    generations: Generations
    """The groups, as their owners commit to them."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        root: str | os.PathLike[str] | Root | TopicLogs | None = None,
        *,
        spark: SparkSession | None = None,
        storage_options: Mapping[str, str] | None = None,
        filesystem: FileSystem | None = None,
    ) -> None:
        """Opens a table at a path or URL. `root` is the root that holds the topics; what does not look at topics works without one.

        `filesystem` is that of `Log`: a bucket is read through it. A table in a bucket is reached with the same settings, unless
        `storage_options` are given.

        With a Spark session, `lag` and `lag_history` return DataFrames of it. It does not read or write the table: `storage_options`, which
        are deltalake's, say how a store is reached, and settings of the session do not.

        A path is taken as that of a root: nothing in it is decoded or expanded. CallError if deltalake is not installed, or if the path has
        what deltalake takes for something else: "%41" and the like, a backslash, [, ], ^, |, a control.
        Threads may share a table. A process that was forked from one that used a table cannot use any: OFFSETS_FORKED.
        """
        self.path = places.named(path)
        self.topics = Topics(root, self.path, filesystem)
        self._lake = Lake(self.path, self.topics.storage_options if storage_options is None else storage_options)
        self.generations = Generations(self.path, self._lake)
        self._spark = spark

    @property
    def root(self) -> str | None:
        """The absolute path of the root; None if none was given."""
        return None if self.topics.root is None else str(self.topics.root)

    # ---- reading

    def groups(self) -> list[str]:
        """The names of the groups, sorted. CallError OFFSETS_TABLE_NOT_FOUND if there is no table yet; `exists` says that."""
        return list(self.generations.all())

    def exists(self) -> bool:
        """Whether there is a Delta table at the path; the first write creates it."""
        return self._lake.exists()

    def group(self, group: str) -> GroupSnapshot:
        """A group at one moment: its positions, lag, members and shares, which agree with each other.

        Args:
            group: The name of the group.

        Returns:
            The group, from one query of the table and one state of each of its topics. In a notebook it shows its lag.

        Raises:
            CallError: OFFSETS_TABLE_NOT_FOUND or GROUP_NOT_FOUND.
            RetryError: OFFSETS_TABLE if the table cannot be read.

        Example:
            billing = table.group("billing")
            print(billing.summary.lag, billing.positions(), billing.members())
        """
        return GroupSnapshot(self.generations.existing(group), self.topics.pinned(), self.path)

    def snapshots(self, groups: Sequence[str] | str | None = None) -> list[GroupSnapshot]:
        """These groups, or all sorted by name, each as `group` returns it. One query reads all groups. CallError as `group`."""
        topics = self.topics.pinned()
        return [GroupSnapshot(each, topics, self.path) for each in self.generations.some(groups)]

    def summaries(self, groups: Sequence[str] | str | None = None) -> GroupSummaries:
        """These groups, or all sorted by name, in short: topics, lag, last commit. A group whose lag cannot be told has an `error`.

        CallError as `groups`, and GROUP_NOT_FOUND.
        """
        return GroupSummaries([each.summary for each in self.snapshots(groups)], self.path)

    def positions(self, group: str, topic: str | None = None) -> Positions:
        """The positions of a group, sorted by topic and partition; with `topic`, only those in that topic.

        A position whose topic was created again or deleted has a `note`.
        """
        return self.group(group).positions(topic)

    def history(self, group: str) -> list[Position]:
        """All positions that a group ever committed, the oldest first; a heartbeat is a repeated one."""
        return [row for row in self._rows(group) if not rows.is_note(row)]

    def members(self, group: str) -> GroupMembers:
        """The members of a group, sorted by id: what each owns and waits for; none if one owner runs it alone."""
        return self.group(group).members()

    def assignments(self, group: str) -> list[GroupShare]:
        """The partitions that members share, sorted: the owner of each, and what it waits for."""
        return self.group(group).assignments()

    def changes(self, group: str) -> GroupChanges:
        """Every change of a group, the oldest first: why members came and went, and how many partitions moved."""
        return GroupChanges(group, views.changes(self._rows(group)))

    def doctor(self, group: str, *, watch_s: float = WATCH_S) -> GroupDiagnosis:
        """Finds the reasons why a group is stuck or slow. It changes nothing.

        The call ends when:

        * each member gave a sign of life,
        * no partition is on its way to another member, and
        * a commit came for each partition that others wait for at a re-route.

        For a group that is well, this takes one heartbeat interval.

        Args:
            group: The name of the group.
            watch_s: The longest time for which the group is watched, in seconds, at least 0. A silent member is an error after a third
                of its session; before, a warning.

        Returns:
            The findings, errors first; an empty list for a group that is well. `is_stuck` says whether one is an error.

        Raises:
            CallError: OFFSETS_TABLE_NOT_FOUND or GROUP_NOT_FOUND; OFFSETS_ROOT if the table was opened without a root.
            RetryError: OFFSETS_TABLE if the table cannot be read.
            DataError: GROUP_STATE if the state of the group is damaged.

        Example:
            for finding in table.doctor("billing"):
                print(finding.severity, finding.where, finding.text, finding.fix)
        """
        watch_s = arguments.duration("watch_s", watch_s)
        return doctor.diagnose(group, self.generations, self.topics, self.path, self._lake.upkeep(), watch_s)

    def create_views(self, spark: SparkSession) -> None:
        """Makes temporary views of a Spark session that has Delta: `group_members`, `group_assignments` and `group_history`.

        They are of all groups, and of what the table has when they are asked. Delta's own connector reads the table then: a store needs the
        settings of the session, and not `storage_options`.
        """
        for statement in sql.views(self.path).values():
            spark.sql(statement)

    def starting_offsets(self, group: str, topic: str | None = None, *, share: str | None = None) -> str:
        """The option `startingOffsets` with which a batch read or a stream begins where the group is: JSON, by topic and partition.

        With `topic`, only that topic, for a query that does not read the others; with `share`, as `2/5`, only the partitions that a query
        with this option reads.

        A partition that the group has no position in begins at its first record. CallError if a topic was created again.
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

    # ---- for owners of a group

    def begin(self, group: str, offsets: Offsets | None = None, *, after: int | None = None, ids: Ids | None = None) -> int:
        """Takes the next generation of a group, which need not exist yet, and returns it. It begins with the positions of the one before.

        With `offsets`, given by topic and partition, the group moves there, back too. Positions in a topic that was created again are
        then forgotten, if the topic is named. From now on `append` refuses every earlier generation. With `after`, a generation of the
        caller's, only if that is still the newest: GenerationFenced otherwise. `ids` is that of `append`.
        """
        after = None if after is None else arguments.integer("after", after)
        moved = self.topics.placed(rows.require_group(group), {} if offsets is None else offsets, ids)
        return self.generations.claim(group, rows.RUNNING, lambda _: moved, after=after)

    def require_generation(self, group: str, generation: int) -> None:
        """GenerationFenced if the group has another generation by now."""
        self.generations.require_newest(rows.require_group(group), arguments.integer("generation", generation))

    def append(
        self,
        group: str,
        generation: int,
        offsets: Offsets,
        *,
        query_id: str | None = None,
        epoch: int | None = None,
        metadata: str | None = None,
        ids: Ids | None = None,
    ) -> int:
        """Commits positions, given by topic and partition, as one commit of the table. Returns the number of rows.

        The current positions given again are a heartbeat; so is an empty dict, for a group without positions. GenerationFenced if the group
        has another generation by now: then nothing was moved. CallError if a topic or partition does not exist or was created again, or an
        offset is not between 0 and the end offset. With `ids`, those of the topics that were read, RetryError if one has another id by now.
        """
        query_id = None if query_id is None else arguments.text("query_id", query_id)
        metadata = None if metadata is None else arguments.text("metadata", metadata)
        epoch = None if epoch is None else arguments.long("epoch", epoch)

        def made(found: Group) -> list[Position]:
            moved = self.topics.placed(group, offsets, ids, found.positions)
            told = [dataclasses.replace(each, query_id=query_id, epoch=epoch, metadata=metadata) for each in moved]
            return told or [rows.note(group, generation, rows.RUNNING)]

        return self.generations.add(rows.require_group(group), arguments.integer("generation", generation), made)

    def follow(self, group: str, offsets: Offsets, ids: Ids | None = None) -> None:
        """Takes offsets that a group has committed in another table, as an operator's `load` would: those that changed, in one commit.

        It ends what runs the group in this table, unless that is members, which go on there.
        """
        self.generations.follow(group, self.topics.placed(rows.require_group(group), offsets, ids))

    def end(self, group: str, generation: int) -> None:
        """Says that the owner of this generation ends, so that the group is not running. GenerationFenced as in `append`."""
        self.generations.end(rows.require_group(group), arguments.integer("generation", generation))

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
        """Moves a group, and returns where its partitions go. By default it only says so: `dry_run=False` moves it.

        * to: `"earliest"` or `"latest"`; a time (a datetime with a time zone, or a text as `Topic.offsets_for_time` takes it): the first
          record at or after it, or else the end offset; a timedelta: that time before now; a dict of offsets by topic and partition; or an
          integer, by which the positions are shifted, within the log.
        * topics: only these, or in a dict only these partitions of them; by default, those of the group, or those that `to` names.

        All partitions of a topic go, with a dict those that it names, with a shift those with a position. The others stay. A topic that was
        created again is forgotten but for what is reset. CallError if the group does not exist, or is running, unless `force` is given:
        then its owner gets GenerationFenced at its next commit; also if an offset is not in the log, or a time is after all records.
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
        """Moves a group, which need not exist yet, to the offsets in a file of Kafka's tools, and returns where its partitions go.

        * json: what kafka-delete-records.sh takes: `{"partitions": [{"topic": …, "partition": …, "offset": …}, …], "version": 1}`.
        * csv: lines `topic,partition,offset`, or `group,topic,partition,offset`, of which only those of this group count.

        CallError as `reset`, or if the text cannot be read: nothing is moved then.
        """
        to = kafka_files.read(text, format, rows.require_group(group))

        def plan(found: Group) -> list[Move]:
            return [move for topic in to for move in Placing(self.topics.log(topic), found).moves(to)]

        return self._move(group, "load", plan, dry_run=dry_run, force=force)

    def export(self, group: str, format: str = "json") -> str:
        """The positions of a group in a format that `load` and Kafka's tools take: json or csv."""
        return kafka_files.written(self.generations.existing(group).positions, format)

    def copy(self, group: str, to: str) -> int:
        """Makes a new group with the positions of another one. Returns its generation. CallError if it exists."""
        source = self.generations.existing(group).positions

        def moved(found: Group) -> list[Position]:
            if found.exists:
                raise SparklogError("OPTION_VALUE", option="to", value=to, reason="this group exists; give the name of a new one")
            return [dataclasses.replace(each, group=to) for each in source]

        return self.generations.claim(to, "copy", moved, carry=False)

    def carry(self, group: str, topic: str, to: str, *, dry_run: bool = True, force: bool = False) -> list[Move]:
        """Carries a group over from a topic to one that was rebuilt from it, and returns its positions there. `dry_run=False` does it.

        The group goes to the last frontier that it has passed in each partition (docs/FORMAT.md section 5): it misses no record, and reads
        those again that it had read beyond. Its positions in `topic` stay until `delete(group, topics=topic)`. CallError as `reset`; also
        if `to` was not rebuilt from `topic`, or the version that says so was cleaned up, or the group has no positions in `topic`.
        """
        origin, made = arguments.topic(topic), self.topics.log(to)

        def plan(found: Group) -> list[Move]:
            return Placing(made, found).moves(reset.carried(made, found, origin))

        self.generations.existing(group)
        return self._move(group, "load", plan, dry_run=dry_run, force=force)

    def delete(self, group: str, *, topics: Sequence[str] | str | None = None, force: bool = False) -> None:
        """Deletes a group, or with `topics` its positions in these. Rows stay in the table, and do not count.

        CallError if the group is running, unless `force`. Members that read such a topic then begin it as if it was new.
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
        """Plans a group, which need not exist: what an assignor would give to members; `sparklog.offsets.plan` has the arguments.

        Without `members` they are those that the group has, and what they own.
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

    def lag(self, group: str, topic: str | None = None) -> Any:
        """How far a group is behind, with a row for each partition of its topics: an Arrow table, or with Spark a DataFrame.

        * offset: its position, None if it has none; start, end: the log start offset and the end offset.
        * records: the offsets from the position to the end that have not expired: end − offset, or end − start if that is less.
          bytes: the stored bytes of these records, interpolated within a segment.
        * seconds: from the time of the first unread record to the greatest one of all unread records; 0 if all is read. None if the first
          unread record does not have a time, or was deleted meanwhile.
        """
        table = self.group(group).lag(topic)
        return table if self._spark is None else self._spark.createDataFrame(table)

    def show(self, group: str) -> None:
        """Prints the lag of a group as text; in a notebook, as a table."""
        self.group(group).show()

    def lag_history(self, group: str) -> Any:
        """The lag of a group at each of its commits, with a row for each position that it committed, the oldest first.

        `end` is the end offset at that time, and `records` what was unread of the log as it was then, counted as by `lag`. They are None
        if the log's version files of that time were deleted, or if the topic was created again since. An Arrow table, or with Spark a
        DataFrame.
        """
        history = self.history(group)
        found = {each.topic for each in history}
        logs = {topic: self.topics.log(topic) for topic in found if self.topics.find_state(topic)}
        table = pa.Table.from_pylist(lags.over_time(history, logs), lags.HISTORY)
        return table if self._spark is None else self._spark.createDataFrame(table)

    @property
    def plot(self) -> GroupPlots:
        """Plots of groups: `table.plot.lag(group)`."""
        from sparklog.offsets.plots import GroupPlots

        return GroupPlots(self.lag_history)

    def retain_from(self, groups: Sequence[str] | str | None = None) -> dict[str, dict[int, int]]:
        """The lowest offset that any of these groups, or any group at all, still needs, by topic and partition.

        A group needs all of a partition of its topics in which it has no position. Topics created again or deleted since are left out.
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

        Returns how many files were joined and deleted. No position is lost. `append` does this after every 50 commits.
        """
        return self._lake.maintain()

    # ---- within

    def _rows(self, group: str) -> list[Position]:
        """All rows of a group, the oldest first. CallError if the group does not exist."""
        found = rows.positions(self._lake.rows(rows.require_group(group), current=False))
        if not Group(group, []).after(found).exists:
            self.generations.existing(group)
        return found

    def _move(self, name: str, event: str, plan: Callable[[Group], list[Move]], *, dry_run: bool, force: bool) -> list[Move]:
        dry_run, force = arguments.boolean("dry_run", dry_run), arguments.boolean("force", force)
        planned = plan(self.generations.group(name))
        if dry_run or not planned:
            return planned

        def moved(found: Group) -> list[Position]:
            self.generations.require_still(found, force=force)
            planned[:] = plan(found)
            return [Position(name, 0, each.topic, each.topic_id, each.partition, each.now, rows.now()) for each in planned]

        self.generations.claim(name, event, moved)
        return planned
