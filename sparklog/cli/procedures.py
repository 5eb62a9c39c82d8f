"""The procedures of the catalog `partlog`, as spec/procedures.json declares them."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Parameter:
    """A parameter. `default` is SQL; None if the argument is required. `min` and `max` are bounds of a long, or ms of an interval."""

    name: str
    type: str
    text: str
    default: str | None = None
    min: int | None = None
    max: int | None = None


@dataclass(frozen=True)
class Procedure:
    """A procedure: its parameters in the order of a call by position, and the columns of its rows."""

    name: str
    text: str
    parameters: tuple[Parameter, ...]
    columns: tuple[str, ...]


@functools.cache
def declared() -> dict[str, Procedure]:
    """All procedures by name."""
    spec = json.loads((Path(__file__).parents[1] / "spec" / "procedures.json").read_text(encoding="utf-8"))
    return {
        each["name"]: Procedure(
            each["name"],
            each["text"],
            tuple(Parameter(**parameter) for parameter in each["parameters"]),
            tuple(column["name"] for column in each["columns"]),
        )
        for each in spec["procedures"]
    }
