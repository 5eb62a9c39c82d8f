"""The errors that sparklog raises. Their texts are in spec/errors.json, which the connector reads too."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from sparklog import shown


class Declared(NamedTuple):
    """An entry of spec/errors.json. `text` says what went wrong, `fix` how to fix it; both hold parameters as `<name>`.

    `shell` says in place of `fix` how to fix it where the command line is used; None if that is the same.
    """

    kind: str
    text: str
    fix: str
    shell: str | None = None

    def parameters(self) -> set[str]:
        """The names of the parameters."""
        return set(_PARAMETER.findall(self.text + self.fix))


class SparklogError(Exception):
    """An error of sparklog: what went wrong, where, and how to fix it.

    `SparklogError(id, name=value, …)` is an instance of the subclass that belongs to the kind of `id` in spec/errors.json. There is one
    subclass for each reaction of a caller. `condition` is the name that Spark shows for the same error of the connector. ValueError if the
    parameters are not those of the error's text. Credentials and settings in a name of a store are left out of them.
    """

    id: str
    parameters: dict[str, str]

    def __new__(cls, id: str, /, **parameters: object) -> SparklogError:
        return super().__new__(CLASSES[declared()[id].kind])

    def __init__(self, id: str, /, **parameters: object) -> None:
        entry = declared()[id]
        self.id = id
        self.parameters = shown.parameters(parameters)
        if self.parameters.keys() != entry.parameters():
            raise ValueError(f"{id} has the parameters {sorted(entry.parameters())}, given are {sorted(parameters)}")
        super().__init__(self._filled(entry.text, entry.fix))

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.id, self.parameters)

    def in_shell(self) -> str:
        """The text as the command line prints it: how to fix it is said in words and options of the command line."""
        entry = declared()[self.id]
        return self._filled(entry.text, entry.fix if entry.shell is None else entry.shell)

    def _filled(self, text: str, remedy: str) -> str:
        return f"[{self.condition}] " + _PARAMETER.sub(lambda match: self.parameters[match[1]], f"{text} {remedy}")

    @property
    def condition(self) -> str:
        """The error's name, as `PARTLOG_TOPIC_NOT_FOUND`."""
        return f"PARTLOG_{self.id}"


class CallError(SparklogError):
    """The request is not valid, or refers to something that does not exist: fix the call."""


class DataError(SparklogError):
    """Stored data is damaged or missing: restore it."""


class UpgradeError(SparklogError):
    """Versions do not match: install one that matches."""


class RetryError(SparklogError):
    """Nothing was changed: try again."""


class UnknownOutcomeError(SparklogError):
    """It is not known whether the change was made: check before you try again."""


class GenerationFenced(SparklogError):
    """Another tracker, consumer or reset took the group: stop, or take its next generation. Consumers with the same `assignor` share it."""


CLASSES: dict[str, type[SparklogError]] = {
    "call": CallError,
    "data": DataError,
    "upgrade": UpgradeError,
    "retry": RetryError,
    "unknown": UnknownOutcomeError,
    "fenced": GenerationFenced,
}
_PARAMETER = re.compile("<([a-z]+)>")


@functools.cache
def declared() -> dict[str, Declared]:
    """All errors by id, as spec/errors.json lists them."""
    spec = json.loads((Path(__file__).parent / "spec" / "errors.json").read_text(encoding="utf-8"))
    return {id: Declared(**entry) for id, entry in spec.items()}


def _unpickled(id: str, parameters: dict[str, str]) -> SparklogError:
    return SparklogError(id, **parameters)
