"""The keys of a topic, in the files of its root."""

import base64

from logtool import LogTool

KEY = b"k19999"


def holding(tool: LogTool) -> list[str]:
    """The files that contain the key: as it is, in hexadecimal, or in base64."""
    forms = (KEY, KEY.hex().encode(), base64.b64encode(KEY).rstrip(b"="))
    files = [file for file in tool.root.rglob("*") if file.is_file()]
    return sorted(str(file.relative_to(tool.root)) for file in files if any(form in file.read_bytes() for form in forms))


def test_nothing_but_data_files_has_a_key_and_a_deleted_topic_has_none(tool: LogTool) -> None:
    tool.run("append", tag="A", tasks=1, records=20_000, keys=20_000)
    tool.run("change", what="keys", keys=KEY.decode(), to=0)
    tool.run("append", tag="B", commits=120, merge=0)
    held = holding(tool)
    assert held and {file.rpartition(".")[2] for file in held} == {"log"}
    tool.run("change", what="delete")
    assert holding(tool) == [] and list(tool.root.rglob("*.log")) == []
