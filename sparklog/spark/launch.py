"""Settings that Spark is started with besides the settings of the builder: PYSPARK_SUBMIT_ARGS and spark-defaults.conf."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path

_LISTS = {"spark.jars": "--jars", "spark.jars.packages": "--packages"}
"""Settings that are lists with commas, and the arguments that take precedence over them."""
_SETTINGS = ("--conf", "-c")


class Launch:
    """The environment that a session started now would read."""

    def __init__(self) -> None:
        self._words: list[str] = []
        for word in shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "")):
            joined = re.fullmatch("(--(?:jars|packages|conf|properties-file))=(.*)", word, re.DOTALL)
            self._words += joined.groups() if joined else [word]
        self._arguments = {
            key.strip(): value.strip() for name, pair in self._pairs() if name in _SETTINGS for key, _, value in [pair.partition("=")]
        }
        for setting, argument in _LISTS.items():
            if value := self._last(argument):
                self._arguments[setting] = value
        self._defaults = _spark_defaults(self._last("--properties-file"))

    def get(self, name: str) -> str | None:
        """The value of a setting; None if it is not made here."""
        return self._arguments.get(name, self._defaults.get(name))

    def add(self, setting: str, of_builder: object, more: str) -> str:
        """The value of a setting that is a list, for the builder, so that Spark gets everything that is listed, and `more`.

        PySpark puts PYSPARK_SUBMIT_ARGS after the builder's settings, and the last one wins: if they have the setting, the variable is
        changed too.
        """
        given = self._arguments.get(setting, "")
        value = _merged(str(of_builder or self.get(setting) or ""), given, more)
        if given:
            os.environ["PYSPARK_SUBMIT_ARGS"] = shlex.join([_LISTS[setting], value, *self._without(setting)])
        return value

    def _pairs(self) -> Iterable[tuple[str, str]]:
        return zip(self._words, self._words[1:], strict=False)

    def _last(self, wanted: str) -> str | None:
        return next((value for name, value in reversed(list(self._pairs())) if name == wanted), None)

    def _without(self, setting: str) -> list[str]:
        kept: list[str] = []
        rest = iter(self._words)
        for word in rest:
            value = next(rest, "") if word in (_LISTS[setting], *_SETTINGS) else None
            if value is None:
                kept.append(word)
            elif word in _SETTINGS and value.partition("=")[0].strip() != setting:
                kept += [word, value]
        return kept


def _merged(*lists: str) -> str:
    """Comma-separated lists as one, each file once."""
    found: dict[str, str] = {}
    for each in ",".join(lists).split(","):
        if each := each.strip():
            found.setdefault(os.path.realpath(re.sub("^file:(//)?", "", each)), each)
    return ",".join(found.values())


def _spark_defaults(properties_file: str | None) -> dict[str, str]:
    """The settings in spark-defaults.conf: lines of a name and a value, separated by blanks, `=` or `:`."""
    import pyspark

    home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    directory = Path(os.environ.get("SPARK_CONF_DIR") or home / "conf")
    file = Path(properties_file or directory / "spark-defaults.conf")
    if not file.is_file():
        return {}
    lines = (line.strip() for line in file.read_text(encoding="utf-8").splitlines())
    settings = (re.split(r"\s*[=:\s]\s*", line, maxsplit=1) for line in lines if line and line[0] not in "#!")
    return {setting[0]: setting[1] for setting in settings if len(setting) == 2}
