"""The command line: `sparklog COMMAND …`, or `python -m sparklog COMMAND …`."""

from __future__ import annotations

import importlib.util
import os
import sys

from sparklog.cli.about import FLAGS, TEXTS
from sparklog.errors import SparklogError

_ENOUGH = {"ui": "ui", "serve": "serve", "produce": "serve"}
"""The extras of commands that the extra `cli` is not enough for."""


def main(arguments: list[str] | None = None) -> int:
    """Runs one command, and returns its exit status (docs/guide/command-line.md). All but four need the extra `sparklog[cli]`."""
    try:
        return _run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:  # it came while the libraries were imported
        return 130


def _run(given: list[str]) -> int:
    if any(importlib.util.find_spec(name) is None for name in ("typer", "rich")):
        command, flags = "".join(given[:1]), given[1:]
        if command in TEXTS and set(flags) <= set(FLAGS.get(command, ())):
            return _print(command, {each.removeprefix("--"): True for each in flags})
        extra = _ENOUGH.get(command, "cli")
        print(
            f"This needs the libraries of the command line: pip install 'sparklog[{extra}]'. Without: {', '.join(TEXTS)}.", file=sys.stderr
        )
        return 2
    from sparklog.cli.app import run

    return run(given)


def _print(command: str, flags: dict[str, bool]) -> int:
    try:
        print(TEXTS[command](**flags), flush=True)
    except SparklogError as error:
        print(error, file=sys.stderr)
        return 2
    except BrokenPipeError:
        # Python would complain once more when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return 0


if __name__ == "__main__":
    sys.exit(main())
