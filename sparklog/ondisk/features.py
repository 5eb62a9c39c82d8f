"""Features: the parts of the format that a topic may use, and that some programs must know. FORMAT.md section 5."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import NamedTuple

from sparklog.batches.faults import TooNew
from sparklog.ondisk.fields import Fields, string
from sparklog.ondisk.names import INT64_MAX
from sparklog.store.store import Damaged

_FORMAT = 1
_ROUTING = "routing."
"""The beginning of the names of all features that decide where keys go."""
_NAMES_SHOWN = 200
"""Characters of the names of unknown features that an error shows: a hostile file may have very many."""


class Binds(enum.IntEnum):
    """The programs that must know a feature. Each kind binds the kinds after it, too."""

    RECORD_READERS = enum.auto()
    """Programs that return the records of a range of offsets."""
    KEY_READERS = enum.auto()
    """Readers that find the partition of a key, or that keep the order of keys over re-routes."""
    WRITERS = enum.auto()


class Feature(enum.Enum):
    """The features that this version of sparklog knows: the name of each, the programs that it binds, and the features that it requires."""

    SLOTS = ("routing.slots", Binds.KEY_READERS)
    """Keys have slots, which re-routes move."""
    UNBOUND = ("routing.unbound", Binds.KEY_READERS, "routing.slots")
    """Slots get their partition when a record first uses them."""
    PRODUCERS = ("producers", Binds.WRITERS)
    """The topic knows the newest batches of producers, so that a batch that is sent again is not added again."""

    def __init__(self, text: str, binds: Binds, *requires: str) -> None:
        self.text = text
        self.binds = binds
        self.requires = requires


_KNOWN = {feature.text for feature in Feature}


class Features(NamedTuple):
    """The features of a topic at one version. `unknown` are the names that this version of sparklog does not know, in order.

    A record reader goes on with unknown features: `read` has refused unknown features that bind it.
    """

    names: frozenset[str]
    unknown: tuple[str, ...]

    @classmethod
    def read(cls, fields: Fields) -> Features:
        """The features that a version file or the head of a checkpoint names, after its format number was checked.

        Raises:
            TooNew: The format number is higher, or an unknown feature binds record readers.
            Damaged: The fields break a rule.
        """
        require_format(fields)
        readers = _names(fields, "readerFeatures")
        _require_none(readers - _KNOWN)
        names = _names(fields, "writerFeatures")
        if readers - names:
            raise Damaged("`writerFeatures` lacks a feature of `readerFeatures`")
        for feature in Feature:
            if feature.text in names and not names.issuperset(feature.requires):
                raise Damaged(f"it has the feature {feature.text}, and lacks a feature that {feature.text} requires")
        return cls(names, tuple(sorted(names - _KNOWN)))

    def has(self, feature: Feature) -> bool:
        """Whether the topic has this feature."""
        return feature.text in self.names

    def unknown_to(self, programs: Binds) -> list[str]:
        """The unknown features that bind these programs."""
        return [name for name in self.unknown if (Binds.KEY_READERS if name.startswith(_ROUTING) else Binds.WRITERS) <= programs]

    def require_known_to(self, programs: Binds) -> None:
        """Refuses the topic to programs that an unknown feature binds: TooNew."""
        _require_none(self.unknown_to(programs))

    @property
    def have_slots(self) -> bool:
        """Whether keys have slots, and all features that decide where keys go are known."""
        return self.has(Feature.SLOTS) and not self.unknown_to(Binds.KEY_READERS)


def require_format(fields: Fields) -> None:
    """Checks the format number. TooNew if it is higher."""
    format = fields.integer("format", least=1)
    if format > _FORMAT:
        raise TooNew(f"its format is {format}, and this version of sparklog reads up to {_FORMAT}")


def _names(fields: Fields, name: str) -> frozenset[str]:
    return frozenset(string(each, name) for each in fields.array(name, most=INT64_MAX))


def _require_none(unknown: Iterable[str]) -> None:
    if names := ", ".join(sorted(unknown)):
        raise TooNew(f"it needs the features {names if len(names) <= _NAMES_SHOWN else names[:_NAMES_SHOWN] + '…'}")
