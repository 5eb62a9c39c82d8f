"""The page's answer about servers: who serves the root to Kafka's clients, and the clients that are connected."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from sparklog.ondisk.servers import SeenServer, ServerLooks
from sparklog.ondisk.topic_logs import TopicLogs


class ServerPages:
    """The answers about servers. It remembers its looks: then a wrong clock hides no server that is alive."""

    def __init__(self, logs: TopicLogs) -> None:
        self._looks = ServerLooks(logs.root)

    def servers(self, request: Request) -> dict[str, Any]:
        """All servers, each with its clients. A server that is not alive has no clients."""
        found = self._looks.look()
        return {"servers": [_server(each) for each in found.shown], "more": found.more, "unreadable": found.unreadable}


def _server(server: SeenServer) -> dict[str, Any]:
    heartbeat = server.heartbeat
    connected = heartbeat.others + sum(each.connections for each in heartbeat.clients)
    return {
        "node": heartbeat.node,
        "alive": server.is_alive,
        "written": server.written,
        "since": heartbeat.since,
        "program": heartbeat.program,
        "listeners": [each._asdict() for each in heartbeat.listeners],
        "connections": connected if server.is_alive else None,
        "others": heartbeat.others if server.is_alive else 0,
        "clients": [each._asdict() for each in heartbeat.clients] if server.is_alive else [],
    }
