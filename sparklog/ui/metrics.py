"""The metrics of a root over HTTP: for Prometheus, which asks from time to time."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sparklog.prometheus import CONTENT_TYPE, Exporter
from sparklog.ui.guard import Guard
from sparklog.ui.responses import answering
from sparklog.ui.server import listen, require_local

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem


def application(metrics: Exporter, hosts: Collection[str] = ()) -> Starlette:
    """The path `/metrics` as an ASGI application, and nothing else. It obeys the rules of the page: see `Guard`."""

    def answer(request: Request) -> Response:
        return Response(metrics.text(), media_type=CONTENT_TYPE)

    return Starlette(routes=[Route("/metrics", answering(answer))], middleware=[Middleware(Guard, hosts=hosts)])


def serve_metrics(
    root: str | os.PathLike[str],
    table: str | os.PathLike[str] | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    public: bool = False,
    hosts: Collection[str] = (),
    ready: Callable[[str], None] | None = None,
    filesystem: FileSystem | None = None,
) -> None:
    """Serves the metrics of a root at `/metrics` until it is interrupted. The arguments are the arguments of `serve`.

    Raises:
        CallError: If the root does not exist, if other machines reach the host and `public` is not given, or if the port is in use.
    """
    require_local(host, public, "read the names and numbers of topics and groups")
    metrics = Exporter(root, table, filesystem=filesystem)
    metrics.text()  # an error of the call ends the command
    listen(application(metrics, [*hosts, host]), host, port, ready and (lambda url: ready(f"{url}metrics")))
