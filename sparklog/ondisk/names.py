"""Names under a root, told from what is none of ours. FORMAT.md section 2."""

from __future__ import annotations

import re

INT64_MAX = 2**63 - 1

_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_DIGITS = "[0-9]{20}"
_NUMBER = "(?:0|[1-9][0-9]{0,18})"
_PARTITION = "(?:0|[1-9][0-9]{0,3})"
# The last of 22 characters holds the last two of 128 bits.
_IDENTITY = "[A-Za-z0-9_][A-Za-z0-9_-]{20}[AQgw]"
_RESERVED = ("A" * 22, "A" * 21 + "Q")
_DATA_FILE = re.compile(f"data/({_DIGITS})-({_IDENTITY})/(?:p{_PARTITION}-t{_NUMBER}-{_NUMBER}-{_NUMBER}|t{_NUMBER}-{_NUMBER}|pool)\\.log")
_VERSION = re.compile(f"({_DIGITS})\\.json")
_CHECKPOINT = re.compile(f"({_DIGITS})\\.checkpoint-([0-9a-f]{{16}})\\.jsonl")

COMMITS = "_partlog"


def is_topic(name: str) -> bool:
    return bool(_TOPIC.fullmatch(name)) and name not in (".", "..")


def is_identity(text: str) -> bool:
    return bool(re.fullmatch(_IDENTITY, text)) and text not in _RESERVED


def is_data_file(name: str) -> bool:
    match = _DATA_FILE.fullmatch(name)
    return match is not None and match[2] not in _RESERVED and int(match[1]) <= INT64_MAX


def version_file(version: int) -> str:
    return f"{version:020d}.json"


def version_of(name: str) -> int | None:
    match = _VERSION.fullmatch(name)
    return int(match[1]) if match and int(match[1]) <= INT64_MAX else None


def checkpoint_version_of(name: str) -> int | None:
    match = _CHECKPOINT.fullmatch(name)
    return int(match[1]) if match and int(match[1]) <= INT64_MAX else None


def view_folder(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"


def index_file(base: int) -> str:
    return f"{base:020d}.index"
