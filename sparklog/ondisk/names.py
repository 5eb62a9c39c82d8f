"""Names below a root, and which names belong to the format. FORMAT.md section 2."""

from __future__ import annotations

import re

INT64_MAX = 2**63 - 1

_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_DIGITS = "[0-9]{20}"
_NUMBER = "(?:0|[1-9][0-9]{0,18})"
_PARTITION = "(?:0|[1-9][0-9]{0,3})"
# The last of the 22 characters holds the last two of the 128 bits.
_IDENTITY = "[A-Za-z0-9_][A-Za-z0-9_-]{20}[AQgw]"
_RESERVED = ("A" * 22, "A" * 21 + "Q")
_DATA_FILE = re.compile(f"data/({_DIGITS})-({_IDENTITY})/(?:p{_PARTITION}-t{_NUMBER}-{_NUMBER}-{_NUMBER}|t{_NUMBER}-{_NUMBER}|pool)\\.log")
_SHARED = "_shared/"
_SHARED_NAME = "[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,127}"
_SHARED_FILE = re.compile(f"{_SHARED}{_SHARED_NAME}/{_SHARED_NAME}")
_VERSION = re.compile(f"({_DIGITS})\\.json")
_DELETION = re.compile(f"({_DIGITS})\\.deleted")
_VIEW_FILE = re.compile(f"({_DIGITS})\\.(log|index|timeindex)")
_SERVER_HEARTBEAT = re.compile(f"({_IDENTITY})-({_DIGITS})\\.json")
_CHECKPOINT = re.compile(f"({_DIGITS})\\.checkpoint-([0-9a-f]{{16}})\\.jsonl")

COMMITS = "_partlog"
OTHERS = "ext"
"""The folder of a topic that has the metadata of other programs."""
SERVERS = "_servers"
SHARED = _SHARED.rstrip("/")
"""Data files that a later release makes, for several topics. No program of this release makes or deletes one."""
PROBE = "_probe"
NOTE_OF_PROBE = f"{PROBE}/passed.json"
"""Where writers try whether a server is safe (FORMAT.md annex J). No reader looks there."""


def is_topic(name: str) -> bool:
    """Whether this is a legal topic name, as `orders`."""
    return bool(_TOPIC.fullmatch(name)) and name not in (".", "..")


def is_identity(text: str) -> bool:
    """Whether this is an identity: 16 bytes in 22 characters, as `_MwsNfC4Rgml8SxV3YWrqA`."""
    return bool(re.fullmatch(_IDENTITY, text)) and text not in _RESERVED


def is_data_file(name: str) -> bool:
    """Whether this is the name of a data file, as `data/00000000000000000007-_MwsNfC4Rgml8SxV3YWrqA/p3-t12-0-0.log`."""
    if _SHARED_FILE.fullmatch(name):
        return True
    match = _DATA_FILE.fullmatch(name)
    return match is not None and match[2] not in _RESERVED and int(match[1]) <= INT64_MAX


def is_own_file(name: str) -> bool:
    """Whether the data file of this name holds one partition alone, as `…/p3-t12-0-0.log` does."""
    last = name.rpartition("/")[2]
    return last.startswith("p") and last != "pool.log" and not is_shared(name)


def is_shared(name: str) -> bool:
    """Whether the data file of this name may be of several topics."""
    return name.startswith(_SHARED)


def data_file(topic: str, name: str) -> str:
    """The path below the root of a data file, as version files of the topic name it."""
    return name if is_shared(name) else topic_file(topic, name)


def topic_folder(topic: str) -> str:
    """The path below the root of a topic's commit log and data files: for `orders`, `_partlog/orders`."""
    return f"{COMMITS}/{topic}"


def topic_file(topic: str, name: str) -> str:
    """The path below the root of a file in that folder: for `data/x.log` of `orders`, `_partlog/orders/data/x.log`."""
    return f"{topic_folder(topic)}/{name}"


def version_file(version: int) -> str:
    """The name of a version file: for 7, `00000000000000000007.json`."""
    return f"{version:020d}.json"


def version_of(name: str) -> int | None:
    """The version of a version file; None if this is not the name of one. The inverse of `version_file`."""
    match = _VERSION.fullmatch(name)
    return int(match[1]) if match and int(match[1]) <= INT64_MAX else None


def checkpoint_version_of(name: str) -> int | None:
    """The version of a checkpoint; None if this is not the name of one, as `00000000000000000007.checkpoint-0123456789abcdef.jsonl`."""
    match = _CHECKPOINT.fullmatch(name)
    return int(match[1]) if match and int(match[1]) <= INT64_MAX else None


def deleted_version_of(name: str) -> int | None:
    """The version of a deletion marker; None if this is not the name of one, as `00000000000000000007.deleted`."""
    match = _DELETION.fullmatch(name)
    return int(match[1]) if match and int(match[1]) <= INT64_MAX else None


def server_heartbeat_of(name: str) -> tuple[str, int] | None:
    """The identity of a server, and the number of its heartbeat; None if this is not the name of one (FORMAT.md annex G)."""
    match = _SERVER_HEARTBEAT.fullmatch(name)
    return (match[1], int(match[2])) if match and match[1] not in _RESERVED and int(match[2]) <= INT64_MAX else None


def view_folder(topic: str, partition: int) -> str:
    """The folder of a partition in the Kafka view: for partition 3 of `orders`, `orders-3`."""
    return f"{topic}-{partition}"


def view_file_of(name: str) -> tuple[int, str] | None:
    """The base offset and the kind of a file in the Kafka view, as `00000000000000000042.log`; None if this is not the name of one."""
    match = _VIEW_FILE.fullmatch(name)
    return (int(match[1]), match[2]) if match and int(match[1]) <= INT64_MAX else None


def index_file(base: int) -> str:
    """The name of a segment's offset index in the Kafka view: for the base offset 42, `00000000000000000042.index`."""
    return f"{base:020d}.index"
