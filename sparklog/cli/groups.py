"""Commands about groups: where they are, how far behind, and how to move them."""

from __future__ import annotations

import datetime
import enum
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparklog.cli.members import (
    all_groups,
    consume,
    doctor,
    history,
    is_in_topic,
    members,
    opened,
    plan,
    required_table,
    say_if_in_both_homes,
)
from sparklog.cli.parameters import Group, Json, Root, SomeTable, Table, millis, numbers
from sparklog.cli.show import answer, complain, show, write, write_json
from sparklog.errors import SparklogError
from sparklog.show.display import Display, counted, readable

if TYPE_CHECKING:
    from sparklog.groups import OffsetTable
    from sparklog.groups.reset import Move, Target
    from sparklog.groups.snapshots import GroupSnapshot, Unread
    from sparklog.groups.summaries import GroupSummary

_HOW = ("--to-earliest", "--to-latest", "--to-current", "--to-datetime", "--by-duration", "--to-offset", "--shift-by", "--from-file")
_NAMED = 5
"""The most partitions that an alert names."""
_DURATION = re.compile(r"P(?=[\dT])(?:(\d{1,5})D)?(?:T(?=\d)(?:(\d{1,6})H)?(?:(\d{1,7})M)?(?:(\d{1,9})S)?)?")


def groups(root: Root, at_table: SomeTable = None, as_json: Json = False) -> int:
    """List groups of a table and of the root.

    Each group has its lag. The home of a group is `table` if its positions are rows of the table, and `topic` if a server for Kafka's
    clients keeps them in the root.

    Examples:
      sparklog groups list my-log --table my-offsets
      sparklog groups list my-log
    """
    from sparklog.groups.all_groups import in_both_homes

    statuses: list[int] = []
    found = all_groups(root, at_table).summaries(lambda error: statuses.append(complain(error)))
    after = in_both_homes(each.group for each in found)
    answer(as_json, lambda: [_as_json(each) for each in found], lambda: found.display(None), after=after)
    return max(statuses, default=0)


def _as_json(group: GroupSummary) -> dict[str, Any]:
    time, error = group.committed_at, group.error
    return {**vars(group), "committed_at": None if time is None else millis(time), "error": None if error is None else str(error)}


def lag(
    root: Root,
    group: Group,
    at_table: SomeTable = None,
    most: Annotated[
        int | None,
        typer.Option(
            "--fail-above", metavar="N", min=0, help="End with status 1 if a partition has more unread records.", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Show how far a group is behind in each partition.

    The lag has records, bytes and seconds. For alerts, --fail-above compares the records of each partition with N. If a partition has
    more, the exit status is 1, and one line on standard error names the first five such partitions. In a partition without a position, all
    records count as unread. A partition whose topic was deleted or created again always counts, and is named first.

    Examples:
      sparklog lag my-log billing -t my-offsets
      sparklog lag my-log billing -t my-offsets --fail-above 10000
    """
    statuses: list[int] = []
    found = all_groups(root, at_table).named(group, lambda error: statuses.append(complain(error)))
    _lag(found, as_json, gone=most is not None)
    behind = [] if most is None else [each for of in found for each in of.unread() if each.records is None or each.records > most]
    if behind:
        sys.stdout.flush()
        print(_behind(group, behind), file=sys.stderr)
    return 1 if behind else max(statuses, default=0)


def _behind(group: str, partitions: list[Unread]) -> str:
    """One line about the partitions in which a group is behind: partitions of a topic that is gone, then the greatest lag first."""
    named = [
        f"partition {each.partition} of {each.topic} "
        + ("(the topic was deleted or created again)" if each.records is None else f"({each.records:,})")
        for each in sorted(partitions, key=lambda each: (each.records is None, each.records or 0), reverse=True)[:_NAMED]
    ]
    more = f" and {counted(len(partitions) - _NAMED, 'more partition')}" if len(partitions) > _NAMED else ""
    return f"Group {readable(group, 100)} is behind: {', '.join(named)}{more}"


def _lag(groups: list[GroupSnapshot], as_json: bool, gone: bool = False) -> None:
    lags = [(group, [{**row, "home": group.home} for row in group.lag(gone=gone).to_pylist()]) for group in groups]
    if as_json:
        write_json([row for _, found in lags for row in found])
        return
    for group, found in lags:
        show(_lag_shown(group, found), ["start", "bytes"])
    say_if_in_both_homes(groups)


def _lag_shown(group: GroupSnapshot, found: list[dict[str, Any]]) -> Display:
    columns = ["topic", "partition", "offset", "start", "end", "records", "bytes", "seconds"]
    rows = [["" if each[name] is None else each[name] for name in columns] for each in found]
    records, size = (sum(each[name] or 0 for each in found) for name in ("records", "bytes"))
    columns[2], columns[5] = "current offset", "lag"
    about = f"behind by {counted(records, 'record')}, {size:,} bytes"
    return Display(_title(group), [about], columns, rows)


def _title(group: GroupSnapshot) -> str:
    return f"Group {readable(group.name, 100)}" + (" in the root's topic of groups" if group.home == "topic" else "")


def describe(root: Root, group: Group, at_table: SomeTable = None, as_json: Json = False) -> int:
    """Show the offsets, lag and owner of each partition.

    Owners are shown if members share the group, and the member that a partition waits for.

    Example:
      sparklog groups describe my-log billing -t my-offsets
    """
    statuses: list[int] = []
    groups = all_groups(root, at_table).named(group, lambda error: statuses.append(complain(error)))
    if any(each.assignments() for each in groups):
        _describe(groups, as_json)
    else:
        _lag(groups, as_json)
    return max(statuses, default=0)


def _describe(groups: list[GroupSnapshot], as_json: bool) -> None:
    described = [(of, _owned(of)) for of in groups]
    if as_json:
        write_json([row for _, found in described for row in found])
        return
    for of, found in described:
        show(_owned_shown(of, found), ["epoch", "log end offset"])
    say_if_in_both_homes(groups)


def _owned(group: GroupSnapshot) -> list[dict[str, Any]]:
    """The partitions of a group, each with its lag, and the member that owns it if members share the group."""
    shares = {(each.topic, each.partition): each for each in group.assignments()}
    lags = {(row["topic"], row["partition"]): row for row in group.lag().to_pylist()}
    places = sorted(shares or lags)
    unknown = {"offset": None, "end": None, "records": None}
    nobody = dict.fromkeys(("consumer_id", "wanted_by", "epoch", "waits_for", "weight"))
    return [
        {**unknown, **lags.get(place, {}), **(vars(shares[place]) if place in shares else nobody), "home": group.home} for place in places
    ]


def _owned_shown(group: GroupSnapshot, found: list[dict[str, Any]]) -> Display:
    names = ["topic", "partition", "offset", "end", "records", "epoch", "consumer_id", "waits_for"]
    columns = ["topic", "partition", "current offset", "log end offset", "lag", "epoch", "consumer-id", "waits for"]
    cells = [["" if each[name] is None else each[name] for name in names] for each in found]
    waiting = sum(each["waits_for"] is not None for each in found)
    about = f"{counted(len({each['consumer_id'] for each in found if each['consumer_id']}), 'owner')}"
    about += f", {counted(sum(each['records'] or 0 for each in found), 'record')} behind, {counted(waiting, 'partition')} on the way"
    return Display(_title(group), [about], columns, cells)


def delete(
    root: Root,
    group: Group,
    at_table: SomeTable = None,
    topics: Annotated[
        list[str] | None, typer.Option("--topic", help="Delete only positions in this topic. May be repeated.", show_default=False)
    ] = None,
    execute: Annotated[bool, typer.Option("--execute", help="Delete it. Without --execute, only say so.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Also if the group is running.")] = False,
    as_json: Json = False,
) -> None:
    """Delete a group, or its positions in a topic.

    Its rows stay in the table, and do not count. A dry run unless --execute is given.

    Examples:
      sparklog groups delete my-log billing -t my-offsets --execute
      sparklog groups delete my-log billing -t my-offsets --topic orders --execute
    """
    of = opened(required_table(root, group, at_table), root)
    count = sum(topics is None or each.topic in topics for each in of.positions(group))
    stays = is_in_topic(root, group)
    of.generations.require_still(of.generations.existing(group), force=force)
    if execute:
        of.delete(group, topics=topics, force=force)
    if as_json:
        write_json({"executed": execute, "group": group, "topics": topics, "partitions": count})
        return
    what = f"Group {readable(group, 100)}" + (f" in {', '.join(topics)}" if topics else "")
    done = "deleted" if execute else "to be deleted (add --execute to do it)"
    write(f"{what}: positions in {counted(count, 'partition')} {done}")
    if stays:
        write("The root has another group of this name, of Kafka's clients, which stays.")


def reset(
    root: Root,
    group: Group,
    at_table: Table,
    topics: Annotated[
        list[str] | None,
        typer.Option("--topic", help="Only this topic, or partitions of it, such as t:0,2. May be repeated.", show_default=False),
    ] = None,
    _all: Annotated[bool, typer.Option("--all-topics", help="All topics of the group; the default.", hidden=True)] = False,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="To the log start offsets.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="To the end offsets.")] = False,
    to_current: Annotated[bool, typer.Option("--to-current", help="Keep the offsets; expired offsets go to the log start offset.")] = False,
    to_datetime: Annotated[
        str | None, typer.Option("--to-datetime", help="To the first records at or after this time.", show_default=False)
    ] = None,
    by_duration: Annotated[
        str | None,
        typer.Option("--by-duration", help="To the first records of this time before now, such as PT1H30M or P7D.", show_default=False),
    ] = None,
    to_offset: Annotated[int | None, typer.Option("--to-offset", help="To this offset; needs --topic.", show_default=False)] = None,
    shift_by: Annotated[
        int | None, typer.Option("--shift-by", help="By this number of offsets; a negative one goes back.", show_default=False)
    ] = None,
    from_file: Annotated[
        Path | None,
        typer.Option(
            "--from-file", help="To the offsets of a file, as `groups export` writes it.", exists=True, dir_okay=False, show_default=False
        ),
    ] = None,
    execute: Annotated[bool, typer.Option("--execute", help="Move the group. Without --execute, only say so.")] = False,
    _dry: Annotated[bool, typer.Option("--dry-run", help="Only say what would be moved; the default.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Also if the group is running: its owner is then fenced.")] = False,
    as_json: Json = False,
) -> None:
    """Move a group to other offsets.

    It does so as kafka-consumer-groups.sh --reset-offsets. A dry run unless --execute is given.

    Examples:
      sparklog reset my-log billing -t my-offsets --to-datetime 2023-11-14
      sparklog reset my-log billing -t my-offsets --shift-by -5 --execute
    """
    given = [to_earliest or None, to_latest or None, to_current or None, to_datetime, by_duration, to_offset, shift_by, from_file]
    if sum(each is not None for each in given) != 1:
        raise typer.BadParameter(f"give exactly one of {', '.join(_HOW)}")
    if from_file is not None and topics:
        raise typer.BadParameter("--from-file names its topics itself: leave out --topic")
    if _all and topics:
        raise typer.BadParameter("--all-topics and --topic contradict each other")
    if execute and _dry:
        raise typer.BadParameter("--dry-run and --execute contradict each other")
    of = opened(at_table, root)
    if from_file is not None:
        moves = _loaded(of, group, from_file, execute=execute, force=force)
    else:
        only = _partitions(root, topics) if topics else None
        if to_offset is not None:
            if only is None:
                raise typer.BadParameter("--to-offset needs --topic")
            to: Target = {topic: dict.fromkeys(numbers, to_offset) for topic, numbers in only.items()}
            only = None
        else:
            to = _target(to_earliest, to_latest, to_datetime, by_duration, shift_by)
        moves = of.reset(group, to, only, dry_run=not execute, force=force)
    _moved(group, moves, execute=execute, as_json=as_json)


def export(
    root: Root,
    group: Group,
    at_table: Table,
    as_json: Annotated[bool, typer.Option("--json", help="The JSON of kafka-delete-records.sh in place of CSV.")] = False,
) -> None:
    """Print the positions of a group as CSV.

    The CSV has the form of kafka-consumer-groups.sh --export. `sparklog groups import` and Kafka's tools read it.

    Example:
      sparklog groups export my-log billing -t my-offsets > billing.csv
    """
    sys.stdout.write(opened(at_table, root).export(group, "json" if as_json else "csv"))


def import_(
    root: Root,
    group: Group,
    from_file: Annotated[Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="CSV, or JSON if it ends in .json.")],
    at_table: Table,
    execute: Annotated[bool, typer.Option("--execute", help="Move the group. Without --execute, only say so.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Also if the group is running.")] = False,
    as_json: Json = False,
) -> None:
    """Move a group to the offsets of a file.

    The group need not exist. `sparklog groups export` and Kafka's tools write such files. If the records
    at an offset have expired, the group moves to the log start offset. A dry run unless --execute is given.

    Example:
      sparklog groups import my-log billing billing.csv -t my-offsets --execute
    """
    _moved(group, _loaded(opened(at_table, root), group, from_file, execute=execute, force=force), execute=execute, as_json=as_json)


def carry(
    root: Root,
    group: Group,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic that the group has read.")],
    to: Annotated[str, typer.Option("--to", help="The topic that was rebuilt from it.", show_default=False)],
    at_table: Table,
    execute: Annotated[bool, typer.Option("--execute", help="Move the group. Without --execute, only say so.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Also if the group is running.")] = False,
    as_json: Json = False,
) -> None:
    """Move a group on to a topic that was rebuilt.

    `sparklog rebuild` makes such a topic. The group misses no record, and may read some again. A dry run unless --execute is given.

    Example:
      sparklog groups carry my-log billing orders --to orders16 -t my-offsets
    """
    moves = opened(at_table, root).carry(group, topic, to, dry_run=not execute, force=force)
    _moved(group, moves, execute=execute, as_json=as_json)


class Home(str, enum.Enum):
    """The homes of groups."""

    TABLE = "table"
    TOPIC = "topic"


def copy(
    root: Root,
    group: Group,
    at_table: Table,
    to: Annotated[Home, typer.Option("--to", help="The home to copy to.", show_default=False)],
    server: Annotated[
        str | None,
        typer.Option(
            "--server",
            metavar="HOST:PORT",
            help="The address of `sparklog serve` for this root; needed for --to topic.",
            show_default=False,
        ),
    ] = None,
    execute: Annotated[bool, typer.Option("--execute", help="Copy it. Without --execute, only say so.")] = False,
    force: Annotated[bool, typer.Option("--force", help="With --to table, also if the group is running there.")] = False,
    as_json: Json = False,
) -> None:
    """Copy a group between a table and the root.

    The positions are copied, by the ids of their topics. Stop the programs that read as the group first: the two copies are two groups, and
    each goes its own way. A dry run unless --execute is given.

    Examples:
      sparklog groups copy my-log mail --to table -t my-offsets
      sparklog groups copy my-log billing --to topic -t my-offsets
    """
    from sparklog import arguments
    from sparklog.groups import OffsetTable, TopicGroups, copies

    if to is Home.TOPIC and server is None and execute:
        raise typer.BadParameter("--to topic needs --server: the server writes the group. Start it with `sparklog serve`.")
    logs = arguments.topic_logs(root)
    table, topic = OffsetTable(logs, at_table), TopicGroups(logs)
    if to is Home.TABLE:
        copied = copies.into_table(topic.group(group), table, dry_run=not execute, force=force)
    else:
        copied = copies.into_topic(table.group(group), topic, server or "", dry_run=not execute)
    _moved(group, copied.moves, execute=execute, as_json=as_json)
    if copied.left_out and not as_json:
        places = ", ".join(f"{each.topic} partition {each.partition}" for each in copied.left_out[:_NAMED])
        more = f" and {counted(len(copied.left_out) - _NAMED, 'more partition')}" if len(copied.left_out) > _NAMED else ""
        write(f"Left out, as the topic was deleted or created again: {readable(places, 200)}{more}")


def _loaded(of: OffsetTable, group: str, file: Path, *, execute: bool, force: bool) -> list[Move]:
    format = "json" if file.suffix == ".json" else "csv"
    return of.load(group, file.read_text(encoding="utf-8", errors="backslashreplace"), format, dry_run=not execute, force=force)


def _moved(group: str, moves: list[Move], *, execute: bool, as_json: bool) -> None:
    """Says where a group went, or would go."""
    rows = [[each.topic, each.partition, "" if each.was is None else each.was, each.now, each.note or ""] for each in moves]
    done = "moved" if execute else "would be moved (add --execute to do it)"
    stay = sum(each.stays for each in moves)
    title = f"Group {readable(group, 100)}: {counted(len(moves) - stay, 'partition')} {done}"
    about = [f"{counted(stay, 'partition')} at that offset already"] if stay else []
    answer(
        as_json,
        lambda: {"executed": execute, "moves": [vars(each) for each in moves]},
        lambda: Display(title, about, ["topic", "partition", "was", "new offset", "note"], rows),
        after=None if moves else "It has no positions in these topics.",
    )


def _partitions(root: str, given: list[str]) -> dict[str, list[int]]:
    """The partitions of each --topic: 0 and 2 of `t:0,2`, all of `t`."""
    from sparklog.log.log import Log

    log = Log(root)
    found: dict[str, list[int]] = {}
    for each in given:
        name, colon, text = each.partition(":")
        found.setdefault(name, []).extend(numbers(text, f"{name}:0,2") if colon else range(log.topic(name).partitions))
    return found


def _target(earliest: bool, latest: bool, time: str | None, duration: str | None, shift: int | None) -> Target:
    if earliest or latest:
        return "earliest" if earliest else "latest"
    if time is not None:
        millis(time, "--to-datetime")
        return time
    if duration is not None:
        return _duration(duration)
    return shift or 0  # no shift is --to-current


def _duration(text: str) -> datetime.timedelta:
    found = _DURATION.fullmatch(text)
    if not found:
        raise SparklogError(
            "OPTION_VALUE", option="--by-duration", value=text, reason="it must be a duration in ISO 8601, as PT1H30M or P7D"
        )
    days, hours, minutes, seconds = (int(each or 0) for each in found.groups())
    return datetime.timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


COMMANDS = (lag, reset)
FAMILY: dict[str, Callable[..., int | None]] = {
    "list": groups,
    "describe": describe,
    "lag": lag,
    "consume": consume,
    "members": members,
    "history": history,
    "doctor": doctor,
    "reset": reset,
    "delete": delete,
    "export": export,
    "import": import_,
    "carry": carry,
    "copy": copy,
    "plan": plan,
}
"""The commands of `sparklog groups`, by what kafka-consumer-groups.sh calls them. The first is meant if none is named."""
