"""A store that keeps its files in memory: what the contract of stores is checked with beside the local one."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sparklog.store.store import Absent, Damaged, Entry, File, Store


@dataclass
class _Kept:
    """Something in the store: a file with its content, or a link or another thing without one."""

    content: bytes = b""
    kind: str = "file"


@dataclass
class MemoryStore(Store):
    """Files by name. It has folders as far as names say so: there is none without a file in it."""

    root: str = "memory:"
    has_links: bool = True
    files: dict[str, _Kept] = field(default_factory=dict)
    away: int = 0
    """So many of the next looks fail, as while a server cannot be reached."""

    @classmethod
    def copy_of(cls, folder: Path) -> MemoryStore:
        """All files below a folder; hard links stay links to one file."""
        store, by_inode = cls(), {}
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                kept = by_inode.setdefault(path.stat().st_ino, _Kept(path.read_bytes()))
                store.files[str(path.relative_to(folder))] = kept
        return store

    def put(self, name: str, content: bytes) -> None:
        self.files[name] = _Kept(content)

    def above(self) -> None:
        return None

    def look(self, name: str) -> Entry | None:
        if self.away:
            self.away -= 1
            raise OSError("the server does not answer")
        if not name:
            return Entry("", "folder", 0, 0.0, 1)
        kept = self.files.get(_checked(name))
        if kept is None:
            return Entry(_last(name), "folder", 0, 0.0, 1) if self._within(name) else None
        return Entry(_last(name), kept.kind, len(kept.content), 0.0, sum(kept is each for each in self.files.values()))

    def names(self, folder: str) -> list[str]:
        if folder:
            self._require_no_link(folder, self.files.get(_checked(folder)))
        return sorted({name.partition("/")[0] for name in self._within(folder)})

    def entries(self, folder: str) -> list[Entry]:
        prefix = f"{folder}/" if folder else ""
        return [entry for name in self.names(folder) if (entry := self.look(f"{prefix}{name}"))]

    def tag(self, name: str) -> int | None:
        kept = self.files.get(_checked(name))
        return None if kept is None else id(kept)

    def are_one(self, name: str, other: str) -> bool:
        return name in self.files and self.files[name] is self.files.get(other)

    def open(self, name: str) -> File:
        folders = name.split("/")[:-1]
        for depth in range(1, len(folders) + 1):
            self._require_no_link(name, self.files.get("/".join(folders[:depth])))
        kept = self.files.get(_checked(name))
        if kept is None and not self._within(name):
            raise Absent
        if kept is None or kept.kind != "file":
            raise Damaged("it is not a regular file")
        return _Bytes(kept.content)

    def _within(self, folder: str) -> list[str]:
        prefix = f"{folder}/" if folder else ""
        return [name.removeprefix(prefix) for name in self.files if name.startswith(prefix)]

    def _require_no_link(self, name: str, kept: _Kept | None) -> None:
        if kept is not None and kept.kind == "link":
            raise Damaged(f"a link is in place of a folder of {name}")


class _Bytes(File):
    def __init__(self, content: bytes) -> None:
        self._content = content
        self.size = len(content)

    def read(self, position: int, count: int) -> bytes:
        return self._content[position : position + count]

    def close(self) -> None:
        self._content = b""


def _checked(name: str) -> str:
    if {"", ".", ".."} & set(name.split("/")):
        raise ValueError(name)
    return name


def _last(name: str) -> str:
    return name.rpartition("/")[2]
