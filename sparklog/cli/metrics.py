"""The command that prints or serves metrics."""

from __future__ import annotations

import os
import re
import sys
from typing import Annotated

import typer

from sparklog.cli.parameters import Root, SomeTable
from sparklog.cli.show import write

_ADDRESS = re.compile(r"(?:(?:(?P<name>[^\s:\[\]]*)|\[(?P<ipv6>[0-9a-fA-F:.]+)\]):)?(?P<port>[0-9]{1,5})")


def metrics(
    root: Root,
    table: SomeTable = None,
    listen: Annotated[
        str | None,
        typer.Option("--listen", metavar="[HOST:]PORT", help="Serve them at /metrics, until you interrupt it.", show_default=False),
    ] = None,
    public: Annotated[bool, typer.Option("--public", help="Serve them to all who reach the address.")] = False,
    names: Annotated[
        list[str] | None, typer.Option("--allow-host", help="Answer for this name too, beside addresses and localhost.", show_default=False)
    ] = None,
) -> None:
    """Print metrics of topics and groups for Prometheus.

    They have sizes, offsets, versions, lag, and upkeep that is behind. No record is read. Groups are shown if you give --table.

    With --listen, Prometheus can ask for them. Only this machine can ask, unless you give a HOST and --public.

    Examples:
      sparklog metrics my-log -t my-offsets
      sparklog metrics my-log -t my-offsets --listen 9308
    """
    if listen is None:
        for name in ["--public"] * public + ["--allow-host"] * bool(names):
            raise typer.BadParameter("it needs --listen", param_hint=name)
        from sparklog.prometheus import Exporter

        sys.stdout.write(Exporter(root, table).text().decode())
        return
    if not (address := _ADDRESS.fullmatch(listen)):
        raise typer.BadParameter(
            f"{listen!r} is not an address to listen at, such as 9308, 127.0.0.1:9308 or [::1]:9308", param_hint="--listen"
        )
    from sparklog.ui import serve_metrics

    def ready(url: str) -> None:
        write(f"{url} has the metrics of {root}. Ctrl-C ends it.")
        sys.stdout.flush()

    host = address["ipv6"] or address["name"] or "127.0.0.1"
    try:
        serve_metrics(root, table, host, int(address["port"]), public=public, hosts=names or (), ready=ready)
    except KeyboardInterrupt:
        os._exit(130)  # otherwise Python waits for the running read


COMMANDS = (metrics,)
