"""Errors of the Python half. Their texts are in spec/errors.json, which the Java half reads too."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any, NamedTuple


class Declared(NamedTuple):
    """An entry of spec/errors.json. `text` and `mend` hold parameters as `<name>`."""

    kind: str
    text: str
    mend: str

    def parameters(self) -> set[str]:
        return set(_PARAMETER.findall(self.text + self.mend))


class SparklogError(Exception):
    """What went wrong, where, and how to mend it.

    `SparklogError(id, name=value, …)` makes the subclass of the kind that spec/errors.json gives the id. The subclasses
    are cut by what a caller does about it. `condition` is what Spark shows for the same error of the Java half.
    """

    id: str
    parameters: dict[str, str]

    def __new__(cls, id: str, /, **parameters: object) -> SparklogError:
        return super().__new__(CLASSES[declared()[id].kind])

    def __init__(self, id: str, /, **parameters: object) -> None:
        entry = declared()[id]
        self.id = id
        self.parameters = {name: str(value) for name, value in parameters.items()}
        if self.parameters.keys() != entry.parameters():
            raise ValueError(f"{id} has the parameters {sorted(entry.parameters())}, given are {sorted(parameters)}")
        text = _PARAMETER.sub(lambda match: self.parameters[match[1]], f"{entry.text} {entry.mend}")
        super().__init__(f"[{self.condition}] {text}")

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.id, self.parameters)

    @property
    def condition(self) -> str:
        return f"PARTLOG_{self.id}"


class CallError(SparklogError):
    """The call asks for something that is not to be had: mend the call."""


class DataError(SparklogError):
    """Stored data is damaged or gone: mend the data."""


class UpgradeError(SparklogError):
    """Something is of another version than this program: install what fits."""


class RetryError(SparklogError):
    """Nothing was done: do it again."""


class UnknownOutcomeError(SparklogError):
    """It cannot be told whether it was done: look before you do it again."""


CLASSES: dict[str, type[SparklogError]] = {
    "call": CallError,
    "data": DataError,
    "upgrade": UpgradeError,
    "retry": RetryError,
    "unknown": UnknownOutcomeError,
}
_PARAMETER = re.compile("<([a-z]+)>")


@functools.cache
def declared() -> dict[str, Declared]:
    """All errors by id, as spec/errors.json lists them."""
    spec = json.loads((Path(__file__).parent / "spec" / "errors.json").read_text(encoding="utf-8"))
    return {id: Declared(**entry) for id, entry in spec.items()}


def _again(id: str, parameters: dict[str, str]) -> SparklogError:
    return SparklogError(id, **parameters)
