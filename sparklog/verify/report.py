"""The findings of `Log.verify`, and how they are shown in a terminal and in a notebook."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from sparklog.show.display import SHOWN, Display, Displayed, readable

DAMAGE = "damage"
NEWER = "newer"
REPAIRABLE = "repairable"
GARBAGE = "garbage"
SEVERITIES = (DAMAGE, NEWER, REPAIRABLE, GARBAGE)
_TEXT = 160


@dataclass(frozen=True)
class Finding:
    """One fault.

    * severity: `damage`, records cannot be read or are wrong; `newer`, a later release of sparklog wrote a part that was not checked,
      and nothing need be wrong; `repairable`, the Kafka view, an index or a checkpoint, which are made again
      from the rest; `garbage`, files that no version names, where nothing else is wrong.
    * condition: what kind of fault it is, as BATCH_CORRUPT; docs/guide/verify.md lists them.
    * problem, impact, fix: the fault, the records that it costs, and how to fix it.
    * topic, partition, offset: where; None where that does not apply. The offset is the first affected offset.
    * file: relative to the root, with slashes. byte: of that file, counted from 0; None if the file as a whole is meant.
    """

    severity: str
    condition: str
    problem: str
    impact: str
    fix: str
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    file: str | None = None
    byte: int | None = None

    def same_place(self) -> tuple[object, ...]:
        """The fields that two findings of the same fault share, also if its description has changed in between."""
        return self.condition, self.topic, self.partition, self.file, self.byte

    def __str__(self) -> str:
        return "\n".join([f"{self.severity} {self.condition} {self.where()}", *(f"  {line}" for line in self.lines())])

    def where(self) -> str:
        """The place in words: topic, partition, offset, file and byte, as far as they are known."""
        parts = [] if self.topic is None else [f"topic {self.topic}"]
        parts += [f"{name} {number}" for name, number in (("partition", self.partition), ("offset", self.offset)) if number is not None]
        place = ", ".join(parts)
        file = "" if self.file is None else readable(self.file, None) + ("" if self.byte is None else f" at byte {self.byte}")
        return ": ".join(part for part in (place, file) if part)

    def lines(self) -> list[str]:
        """The problem, its impact, and the fix, a line each."""
        return [readable(text, None) for text in (self.problem, f"impact: {self.impact}", f"fix: {self.fix}")]


class NotRead(NamedTuple):
    """A file or folder that could not be read whole, so that it was not checked.

    what: `folder`, `version`, `checkpoint`, `segment`, or `view`, a file of the Kafka view. Only a segment has a partition
    and an offset. The file is relative to the root, with slashes.
    """

    topic: str | None
    what: str
    file: str
    problem: str
    partition: int | None = None
    offset: int | None = None

    def __str__(self) -> str:
        place = [
            f"{name} {at}" for name, at in zip(("topic", "partition", "offset"), (self.topic, *self[4:]), strict=True) if at is not None
        ]
        where = ": ".join(part for part in (", ".join(place), readable(self.file, None)) if part)
        return f"unread {self.what} {where}\n  {readable(self.problem, None)}"


class Waiting(NamedTuple):
    """Files that nothing reads now, and that the format allows to be there. They are not faults.

    what: `removed`, replaced or expired data files that wait for their deletion; `unnamed`, data files that no version names, of writers
    that may be at work or have failed; `temporary`, files being written; `version`, version files below the boundary; `view`, a topic whose
    Kafka view was never made; `other`, files that belong to other programs.
    """

    topic: str | None
    what: str
    files: int
    bytes: int
    example: str


class Counts(NamedTuple):
    """How much was looked at. `bytes` are the bytes of the segments."""

    topics: int = 0
    versions: int = 0
    checkpoints: int = 0
    segments: int = 0
    batches: int = 0
    records: int = 0
    bytes: int = 0

    def plus(self, other: Counts) -> Counts:
        """The sums of both."""
        return Counts(*(mine + others for mine, others in zip(self, other, strict=True)))


@dataclass(frozen=True, repr=False)
class Report(Displayed):
    """The result of `Log.verify`: its checks and findings. It shows itself as a table; `str(report)` has every finding in full.

    `findings` begin with the worst. `unread` has the files that could not be read, and so were not checked. `ok` is true without both.
    `quick` is true if no batch was read. `seconds` is the time that it took.
    """

    root: str
    quick: bool
    findings: list[Finding]
    waiting: list[Waiting]
    checked: Counts
    seconds: float
    unread: list[NotRead]

    @property
    def ok(self) -> bool:
        """Whether everything was read, and nothing is wrong."""
        return not self.findings and not self.unread

    @property
    def status(self) -> int:
        """The exit status of `sparklog verify`: 0 if all is right, otherwise the first that fits.

        1: there are findings other than `newer`; 6: files could not be read; 4: a part is for a later release to check.
        """
        if any(finding.severity != NEWER for finding in self.findings):
            return 1
        return 6 if self.unread else 4 if self.findings else 0

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON types."""
        return {
            "root": self.root,
            "ok": self.ok,
            "status": self.status,
            "quick": self.quick,
            "seconds": round(self.seconds, 3),
            "checked": self.checked._asdict(),
            "findings": [asdict(finding) for finding in self.findings],
            "unread": [each._asdict() for each in self.unread],
            "waiting": [each._asdict() for each in self.waiting],
        }

    def json(self) -> str:
        """The report as one JSON document in ASCII."""
        return json.dumps(self.as_dict())

    def summary(self) -> str:
        """One line: the number of findings of each severity, and how much could not be read."""
        if self.ok:
            return "nothing is wrong"
        counts = Counter(finding.severity for finding in self.findings)
        found = ", ".join(f"{counts[severity]:,} {severity}" for severity in SEVERITIES if counts[severity])
        kinds = Counter(each.what for each in self.unread)
        unread = ", ".join(f"{kinds[what]:,} {what if kinds[what] == 1 else _MANY[what]}" for what in _MANY if kinds[what])
        return "; ".join(part for part in (found, unread and f"could not be checked: {unread}") if part)

    def __str__(self) -> str:
        told = [*self.findings, *self.unread]
        return "\n".join([f"{self.root}: {self.summary()}", *self.about(), *(f"\n{each}" for each in told)])

    def about(self) -> list[str]:
        """Lines with the checks that were made, and with other files that exist."""
        checked = self.checked
        read = "lengths and metadata only" if self.quick else f"{checked.batches:,} batches, {checked.records:,} records"
        metadata = f"{checked.topics:,} topics, {checked.versions:,} versions, {checked.checkpoints:,} checkpoints"
        data = f"{checked.segments:,} segments of {checked.bytes:,} bytes ({read})"
        about = [f"checked: {metadata}, {data} in {self.seconds:.1f} s"]
        return about + [_said(each) for each in self.waiting if each.what in _SAYS][:SHOWN]

    def _display(self) -> Display:
        rows = [
            [
                each.severity,
                each.condition,
                each.where(),
                readable(each.problem, _TEXT),
                readable(each.impact, _TEXT),
                readable(each.fix, _TEXT),
            ]
            for each in self.findings[:SHOWN]
        ]
        columns = ["severity", "condition", "where", "problem", "impact", "fix"]
        unread = [str(each).replace("\n ", ":") for each in self.unread[:SHOWN]]
        return Display(f"{self.root}: {self.summary()}", [*self.about(), *unread], columns, rows, more=len(self.findings) - len(rows))


_MANY = {each: f"{each}s" for each in ("folder", "version", "checkpoint", "segment")} | {"view": "files of the Kafka view"}
_SAYS = {
    "removed": "replaced or expired data files wait for their deletion",
    "unnamed": "data files that no version names: of writers at work, or of failed ones (CALL partlog.vacuum deletes those)",
    "temporary": "files in tmp/ are being written, or were left (they may be deleted when they are a day old)",
    "version": "version files below the boundary wait for their deletion",
    "other": "files and folders belong to somebody else, and were not looked at",
}
"""A topic without a Kafka view is right, and needs no word here."""


def _said(each: Waiting) -> str:
    of = "root" if each.topic is None else f"topic {each.topic}"
    size = f" of {each.bytes:,} bytes" if each.bytes else ""
    return f"{of}: {each.files:,}{size}: {_SAYS[each.what]}, as {readable(each.example, _TEXT)}"


def tallied(topic: str | None, what: str, files: Iterable[tuple[str, int]]) -> list[Waiting]:
    """One entry for these files, given as name and bytes; no entry without files."""
    found = sorted(files)
    return [Waiting(topic, what, len(found), sum(size for _, size in found), found[0][0])] if found else []


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """The findings by severity, then by place."""
    return sorted(
        set(findings),
        key=lambda each: (
            SEVERITIES.index(each.severity),
            each.topic or "",
            -1 if each.partition is None else each.partition,
            each.file or "",
            each.byte or 0,
            each.condition,
        ),
    )
