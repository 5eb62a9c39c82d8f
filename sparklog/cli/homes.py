"""The places of groups, for commands that only read: rows of an offset table, and records of a topic of the root."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from sparklog.errors import SparklogError

if TYPE_CHECKING:
    from sparklog.groups.snapshots import GroupSnapshot
    from sparklog.groups.summaries import GroupSummaries


def summaries(root: str, table: str | None) -> GroupSummaries:
    """The groups of an offset table, if one is given, and of the root's topic of groups, if there is one."""
    from sparklog import arguments
    from sparklog.groups import OffsetTable, TopicGroups
    from sparklog.groups.summaries import GroupSummaries

    logs = arguments.topic_logs(root)
    topic = TopicGroups(logs)
    _require_home(topic.exists(), table)
    parts = [OffsetTable(logs, table).summaries()] if table is not None else []
    parts += [topic.summaries()] if topic.exists() else []
    found = sorted((each for part in parts for each in part), key=lambda each: (each.group, each.home))
    return GroupSummaries(found, " and ".join(part.path for part in parts))


def snapshots(root: str, group: str, table: str | None) -> list[GroupSnapshot]:
    """The group of a name in each of the two homes that has it. CallError if none has."""
    from sparklog import arguments
    from sparklog.groups import OffsetTable, TopicGroups

    logs = arguments.topic_logs(root)
    topic = TopicGroups(logs)
    _require_home(topic.exists(), table)
    if table is None:
        return [topic.group(group)]
    found = [topic.group(group)] if topic.exists() and group in topic.groups() else []
    try:
        return [OffsetTable(logs, table).group(group), *found]
    except SparklogError as error:
        if error.id != "GROUP_NOT_FOUND" or not found:
            raise
        return found


def of_table(root: str, group: str, table: str | None) -> str:
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

    topic = TopicGroups(root)
    return topic.exists() and group in topic.groups()


def other(root: str, group: str) -> str | None:
    """The line of `twice` about a group of an offset table, if the root has a group of its name too."""
    return twice([group, group]) if is_in_topic(root, group) else None


def twice(names: list[str]) -> str | None:
    """A line about names of groups that are in both homes; None if none is."""
    from sparklog.show.display import readable

    both = [readable(each, 100) for each in sorted({each for each in names if names.count(each) > 1})]
    if not both:
        return None
    return f"In the table and in the topic: {', '.join(both)}. These are two groups, each with positions of its own."


def _require_home(has_topic: bool, table: str | None) -> None:
    if table is None and not has_topic:
        raise typer.BadParameter("Missing option '--table' / '-t': the root has no groups of Kafka's clients. Give the offset table.")
