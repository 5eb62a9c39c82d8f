"""The server: one process, which reads one root and answers browsers on this machine."""

from __future__ import annotations

import errno
import functools
import ipaddress
import logging
import os
import socket
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

import sparklog
from sparklog import arguments
from sparklog.errors import SparklogError
from sparklog.log.summary import Summary
from sparklog.ondisk.topic_logs import KEPT, TopicLogs
from sparklog.ui import groups, query, servers, topics
from sparklog.ui.guard import Guard
from sparklog.ui.records import MERGED_MAX
from sparklog.ui.responses import Download, answering, failure, respond, written
from sparklog.ui.tail import Tails

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

PORT = 8470
_PORT_MAX = 65_535
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_LINES_S = 0.05


def application(
    root: str | os.PathLike[str],
    table: str | os.PathLike[str] | None = None,
    hosts: Collection[str] = (),
    filesystem: FileSystem | None = None,
) -> Starlette:
    """The page of a root as an ASGI application. `table` is an offset table, `hosts` are names by which the server may be asked.

    The root, and `filesystem`, are the arguments of `Log`. CallError if there is not a root.
    """
    logs = arguments.topic_logs(root, filesystem, KEPT)
    offsets = None if table is None else arguments.path("table", table)
    tails = Tails()
    of_groups = groups.GroupPages(logs, offsets)
    of_servers = servers.ServerPages(logs)

    def about(request: Request) -> object:
        return {"root": str(logs.root), "table": offsets, "version": sparklog.__version__}

    def api(answer: Callable[[TopicLogs, Request], object]) -> Any:
        return answering(lambda request: answer(there(), request))

    def there() -> TopicLogs:
        logs.root.require()
        return logs

    def download(logs: TopicLogs, request: Request) -> Response:
        return Download(*topics.value(logs, request))

    async def listed(request: Request) -> Response:
        try:
            await run_in_threadpool(there)
            return StreamingResponse(_lines(logs, await run_in_threadpool(logs.root.topics)), media_type="application/x-ndjson")
        except Exception as error:
            return respond(*failure(error))

    def tail(logs: TopicLogs, request: Request) -> Response:
        log, state = topics.opened(logs, request)
        partition = query.maybe_number(request, "partition")
        arguments.partitions(state, logs.root, partition)
        if partition is None and state.partitions > MERGED_MAX:
            reason = f"the topic has {state.partitions} partitions, and at most {MERGED_MAX} are followed together: choose one"
            raise query.refused("partition", "all", reason)
        return tails.follow(log, partition, query.cursor(request, "from", state), request.query_params.get("id"))

    one = "/api/topics/{topic}"
    routes = [
        Route("/api/about", api(lambda _, request: about(request))),
        Route("/api/topics", listed),
        Route(one, api(topics.topic)),
        Route(f"{one}/records", api(topics.records)),
        Route(f"{one}/records/{{partition:int}}/{{offset:int}}", api(topics.record)),
        Route(f"{one}/records/{{partition:int}}/{{offset:int}}/bytes", api(download)),
        Route(f"{one}/segments", api(topics.segments)),
        Route(f"{one}/commits", api(topics.commits)),
        Route(f"{one}/slots", api(topics.slots)),
        Route(f"{one}/tail", api(tail)),
        Route("/api/groups", api(lambda _, request: of_groups.groups(request))),
        Route("/api/servers", api(lambda _, request: of_servers.servers(request))),
        Route("/api/group", api(lambda _, request: of_groups.group(request))),
        *_files(),
    ]
    return Starlette(routes=routes, middleware=[Middleware(Guard, hosts=hosts)])


def _files() -> list[Route]:
    """The page itself. It is read now, so that no request names a file."""
    found = []
    for file in sorted((Path(__file__).parent / "web").iterdir()):
        content = functools.partial(Response, file.read_bytes(), media_type=_TYPES[file.suffix])
        found.append(Route(f"/web/{file.name}", lambda _, content=content: content()))
        if file.name == "index.html":
            # The browser's path selects the view.
            paths = ("/", "/topics/{rest:path}", "/groups", "/group", "/servers")
            found += [Route(path, lambda _, content=content: content()) for path in paths]
            absent = functools.partial(_absent, content)
    return [*found, Route("/{rest:path}", absent)]


def _absent(page: Callable[..., Response], request: Request) -> Response:
    """The page, which says that it has no such view; in short where no person asks."""
    asked = request.url.path.startswith(("/api/", "/web/"))
    return Response("Not Found", 404, media_type="text/plain") if asked else page(status_code=404)


def _lines(logs: TopicLogs, names: list[str]) -> Iterator[bytes]:
    """The number of topics, and then a line about each, as soon as it is known."""
    lines = [written({"root": str(logs.root), "topics": len(names)})]
    sent = 0.0
    for each in logs.root.store.at_once(lambda name: Summary.of(logs.log(name)), names):
        if time.monotonic() - sent > _LINES_S:
            yield b"\n".join(lines) + b"\n"
            lines, sent = [], time.monotonic()
        lines.append(written(topics.line(each)))
    yield b"\n".join(lines) + b"\n"


def is_local(host: str) -> bool:
    """Whether only this machine can ask a server that listens on this host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def serve(
    root: str | os.PathLike[str],
    table: str | os.PathLike[str] | None = None,
    host: str = "127.0.0.1",
    port: int = PORT,
    *,
    public: bool = False,
    hosts: Collection[str] = (),
    ready: Callable[[str], None] | None = None,
    filesystem: FileSystem | None = None,
) -> None:
    """Serves the page of a root until it is interrupted. It only reads.

    * table: the path of an offset table, whose groups are shown.
    * host: the address to listen at. With another one than of this machine alone, everybody who reaches it can read every record: there is
      neither a password nor encryption. So it needs `public`.
    * port: 0 takes a free one.
    * hosts: names, beside addresses and localhost, by which browsers may ask the server.
    * ready: is called with the URL once the server can be asked.
    * filesystem: through which the root is read, as in `Log`.

    CallError if there is not a root, if the host is not of this machine alone, or if the port is in use.
    """
    require_local(host, public, "read every record")
    listen(application(root, table, [*hosts, host], filesystem), host, port, ready)


def require_local(host: str, public: bool, harm: str) -> None:
    """CallError if everybody who reaches a server on this host could do harm, and `public` does not say that this is meant."""
    if not arguments.boolean("public", public) and not is_local(host):
        reason = f"everybody who reaches this address could {harm}, without a password; if that is meant, give `public` too"
        raise SparklogError("OPTION_VALUE", option="host", value=host, reason=reason)


def listen(app: Starlette, host: str, port: int, ready: Callable[[str], None] | None) -> None:
    """Serves an application until it is interrupted. CallError if the address is wrong, or in use."""
    if not 0 <= arguments.integer("port", port) <= _PORT_MAX:
        raise SparklogError("OPTION_VALUE", option="port", value=port, reason=f"it must be from 0 to {_PORT_MAX}")
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        limit_concurrency=200,
        h11_max_incomplete_event_size=32_768,
        lifespan="off",
    )
    with _bound(host, port) as listening:
        at, number = listening.getsockname()[:2]
        if ready:
            ready(f"http://{f'[{at}]' if ':' in at else at}:{number}/")
        _Server(config).run([listening])


class _Server(uvicorn.Server):
    """Ends at once: a page that follows a topic would go on, and no browser waits for the rest."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for connection in list(self.server_state.connections):
            if connection.transport:
                connection.transport.abort()
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # It would tell of each request that it gives up.
        await super().shutdown(sockets)


def _bound(host: str, port: int) -> socket.socket:
    """A socket that listens at this address."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address[:2], family=family, backlog=128)
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        reason = (
            f"{error.strerror or error}; another server may run there: take another port"
            if taken
            else f"{error}; give an address of this machine"
        )
        raise SparklogError("OPTION_VALUE", option="port" if taken else "host", value=port if taken else host, reason=reason) from None
