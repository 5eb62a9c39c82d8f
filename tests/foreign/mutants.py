"""Mutants of a root: one change at a random place, after which the checksums are right again, or not."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import google_crc32c
from handmade import SEGMENT_FIELDS, split, summed

ODD: list[Any] = [None, True, False, 0, 1, -1, 2, 3, 7, 61, 4096, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**63, -(2**63), 1.5]
ODD += ["", "0", "1", "-1", "01", "none", "tiled", "stored", "murmur2", "x" * 40_000, "\ud800", [], [0], {}, {"0": 1}]
ODD += ["../../../elsewhere/pool.log", "data/../../other/pool.log", "_shared/a/b", "_shared/../a", "a/b"]


class Mutant:
    """One change to the topic `t` of a root. `what` says which."""

    def __init__(self, root: Path, random: random.Random) -> None:
        self.folder = root / "_partlog" / "t"
        self.random = random
        kinds: list[Callable[[], str]] = [self._version] * 4 + [self._checkpoint] * 3 + [self._batch] * 4 + [self._bit] * 2
        kinds += [self._behind, self._file, self._file]
        self.what = random.choice(kinds)()

    def _any(self, pattern: str) -> Path:
        return self.random.choice(sorted(self.folder.glob(pattern)))

    def _version(self) -> str:
        file = self._any("*.json")
        content = json.loads(file.read_bytes().split(b"\n")[0])
        what = self._change(content)
        self._put(file, content)
        return f"{file.name}: {what}"

    def _put(self, file: Path, content: dict[str, Any]) -> None:
        """Puts a version file. The versions after it follow it, most times."""
        file.write_bytes(summed(json.dumps(content).encode()))
        if self.random.random() < 0.8:
            self._chain(int(file.stem))

    def _chain(self, version: int) -> None:
        hash = hashlib.sha256((self.folder / f"{version:020d}.json").read_bytes()).hexdigest()
        for file in self.folder.glob(f"{version:020d}.checkpoint-*"):
            lines = _lines(file)
            lines[0]["hash"] = hash
            _put_lines(file, lines)
        after = self.folder / f"{version + 1:020d}.json"
        if after.exists():
            after.write_bytes(summed(json.dumps(json.loads(after.read_bytes().split(b"\n")[0]) | {"previous": hash}).encode()))
            self._chain(version + 1)

    def _checkpoint(self) -> str:
        file = self._any("*.checkpoint-*")
        lines = _lines(file)
        number = self.random.choice([0, self.random.randrange(len(lines))])
        if self.random.random() < 0.1:
            lines.insert(number, copy.deepcopy(lines[self.random.randrange(len(lines))]))
            what = "a line twice"
        elif self.random.random() < 0.1:
            what = f"without line {number}: {str(lines.pop(number))[:60]}"
        else:
            what = f"line {number}: {self._change(lines[number])}"
        _put_lines(file, lines)
        return f"checkpoint: {what}"

    def _change(self, value: Any, path: str = "") -> str:
        """Changes one thing somewhere in a JSON value."""
        names = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not names or self.random.random() < 0.03:
            if isinstance(value, dict):
                value["later"] = self.random.choice(ODD)
            else:
                value.append(self.random.choice(ODD))
            return f"{path} gets one more"
        name = self.random.choice(names)
        inner = value[name]
        if isinstance(inner, (dict, list)) and self.random.random() < 0.85:
            return self._change(inner, f"{path}.{name}")
        before = json.dumps(inner)[:50]
        if self.random.random() < 0.15:
            del value[name]
            return f"{path}.{name} goes, which was {before}"
        others = [value[other] for other in names]
        if type(inner) is int and self.random.random() < 0.6:
            value[name] = inner + self.random.choice([-1, 1, 2, -61, 61, 1000])
        elif type(inner) is str and inner and self.random.random() < 0.5:
            at = self.random.randrange(len(inner))
            value[name] = inner[:at] + self.random.choice("0aZ-/.") + inner[at + 1 :]
        else:
            value[name] = copy.deepcopy(self.random.choice([*ODD, *others]))
        return f"{path}.{name} from {before} to {json.dumps(value[name])[:50]}"

    def _batch(self) -> str:
        """A change in a data file. The CRC of the batch is right again, and most times the segment's `headerCrc` too."""
        version, segment = self.random.choice(self._segments())
        file = self.folder / segment["file"]
        octets = file.read_bytes()
        begin, end = segment["position"], segment["position"] + segment["bytes"]
        batches = split(octets[begin:end])
        number = self.random.randrange(len(batches))
        one = bytearray(batches[number])
        at = self.random.randrange(61 if self.random.random() < 0.6 else len(one))
        one[at] = self.random.choice([one[at] ^ 1 << self.random.randrange(8), 0, 0x7F, 0x80, 0xFF])
        if at < 12 or at >= 21:
            one[17:21] = google_crc32c.value(bytes(one[21:])).to_bytes(4, "big")
        batches[number] = bytes(one)
        file.write_bytes(octets[:begin] + b"".join(batches) + octets[end:])
        if self.random.random() < 0.8:
            crc = 0
            for each in batches:
                crc = google_crc32c.extend(crc, each[8:61])
            path = self.folder / f"{version:020d}.json"
            content = json.loads(path.read_bytes().split(b"\n")[0])
            for each in content["added"]:
                if (each["file"], each["position"]) == (segment["file"], segment["position"]):
                    each["headerCrc"] = crc
            path.write_bytes(summed(json.dumps(content).encode()))
            for checkpoint in self.folder.glob("*.checkpoint-*"):
                lines = _lines(checkpoint)
                for line in lines[1:]:
                    if (line[1], line[2]) == (segment["file"], segment["position"]):
                        line[SEGMENT_FIELDS.index("headerCrc")] = crc
                _put_lines(checkpoint, lines)
            self._chain(version)
        return f"{file.name}: byte {at} of batch {number}"

    def _segments(self) -> list[tuple[int, dict[str, Any]]]:
        found = []
        for file in sorted(self.folder.glob("*.json")):
            content = json.loads(file.read_bytes().split(b"\n")[0])
            found += [(content["version"], each) for each in content["added"]]
        return found

    def _bit(self) -> str:
        file = self._any(self.random.choice(["*.json", "*.checkpoint-*", "data/*/*.log"]))
        octets = bytearray(file.read_bytes())
        bit = self.random.randrange(8 * len(octets))
        octets[bit // 8] ^= 1 << bit % 8
        file.write_bytes(bytes(octets))
        return f"{file.name}: bit {bit}"

    def _behind(self) -> str:
        """Behind the last segment: an index, or bytes of a later release."""
        file = self._any("data/*/*.log")
        end = max((each["position"] + each["bytes"] for _, each in self._segments() if self.folder / each["file"] == file), default=0)
        octets = bytearray(file.read_bytes())
        if end < len(octets):
            octets[self.random.randrange(end, len(octets))] = self.random.randrange(256)
        else:
            octets += self.random.randbytes(20)
        file.write_bytes(bytes(octets))
        return f"{file.name}: behind its last segment"

    def _file(self) -> str:
        file = self._any(self.random.choice(["*.json", "*.checkpoint-*", "data/*/*.log", "data/*", "data"]))
        way = self.random.choice(["gone", "cut", "longer", "a folder", "a link", "another's", "a copy"])
        if way in ("cut", "longer") and file.is_file():
            size = file.stat().st_size
            os.truncate(file, self.random.randrange(size) if way == "cut" else size + self.random.randrange(1, 100))
        elif way == "another's" and file.is_file():
            file.write_bytes(self._any("*.json").read_bytes())
        elif way == "a copy" and file.suffix in (".json", ".jsonl"):
            number = int(file.name[:20]) + self.random.choice([-1, 1, 2, 1000])
            if not (copied := file.with_name(f"{max(number, 0):020d}{file.name[20:]}")).exists():
                shutil.copy(file, copied)
        else:
            moved = self.folder / "tmp" / "moved"
            moved.parent.mkdir(exist_ok=True)
            file.rename(moved)
            if way == "a folder":
                file.mkdir()
            elif way == "a link":
                file.symlink_to(moved)
        return f"{file.name}: {way}"


def _lines(file: Path) -> list[Any]:
    return [json.loads(line.split(b"\t")[0]) for line in file.read_bytes().splitlines()]


def _put_lines(file: Path, lines: list[Any]) -> None:
    crc, octets = 0, b""
    for line in lines:
        text = json.dumps(line).encode()
        crc = google_crc32c.extend(crc, text)
        octets += text + b"\t%08x\n" % crc
    file.write_bytes(octets)
