"""The commands, and what becomes of their errors."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from sparklog import shown
from sparklog.cli import about, dump, flags, groups, metrics, overview, producer, records, serve, topics, ui, upkeep, verify
from sparklog.cli.show import complain
from sparklog.errors import SparklogError

_INSTEAD = {
    "-C": "kcat's -C is `sparklog cat ROOT TOPIC`, or `sparklog tail ROOT TOPIC -f` to go on",
    "-P": "kcat's -P is `sparklog produce ROOT TOPIC`",
    "-L": "kcat's -L is `sparklog topics ROOT`",
    "-Q": "kcat's -Q is `sparklog cat ROOT TOPIC -o s@TIME -c 1`",
    "-b": "there is no broker: a command takes the root, as in `sparklog topics ROOT`",
    "-e": "leave it out: `sparklog cat ROOT TOPIC` ends at the end offset",
    "-t": "a command takes root and topic without options, as in `sparklog cat ROOT TOPIC`",
    "--group": "a command takes the group without an option, as in `sparklog lag ROOT GROUP`",
    "--from-beginning": "leave it out: `sparklog cat ROOT TOPIC` begins at the first record",
    "--topic": "a command takes root and topic without options, as in `sparklog cat ROOT TOPIC`",
    "--bootstrap-server": "there is no broker: a command takes the root, as in `sparklog topics ROOT`",
    "--list": "use `sparklog topics ROOT`, or `sparklog groups ROOT`",
    "--describe": "use `sparklog describe ROOT TOPIC`, or `sparklog groups describe ROOT GROUP`",
    "--create": "use `sparklog create ROOT TOPIC`",
    "--delete": "use `sparklog delete-topic ROOT TOPIC`, or `sparklog groups delete ROOT GROUP`",
    "--alter": "use `sparklog config ROOT TOPIC --add KEY=VALUE`, or `sparklog add-partitions ROOT TOPIC`",
    "--reset-offsets": "use `sparklog reset ROOT GROUP`",
    "list": "use `sparklog topics ROOT`",
    "ls": "use `sparklog topics ROOT`",
    "status": "use `sparklog topics ROOT`, or `sparklog lag ROOT GROUP`",
    "offsets": "use `sparklog describe ROOT TOPIC`, or `sparklog lag ROOT GROUP`",
    "get-offsets": "use `sparklog describe ROOT TOPIC`",
    "partitions": "use `sparklog describe ROOT TOPIC`, or `sparklog add-partitions ROOT TOPIC`",
    "count": "use `sparklog describe ROOT TOPIC`",
    "size": "use `sparklog topics ROOT`",
    "read": "use `sparklog cat ROOT TOPIC`",
    "get": "use `sparklog cat ROOT TOPIC`",
    "consume": "use `sparklog cat ROOT TOPIC`, or `sparklog groups consume ROOT GROUP TOPIC` as a member of a group",
    "consumer": "use `sparklog cat ROOT TOPIC`, or `sparklog groups consume ROOT GROUP TOPIC` as a member of a group",
    "console-consumer": "use `sparklog cat ROOT TOPIC`, or `sparklog groups consume ROOT GROUP TOPIC` as a member of a group",
    "console-producer": "use `sparklog produce ROOT TOPIC`",
    "producer": "use `sparklog produce ROOT TOPIC`",
    "write": "use `sparklog produce ROOT TOPIC`",
    "consumer-groups": "use `sparklog groups ROOT`",
    "reset-offsets": "use `sparklog reset ROOT GROUP`",
    "members": "use `sparklog groups members ROOT GROUP`",
    "doctor": "use `sparklog groups doctor ROOT GROUP`",
    "history": "use `sparklog groups history ROOT GROUP`, or `sparklog commits ROOT TOPIC`",
    "alter": "use `sparklog config ROOT TOPIC --add KEY=VALUE`, or `sparklog add-partitions ROOT TOPIC`",
    "configs": "use `sparklog config ROOT TOPIC`",
    "dump-log": "use `sparklog dump ROOT TOPIC`",
    "reassign-partitions": "use `sparklog move-slots ROOT TOPIC`, or `sparklog suggest-moves ROOT TOPIC`",
    "compact": "there is no compaction; `sparklog merge ROOT TOPIC` makes few segments of many, and loses no record",
    "compaction": "there is no compaction; `sparklog merge ROOT TOPIC` makes few segments of many, and loses no record",
    "optimize": "use `sparklog merge ROOT TOPIC`",
    "truncate": "use `sparklog delete-records ROOT TOPIC --offsets 0:-1,1:-1 --execute`, which names each partition",
    "check": "use `sparklog verify ROOT`",
    "fsck": "use `sparklog verify ROOT`",
    "prometheus": "use `sparklog metrics ROOT`",
    "monitor": "use `sparklog metrics ROOT`, or `sparklog ui ROOT`",
}
"""Words of Kafka's tools, and what to write here."""


class _Family(typer.core.TyperGroup):
    """Commands that suggest only near names for an unknown command."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            meant = overview.near(args[0], self.commands)
            instead = f" Did you mean {', '.join(meant)}?" if meant else f" `{ctx.command_path} --help` lists the commands."
            ctx.fail(f"No such command {args[0]!r}.{instead}")
        return super().resolve_command(ctx, args)


class _Commands(_Family):
    """All commands."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        overview.show(self, [*_PANELS, _OF_CONNECTOR], _ABOUT, _MORE)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        word = args[0].removeprefix("kafka-").removesuffix(".sh") if args else ""
        if word in _INSTEAD and word not in self.commands:
            raise typer.BadParameter(f"{args[0]} is not known here: {_INSTEAD[word]}.", ctx)
        if args and word != args[0] and word in self.commands:
            raise typer.BadParameter(f"{args[0]} is not known here: use `sparklog {word} ROOT`.", ctx)
        return super().parse_args(ctx, args)


class _Groups(_Family):
    """The commands of `sparklog groups`, which lists them without a command, such as `sparklog groups ROOT`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, *ctx.help_option_names):
            if len(args) > 1 and overview.near(args[0], self.commands) and not Path(args[0]).exists():
                self.resolve_command(ctx, args)  # it suggests the commands with such names
            args = [next(iter(groups.FAMILY)), *args]
        return super().parse_args(ctx, args)


class _Command(typer.core.TyperCommand):
    """One of the commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuses an option that takes one value and is given twice: its last value would count without a word.

        Refuses options of kcat too.
        """
        try:
            given: list[Any] = [*self.make_parser(ctx).parse_args(list(args))[2]]
        except typer.TyperException as error:
            if (name := getattr(error, "option_name", "")) in _INSTEAD:
                raise typer.BadParameter(f"{name} is not known here: {_INSTEAD[name]}.", ctx) from None
            if getattr(error, "possibilities", None):
                known = [opt for option in self.get_params(ctx) for opt in option.opts]
                error.possibilities = overview.near(name, known)  # type: ignore[attr-defined] # the class is not public
            raise
        for option in given:
            if option.param_type_name == "option" and not option.multiple and not option.is_flag and given.count(option) > 1:
                raise typer.BadParameter(f"It is given {given.count(option)} times, and takes one value.", ctx, option)
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            flags.plainly(error)
            raise

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except SparklogError as error:
            raise flags.in_flags(error, self, ctx.params) from error


_ABOUT = (
    "Usage: sparklog COMMAND ROOT [TOPIC] [OPTIONS]",
    "Look into a partitioned log. Produce starts a server, Change starts Spark.",
)
_MORE = (
    "ROOT is the directory or URL of the log. `sparklog COMMAND --help` has examples.",
    "Options: --version, --help, --install-completion, --show-completion.",
)
_OF_GROUPS, _OF_CONNECTOR = "Groups", "Spark"
_PANELS = {
    "Look": (topics, verify, metrics, ui),
    "Records": (records, dump, producer, serve),
    _OF_GROUPS: (groups,),
    "Change": (upkeep,),
}
"""By panel of the overview, the modules of its commands."""

app = typer.Typer(
    name="sparklog",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
_of_groups = typer.Typer(
    name="groups",
    cls=_Groups,
    no_args_is_help=True,
    help="List the groups of a table, move or plan one.\n\n`sparklog groups ROOT` lists them.",
    epilog="Example:  sparklog groups my-log -t my-offsets",
)
for panel, modules in _PANELS.items():
    for command in [each for module in modules for each in module.COMMANDS]:
        app.command(cls=_Command, help=overview.flowing(command.__doc__ or ""), rich_help_panel=panel)(command)
about.add(app, _OF_CONNECTOR)
for word, of_groups in groups.FAMILY.items():
    _of_groups.command(word, cls=_Command, help=overview.flowing(of_groups.__doc__ or ""))(of_groups)
app.add_typer(_of_groups, rich_help_panel=_OF_GROUPS)


def _print_version(wanted: bool) -> None:
    if wanted:
        import sparklog

        print(f"sparklog {sparklog.__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)] = False,
) -> None: ...


def run(arguments: list[str]) -> int:
    """Runs one command, and returns its exit status."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # the caller closed it
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
    try:
        done = app(args=arguments, prog_name="sparklog", standalone_mode=False)
        sys.stdout.flush()
        return done if isinstance(done, int) else 0
    except typer.TyperException as error:
        from typer import rich_utils

        error.message = shown.text(error.message)
        rich_utils.rich_format_error(error)  # type: ignore[arg-type] # the class that it names is not public
        return 2
    except (SystemExit, BrokenPipeError) as ended:
        if isinstance(ended, SystemExit) and not isinstance(ended.__context__, BrokenPipeError):
            return int(ended.code or 0)  # typer exits by itself after completion, and where a pipe is broken
        # Python would complain once more when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except (SparklogError, OSError) as error:
        return complain(error)
    except Exception as error:
        if _is_interrupt(error):
            return 130
        traceback.print_exc()
        return 70


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether an interrupt is behind an error: a library that is being imported makes another error of it."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None
