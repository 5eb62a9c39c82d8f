"""The requests that a call far from its store must make, by the same client alone, in rounds of at most 16.

Run as a program, it asks for the topics of a root by obstore: `python -m bench.distance_floor BUCKET/ROOT`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.far import Store

AT_ONCE = 16
"""As many requests as sparklog makes at once by default."""


class ByObstore:
    """One client of obstore for a bucket, by the environment, with connections of its own."""

    def __init__(self, bucket: str) -> None:
        from obstore.store import S3Store

        self.store = S3Store(bucket, client_options={"allow_http": True})

    def paths(self, folder: str) -> list[str]:
        """The paths in a folder, by one request."""
        found = self.store.list_with_delimiter(folder)
        return [*found["common_prefixes"], *(each["path"] for each in found["objects"] if each["path"] != folder)]

    def versions(self, folder: str) -> list[str]:
        """The paths of the version files in a folder."""
        return [path for path in self.paths(folder) if path.endswith(".json")]

    def fetch(self, paths: Iterable[str]) -> int:
        """The bytes of files, by a request for each of them."""
        return sum(self.at_once(self._fetch, paths))

    def _fetch(self, path: str) -> int:
        return len(self.store.get(path).bytes())

    def at_once(self, ask: Callable[[str], Any], about: Iterable[str]) -> list[Any]:
        with ThreadPoolExecutor(AT_ONCE) as threads:
            return list(threads.map(ask, about))

    def open(self, root: str, topic: str) -> None:
        """The listings and the versions of a topic without a checkpoint."""
        folder = f"{root}/_partlog/{topic}"
        self.fetch(self.versions(folder))
        self.paths(folder)

    def read(self, root: str, topic: str) -> None:
        """All that `open` asks for, and the data files, whose names a version has."""
        self.open(root, topic)
        self.fetch(each["path"] for each in self.store.list(f"{root}/_partlog/{topic}/data").collect() if each["size"])

    def names(self, root: str) -> list[str]:
        """The names of topics, and whether each is a topic."""
        topics = self.paths(f"{root}/_partlog")
        self.at_once(self.paths, topics)
        return topics

    def topics(self, root: str) -> None:
        """The names of topics, a listing of each, a version of each, and the listing again."""
        topics = self.paths(f"{root}/_partlog")
        self.fetch(versions[0] for versions in self.at_once(self.versions, topics))
        self.at_once(self.paths, topics)


class ByHadoop:
    """Hadoop's client in Spark's JVM, with the settings of sparklog's reads, and with connections of its own."""

    def __init__(self, store: Store) -> None:
        jvm = store.bench.spark._jvm
        assert jvm
        settings = store.bench.spark._jsparkSession.sessionState().newHadoopConf()
        for name, value in {**store.options(), "fs.s3a.input.stream.type": "classic"}.items():
            settings.set(name, value)
        self.uri = store.uri
        self._floor = jvm.bench.StoreFloor(store.uri, settings, AT_ONCE)
        self._puts = 0

    def open(self, root: str, topic: str) -> None:
        """As `ByObstore.open`."""
        self._floor.open(f"{root}/_partlog/{topic}", ".json")

    def topics(self, root: str) -> None:
        """As `ByObstore.topics`."""
        self._floor.topics(f"{root}/_partlog")

    def fetch_all(self, folder: str) -> int:
        """The bytes of all data files below a folder."""
        return int(self._floor.fetchAll(folder, ".log"))

    def fetch_middle(self, folder: str, bytes: int) -> int:
        """So many bytes in the middle of the only data file below a folder."""
        return int(self._floor.fetchMiddle(folder, bytes))

    def put(self, *bytes: int, lists: int = 0) -> None:
        """Makes `lists` listings, then puts a new file of each size in `bytes`, one after another."""
        self._puts += 1
        folder = f"{self.uri}/floor/{self._puts}"
        for _ in range(lists):
            self._floor.list(self.uri)
        self._floor.put(folder, list(bytes))

    def close(self) -> None:
        self._floor.close()


def main() -> None:
    bucket, _, root = sys.argv[1].partition("/")
    ByObstore(bucket).topics(root)


if __name__ == "__main__":
    main()
