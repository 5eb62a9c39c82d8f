"""Commands about the members of a group: join it, look at it, and plan it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparklog.cli.parameters import Group, Json, Root, SomeTable, Table, millis
from sparklog.cli.show import answer, complain, show, write, write_json
from sparklog.errors import SparklogError

if TYPE_CHECKING:
    from sparklog.groups import OffsetTable
    from sparklog.groups.all_groups import AllGroups
    from sparklog.groups.plans import GroupPlan
    from sparklog.groups.snapshots import GroupSnapshot
    from sparklog.groups.views import GroupMember


def opened(path: str, root: str) -> OffsetTable:
    """The offset table at a path, for the topics of a root."""
    from sparklog.groups import OffsetTable

    return OffsetTable(root, path)


def all_groups(root: str, table: str | None) -> AllGroups:
    """The groups of an offset table, if one is given, and of the root's topic of groups, if there is one, or it is damaged."""
    from sparklog import arguments
    from sparklog.groups import OffsetTable, TopicGroups
    from sparklog.groups.all_groups import AllGroups

    logs = arguments.topic_logs(root)
    topic = TopicGroups(logs)
    try:
        in_topic = topic if topic.exists() else None
    except SparklogError:  # who reads the groups gets it
        in_topic = topic
    if table is None and in_topic is None:
        raise typer.BadParameter("Missing option '--table' / '-t': the root has no groups of Kafka's clients. Give the offset table.")
    return AllGroups(None if table is None else OffsetTable(logs, table), in_topic)


def required_table(root: str, group: str, table: str | None) -> str:
    """The offset table of a command about groups of tables alone. Without a table, the error names a group of the root."""
    if table is not None:
        return table
    kept = "Give the offset table."
    if is_in_topic(root, group):
        kept = f"Group {group} is in the root: change it with Kafka's tools, such as kafka-consumer-groups.sh, through its server."
    raise typer.BadParameter(f"Missing option '--table' / '-t'. {kept}")


def is_in_topic(root: str, group: str) -> bool:
    """Whether a server for Kafka's clients keeps a group of this name in the root."""
    from sparklog.groups import TopicGroups

    return group in TopicGroups(root).groups()


def another_in_topic(root: str, group: str) -> str | None:
    """A line about another group of this name in the root; None without such a group."""
    from sparklog.groups.all_groups import in_both_homes

    return in_both_homes([group, group]) if is_in_topic(root, group) else None


def say_if_in_both_homes(groups: list[GroupSnapshot]) -> None:
    """Writes a line about groups of one name in both homes."""
    from sparklog.groups.all_groups import in_both_homes

    if (said := in_both_homes(each.name for each in groups)) is not None:
        write(said)


def consume(
    root: Root,
    group: Group,
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC...", help="The topics to read.", show_default=False)],
    at_table: Table,
    assignor: Annotated[str, typer.Option("--assignor", help="range, roundrobin or sticky; the same for all members.")] = "sticky",
    weight: Annotated[
        str, typer.Option("--weight", help="What sticky evens out: count, lag or rate of partitions; the same for all members.")
    ] = "count",
    instance: Annotated[str | None, typer.Option("--instance", help="Join as the static member of this name.", show_default=False)] = None,
    beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Begin partitions without a position at their first record, not at the end.")
    ] = False,
    session_ms: Annotated[
        int, typer.Option("--session-timeout-ms", min=1, help="Time without a heartbeat after which other members take the partitions.")
    ] = 45_000,
    heartbeat_ms: Annotated[
        int | None,
        typer.Option(
            "--heartbeat-interval-ms",
            min=1,
            help="Time between two heartbeats; by default 5,000, and 15,000 if the table is in a bucket.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Read topics as a member of a group.

    It prints each record until you interrupt it, as kafka-console-consumer.sh --group does. Start it several times, and the members
    share the partitions. Standard error names the partitions that come and go.

    Example:
      sparklog groups consume my-log shop orders -t my-offsets
    """
    import sys
    from contextlib import suppress

    from sparklog.cli.records import COLUMNS, ended_by, print_lines
    from sparklog.consumer import Consumer
    from sparklog.groups.plans import named as named_partitions

    def printer(word: str) -> Callable[[object, list[Any]], None]:
        return lambda _, partitions: print(f"{word} {named_partitions(partitions)}", file=sys.stderr, flush=True)

    with suppress(SparklogError):  # only a hint: if it cannot be given, the consumer reads all the same
        if (said := another_in_topic(root, group)) is not None:
            print(said, file=sys.stderr, flush=True)
    consumer = Consumer(
        root,
        *topics,
        group_id=group,
        table=at_table,
        partition_assignment_strategy=assignor,
        weight=weight,
        group_instance_id=instance,
        auto_offset_reset="earliest" if beginning else "latest",
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=heartbeat_ms,
        on_assign=printer("reads"),
        on_revoke=printer("gives up"),
        on_lost=printer("lost"),
    )
    written = False
    with ended_by(consumer.wakeup) as ended:
        try:
            while not ended:
                for batch in consumer.poll_batches(1000).values():
                    print_lines(batch.select(COLUMNS), as_json=as_json)
                sys.stdout.flush()
            written = True
        finally:
            consumer.close(autocommit=written)  # what could not be written is not committed
    raise SystemExit(128 + ended[0])


def members(root: Root, group: Group, at_table: SomeTable = None, as_json: Json = False) -> int:
    """Show the members of a group, and their partitions.

    A partition is owned, or waited for, or given up.

    Example:
      sparklog groups members my-log billing -t my-offsets
    """
    statuses: list[int] = []
    groups = all_groups(root, at_table).named(group, lambda error: statuses.append(complain(error)))
    found = [(of.home, of.members()) for of in groups]
    if as_json:
        write_json([_as_json(each, home) for home, of in found for each in of])
    else:
        for _, of in found:
            show(of.display(None), ["heartbeat (UTC)", "host"])
        say_if_in_both_homes(groups)
    return max(statuses, default=0)


def _as_json(member: GroupMember, home: str) -> dict[str, Any]:
    return {**vars(member), "heartbeat": None if member.heartbeat is None else millis(member.heartbeat), "home": home}


def history(root: Root, group: Group, at_table: Table, as_json: Json = False) -> None:
    """Show every change of a group, with its reason.

    Members come and go, owners begin and end, and resets move the group. Each change has the number of partitions that moved.

    Example:
      sparklog groups history my-log billing -t my-offsets
    """
    found = opened(at_table, root).changes(group)
    answer(as_json, lambda: [{**vars(each), "at": millis(each.at)} for each in found], lambda: found.display(None), ["number", "owned"])


def doctor(
    root: Root,
    group: Group,
    at_table: SomeTable = None,
    watch_s: Annotated[float, typer.Option("--watch", min=0, help="The longest time to watch the group, in seconds.")] = 30,
    as_json: Json = False,
) -> int:
    """Find out why a group is stuck or slow.

    Each reason has its place and its remedy. Nothing is changed. The command ends when each member has shown that it is alive, no
    partition is on its way to another member, and a commit came for each partition that others wait for at a re-route. The exit status
    is 1 if the group, or a part of it, stands still.

    Examples:
      sparklog groups doctor my-log billing -t my-offsets
      sparklog groups doctor my-log billing -t my-offsets --watch 5 --json
    """
    found = opened(required_table(root, group, at_table), root).doctor(group, watch_s=watch_s)
    findings = [vars(each) for each in found]
    status, hint = 0, None
    try:
        hint = another_in_topic(root, group)
    except SparklogError as error:
        status = complain(error)
    answer(as_json, lambda: {"group": group, "stuck": found.is_stuck, "findings": findings}, found.display, ["rule"], hint)
    return 1 if found.is_stuck else status


def plan(
    root: Root,
    group: Group,
    at_table: SomeTable = None,
    topics: Annotated[
        list[str] | None,
        typer.Option(
            "--topic", help="A topic that the group reads. May be repeated. By default the topics of its positions.", show_default=False
        ),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option(
            "--members", min=1, help="Plan for this number of members, named consumer-1, consumer-2 and so on.", show_default=False
        ),
    ] = None,
    named: Annotated[list[str] | None, typer.Option("--member", help="A member of this name; may be repeated.", show_default=False)] = None,
    joining: Annotated[
        list[str] | None, typer.Option("--with", metavar="MEMBER", help="A member that joins; may be repeated.", show_default=False)
    ] = None,
    leaving: Annotated[
        list[str] | None, typer.Option("--without", metavar="MEMBER", help="A member that leaves; may be repeated.", show_default=False)
    ] = None,
    assignor: Annotated[
        str, typer.Option("--assignor", help="range, roundrobin, sticky; cooperative-sticky and uniform are names of sticky.")
    ] = "sticky",
    weight: Annotated[
        str,
        typer.Option("--weight", help="What sticky evens out: the count of partitions, their lag, or their rate in the last hour."),
    ] = "count",
    as_json: Json = False,
) -> None:
    """Plan who gets which partition, as members come and go.

    Nothing is changed. By default the plan is for the members that the group has. With --members or --member, neither these members nor
    the group need exist. A group without positions needs --topic.

    Examples:
      sparklog groups plan my-log billing -t my-offsets --members 2
      sparklog groups plan my-log new --topic orders --member a --with b
    """
    if count is not None and named:
        raise typer.BadParameter("give --members, a number, or --member, once for each")
    if at_table is None and count is None and not named:
        raise typer.BadParameter("give --members, a number, or --member, once for each; or --table with a group that has members")
    if at_table is None and not topics:
        raise typer.BadParameter("give --topic, or --table with the positions of the group")
    from sparklog import groups

    planned: Callable[..., GroupPlan] = partial(groups.plan, root) if at_table is None else opened(at_table, root).plan
    found = planned(group, count or named, topics, joining=joining or (), leaving=leaving or (), assignor=assignor, weight=weight)
    answer(as_json, lambda: _plan_as_json(found), lambda: found.display(None), ["lag"])


def _plan_as_json(plan: GroupPlan) -> dict[str, Any]:
    return {
        "group": plan.group,
        "assignor": plan.assignor,
        "weight": plan.weight,
        "members": [
            {"consumer_id": id, "partitions": len(given), "lag": plan.lag(id), "assignment": plan.by_topic(id)}
            for id, given in plan.after.items()
        ],
        "partitions": [vars(each) for each in plan.partitions],
        "moved": len(plan.moved),
    }
