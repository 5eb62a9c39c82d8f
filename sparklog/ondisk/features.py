"""Features: the parts of the format that a topic may use, and that some programs must know. FORMAT.md section 5."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from typing import NamedTuple

from sparklog import shown
from sparklog.batches.faults import TooNew
from sparklog.ondisk.fields import Fields
from sparklog.ondisk.names import INT64_MAX
from sparklog.store.store import Damaged

_FORMAT = 1
_NAME = re.compile("[a-z0-9.-]{1,64}")


class Binds(enum.IntEnum):
    """The programs that must know a feature. Each kind binds the kinds after it, too."""

    RECORD_READERS = enum.auto()
    """Programs that return the records of a range of offsets."""
    KEY_READERS = enum.auto()
    """Readers that find the partition of a key, or that keep the order of keys over re-routes."""
    WRITERS = enum.auto()

    @classmethod
    def of(cls, word: str) -> Binds:
        """The programs that a word in a file means. An unknown word means all programs."""
        return {"keyReaders": cls.KEY_READERS, "writers": cls.WRITERS}.get(word, cls.RECORD_READERS)


class Feature(enum.Enum):
    """The features that this version of sparklog knows: the name of each, the programs that it binds, and the features that it requires."""

    SLOTS = ("routing.slots", "keyReaders")
    """Keys have slots, which re-routes move."""
    UNBOUND = ("routing.unbound", "keyReaders", "routing.slots")
    """Slots get their partition when a record first uses them."""
    PRODUCERS = ("producers", "writers")
    """The topic knows the newest batches of producers, so that a batch that is sent again is not added again."""

    def __init__(self, text: str, binds: str, *requires: str) -> None:
        self.text = text
        self.binds = binds
        self.requires = requires


_KNOWN = {feature.text for feature in Feature}


class Features(NamedTuple):
    """The features of a topic at one version: the word of each that says whom it binds, by name.

    A record reader goes on with unknown features: `read` has refused unknown features that bind it.
    """

    words: Mapping[str, str]

    @classmethod
    def read(cls, fields: Fields) -> Features:
        """The features that a version file or the head of a checkpoint names, after its format number was checked.

        Raises:
            TooNew: The format number is higher, or an unknown feature binds record readers.
            Damaged: The fields break a rule.
        """
        require_format(fields)
        words: dict[str, str] = {}
        for entry in map(Fields, fields.array("features", most=INT64_MAX)):
            name = entry.string("name")
            if not _NAME.fullmatch(name):
                raise Damaged("the name of a feature is not 1 to 64 characters of a-z, 0-9, . and -")
            if name in words:
                raise Damaged(f"`features` has {name} twice")
            words[name] = entry.string("binds")
        features = cls(words)
        features.require_known_to(Binds.RECORD_READERS)
        for feature in filter(features.has, Feature):
            if words[feature.text] != feature.binds:
                raise Damaged(f"the feature {feature.text} binds others than {feature.binds}")
            if not words.keys() >= set(feature.requires):
                raise Damaged(f"it has the feature {feature.text}, and lacks a feature that {feature.text} requires")
        return features

    def has(self, feature: Feature) -> bool:
        """Whether the topic has this feature."""
        return feature.text in self.words

    def unknown_to(self, programs: Binds) -> list[str]:
        """The unknown features that bind these programs, in order."""
        return sorted(name for name, word in self.words.items() if name not in _KNOWN and Binds.of(word) <= programs)

    def require_known_to(self, programs: Binds) -> None:
        """Refuses the topic to programs that an unknown feature binds: TooNew."""
        if names := ", ".join(self.unknown_to(programs)):
            raise TooNew(f"it needs the features {shown.value(names)}")

    @property
    def have_slots(self) -> bool:
        """Whether keys have slots, and all features that decide where keys go are known."""
        return self.has(Feature.SLOTS) and not self.unknown_to(Binds.KEY_READERS)


def require_format(fields: Fields) -> None:
    """Checks the format number. TooNew if it is higher."""
    format = fields.integer("format", least=1)
    if format > _FORMAT:
        raise TooNew(f"its format is {format}, and this version of sparklog reads up to {_FORMAT}")
