"""The members of groups as tables of SQL: views over the Delta table, for Spark."""

from __future__ import annotations

_MEMBER = (
    "id: STRING, topics: ARRAY<STRING>, pattern: STRING, capacity: INT, session_ms: BIGINT, instance: STRING, rack: STRING, host: STRING"
)
_NOTE = f"event STRING, by STRING, why STRING, assignor STRING, members ARRAY<STRUCT<{_MEMBER}>>, shares MAP<STRING, ARRAY<ARRAY<INT>>>"
_NOTES = "(SELECT *, from_json(metadata, '" + _NOTE + "') AS said FROM {table} WHERE `partition` = -1)"
_NEWEST = (
    "(SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY `group` ORDER BY generation DESC, seq DESC) AS place FROM "
    + _NOTES
    + ") WHERE place = 1 AND size(said.members) > 0)"
)
_OWNED = "aggregate(flatten(map_values(said.shares)), 0, (count, share) -> count + IF(share[1] IS NULL, 0, 1))"
_VIEWS = {
    "group_history": (
        "SELECT `group`, seq AS number, generation, committed_at AS at, said.event, said.by, said.why, "
        f"coalesce(size(said.members), 0) AS members, {_OWNED} AS owned, size(flatten(map_values(said.shares))) AS partitions FROM {_NOTES}"
    ),
    "group_assignments": (
        "SELECT `group`, topic_name AS topic, number AS `partition`, get(said.members, share[1]).id AS owner, "
        "get(said.members, share[0]).id AS wanted_by, share[2] AS epoch FROM "
        "(SELECT `group`, said, topic_name, shares FROM " + _NEWEST + " LATERAL VIEW explode(said.shares) exploded AS topic_name, shares) "
        "LATERAL VIEW posexplode(shares) numbered AS number, share"
    ),
    "group_members": (
        "SELECT `group`, member.id AS consumer_id, member.host, member.instance, member.rack, member.capacity, member.session_ms, "
        "member.topics, member.pattern, said.assignor, "
        "size(filter(flatten(map_values(said.shares)), share -> share[1] = place_of)) AS partitions FROM "
        + _NEWEST
        + " LATERAL VIEW posexplode(said.members) exploded AS place_of, member"
    ),
}


def views(path: str) -> dict[str, str]:
    """The statements that make temporary views of the offset table at a path or URL, by the names of the views."""
    table = f"delta.`{path.replace('`', '``')}`"
    return {name: f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {query.replace('{table}', table)}" for name, query in _VIEWS.items()}
