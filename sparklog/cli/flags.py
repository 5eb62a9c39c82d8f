"""Errors in the words of the command line: the arguments of Python's calls have other names there, and wrong numbers other reasons."""

from __future__ import annotations

import re
from typing import Any

import typer
import typer.core

from sparklog.errors import SparklogError

_INSTEAD = {
    "end": "offset",
    "host": "listen",
    "offsets": "from_file",
    "path": "root",
    "port": "listen",
    "start": "offset",
    "to": "to_datetime",
}
"""By argument of a call: the parameter of a command that has no parameter of this name."""
_BOUNDS = {"ge": "it must be at least", "gt": "it must be more than", "le": "it must be at most", "lt": "it must be less than"}


def in_flags(error: SparklogError, command: typer.core.TyperCommand, given: dict[str, Any]) -> SparklogError:
    """The error with the flags of a command in place of the arguments of Python's calls; `given` has the values of the parameters."""
    if "option" not in error.parameters:
        return error
    flags: dict[str, str] = {}
    for parameter in command.params:
        flag = next((each for each in parameter.opts if each.startswith("--")), (parameter.metavar or "").strip("[]."))
        flags |= {str(parameter.name): flag, flag.removeprefix("--").replace("-", "_"): flag}
    for argument, name in _INSTEAD.items():
        if argument not in flags and name in flags:
            flags[argument] = flags[name]
    table = given.get("at_table") or given.get("table")
    if table and error.parameters.get("value", "").endswith(table):  # roots and tables are both a `path`
        flags["path"] = "--table"
    words = {name: re.sub(r"`(\w+)`", lambda found: f"`{flags.get(found[1], found[1])}`", text) for name, text in error.parameters.items()}
    return SparklogError(error.id, **{**words, "option": flags.get(words["option"], words["option"])})


def plainly(error: typer.BadParameter) -> None:
    """Words the refusal of a number: the library of typer that reads numbers has words of its own."""
    errors = getattr(error.__cause__, "errors", None)
    found = errors()[0] if errors else {}
    kind, value = str(found.get("type", "")), found.get("input")
    if kind.endswith("_parsing"):
        error.message = f"{value!r} is not a {'whole ' if kind.startswith('int') else ''}number."
    elif bound := next((name for name in _BOUNDS if name in found.get("ctx", {})), None):
        error.message = f"'{value}': {_BOUNDS[bound]} {found['ctx'][bound]}."
