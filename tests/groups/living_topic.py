"""A topic that lives: written, merged, expired, cleaned up, deleted and made again by hand."""

from pathlib import Path
from typing import Any

import google_crc32c
from handmade import TIME, Record, Topic, batches, split


class Log:
    """A topic that is written by hand, and all offsets at which its partitions began and ended."""

    def __init__(self, root: Path, name: str, partitions: int) -> None:
        self.topic = Topic(root, name, partitions=partitions)
        self.life = 0
        self.past: list[tuple[dict[int, list[int]], dict[int, list[int]]]] = []
        """Where the topics before this one began and ended."""
        self.exists = True
        self.starts: dict[int, list[int]] = {number: [0] for number in range(partitions)}
        self.ends: dict[int, list[int]] = {number: [0] for number in range(partitions)}
        for number in range(partitions):
            self.append(number, 3)

    def bounds(self, life: int) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
        """All log start offsets and all end offsets by partition."""
        return (self.starts, self.ends) if life == self.life else self.past[life]

    def append(self, number: int, *counts: int) -> None:
        offset = self.ends[number][-1]
        contents = []
        for count in counts:
            made = range(offset, offset + count)
            contents.append([Record(f"{self.life}:{number}:{each}".encode(), timestamp=TIME + each) for each in made])
            offset += count
        self.topic.commit(self.topic.data(batches(*contents), number))
        self.ends[number].append(offset)

    def merge(self, number: int, keep: bool) -> None:
        """Joins the first two live segments of a partition."""
        live = self.topic.live.get(number, [])
        if len(live) < 2:
            return
        first, second = live[:2]
        octets = b"".join((self.topic.folder / each["file"]).read_bytes()[each["position"] :][: each["bytes"]] for each in (first, second))
        whole = self.topic.data(octets, number, base=first["base"], end=second["end"])
        # The fields of the batches hold relative offsets: those of the second follow the first.
        self._rewrite(whole, octets, first["end"] - first["base"], first["bytes"])
        self.topic.commit(whole, removed=[first, second], operation="merge")
        self._remove([first, second], keep)

    def _rewrite(self, segment: dict[str, Any], octets: bytes, shift: int, at: int) -> None:
        moved = octets[:at] + b"".join((int.from_bytes(one[:8], "big") + shift).to_bytes(8, "big") + one[8:] for one in split(octets[at:]))
        path = self.topic.folder / segment["file"]
        whole = path.read_bytes()
        path.write_bytes(whole[: segment["position"]] + moved)
        crc = 0
        for one in split(moved):
            crc = google_crc32c.extend(crc, one[8:61])
        segment["headerCrc"] = crc

    def expire(self, number: int, keep: bool) -> None:
        """Raises the log start offset to where the second live segment begins."""
        live = self.topic.live.get(number, [])
        if len(live) < 2:
            return
        starts = list(self.topic.versions[-1]["starts"])
        starts[number] = live[0]["end"]
        gone = live[0]
        self.topic.commit(starts=starts, removed=[gone], operation="delete-records")
        self.starts[number].append(starts[number])
        self._remove([gone], keep)

    def _remove(self, segments: list[dict[str, Any]], keep: bool) -> None:
        named = {each["file"] for its in self.topic.live.values() for each in its}
        for each in segments:
            if not keep and each["file"] not in named:
                (self.topic.folder / each["file"]).unlink(missing_ok=True)

    def clean(self) -> None:
        """Deletes all version files but the newest, as upkeep may."""
        self.topic.checkpoint()
        newest = self.topic.versions[-1]["version"]
        self.topic.commit(boundary=newest, operation="vacuum")
        for version in range(newest):
            self.topic.version_file(version).unlink(missing_ok=True)

    def delete(self) -> None:
        self.topic.delete()
        self.exists = False

    def recreate(self) -> None:
        self.past.append((self.starts, self.ends))
        self.exists, self.life = True, self.life + 1
        self.starts = {number: [0] for number in range(self.topic.partitions)}
        self.ends = {number: [0] for number in range(self.topic.partitions)}
        for number in self.starts:
            self.append(number, 2, 2)
