"""The command that serves the web page."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from sparklog.cli.parameters import Root, SomeTable
from sparklog.cli.show import write

_PORT = 8470


def ui(
    root: Root,
    table: SomeTable = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65_535, help="The port; 0 takes a free one.")] = _PORT,
    at_once: Annotated[bool, typer.Option("--open", help="Open the browser too.")] = False,
    host: Annotated[str, typer.Option("--host", help="The address to listen at.")] = "127.0.0.1",
    public: Annotated[bool, typer.Option("--public", help="Let everybody who reaches the address read every record.")] = False,
    names: Annotated[
        list[str] | None, typer.Option("--allow-host", help="Answer for this name too, beside addresses and localhost.", show_default=False)
    ] = None,
) -> None:
    """Show a root in the browser. The page only reads.

    Only this machine can open the page, unless you give --host and --public.

    Example:
      sparklog ui my-log -t my-offsets
    """
    from sparklog.ui import serve
    from sparklog.ui.server import is_local

    def ready(url: str) -> None:
        if not is_local(host):
            print(f"Everybody who reaches {host} can now read every record of {root}: without a password, unencrypted.", file=sys.stderr)
        write(f"{url} shows {root}. Ctrl-C ends it.")
        sys.stdout.flush()
        if at_once:
            typer.launch(url)

    try:
        serve(root, table, host, port, public=public, hosts=names or (), ready=ready)
    except KeyboardInterrupt:
        os._exit(130)  # otherwise Python waits for the running reads


COMMANDS = (ui,)
