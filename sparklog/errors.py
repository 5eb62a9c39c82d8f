"""The errors that sparklog raises. Their texts are in spec/errors.json, which the connector reads too."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from sparklog import shown


class Declared(NamedTuple):
    """An entry of spec/errors.json. `text` has the fault, `fix` the remedy; both have parameters as `<name>`.

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

    There is one subclass for each reaction of a caller. Credentials and settings in a name of a store are left out of the text.

    Example:
        >>> try:
        ...     log.topic("oders")
        ... except sparklog.CallError as error:
        ...     print(error.id, error.parameters["topics"])
        TOPIC_NOT_FOUND orders
    """

    id: str
    parameters: dict[str, str]

    def __new__(cls, id: str, /, **parameters: object) -> SparklogError:
        return super().__new__(CLASSES[declared()[id].kind])

    def __init__(self, id: str, /, **parameters: object) -> None:
        """Makes an error; its class is the subclass of the error's kind in spec/errors.json.

        Args:
            id: The name of the error, such as `TOPIC_NOT_FOUND`.
            **parameters: The values for the text of the error, by name.

        Raises:
            ValueError: If the parameters differ from the parameters of the error's text.

        Example:
            >>> type(sparklog.SparklogError("TOPIC_NULL")).__name__
            'CallError'
        """
        entry = declared()[id]
        self.id = id
        self.parameters = shown.parameters(parameters)
        if self.parameters.keys() != entry.parameters():
            raise ValueError(f"{id} has the parameters {sorted(entry.parameters())}, given are {sorted(parameters)}")
        super().__init__(self._filled(entry.text, entry.fix))

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.id, self.parameters)

    def in_shell(self) -> str:
        """Returns the text as the command line prints it: the remedy in words and options of the command line.

        Returns:
            The text.

        Example:
            >>> sparklog.SparklogError("TOPIC_NULL").in_shell()
            '[PARTLOG_TOPIC_NULL] A row has a null topic. ...'
        """
        entry = declared()[self.id]
        return self._filled(entry.text, entry.fix if entry.shell is None else entry.shell)

    def _filled(self, text: str, remedy: str) -> str:
        return f"[{self.condition}] " + _PARAMETER.sub(lambda match: self.parameters[match[1]], f"{text} {remedy}")

    @property
    def condition(self) -> str:
        """The error's name in Spark, such as `PARTLOG_TOPIC_NOT_FOUND`. The same error of the connector has it."""
        return f"PARTLOG_{self.id}"


class CallError(SparklogError):
    """The request is not valid, or refers to something that does not exist: fix the call.

    Example:
        >>> try:
        ...     topic.read(partition=7)
        ... except sparklog.CallError as error:
        ...     print(error.condition)
        PARTLOG_PARTITION_NOT_FOUND
    """


class DataError(SparklogError):
    """Stored data is damaged or missing: restore it.

    Example:
        >>> from pathlib import Path
        >>> file = next(Path("events/_partlog/orders/data").rglob("*.log"))
        >>> _ = file.write_bytes(file.read_bytes()[:-1] + b"!")
        >>> try:
        ...     _ = topic.read()
        ... except sparklog.DataError as error:
        ...     print(error.condition)
        PARTLOG_BATCH_CORRUPT
    """


class UpgradeError(SparklogError):
    """Versions do not match: install one that matches.

    Example:
        >>> issubclass(sparklog.UpgradeError, sparklog.SparklogError)
        True
    """


class RetryError(SparklogError):
    """Nothing was changed: try again.

    Example:
        >>> issubclass(sparklog.RetryError, sparklog.SparklogError)
        True
    """


class UnknownOutcomeError(SparklogError):
    """It is not known whether the change was made: check before you try again.

    Example:
        >>> issubclass(sparklog.UnknownOutcomeError, sparklog.SparklogError)
        True
    """


class GenerationFencedError(SparklogError):
    """Another tracker, consumer or reset took the group: stop, or take its next generation.

    Consumers share a group if each has the same `partition_assignment_strategy`.

    Example:
        >>> given = {"group_id": "billing", "table": "offsets", "partition_assignment_strategy": "exclusive"}
        >>> mine = sparklog.Consumer("events", "orders", **given)
        >>> another = sparklog.Consumer("events", "orders", **given)
        >>> try:
        ...     mine.commit({sparklog.TopicPartition("orders", 0): 5})
        ... except sparklog.GenerationFencedError as error:
        ...     print(error.condition)
        PARTLOG_GENERATION_FENCED
    """


CLASSES: dict[str, type[SparklogError]] = {
    "call": CallError,
    "data": DataError,
    "upgrade": UpgradeError,
    "retry": RetryError,
    "unknown": UnknownOutcomeError,
    "fenced": GenerationFencedError,
}
_PARAMETER = re.compile("<([a-z]+)>")


@functools.cache
def declared() -> dict[str, Declared]:
    """All errors by id, as spec/errors.json lists them."""
    spec = json.loads((Path(__file__).parent / "spec" / "errors.json").read_text(encoding="utf-8"))
    return {id: Declared(**entry) for id, entry in spec.items()}


def _unpickled(id: str, parameters: dict[str, str]) -> SparklogError:
    return SparklogError(id, **parameters)
