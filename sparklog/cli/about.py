"""Commands about the connector itself. They work without the libraries of the other commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sparklog import options
from sparklog.spark.session import SETTINGS
from sparklog.spark.session import jar as path_of_jar

if TYPE_CHECKING:
    import typer


def jar() -> str:
    """Print the path of the connector's jar: spark-submit --jars $(sparklog jar) job.py"""
    return path_of_jar()


def conf() -> str:
    """Print the lines that the connector needs in spark-defaults.conf."""
    return "\n".join(f"{name} {value}" for name, value in ({"spark.jars": path_of_jar()} | SETTINGS).items())


def list_options() -> str:
    """List the options of the format partlog."""
    return options.listing()


TEXTS: dict[str, Callable[[], str]] = {"jar": jar, "conf": conf, "options": list_options}
"""The output of each of these commands."""


def add(app: typer.Typer) -> None:
    """Adds these commands."""
    for name, text in TEXTS.items():
        app.command(name, help=text.__doc__)(_printing(text))


def _printing(text: Callable[[], str]) -> Callable[[], None]:
    def command() -> None:
        print(text())

    return command
