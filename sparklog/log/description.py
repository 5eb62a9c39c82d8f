"""The description of a topic as a whole."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sparklog.ondisk.config import has_retention
from sparklog.ondisk.removed_files import RemovedFiles
from sparklog.ondisk.routing import UNBOUND, Routing
from sparklog.ondisk.space import view_bytes
from sparklog.ondisk.state import State
from sparklog.ondisk.topic_log import TopicLog
from sparklog.ondisk.totals import Totals


def describe(log: TopicLog) -> dict[str, Any]:
    """All facts about a topic in its newest state, in types that JSON has. `Topic.describe` explains them.

    It looks at every segment and at every file of the Kafka view.
    """
    state = log.newest()
    totals = Totals.of_partitions(log, state)
    assert totals is not None
    routing = state.routing_if_known
    slots = Counter(routing.table) if routing else Counter()
    waiting = RemovedFiles.of(log, state)
    return {
        "topic": state.topic,
        "id": state.topic_id,
        "version": state.version,
        "committed_at": state.time,
        "config": dict(sorted(state.config.items())),
        "has_retention": has_retention(state.config),
        "pending_weights": state.pending_weights,
        "routing": routing
        and {**routing_now(state, routing), "reroutes": [{"version": each.version, "cut": list(each.cut)} for each in routing.past]},
        **Totals.together(totals)._asdict(),
        "view_bytes": view_bytes(log, state),
        "waiting": waiting and waiting._asdict(),
        "partitions": [
            {
                **{"partition": number, "start": state.starts[number], "end": state.ends[number], **each._asdict()},
                **({"slots": slots[number], "weight": routing.weights[number]} if routing else {}),
            }
            for number, each in enumerate(totals)
        ],
    }


def routing_now(state: State, routing: Routing) -> dict[str, Any]:
    """The facts of `Topic.describe` about the routing of a state, without its re-routes."""
    shares = state.shares(0)
    return {
        "epoch": routing.epoch,
        "slots": len(routing.table),
        "shares": shares,
        "shares_until": int(state.config["placement.shares"].split(":")[1]) if shares else None,
        "unbound": routing.table.count(UNBOUND),
        "closed": [number for number, weight in enumerate(routing.weights) if not weight],
    }
