"""Writes docs/reference/ and the tables of docs/guide/from-kafka.md from sparklog/spec/, and the layers of Java: `make docs`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import sparklog
from sparklog import errors
from sparklog.groups import rows
from sparklog.options import SECTIONS, Option, declared

_MADE = "<!-- Made by `make docs` from {}; edit that. -->\n\n"
_END = "\n<!-- End of the generated table. -->\n"
_LAYERS_TEST = Path("jvm-shim/serve/src/test/java/io/sparklog/LayersTest.java")
# The types of arguments and columns, as SQL has them.
_SQL = {
    "string": "STRING",
    "topic": "STRING",
    "name": "STRING",
    "offsets": "STRING",
    "keep": "STRING",
    "weights": "STRING",
    "when": "STRING",
    "partitions": "ARRAY<INT>",
    "moves": "MAP&lt;INT, STRING or BINARY; INT&gt;",
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "double": "DOUBLE",
    "timestamp": "TIMESTAMP",
    "config": "MAP<STRING, STRING>",
    "interval": "INTERVAL DAY TO SECOND",
}
_FIRST = "0.1"
_SINCE = f"All are in release {_FIRST}, unless a text names another."


def generate_reference() -> dict[str, str]:
    """The pages of docs/reference/, by file name."""
    return {
        "options.md": _options_page(),
        "procedures.md": _procedures_page(),
        "server-settings.md": _server_page(),
        "errors.md": _errors_page(),
        "offset-tables.md": _offsets_page(),
    }


def with_kafka_tables(page: str) -> str:
    """The page, with the options of Spark's Kafka connector and the calls of kafka-python, each table between its two comments.

    ValueError without the comments.
    """
    for name, table in (("options.json", _kafka_table()), ("kafka_python.json", _calls_table())):
        before, begin, rest = page.partition(_MADE.format(f"sparklog/spec/{name}"))
        _, end, after = rest.partition(_END)
        if not begin or not end:
            raise ValueError(f"the page lacks the two comments around the table of {name}")
        page = before + begin + table + end + after
    return page


def may_use(docs: Path) -> dict[str, list[str]]:
    """For each package of Java, the packages that it may use: the table of `LayersTest`."""
    source = (docs.parent / _LAYERS_TEST).read_text(encoding="utf-8")
    entries = re.findall(r"\bentry\(((?:\s*\"[\w.]+\",?)+)\)", source)
    return {package: used for package, *used in (re.findall(r"[\w.]+", entry) for entry in entries)}


def with_layers(page: str, docs: Path) -> str:
    """The page, with the layers of Java between its two comments: a package uses packages further to the right alone.

    ValueError without the comments.
    """
    table = may_use(docs)

    def height(package: str) -> int:
        return 1 + max((height(used) for used in table[package]), default=0)

    heights = {package: height(package) for package in table}
    layers = (sorted(package for package in table if heights[package] == level) for level in sorted(set(heights.values()), reverse=True))
    before, begin, rest = page.partition(_MADE.format(_LAYERS_TEST.as_posix()))
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise ValueError("the page lacks the two comments around the layers")
    return before + begin + " → ".join(_code(*layer) for layer in layers) + "\n" + end + after


def write_docs(docs: Path) -> None:
    """Writes all generated pages, tables and figures of the folder docs/."""
    for name, text in generate_reference().items():
        (docs / "reference" / name).write_text(text, encoding="utf-8")
    page = docs / "guide" / "from-kafka.md"
    page.write_text(with_kafka_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
    page = docs / "ARCHITECTURE.md"
    page.write_text(with_layers(page.read_text(encoding="utf-8"), docs), encoding="utf-8")


def _options_page() -> str:
    page = _MADE.format("sparklog/spec/options.json") + "# Options\n\n"
    page += (
        "Names ignore case. An unknown name is refused. A read ignores the options of a write, and a write the options of a read. "
        f"{_SINCE}\n"
    )
    for scope, (title, about) in SECTIONS.items():
        page += f"\n## {title}\n\n{about}\n\n" + _head("option", "default", "values", "meaning")
        page += "".join(_option_row(option) for option in declared().options if option.scopes[0] == scope)
    groups = "; ".join(_code(*group) for group in declared().exclusive)
    page += f"\nGive at most one of each group: {groups}.\n"
    page += "\n## Refused, since there is no such thing here\n\n"
    page += "".join(f"* {_code(absent.key)}: {absent.text}\n" for absent in declared().absent)
    page += "\n## Accepted without effect\n\nWith one warning per session: " + _code(*(ignored.key for ignored in declared().warned))
    page += ". [From Kafka](../guide/from-kafka.md#option-by-option) says what to give instead.\n"
    page += "\nSilently, because Spark passes them by itself, `versionAsOf` and `timestampAsOf` for tables of a catalog only: "
    return page + _code(*(ignored.key for ignored in declared().silent)) + ".\n"


def _server_page() -> str:
    spec = json.loads((Path(sparklog.__file__).parent / "spec" / "server.json").read_text(encoding="utf-8"))
    page = _MADE.format("sparklog/spec/server.json") + "# Settings of a server\n\n"
    page += (
        "A setting of [`sparklog serve`](../guide/server.md) is `-X key=value`, or a line `key=value` of the file of `--config`. "
        f"Settings that Kafka has keep its names. `sparklog serve --settings` lists all. {_SINCE}\n"
    )
    for section, title in spec["sections"].items():
        page += f"\n## {title}\n\n" + _head("setting", "default", "values", "meaning")
        for setting in spec["settings"]:
            if setting["section"] == section:
                prefix = "listener.name.NAME." if setting.get("listener") else ""
                fields = {name: setting[name] for name in setting if name not in ("section", "listener", "key")}
                page += _option_row(Option(key=prefix + setting["key"], scopes=(), **fields))
    return page


def _procedures_page() -> str:
    declared = json.loads((Path(sparklog.__file__).parent / "spec" / "procedures.json").read_text(encoding="utf-8"))["procedures"]
    page = _MADE.format("sparklog/spec/procedures.json") + "# Procedures\n\n"
    page += (
        '`CALL partlog.<name>(…)` in SQL, in a classic session and in Spark Connect; from Python, `spark.sql("CALL partlog.…")`. '
        "Arguments are given by name (`root => '…'`) or by position; an argument with a default may be left out. "
        "A call that is refused changes nothing, and a call may be repeated. If a call is for all topics, a topic that fails does not "
        "stop the others, and the error at the end names it. "
        "[Operations](../guide/operations.md) and [Partitions](../guide/partitions.md) show the procedures in use. "
        f"{_SINCE}\n\n"
    )
    for title, part in (("argument", "parameters"), ("column", "columns")):
        shared = _shared(declared, part)
        page += f"{title.capitalize()}s that several procedures have:\n\n" + _head(title, "type", "meaning")
        page += "".join(_meaning_row(each) for each in shared) + "\n"
        for procedure in declared:
            procedure[part] = [each | {"shared": each in shared} for each in procedure[part]]
    for procedure in declared:
        usage = ", ".join(each["name"] + (f" => {each['default']}" if "default" in each else "") for each in procedure["parameters"])
        since = "" if procedure["since"] == _FIRST else f" (Since {procedure['since']}.)"
        page += f"## {procedure['name']}\n\n`{procedure['name']}({usage})`\n\n{procedure['summary']} {procedure['text']}{since}\n\n"
        for title, part in (("argument", "parameters"), ("column", "columns")):
            own = "".join(_meaning_row(each) for each in procedure[part] if not each["shared"])
            others = [each["name"] for each in procedure[part] if each["shared"]] if part == "columns" else []
            page += _head(title, "type", "meaning") + own + "\n" if own else ""
            page += f"{'Shared' if own else 'All'} columns: {_code(*others)}.\n\n" if others else ""
    return page.rstrip("\n") + "\n"


def _shared(procedures: list[dict[str, Any]], part: str) -> list[dict[str, Any]]:
    """The arguments or columns that several procedures declare alike."""
    every = [each for procedure in procedures for each in procedure[part]]
    return [each for number, each in enumerate(every) if every.count(each) > 1 and each not in every[:number]]


def _meaning_row(declared: dict[str, Any]) -> str:
    return _row(_code(declared["name"]), _SQL[declared["type"]], declared["text"])


def _errors_page() -> str:
    page = _MADE.format("sparklog/spec/errors.json") + "# Errors\n\n"
    page += (
        "The name, the fault and the remedy of each error. Errors of the connector reach Python as PySpark's exceptions, whose "
        "`getCondition()` is the name. Errors that Python raises have it as `condition`; each kind has a class, which derives from "
        "`sparklog.SparklogError`. The command line words some remedies for the shell.\n"
    )
    for kind, cls in errors.CLASSES.items():
        about = (cls.__doc__ or "").partition("\n")[0]
        page += f"\n## {kind}\n\n`sparklog.{cls.__name__}`. {about}\n\n"
        for id, entry in errors.declared().items():
            if entry.kind == kind:
                page += f"* {_code(f'PARTLOG_{id}')} {_escaped(entry.text)} {_escaped(entry.fix)}\n"
    return page


def _offsets_page() -> str:
    page = "<!-- Made by `make docs` from sparklog/groups/rows.py and docs/make_reference.py; edit those. -->\n\n# Offset tables\n\n"
    page += (
        "An offset table is a Delta table outside of every root, to which rows are only added. `sparklog.groups.OffsetTable` creates, "
        "reads and writes it. [Groups](../guide/groups.md) shows how to use it.\n\n"
    )
    page += _head("column", "type", "null", "meaning")
    sql = {"string": "STRING", "int64": "BIGINT", "int32": "INT"}
    for field in rows.SCHEMA:
        type = sql.get(str(field.type), "TIMESTAMP")
        page += _row(_code(field.name), type, "yes" if field.nullable else "no", rows.COLUMNS[field.name][1])
    page += (
        "\n* A **position** is a row whose partition is 0 or more. A row that repeats the position with a later time is a heartbeat.\n"
        "* An **event** is any other row. Each generation begins with one, in the same commit as its first positions.\n\n"
        + _head("event", "after")
        + _row("`begin`", "a new owner, or a change of the members")
        + _row("`assign`", "a commit of a consumer that was assigned its partitions")
        + _row("`end`", "the owner ended, or the last member left")
        + _row("`reset`, `load`, `delete`", "the call of an operator")
        + _row("`forget`", "a topic was dropped")
        + "\n* Commits of an owner or an operator, and changes of members, have **numbers**: 1, 2, 3, …. A commit of positions by a member "
        "has no number. The number is the version of a `txn` action with the application id `sparklog.offsets/<group>`.\n"
        "* A writer reads the group, and commits with the number after the newest one. Delta lets only one commit have a number. If "
        "another writer was first, the writer reads the group again.\n"
        "* An owner takes the next **generation** in a commit that has the positions of the generation before. An owner with an older "
        "generation commits nothing (`GENERATION_FENCED`). So no acknowledged commit is lost, whichever owners overlap or die.\n"
        "* Consumers that were **assigned** their partitions do not fence each other. A commit of such a consumer begins a generation "
        "with the event `assign` if the newest event is another one, or if an offset goes back; otherwise it adds rows to the newest "
        "generation. The field `since` of the event is the generation before, or the `since` of an event `assign` before it. A "
        "consumer remembers the newest generation that it knew. It is fenced (`GENERATION_FENCED`) if `since` of the newest event is "
        "greater, or if that event is not `assign` and its generation is another one. If the group has members, the commit is refused "
        "(`GROUP_HAS_MEMBERS`).\n"
        "* The current positions of a group are the greatest offset of each partition in the greatest generation. A group whose newest "
        "generation began with `delete` does not exist.\n"
        f"* A group **runs** if its newest event is `begin` or has members, and its newest row is younger than {rows.ALIVE.seconds // 60} "
        "minutes.\n"
        "* Events have the state of **members**. The `seq` of a member's positions is the number of the state that the member knows. "
        "[Members of a group](members.md) has the rules, and is normative as this page is.\n\n"
        "The current positions in SQL; Spark and Databricks quote names with backticks:\n\n"
        "```sql\n"
        'SELECT "group", topic, "partition", max("offset") AS "offset"\n'
        'FROM (SELECT *, max(generation) OVER (PARTITION BY "group") AS newest FROM offsets) AS each_row\n'
        'WHERE generation = newest AND "partition" >= 0\n'
        'GROUP BY "group", topic, "partition"\n'
        'ORDER BY "group", topic, "partition"\n'
        "```\n\nProperties that a new table gets:\n\n"
    )
    return page + _head("property", "value") + "".join(_row(_code(name), _code(value)) for name, value in rows.PROPERTIES.items())


def _calls_table() -> str:
    declared = json.loads((Path(sparklog.__file__).parent / "spec" / "kafka_python.json").read_text(encoding="utf-8"))
    rows = (_row(each["call"], each["kafka"], each["here"], each["why"]) for each in declared["differences"])
    return _head("call", "kafka-python", "here", "why") + "".join(rows)


def _kafka_table() -> str:
    table = _head("option of Kafka's connector", "here")
    for option in declared().options:
        if option.kafka:
            table += _row(_code(option.key), option.kafka)
    for ignored in declared().warned:
        table += _row(_code(ignored.key), "no effect" + (f": give {ignored.instead}" if ignored.instead else "") + f". {ignored.text}")
    return table


def _option_row(option: Option) -> str:
    return _row(
        _code(option.key, *option.aliases),
        "" if option.default is None else _code(str(option.shown_default())),
        option.shown_values(),
        option.meaning() + ("" if option.since == _FIRST else f" (Since {option.since}.)"),
    )


def _code(*words: str) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _escaped(text: str) -> str:
    """Markdown that shows the parameters, which look like HTML."""
    return text.replace("<", "&lt;").replace(">", "&gt;")


def _head(*titles: str) -> str:
    return _row(*titles) + _row(*("---" for _ in titles))


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


if __name__ == "__main__":
    write_docs(Path(__file__).parent)
