"""The looks at one topic, one after another, and the conclusions from them.

A root moves while it is read, and a store may fail now and then. So one look proves a fault as little as it proves that nothing is wrong:

* A fault is reported if two looks in a row show it.
* A topic is right if one look read all its metadata, and each segment of that look was read whole.
* A file that could not be read is reported by name. Nothing is known of it, so it is not a fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from sparklog.ondisk.version import Segment
from sparklog.verify.expected import Expected
from sparklog.verify.report import DAMAGE, NEWER, Counts, Finding, NotRead, Waiting
from sparklog.verify.segments import Checked

_OF_PUBLISHING = {"VIEW_MISSING", "VIEW_STRAY", "VIEW_WRONG", "INDEX_WRONG"}
_WAIT = "verify again in a minute, as a writer that committed less than a minute ago may still be at work here; if it stays, "
_OF_READ_FILES = {"VERSION_CORRUPT", "VERSION_ODD", "EPOCH_TWICE", "FORMAT_TOO_NEW", "CHECKPOINT_WRONG", "CHECKPOINT_DAMAGED"}
"""Faults within files that were read. They are faults also if other files of the topic could not be read."""


class Looked(NamedTuple):
    """The findings in a topic's metadata, and what of it could not be read.

    * counts, there: how much was looked at; and the versions from the boundary on, the checkpoints and the segments that the topic has.
    * moment: differs if the topic has moved.
    * fresh, sweeping: the fields of `Chain`. deleting: whether the topic has just been deleted.
    """

    topic: str
    expected: list[Expected]
    findings: list[Finding]
    unread: list[NotRead]
    waiting: list[Waiting]
    counts: Counts
    there: Counts
    moment: tuple[object, ...]
    fresh: set[tuple[int, int]]
    deleting: bool
    sweeping: bool

    def is_at_work(self, finding: Finding) -> bool:
        """Whether a writer that has just committed may still be at work on this."""
        if finding.condition == "MARKER_MISSING":
            return self.deleting
        if finding.condition == "ORPHAN":
            return self.sweeping
        return finding.condition in _OF_PUBLISHING and (finding.partition, finding.offset) in self.fresh

    def told(self, finding: Finding) -> Finding:
        """The finding, with a note if a writer may be at work on it."""
        return replace(finding, fix=_WAIT + finding.fix) if self.is_at_work(finding) else finding


class Rounds:
    """The looks at one topic so far. `look` takes one, and `decide` the checks of the segments that it named.

    * looked: the last look. Where it could not read all, segments of earlier looks are checked too.
    * still: the findings of the last look that the look before it had too; all findings of the first look.
    * unread: the files that the last look, and the checks of its segments, could not read.
    """

    def __init__(self) -> None:
        self.looked: Looked | None = None
        self.still: list[Finding] = []
        self.unread: list[NotRead] = []
        self._before: Looked | None = None
        self._seen: list[Finding] = []
        self._expected: list[Expected] = []
        self._checked: dict[Segment, Checked] = {}
        self._began_with: set[Segment] = set()
        """The segments of the first look that read all metadata."""
        self._certain = False

    def look(self, looked: Looked) -> list[Expected]:
        """Takes another look. The segments that must be checked now: each that was not yet read whole, or was wrong."""
        self._before, self.looked = self.looked, looked
        known = {each.segment for each in looked.expected}
        if not looked.unread:
            self._began_with = self._began_with or known
        earlier = self._expected if looked.unread else []
        self._expected = [*looked.expected, *(each for each in earlier if each.segment not in known)]
        return [each for each in self._expected if not ((was := self._checked.get(each.segment)) and was.is_right)]

    def decide(self, expected: Sequence[Expected], checked: Sequence[Checked]) -> None:
        """Takes the checks of segments after a look."""
        now, before = self.looked, self._before
        assert now
        self._checked.update((each.segment, found) for each, found in zip(expected, checked, strict=True))
        of_segments = [self._checked[each.segment] for each in self._expected]
        findings = [*now.findings, *(finding for each in of_segments for finding in each.findings)]
        if now.unread:
            # A version that was not read may have removed the segment.
            findings = [each for each in findings if each.condition != "SEGMENT_MISSING"]
        unread = [*now.unread, *(each for found in of_segments for each in found.unread)]
        places = {finding.same_place() for finding in self._seen}
        self.still = findings if before is None else [each for each in findings if each.same_place() in places]
        self._certain = (
            before is not None
            and before.moment == now.moment
            and {finding.same_place() for finding in self.still} == places
            and {each.file for each in unread} == {each.file for each in self.unread}
            and not any(map(now.is_at_work, self.still))
        )
        self._seen, self.unread = findings, unread

    def is_doubtful(self) -> bool:
        """Whether another look may show something else: the same was not yet found twice while nothing moved."""
        return not self._certain and bool(self._seen or self.unread)

    def is_open(self) -> bool:
        """Whether nothing can be said of the topic yet: it was not read whole, or one look alone showed damage."""
        return not self._certain and bool(self.unread or self._once())

    def _once(self) -> list[Finding]:
        """The damage that the last look alone showed. A segment that came later than the first look may be gone: writers merge."""
        began = {(each.partition, each.base) for each in self._began_with}
        return [
            each
            for each in self._seen
            if each.severity in (DAMAGE, NEWER)
            and each not in self.still
            and not (each.condition == "SEGMENT_MISSING" and (each.partition, each.offset) not in began)
        ]

    def not_checked(self) -> list[NotRead]:
        """The files that were not checked in the end. Without such a file, the newest state may still have more than was checked."""
        assert self.looked
        topic = self.looked.topic
        once = [
            NotRead(topic, "segment" if each.offset is not None else "version", each.file or "", _once(each), each.partition, each.offset)
            for each in self._once()
        ]
        if found := [*self.unread, *once]:
            return found
        checked, there = self.counts(), self.looked.there
        lacks = [f"{mine:,} of {its:,} {name}" for name, mine, its in zip(Counts._fields, checked, there, strict=True) if mine < its]
        problem = f"less was checked than the newest state has: {', '.join(lacks)}"
        return [NotRead(topic, "folder", f"_partlog/{topic}", problem)] if lacks else []

    def counts(self) -> Counts:
        """How much was looked at."""
        assert self.looked
        counts = self.looked.counts
        for each in self._expected:
            counts = counts.plus(self._checked[each.segment].counts)
        return counts


def in_read_files(findings: Sequence[Finding]) -> list[Finding]:
    """The findings in metadata that also hold if some of it could not be read."""
    return [each for each in findings if each.condition in _OF_READ_FILES]


def _once(finding: Finding) -> str:
    return f"one look showed {finding.condition}, and the next one something else: {finding.problem}"
