"""Commands that change a log. Those of procedures are made from spec/procedures.json, which alone knows arguments, defaults and texts."""

from __future__ import annotations

import datetime
import inspect
import json
import os
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from sparklog import options
from sparklog.cli.parameters import Config, Json, Root, TopicName, key_values
from sparklog.cli.procedures import Parameter, Procedure, declared
from sparklog.cli.show import answer, write, write_json
from sparklog.errors import SparklogError
from sparklog.show.display import Display, counted

_POLICY = "cleanup.policy"
_EXAMPLES = {
    "add_partitions": ["my-log orders --partitions 16 --dry-run", "my-log orders --partitions 16"],
    "close_partitions": ["my-log orders --partitions 1"],
    "reroute": ["my-log orders --weights 0:2,1:1 --dry-run", 'my-log orders --weights \'{"0":2,"1":1}\''],
    "move_slots": ["my-log orders --moves 17:1,99:1 --dry-run"],
    "rebuild": ["my-log orders --to orders16 --partitions 16 --dry-run", "my-log orders --to orders16 --partitions 16"],
    "delete_records": ["my-log orders --offsets 0:10,1:-1", 'my-log orders --offsets \'{"0":10,"1":-1}\' --execute'],
    "delete_topic": ["my-log orders", "my-log orders --execute"],
    "merge": ["my-log orders --rebatch", "my-log --dry-run"],
    "expire": ["my-log", "my-log orders --retention-ms 7d --execute"],
    "vacuum": ["my-log", "my-log --older-than 2d --execute"],
    "publish": ["my-log orders"],
    "export": ["my-log orders --to orders-copy"],
}
"""By procedure, the words after the command of its examples. A procedure that is not here has a command of another kind."""
_LOSES = {"delete_records", "delete_topic", "expire", "vacuum"}
"""Procedures that delete: their commands only show the deletion, unless `--execute` is given."""
_UNITS = {
    "ms": {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000},
    "bytes": {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40},
}
"""The units that a number may have, by the thing that it counts."""
_TOPIC: dict[str, Any] = {"metavar": "[TOPIC]", "help": "The topic; all topics of the root without it.", "show_default": False}
_PAIRS = re.compile(r"\d{1,9}:-?\d{1,19}(,\d{1,9}:-?\d{1,19})*")
_NUMBERS = re.compile(r"\d{1,9}(,\d{1,9})*")


def _number(text: str, unit: str | None, least: int | None = None, most: int | None = None) -> int:
    """A number as the options take it, or with a unit: `7d` in ms, `10g` in bytes."""
    found = re.fullmatch(r"(-?\d{1,19})\s*([a-z]*)", text.strip().lower())
    units = {"": 1, **(_UNITS[unit] if unit else {})}
    if not found or found[2] not in units:
        known = f", or one with a unit: {', '.join(list(units)[1:])}" if unit else ""
        raise typer.BadParameter(f"{text!r} is not a whole number{known}.")
    value = int(found[1]) * units[found[2]]
    if (least is not None and value < least) or (most is not None and value > most):
        bounds = [f"at {word} {_in_unit(each, found[2], units)}" for word, each in (("least", least), ("most", most)) if each is not None]
        raise typer.BadParameter(f"{text!r}: it must be {', and '.join(bounds)}.")
    return value


def _in_unit(number: int, unit: str, units: dict[str, int]) -> str:
    """A number in a unit; in the largest unit that gives a whole number if this one does not."""
    whole = [name for name in (unit, *sorted(units, key=units.__getitem__, reverse=True)) if number % units[name] == 0]
    return f"{number // units[whole[0]]}{whole[0]}"


def _unit(name: str) -> str | None:
    """The unit of a number of this name; None if it has no unit."""
    return {"ms": "ms", "bytes": "bytes", "size": "bytes"}.get(re.split(r"[._]", name)[-1])


def _long(parameter: Parameter) -> Callable[[str], int]:
    return lambda text: _number(text, _unit(parameter.name), parameter.min, parameter.max)


def _interval(parameter: Parameter) -> Callable[[str], datetime.timedelta]:
    return lambda text: datetime.timedelta(milliseconds=_number(text, "ms", parameter.min))


def _offsets(text: str) -> str:
    """Numbers by partition as JSON: that itself, or `0:100,1:-1`. The connector checks the content of the JSON."""
    if not _PAIRS.fullmatch(text):
        try:
            if isinstance(json.loads(text), dict):
                return text
        except (ValueError, RecursionError):
            pass
        raise typer.BadParameter(f"{text!r} does not name partitions, each with a number, such as 0:100,1:150.")
    return json.dumps({str(partition): offset for partition, offset in _pairs(text, "partition").items()})


def _moves(text: str) -> dict[int, int]:
    """Partitions by slot: `17:3,99:3`."""
    if not _PAIRS.fullmatch(text):
        raise typer.BadParameter(f"{text!r} does not name slots, each with a partition, such as 17:3,99:3.")
    return _pairs(text, "slot")


def _pairs(text: str, key: str) -> dict[int, int]:
    """The numbers of a text that matches `_PAIRS`; `key` names their keys."""
    found: dict[int, int] = {}
    for pair in text.split(","):
        name, number = map(int, pair.split(":"))
        if name in found:
            raise typer.BadParameter(f"{text!r} names {key} {name} twice.")
        found[name] = number
    return found


def _partitions(text: str) -> list[int]:
    """Numbers with commas between them: `3,4`."""
    if not _NUMBERS.fullmatch(text):
        raise typer.BadParameter(f"{text!r} is not a list of partitions, such as 3,4.")
    return [int(number) for number in text.split(",")]


def _option(parameter: Parameter) -> Any:
    """The option of a parameter."""
    words: dict[str, Any] = {"help": parameter.in_shell(), "show_default": False}
    flag = "--" + parameter.name.replace("_", "-")
    if parameter.type in ("string", "name"):
        return Annotated[str, typer.Option(flag, metavar={"string": "PATH", "name": "TOPIC"}[parameter.type], **words)]
    if parameter.type == "when":
        return Annotated[str, typer.Option(flag, metavar="now|next_write|never", **words | {"show_default": "now"})]
    if parameter.type == "boolean":
        return Annotated[bool, typer.Option(flag, **words)]
    if interval := re.fullmatch(r"INTERVAL '(\d+)' (\w)\w*", parameter.default or ""):
        words["show_default"] = interval[1] + interval[2].lower()
    if parameter.type == "long" and (parameter.default or "").isdigit():
        words["show_default"] = parameter.default
    kinds: dict[str, Any] = {
        "long": _long(parameter),
        "interval": _interval(parameter),
        **dict.fromkeys(("offsets", "keep", "weights"), _offsets),
    }
    kinds |= {"partitions": _partitions, "moves": _moves}
    metavars = {"long": "NUMBER", "interval": "DURATION", "weights": "WEIGHTS", "partitions": "NUMBER[,…]", "moves": "SLOT:NUMBER[,…]"}
    return Annotated[Any, typer.Option(flag, parser=kinds[parameter.type], metavar=metavars.get(parameter.type, "OFFSETS"), **words)]


def _command(procedure: Procedure) -> Callable[..., None]:
    """The command of a procedure: root and topic are its arguments, each other parameter is an option."""
    careful = procedure.name in _LOSES
    annotations: dict[str, tuple[Any, Any]] = {}
    """By name: the type with what typer needs, and the default."""
    for each in procedure.parameters:
        required = each.default is None
        annotation: Any = Root
        if each.type == "topic":
            annotation = TopicName if required else Annotated[str | None, typer.Argument(**_TOPIC)]
        elif each.name != "root":
            annotation = _option(each)
        annotations[each.name] = (annotation, inspect.Parameter.empty if required else False if each.type == "boolean" else None)
    if careful:
        annotations["execute"] = (
            Annotated[bool, typer.Option("--execute", help="Do it. Without --execute, only show the outcome.")],
            False,
        )
    annotations["as_json"] = (Json, False)

    def command(root: str, as_json: bool, topic: str | None = None, **given: Any) -> None:
        if careful:
            execute = given.pop("execute")
            if execute and given["dry_run"]:
                raise typer.BadParameter("--dry-run and --execute contradict each other")
            given["dry_run"] = not execute
        arguments = {name: value for name, value in given.items() if value is not None}
        rows = _called(procedure.name, root, topic, arguments)
        to_do_it = "add --execute" if careful else "leave out --dry-run"
        _answer(procedure.name.replace("_", " "), procedure.columns, rows, given.get("dry_run"), to_do_it, as_json=as_json)

    words = procedure.command()
    given = _EXAMPLES[procedure.name]
    examples = "\n".join([f"Example{'s' * (len(given) > 1)}:", *(f"  sparklog {words} {line}" for line in given)])
    dry = "A dry run unless --execute is given. " if careful else ""
    command.__name__ = procedure.name
    command.__doc__ = f"{procedure.summary}\n\n{procedure.in_shell()}\n\n{dry}It starts Spark.\n\n{examples}"
    command.__annotations__ = {name: annotation for name, (annotation, _) in annotations.items()}
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined] # typer reads it
        [
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation)
            for name, (annotation, default) in annotations.items()
        ]
    )
    return command


def _answer(name: str, columns: Sequence[str], rows: list[dict[str, Any]], dry_run: bool | None, to_do_it: str, *, as_json: bool) -> None:
    """Writes the rows of a procedure; `dry_run` is None for a procedure without a dry run."""
    title = f"{name}: {counted(len(rows), 'row')}"
    if dry_run:
        title += f" of a dry run; nothing was changed ({to_do_it} to do it)"
    _print(as_json, rows if dry_run is None else {"executed": not dry_run, "rows": rows}, title, columns, rows)


def move_keys(
    root: Root,
    topic: TopicName,
    key: Annotated[list[str], typer.Option("--key", metavar="KEY", help="The key, as UTF-8. May be repeated.", show_default=False)],
    partition: Annotated[int, typer.Option("--partition", help="Where they go. It must be open.", show_default=False)],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the outcome, and change nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Move keys, with their slots, to a partition.

    A busy key gets a partition of its own, or nearly so: the other keys of its slot go along, and the rows say how many of the newest
    records have them, of about 32 MiB. Many keys in one call are one change. It starts Spark, and does what `sparklog move-slots` does for
    slots that are given as numbers.

    Examples:
      sparklog move-keys my-log orders --key customer-7 --partition 1
      sparklog move-keys my-log orders --key customer-7 --partition 1 --dry-run
    """
    # Spark takes texts of UTF-8 alone, and a key may be any bytes.
    moves = {os.fsencode(each): partition for each in key}
    rows = _called("move_slots", root, topic, {"moves": moves, "dry_run": dry_run})
    _answer("move keys", declared()["move_slots"].columns, rows, dry_run, "leave out --dry-run", as_json=as_json)


def suggest_moves(
    root: Root,
    topic: TopicName,
    max_moves: Annotated[
        int, typer.Option("--max-moves", metavar="NUMBER", help="How many slots may move at most.", min=0, max=65_536)
    ] = 100,
    execute: Annotated[bool, typer.Option("--execute", help="Do it. Without --execute, only show the moves.")] = False,
    as_json: Json = False,
) -> None:
    """Level partitions whose keys are not equally busy.

    The newest records of each slot are counted, of about 32 MiB of each partition. Busy slots of busy partitions are exchanged for idle
    slots of others, the busiest first. No slot moves if the greatest load would fall by less than 5 %, such as where one key is busy alone.
    Streams and consumers read each key in order nevertheless. Only --execute starts Spark; it does what `sparklog move-slots` does. Writes
    that were planned before are refused then.

    Examples:
      sparklog suggest-moves my-log orders
      sparklog suggest-moves my-log orders --max-moves 20 --execute
    """
    from sparklog.log.log import Log

    moves = Log(root).topic(topic).suggest_moves(max_moves)
    if execute and moves:
        _called("move_slots", root, topic, {"moves": dict(moves)})
    after = "Nothing was changed (add --execute to do it)" if moves and not execute else None
    answer(as_json, lambda: {"executed": execute, **moves.as_dict()}, lambda: moves.display(None, moved=execute), after=after)


def _called(procedure: str, root: str, topic: str | None, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a procedure. A root or a topic that is not there is an error before Spark starts."""
    from sparklog.log.log import Log

    log = Log(root)
    if topic is not None:
        arguments = {"topic": topic, **arguments}
        if procedure != "delete_topic":  # which also finishes the deletion of a call that died
            log.topic(topic)
    from sparklog.cli import spark

    return spark.call(spark.start(), procedure, {"root": log.root, **arguments})


def _print(
    as_json: bool, document: object, title: str, columns: Sequence[str], rows: list[dict[str, Any]], after: str | None = None
) -> None:
    cells = (["" if each[name] is None else each[name] for name in columns] for each in rows)
    answer(as_json, lambda: document, lambda: Display(title, [], columns, list(cells)), columns[-1:0:-1], after)


def create(
    root: Root,
    topic: TopicName,
    config: Config = None,
    partitions: Annotated[int | None, typer.Option("--partitions", help="The number of partitions.", min=1, show_default=False)] = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="Do nothing if the topic exists.")] = False,
    as_json: Json = False,
) -> None:
    """Create a topic without records.

    A consumer or a stream of it can then start before the first write. It starts Spark. A write creates its topic by itself. An option
    that counts milliseconds may have a unit, such as 7d, and one that counts bytes too, such as 10g. `sparklog options` lists all.

    Examples:
      sparklog create my-log orders --partitions 4
      sparklog create my-log orders -X retention.ms=7d --if-not-exists
    """
    from sparklog import arguments
    from sparklog.log.log import Log

    options = key_values(config or (), "-X")
    if partitions is not None and options.setdefault("partitions", str(partitions)) != str(partitions):
        raise typer.BadParameter("--partitions and -X partitions contradict each other")
    options = _without_units(options)
    into = arguments.named_root(root)
    arguments.topic(topic)
    created = not _exists(root, topic)
    if created:
        from sparklog.cli import spark

        created = spark.create(spark.start(), str(into), topic, options, if_not_exists=if_not_exists)
    elif not if_not_exists:
        raise SparklogError("TOPIC_EXISTS", topic=topic, root=into)
    count = Log(root).topic(topic).partitions
    if as_json:
        write_json({"topic": topic, "created": created, "partitions": count})
    else:
        write(f"Topic {topic} with {counted(count, 'partition')} {'was created' if created else 'exists already'}")


def _exists(root: str, topic: str) -> bool:
    """Whether a topic is there and can be read. If nothing is there to be read, the connector reports whether a topic can be created."""
    from sparklog.log.log import Log

    try:
        Log(root).topic(topic)
    except SparklogError:
        return False
    return True


def config(
    root: Root,
    topic: TopicName,
    add: Annotated[
        list[str] | None,
        typer.Option("--add", "--add-config", metavar="KEY=VALUE[,…]", help="Change this option; may be repeated.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the configuration of a topic, or change it.

    A change holds for later writes and their upkeep. Only a change starts Spark. partitions and partitioner cannot be changed. An option
    that counts milliseconds may have a unit, such as 7d, and one that counts bytes too, such as 10g. `sparklog options` lists all.

    Examples:
      sparklog config my-log orders
      sparklog config my-log orders --add retention.ms=7d,segment.bytes=256m
    """
    changes = key_values((pair for each in add or () for pair in each.split(",")), "--add")
    _configure(root, topic, changes, None, as_json=as_json)


def retention(
    root: Root,
    topic: TopicName,
    ms: Annotated[
        str | None, typer.Option("--ms", help="Set retention.ms, such as 604800000 or 7d; -1 keeps all.", show_default=False)
    ] = None,
    size: Annotated[
        str | None, typer.Option("--bytes", help="Set retention.bytes of each partition, such as 10g; -1 keeps all.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Show how long a topic keeps records, or change it.

    Only a change starts Spark. Writes delete what retention lets go with each checkpoint; `sparklog expire` does it at once.
    Retention does not count in a topic whose cleanup.policy, which clients of Kafka set, has no delete.

    Examples:
      sparklog retention my-log orders
      sparklog retention my-log orders --ms 7d --bytes 10g
    """
    given = {"retention.ms": ms, "retention.bytes": size}
    _configure(root, topic, {key: value for key, value in given.items() if value is not None}, tuple(given), as_json=as_json)


def _without_units(config: dict[str, str]) -> dict[str, str]:
    """Options of a topic as the connector takes them."""
    return {key: str(_number(value, _unit(key))) if _unit(key) and value[-1:].isalpha() else value for key, value in config.items()}


def _configure(root: str, topic: str, changes: dict[str, str], only: Sequence[str] | None, *, as_json: bool) -> None:
    """Changes the configuration, or shows it: these keys and the policy of the retention only, or all."""
    from sparklog.log.log import Log

    if changes:
        rows = _called("set_config", root, topic, {"config": _without_units(changes)})
        columns: Sequence[str] = declared()["set_config"].columns
    about = Log(root).topic(topic).describe()
    if not changes:
        values = about["config"]
        known = {each.key: each.shown_default() for each in options.declared().options if "topic" in each.scopes}
        keys = [each for each in (*only, _POLICY) if each in {**known, **values}] if only else sorted({*known, *values})
        rows = [{"key": key, "value": values.get(key, known.get(key)), "default": known.get(key)} for key in keys]
        columns = ("key", "value", "default")
    off = only and not about["has_retention"]
    after = f"Retention does not count: {_POLICY} is {about['config'][_POLICY]}, without delete" if off else None
    _print(as_json, rows, f"Topic {topic}: configuration", columns, rows, after)


COMMANDS = (create, config, retention, move_keys, suggest_moves, *(_command(declared()[name]) for name in _EXAMPLES))
