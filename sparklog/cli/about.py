"""Commands about the connector itself. They work without the libraries of the other commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sparklog import options
from sparklog.cli.overview import flowing
from sparklog.spark import archive
from sparklog.spark.session import SETTINGS
from sparklog.spark.session import jar as path_of_jar

if TYPE_CHECKING:
    import typer


def jar() -> str:
    """Print the path of the connector's jar.

    Example:
      spark-submit --jars $(sparklog jar) job.py
    """
    return path_of_jar()


def conf() -> str:
    """Print the connector's lines of spark-defaults.conf.

    Example:
      sparklog conf >> spark/conf/spark-defaults.conf
    """
    return "\n".join(f"{name} {value}" for name, value in ({"spark.jars": path_of_jar()} | SETTINGS).items())


def list_options() -> str:
    """List the options of the format partlog.

    Example:
      sparklog options
    """
    return options.listing()


def class_archive(delete: bool = False, serve: bool = False) -> str:
    """Make sessions start in 40 % less processor time.

    It makes an archive of Spark's classes. Only what sparklog.session() or sparklog.configure() starts uses it. With --serve, it makes an
    archive for sparklog serve and sparklog produce, whose server then starts in 60 % less processor time. Make archives again after an
    update of Java, PySpark or sparklog.

    SPARKLOG_CLASS_ARCHIVE=off turns it off.

    Example:
      sparklog class-archive
    """
    from sparklog.serve.archive import make_archive
    from sparklog.serve.command import drop_archive

    path = Path(path_of_jar())
    if delete:
        return "\n".join(f"Deleted {each}" for each in (drop_archive() if serve else archive.delete(path))) or "There is none."
    made = make_archive() if serve else archive.make(path)
    return f"{made} ({made.stat().st_size:,} bytes)"


TEXTS: dict[str, Callable[..., str]] = {"jar": jar, "conf": conf, "options": list_options, "class-archive": class_archive}
"""The output of each of these commands."""
FLAGS = {"class-archive": ("--delete", "--serve")}
"""The options of these commands."""


def add(app: typer.Typer, panel: str) -> None:
    """Adds these commands, in a panel of the overview."""
    import typer

    def command(
        delete: bool = typer.Option(False, "--delete", help="Delete it."),
        serve: bool = typer.Option(False, "--serve", help="The archive of sparklog serve."),
    ) -> None:
        print(class_archive(delete, serve))

    for name, text in TEXTS.items():
        app.command(name, help=flowing(text.__doc__ or ""), rich_help_panel=panel)(command if text is class_archive else _printing(text))


def _printing(text: Callable[..., str]) -> Callable[[], None]:
    def command() -> None:
        print(text())

    return command
