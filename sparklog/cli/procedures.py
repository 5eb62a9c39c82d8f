"""The procedures of the catalog `partlog`, as spec/procedures.json declares them."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Parameter:
    """A parameter. `default` is SQL; None if the argument is required. `min` and `max` are bounds of a long, or ms of an interval.

    `shell` replaces `text` on the command line; None if that is the same.
    """

    name: str
    type: str
    text: str
    default: str | None = None
    min: int | None = None
    max: int | None = None
    shell: str | None = None

    def in_shell(self) -> str:
        """The text as the command line prints it."""
        return _plain(self.text if self.shell is None else self.shell)


@dataclass(frozen=True)
class Procedure:
    """A procedure: its effect in ten words, and the rest; its parameters in the order of a call by position; the columns of its rows.

    `shell` is like the field of a parameter.
    """

    name: str
    summary: str
    text: str
    parameters: tuple[Parameter, ...]
    columns: tuple[str, ...]
    shell: str | None = None

    def command(self) -> str:
        """The name of its command."""
        return self.name.replace("_", "-")

    def in_shell(self) -> str:
        """The text as the command line prints it, without the summary. Other procedures have the names of their commands."""
        text = _plain(self.text if self.shell is None else self.shell)
        return re.sub("|".join(declared()), lambda name: declared()[name[0]].command(), text)


@functools.cache
def declared() -> dict[str, Procedure]:
    """All procedures by name."""
    spec = json.loads((Path(__file__).parents[1] / "spec" / "procedures.json").read_text(encoding="utf-8"))
    return {
        each["name"]: Procedure(
            each["name"],
            each["summary"],
            each["text"],
            tuple(Parameter(**parameter) for parameter in each["parameters"]),
            tuple(column["name"] for column in each["columns"]),
            each.get("shell"),
        )
        for each in spec["procedures"]
    }


def _plain(markdown: str) -> str:
    """A text of the declarations without Markdown's signs."""
    return re.sub(r"\[(.+?)\]\([^)]*\)", r"\1", markdown).replace("`", "")
