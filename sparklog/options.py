"""The options of the format `partlog`, as spec/options.json declares them, and the reference that is made from it."""

from __future__ import annotations

import functools
import json
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparklog import errors

_MADE = "<!-- Made by `make docs` from sparklog/spec/{}; edit that. -->\n\n"
_END = "\n<!-- The end of what was made. -->\n"


@dataclass(frozen=True)
class Option:
    """A declared option. spec/options.json tells what its fields mean."""

    key: str
    type: str
    default: str | int | bool | None
    scopes: tuple[str, ...]
    since: str
    text: str
    min: int | None = None
    max: int | None = None
    values: tuple[str, ...] = ()
    synonyms: dict[str, str] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    requires: str | None = None
    kafka: str | None = None
    mistaken: tuple[str, ...] = ()

    def problem(self, value: str) -> str | None:
        """Why a boolean, an int, a long or a choice cannot have this value, in words; None if it can."""
        if self.type == "boolean" and value.lower() not in ("true", "false"):
            return "it must be true or false"
        if self.type == "choice" and value.lower() not in {word.lower() for word in (*self.values, *self.synonyms)}:
            return f"it must be one of {', '.join(self.values)}"
        if self.type in ("int", "long"):
            assert self.min is not None
            assert self.max is not None
            try:
                fits = self.min <= int(value) <= self.max
            except ValueError:
                fits = False
            return None if fits else f"it must be a whole number from {self.min} to {self.max}"
        return None


@dataclass(frozen=True)
class Ignored:
    """An option that is accepted and has no effect. A key that ends in `*` is a prefix."""

    key: str
    text: str
    instead: str | None = None


@dataclass(frozen=True)
class Options:
    """All of spec/options.json."""

    options: tuple[Option, ...]
    exclusive: tuple[tuple[str, ...], ...]
    warned: tuple[Ignored, ...]
    silent: tuple[Ignored, ...]


@functools.cache
def declared() -> Options:
    spec = json.loads((Path(__file__).parent / "spec" / "options.json").read_text(encoding="utf-8"))
    lists = ("scopes", "values", "words", "aliases", "mistaken")
    entries: list[dict[str, Any]] = [
        {name: tuple(value) if name in lists else value for name, value in entry.items()} for entry in spec["options"]
    ]
    return Options(
        options=tuple(Option(**entry) for entry in entries),
        exclusive=tuple(tuple(group["keys"]) for group in spec["exclusive"]),
        warned=tuple(Ignored(**entry) for entry in spec["warned"]),
        silent=tuple(Ignored(**entry) for entry in spec["silent"]),
    )


def topic_option(key: str) -> Option:
    """The option of a topic's configuration with this key. KeyError if there is none."""
    for option in declared().options:
        if option.key == key and "topic" in option.scopes:
            return option
    raise KeyError(key)


def generate_reference() -> dict[str, str]:
    """The pages of docs/reference/, by file name."""
    return {"options.md": _options_page(), "errors.md": _errors_page()}


def with_kafka_options(page: str) -> str:
    """The page with the table of the options of Spark's Kafka connector between the two comments that are there for it."""
    before, begin, rest = page.partition(_MADE.format("options.json"))
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise ValueError("the page does not have the two comments that the table goes between")
    return before + begin + _kafka_table() + end + after


def write_docs(docs: Path) -> None:
    """Writes what is generated of the folder docs/."""
    for name, text in generate_reference().items():
        (docs / "reference" / name).write_text(text, encoding="utf-8")
    page = docs / "guide" / "from-kafka.md"
    page.write_text(with_kafka_options(page.read_text(encoding="utf-8")), encoding="utf-8")


def listing() -> str:
    """All options as plain text, for a terminal: by section, each with its default, its values and its meaning."""
    lines: list[str] = []
    for scope, (title, about) in _SECTIONS.items():
        lines += ["", title.replace("`", ""), *textwrap.wrap(about, 100)]
        for option in declared().options:
            if scope in option.scopes:
                default = "" if option.default is None else f"default {_literal(option.default)}; "
                lines += ["", f"  {', '.join((option.key, *option.aliases))} ({default}{_values(option).replace('`', '')})"]
                lines += textwrap.wrap(_meaning(option).replace("`", ""), 96, initial_indent="      ", subsequent_indent="      ")
    return "\n".join(lines[1:])


_SECTIONS = {
    "read": (
        'Reading: `spark.read.format("partlog")`',
        "The names are those of Spark's Kafka source where the meaning is the same.",
    ),
    "write": (
        'Writing: `df.write.format("partlog")`',
        "Besides these, the options of the next section.",
    ),
    "topic": (
        "The configuration of a topic",
        "Given on writing. It counts when that write creates the topic; later writes must not contradict it.",
    ),
}


def _options_page() -> str:
    page = _MADE.format("options.json") + "# Options\n\n"
    page += (
        "Case does not matter in a name. An unknown name is refused, with the nearest one that is known. "
        "Options of the other side, reading or writing, are accepted without effect, so that both can share a set.\n"
    )
    for scope, (title, about) in _SECTIONS.items():
        page += f"\n## {title}\n\n{about}\n\n" + _head("option", "default", "values", "since", "meaning")
        page += "".join(_option_row(option) for option in declared().options if scope in option.scopes)
    groups = "; ".join(_code(*group) for group in declared().exclusive)
    page += f"\nAt most one may be given of: {groups}.\n"
    page += "\n## Accepted without effect\n\nWith one warning a session, so that a job of Spark's Kafka connector runs as it is:\n\n"
    page += "".join(f"* {_code(ignored.key)}: {_ignored(ignored)}\n" for ignored in declared().warned)
    page += "\nSilently, because Spark passes them on by itself: "
    return page + _code(*(ignored.key for ignored in declared().silent)) + ".\n"


def _errors_page() -> str:
    page = _MADE.format("errors.json") + "# Errors\n\n"
    page += (
        "Each error says what went wrong, where, and how to mend it. Errors of the connector reach Python as PySpark's "
        "exceptions, whose `getCondition()` gives the name below. Errors that Python raises have it as `condition`; "
        "they are of the class that stands with the kind, and all of them are a `sparklog.SparklogError`.\n"
    )
    for kind, cls in errors.CLASSES.items():
        about = (cls.__doc__ or "").strip()
        page += f"\n## {kind}\n\n`sparklog.{cls.__name__}`. {about}\n\n" + _head("condition", "text", "how to mend it")
        for id, entry in errors.declared().items():
            if entry.kind == kind:
                page += _row(_code(f"PARTLOG_{id}"), _escaped(entry.text), _escaped(entry.mend))
    return page


def _kafka_table() -> str:
    table = _head("option of Kafka's connector", "for", "here", "how it differs")
    for option in declared().options:
        if option.kafka:
            table += _row(_code(option.key), "reading" if "read" in option.scopes else "writing", _code(option.key), option.kafka)
    for ignored in declared().warned:
        side = "both" if ignored.key.startswith("kafka.") else "reading"
        table += _row(_code(ignored.key), side, ignored.instead or "no effect", ignored.text)
    return table


def _ignored(ignored: Ignored) -> str:
    return (f"Give {ignored.instead} instead. " if ignored.instead else "") + ignored.text


def _option_row(option: Option) -> str:
    return _row(
        _code(option.key, *option.aliases),
        "" if option.default is None else _code(_literal(option.default)),
        _values(option),
        option.since,
        _meaning(option),
    )


def _meaning(option: Option) -> str:
    return option.text + (f" Needs {_code(option.requires)}." if option.requires else "")


def _values(option: Option) -> str:
    if option.values:
        return _code(*option.values)
    if option.words:
        return f"{_code(*option.words)} or JSON"
    if option.max in (2**31 - 1, 2**63 - 1):
        return f"{option.type} ≥ {option.min}"
    if option.min is not None:
        return f"{option.type}, {option.min} … {option.max}"
    return {"json": "JSON", "names": "names, comma-separated", "regex": "Java regular expression"}.get(option.type, option.type)


def _literal(value: str | int | bool) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _code(*words: str) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _escaped(text: str) -> str:
    """Markdown that shows the parameters, which look like HTML."""
    return text.replace("<", "&lt;").replace(">", "&gt;")


def _head(*titles: str) -> str:
    return _row(*titles) + _row(*("---" for _ in titles))


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
