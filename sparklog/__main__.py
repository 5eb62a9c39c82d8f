"""The command line: `python -m sparklog COMMAND`."""

from __future__ import annotations

import argparse
import sys

from sparklog import options
from sparklog.errors import SparklogError
from sparklog.session import SETTINGS, jar


def main(arguments: list[str] | None = None) -> int:
    """Runs one command and prints its text. Returns the exit status: 0, or 1 with the text of a SparklogError on stderr."""
    parser = argparse.ArgumentParser(prog="python -m sparklog", description="A partitioned log for Spark that needs no server.")
    # Each command is a function from the parsed arguments to the text to print.
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, run, about in (
        ("jar", lambda _: jar(), "the path of the connector's jar: spark-submit --jars $(python -m sparklog jar) job.py"),
        ("conf", lambda _: _conf(), "the lines that the connector needs in spark-defaults.conf"),
        ("options", lambda _: options.listing(), "the options of the format partlog"),
    ):
        commands.add_parser(name, help=about, description=f"Prints {about}.").set_defaults(run=run)
    given = parser.parse_args(arguments)
    if not hasattr(given, "run"):
        parser.print_help()
        return 0
    try:
        print(given.run(given))
    except SparklogError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _conf() -> str:
    return "\n".join(f"{name} {value}" for name, value in ({"spark.jars": jar()} | SETTINGS).items())


if __name__ == "__main__":
    sys.exit(main())
