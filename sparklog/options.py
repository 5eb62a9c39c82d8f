"""The options of the format `partlog`, as spec/options.json declares them."""

from __future__ import annotations

import functools
import json
import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# By scope: the title of the section that lists its options, and its text about them.
SECTIONS = {
    "read": (
        'Reading: `spark.read.format("partlog")` and `spark.readStream.format("partlog")`',
        "An option that means the same as in Spark's Kafka source has the same name.",
    ),
    "batch": (
        "Only of a batch read",
        "A stream refuses these.",
    ),
    "stream": (
        "Only of a stream",
        "A batch read ignores these, with a warning.",
    ),
    "write": (
        'Writing: `df.write.format("partlog")`',
        "A write also takes `path` and `maxRequests`, as a read does, and the options of the next section.",
    ),
    "topic": (
        "The configuration of a topic",
        "Give these with a write. They take effect if that write creates the topic; later writes must not contradict them.",
    ),
}


@dataclass(frozen=True)
class Option:
    """A declared option. The comments in spec/options.json explain its fields."""

    key: str
    type: str
    default: str | int | bool | None
    scopes: tuple[str, ...]
    since: str
    text: str
    min: int | None = None
    max: int | None = None
    unit: str | None = None
    values: tuple[str, ...] = ()
    synonyms: dict[str, str] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    requires: str | None = None
    kafka: str | None = None
    mistaken: tuple[str, ...] = ()
    stream: dict[str, Any] = field(default_factory=dict)
    optional: bool = False
    pattern: str | None = None
    expected: str | None = None

    def problem(self, value: str) -> str | None:
        """Why a boolean, an int, a long, a duration, a choice or a pattern cannot have this value, in words; None if it can."""
        if self.type == "boolean" and value.lower() not in ("true", "false"):
            return "it must be true or false"
        if self.type == "duration" and not re.fullmatch(r"[0-9]+\s*(us|ms|s|m|min|h|d|)", value.lower()):
            return "it must be a number with a unit, such as 30s, 15m or 2h"
        if self.pattern and not re.fullmatch(self.pattern, value):
            return f"it must be {self.expected}"
        if self.type == "choice" and value.lower() not in {word.lower() for word in (*self.values, *self.synonyms)}:
            return f"it must be one of {', '.join(self.values)}"
        if self.type in ("int", "long"):
            assert self.min is not None
            assert self.max is not None
            try:
                fits = self.min <= int(value) <= self.max
            except ValueError:
                fits = False
            return None if fits else f"it must be an integer from {self.min} to {self.max}" + (f", in {self.unit}" if self.unit else "")
        return None

    def shown_default(self) -> str | None:
        """The default as a user would write it; None without a default."""
        return json.dumps(self.default) if isinstance(self.default, bool) else None if self.default is None else str(self.default)

    def shown_values(self) -> str:
        """The values that the option takes, in Markdown."""
        if self.values:
            return ", ".join(f"`{value}`" for value in self.values)
        if self.expected:
            return self.expected
        if self.words:
            return ", ".join(f"`{word}`" for word in self.words) + " or JSON"
        if self.type == "time":
            return "milliseconds, or a time"
        if self.max in (2**31 - 1, 2**63 - 1):
            return f"{self.type} ≥ {self.min}" + (f", {self.unit}" if self.unit else "")
        if self.min is not None:
            return f"{self.type}, {self.min} … {self.max}" + (f", {self.unit}" if self.unit else "")
        return {
            "json": "JSON",
            "names": "names, comma-separated",
            "regex": "Java regular expression",
            "duration": "number with a unit",
        }.get(self.type, self.type)

    def meaning(self) -> str:
        """The meaning of the option, in Markdown."""
        return self.text + (f" Needs `{self.requires}`." if self.requires else "")


@dataclass(frozen=True)
class Ignored:
    """An option that is accepted and has no effect, or that there cannot be. A key that ends in `*` is a prefix."""

    key: str
    text: str
    instead: str | None = None


@dataclass(frozen=True)
class Options:
    """All of spec/options.json."""

    options: tuple[Option, ...]
    exclusive: tuple[tuple[str, ...], ...]
    warned: tuple[Ignored, ...]
    absent: tuple[Ignored, ...]
    silent: tuple[Ignored, ...]


@functools.cache
def declared() -> Options:
    """All options, as spec/options.json declares them."""
    spec = json.loads((Path(__file__).parent / "spec" / "options.json").read_text(encoding="utf-8"))
    lists = ("scopes", "values", "words", "aliases", "mistaken")
    entries: list[dict[str, Any]] = [
        {name: tuple(value) if name in lists else value for name, value in entry.items()} for entry in spec["options"]
    ]
    return Options(
        options=tuple(Option(**entry) for entry in entries),
        exclusive=tuple(tuple(group["keys"]) for group in spec["exclusive"]),
        warned=tuple(Ignored(**entry) for entry in spec["warned"]),
        absent=tuple(Ignored(**entry) for entry in spec["absent"]),
        silent=tuple(Ignored(**entry) for entry in spec["silent"]),
    )


def topic_option(key: str) -> Option:
    """The option of a topic's configuration with this key. KeyError if it does not exist."""
    for option in declared().options:
        if option.key == key and "topic" in option.scopes:
            return option
    raise KeyError(key)


def listing() -> str:
    """All options as plain text, for a terminal: by section, each with its default, its values and its meaning."""
    lines: list[str] = []
    for scope, (title, about) in SECTIONS.items():
        lines += ["", title.replace("`", ""), *textwrap.wrap(about.replace("`", ""), 100)]
        for option in declared().options:
            if scope in option.scopes:
                default = "" if option.default is None else f"default {option.shown_default()}; "
                head = f"{', '.join((option.key, *option.aliases))} ({default}{option.shown_values().replace('`', '')})"
                lines += ["", *textwrap.wrap(head, 100, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)]
                lines += textwrap.wrap(option.meaning().replace("`", ""), 96, initial_indent="      ", subsequent_indent="      ")
    return "\n".join(lines[1:])
