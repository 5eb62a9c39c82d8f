"""The command that checks a whole root."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sparklog.cli.parameters import Json, Root, Topics
from sparklog.cli.show import progress_bar, terminal, write, write_json

if TYPE_CHECKING:
    from sparklog.verify import Report

_COLOURS = {"damage": "bold red", "newer": "bold magenta", "repairable": "bold yellow", "garbage": "bold cyan"}


def verify(
    root: Root,
    names: Topics = None,
    quick: Annotated[bool, typer.Option("--quick", "-q", help="Only metadata and lengths: no batch is read.")] = False,
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, help="Processes; one for each core by default.", show_default=False)] = None,
    as_json: Json = False,
) -> int:
    """Check every file of a root against the format.

    A finding says what is wrong, where, what it costs, and how to fix it.
    It only reads, and may run beside writers. The exit status is 1 if
    something is wrong, 6 if something could not be read, and 4 if a later
    release of sparklog must check a part.

    Examples:
      sparklog verify my-log
      sparklog verify my-log orders --quick
      sparklog verify my-log --json
    """
    from sparklog.log.log import Log

    with progress_bar("bytes") as progress:
        report = Log(root).verify(names or None, quick=quick, jobs=jobs, progress=progress)
    if as_json:
        write_json(report.as_dict())
    elif terminal():
        _in_colours(report)
    else:
        write(str(report))
    return report.status


def _in_colours(report: Report) -> None:
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console(highlight=False)
    console.print(Text(f"{report.root}: {report.summary()}", style="bold green" if report.ok else "bold"))
    for line in report.about():
        console.print(Text(line))
    for finding in report.findings:
        console.print()
        console.print(Text.assemble((finding.severity, _COLOURS[finding.severity]), f" {finding.condition} ", (finding.where(), "bold")))
        for line in finding.lines():
            console.print(Padding(Text(line), (0, 0, 0, 2)))
    for each in report.unread:
        console.print()
        console.print(Text(str(each)))


COMMANDS = (verify,)
