"""The configuration of a topic: the keys that a program needs, and the values that it knows. FORMAT.md section 5.2."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sparklog import shown
from sparklog.batches.faults import TooNew
from sparklog.batches.header import CODECS
from sparklog.ondisk.features import Binds, Feature, Features
from sparklog.store.store import Damaged

PARTITIONS_MAX = 10_000
PRODUCERS_MAX = 1_000_000
_NUMBERS = "(1000000|0|[1-9][0-9]{0,5})(,(1000000|0|[1-9][0-9]{0,5}))*"
_EPOCH = "(0|[1-9][0-9]{0,9})"
_WISH_MAX = 32_768
# The values that each key of a configuration can have: a word of a list, a number in a range, or a text of a form.
_KEYS: dict[str, tuple[str, ...] | range | re.Pattern[str]] = {
    "partitions": range(1, PARTITIONS_MAX + 1),
    "partitioner": ("murmur3", "murmur2"),
    "compression.type": CODECS,
    "segment.bytes": range(1024, 2**31),
    "segment.ms": range(1, 2**63),
    "max.message.bytes": range(128, 2**30 + 1),
    "message.timestamp.type": ("CreateTime", "LogAppendTime"),
    "index.interval.bytes": range(2**31),
    "retention.ms": range(-1, 2**63),
    "retention.bytes": range(-1, 2**63),
    "file.delete.delay.ms": range(2**63),
    "versions.keep.ms": range(2**63),
    "transaction.retention.ms": range(-1, 2**63),
    "producer.id.expiration.ms": range(1, 2**63),
    "producer.ids.max": range(1, PRODUCERS_MAX + 1),
    "kafka.view": ("all", "merged", "none"),
    "placement": ("modulo", "on_first_write"),
    "placement.slots": range(4096, 2**20 + 1),
    "placement.shares": re.compile(f"none|{_EPOCH}:(0|[1-9][0-9]{{0,17}}):{_NUMBERS}"),
    "routing.pending.weights": re.compile(f"none|{_EPOCH}:{_NUMBERS}"),
    "key.type": ("binary", "string"),
    "value.type": ("binary", "string"),
}
_OPTIONAL = {
    "segment.ms",
    "retention.ms",
    "retention.bytes",
    "file.delete.delay.ms",
    "versions.keep.ms",
    "transaction.retention.ms",
    "producer.id.expiration.ms",
    "producer.ids.max",
    "kafka.view",
    "placement",
    "placement.slots",
    "placement.shares",
    "routing.pending.weights",
    "key.type",
    "value.type",
}
_DECIMAL = re.compile("-1|0|[1-9][0-9]{0,18}")
_OF_RECORD_READERS = ("partitions", "max.message.bytes")
_OF_KEY_READERS = ("partitioner", "placement", "placement.slots")
"""These keys bind writers, too. All others bind writers alone."""


def require_readable(config: Mapping[str, str]) -> None:
    """Checks the values that record readers need. Damaged if one is wrong."""
    for key in _OF_RECORD_READERS:
        if not _is_known(config, key):
            raise Damaged(f"its setting {_why(config, key)}")


def require_known_to(programs: Binds, features: Features, config: Mapping[str, str] | None) -> None:
    """Refuses a topic to programs that an unknown feature binds, or a key with an unknown value: TooNew. A deleted topic has no values."""
    features.require_known_to(programs)
    if config is None:
        return
    for key in _KEYS if programs == Binds.WRITERS else _OF_KEY_READERS:
        if not _is_known(config, key):
            raise TooNew(f"its setting {_why(config, key)}")


def is_known_to(programs: Binds, features: Features, config: Mapping[str, str] | None) -> bool:
    """Whether this version of sparklog knows all features and values of a topic that bind these programs."""
    try:
        require_known_to(programs, features, config)
    except TooNew:
        return False
    return True


def usable(config: Mapping[str, str], key: str, default: str) -> str:
    """The value of a key; the default without the key, or if the value is not known."""
    return config[key] if key in config and _is_known(config, key) else default


def _is_known(config: Mapping[str, str], key: str) -> bool:
    if key not in config:
        return key in _OPTIONAL
    value, values = config[key], _KEYS[key]
    if isinstance(values, re.Pattern):
        return len(value) <= _WISH_MAX and bool(values.fullmatch(value))
    return value in values if isinstance(values, tuple) else bool(_DECIMAL.fullmatch(value)) and int(value) in values


def _why(config: Mapping[str, str], key: str) -> str:
    if key not in config:
        return f"{key} is missing"
    values = _KEYS[key]
    known = f"one of {', '.join(values)}" if isinstance(values, tuple) else "a value"
    if isinstance(values, range):
        known = f"an integer from {values.start} to {values.stop - 1}"
    return f"{key} is {shown.value(config[key])}, not {known} that this version of sparklog knows"


def has_retention(config: Mapping[str, str]) -> bool:
    """Whether `retention.ms` and `retention.bytes` count in a topic with this configuration. FORMAT.md section 12.2."""
    return "delete" in map(str.strip, config.get("cleanup.policy", "delete").split(","))


def retention(config: Mapping[str, str]) -> tuple[int, int]:
    """`retention.ms` and `retention.bytes` as they count; -1 for no limit."""
    if not has_retention(config):
        return -1, -1
    return int(usable(config, "retention.ms", "-1")), int(usable(config, "retention.bytes", "-1"))


def binds_slots(config: Mapping[str, str]) -> bool:
    """Whether slots get a partition when they are first used, in a topic of this configuration."""
    return config.get("placement") == "on_first_write"


def require_placement(config: Mapping[str, str], features: Features, *, routed: bool) -> None:
    """Checks that the topic has slots, and the feature of unbound slots, where its placement is `on_first_write`, and only there."""
    unbound = features.has(Feature.UNBOUND)
    if unbound != binds_slots(config) or (unbound and not routed):
        raise Damaged(f"its placement is {config.get('placement', 'modulo')}, and its features or its routing are of the other one")
