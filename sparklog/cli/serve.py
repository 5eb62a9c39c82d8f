"""The command that serves a root to Kafka's clients. It becomes the server: the process of Python ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from sparklog.cli.parameters import Root, key_values


def _become(root: str, arguments: list[str]) -> None:
    from sparklog.serve.command import command, environment

    line = command(root, arguments)
    sys.stdout.flush()
    os.execvpe(line[0], line, environment())


def _list_settings(wanted: bool) -> None:
    if wanted:
        _become("--settings", [])


def serve(
    root: Root,
    listen: Annotated[
        str | None,
        typer.Option("--listen", "-l", metavar="HOST:PORT", help="The address; port 0 takes a free one.", show_default="127.0.0.1:9092"),
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", "-r", help="Let clients read and commit offsets, but write no record.")] = False,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="Settings, as in Kafka's server.properties.", exists=True, dir_okay=False),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option("--metrics", "-m", metavar="[HOST:]PORT", help="Serve metrics for Prometheus there, at /metrics.", show_default=False),
    ] = None,
    unprotected: Annotated[
        bool, typer.Option("--unprotected", help="Let everybody who reaches the address read and write every record.")
    ] = False,
    verifiers: Annotated[
        str | None,
        typer.Option(
            "--verifiers", metavar="USER", help="Print the lines of a user for sasl.credentials.file, and end.", show_default=False
        ),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", "-X", metavar="KEY=VALUE", help="One setting, again and again.", show_default=False)
    ] = None,
    listed: Annotated[
        bool, typer.Option("--settings", help="List the settings with their defaults, and end.", callback=_list_settings, is_eager=True)
    ] = False,
) -> None:
    """Let any Kafka client read and write a root.

    It runs until Ctrl-C, or SIGTERM: then it answers the requests that it has, and ends. Only this machine reaches the server, unless
    --listen names another address.

    Example:
      sparklog serve my-log --listen 127.0.0.1:9092
    """
    from sparklog import arguments

    given = [f"{key}={value}" for key, value in key_values(settings or (), "-X").items()]
    given += ["--listen", listen] if listen else []
    given += [f"metrics.address={metrics}"] if metrics else []
    given += ["--read-only"] if read_only else []
    given += ["--unprotected"] if unprotected else []
    given += ["--config", str(config)] if config else []
    # The lines of a user belong to no root.
    _become(*("--verifiers", [verifiers]) if verifiers is not None else (str(arguments.named_root(root)), given))


COMMANDS = (serve,)
