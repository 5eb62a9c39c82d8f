"""The findings of the readers in Java and in Python on topics, in the same words."""

from pathlib import Path

from logtool import LogTool

from sparklog import Log, SparklogError


def verdict(root: Path, topic: str) -> str:
    """The finding of the reader in Python, in the format of `LogTool states`."""
    try:
        Log(root).topic(topic).read()
    except SparklogError as error:
        return error.id
    return "ok"


def told(tool: LogTool, names: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The findings of both readers, by what was done to the topic."""
    here = {rule: verdict(tool.root, name) for name, rule in names.items()}
    return here, {names[name]: found for name, found in (line.split(" ") for line in tool.run("states"))}
