"""Values as SQL text. Where Delta's extension parses a CALL, Spark binds no parameters, so arguments are part of the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "$": "\\u0024"})
"""Spark replaces ${…} in a statement, also in its texts."""


def literal(value: object) -> str:
    """A text, bytes, a truth value, a number, a timedelta, or a list or a dict of these as SQL. TypeError for anything else."""
    if isinstance(value, str):
        return f"'{value.translate(_ESCAPES)}'"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, bool | int):
        return str(value).lower()
    if isinstance(value, timedelta):
        micros = value // timedelta(microseconds=1)
        sign, (seconds, rest) = "-" if micros < 0 else "", divmod(abs(micros), 1_000_000)
        return f"INTERVAL '{sign}{seconds}.{rest:06}' SECOND"
    if isinstance(value, Mapping):
        return f"map({', '.join(literal(each) for pair in value.items() for each in pair)})"
    if isinstance(value, Sequence):
        return f"array({', '.join(map(literal, value))})"
    raise TypeError(f"{value!r}, of type {type(value).__name__}, has no form in SQL")
