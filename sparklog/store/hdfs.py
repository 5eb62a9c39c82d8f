"""Files of HDFS, by its HTTP interface (WebHDFS) and the standard library. FORMAT.md section 2.

A NameNode answers GETFILESTATUS and LISTSTATUS_BATCH. To OPEN it names a DataNode, which is asked for the bytes. If that DataNode does not
give them, GET_BLOCK_LOCATIONS names others. `excludedatanodes` does not help: a NameNode leaves out only DataNodes that are given with the
port for transfers, and no answer to OPEN has this port.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import string
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any, TypeAlias
from xml.etree import ElementTree

from sparklog.store.remote import ReadAhead, RemoteFile, RemoteStore, required_name
from sparklog.store.requests import AT_ONCE
from sparklog.store.store import Absent, Damaged, Entry, File, below

PORT = 9870
"""The port at which a NameNode answers WebHDFS, if nothing says another one."""
_TIMEOUT_S = 60
_NEXT_S = 5
"""A DataNode that says nothing for so long is left for another one."""
_LEFT_S = 300
"""So long it is then asked last. A NameNode names it for ten minutes or more."""
_FAILOVER_S = 20.0
_FAILOVER_WAIT_S = 0.2
_ANSWER_BYTES_MAX = 64 << 20
_TOLD_BYTES_MAX = 1 << 16
_KINDS = {"FILE": "file", "DIRECTORY": "folder", "SYMLINK": "link"}
_NOT_THERE = ("FileNotFoundException", "ParentNotDirectoryException")
_PREFIX = "/webhdfs/v1"
_ADDRESS = re.compile(r"(https?://)?[a-zA-Z0-9._-]+(:[0-9]{1,5})?(/[^?#@]*)?")
_ELSEWHERE = 307
"""The status of an answer that says where bytes are."""
_NOT_ACTIVE = ("StandbyException", "RetriableException")
"""The answers of a NameNode in standby, and of a NameNode that starts up."""

_Answer: TypeAlias = HTTPResponse | urllib.error.HTTPError


class HdfsStore(RemoteStore):
    """The files below a folder. `authority` is the authority of an hdfs:// URL: a NameNode and its port, or the name of a service.

    `addresses` are the addresses of WebHDFS at its NameNodes, such as http://host:9870; the store finds the active NameNode.
    """

    lists_in_order = True

    def __init__(self, authority: str, folder: str, addresses: Sequence[str], user: str, max_requests: int = AT_ONCE) -> None:
        self._authority = authority
        self._folder = folder.rstrip("/")
        self._addresses = list(addresses)
        self._user = user
        self.place = f"hdfs://{authority}"
        self.max_requests = max_requests
        self._left: dict[str, float] = {}
        """The DataNodes that did not answer a request, each with the time until which it is asked last."""
        self.root = f"{self.place}{self._folder}"

    def above(self) -> HdfsStore | None:
        """The store of the folder above; None at the top."""
        folder = self._folder.rpartition("/")[0]
        return HdfsStore(self._authority, folder, self._addresses, self._user, self.max_requests) if self._folder else None

    def look(self, name: str) -> Entry | None:
        """By one request."""
        try:
            return _entry(name.rpartition("/")[2], self._status(name))
        except Absent:
            return None

    def names(self, folder: str) -> list[str]:
        """By one request for a thousand names."""
        return [entry.name for entry in self._listed(folder)]

    def entries(self, folder: str) -> list[Entry]:
        """By the same requests."""
        return sorted(self._listed(folder))

    def tag(self, name: str) -> Hashable | None:
        """The file's id, its time and its length, by one request."""
        try:
            return _tag(self._status(name))
        except Absent:
            return None

    def open(self, name: str) -> File:
        """By one request.

        Each part of a read takes a request to the NameNode and a request to a DataNode, and nothing keeps the file until then.
        """
        return ReadAhead(self.opened(name))

    def opened(self, name: str) -> HdfsFile:
        """By one request."""
        status = self._status(name)
        if status["type"] != "FILE":
            raise Damaged("it is not a regular file")
        return HdfsFile(self, name, status)

    def reader(self, name: str) -> Callable[[int, int], bytes]:
        """Without a look at its length."""
        return partial(self.bytes_of, name)

    def bytes_of(self, name: str, position: int, count: int) -> bytes:
        """The `count` bytes of a file from a position on, which it must have. Absent if it does not exist."""
        told = self._told_place(name, position, count)
        if isinstance(told, bytes):
            return told
        failed: dict[str, OSError] = {}
        for node in self._data_nodes(told, name, position, count):
            try:
                return _bytes(told._replace(netloc=node), count, _NEXT_S)
            except PermissionError:
                raise
            except OSError as error:
                failed[node] = error
                self._left[node] = time.monotonic() + _LEFT_S
        for node in [node for node, error in failed.items() if isinstance(error, TimeoutError)]:
            try:
                return _bytes(told._replace(netloc=node), count, _TIMEOUT_S)
            except OSError as error:
                failed[node] = error
        why = ", ".join(f"{node}: {error}" for node, error in failed.items())
        raise OSError(f"no DataNode gives the {count} bytes from byte {position} on ({why})")

    def _told_place(self, name: str, position: int, count: int) -> urllib.parse.SplitResult | bytes:
        """The address at which a NameNode says that bytes of a file are; or the bytes, if who answers has them."""
        with self._asked("OPEN", name, offset=position, length=count, noredirect="true") as answer:
            if "Location" in answer.headers:  # an older NameNode
                location = answer.headers["Location"]
            elif answer.headers.get_content_type() == "application/json":
                location = _json(answer).get("Location")
            else:
                return _whole(answer, count)  # a proxy for HDFS
        found = urllib.parse.urlsplit(urllib.parse.quote(location, safe=string.punctuation) if isinstance(location, str) else "")
        if found.scheme not in ("http", "https") or not found.netloc:
            raise OSError("the answer to OPEN does not name a DataNode, as WebHDFS does")
        # A NameNode composes the letters of a path there, and a DataNode then looks for another file.
        return found._replace(path=_PREFIX + self._quoted(name)) if found.path.startswith(f"{_PREFIX}/") else found

    def _data_nodes(self, told: urllib.parse.SplitResult, name: str, position: int, count: int) -> Iterator[str]:
        """The DataNodes that may give bytes, as host:port of their HTTP interface: those last that failed some minutes ago."""
        first = told.netloc
        if not self._is_left(first):
            yield first
        with suppress(OSError):  # a proxy for HDFS does not know the call
            with self._asked("GET_BLOCK_LOCATIONS", name, offset=position, length=count) as answer:
                found = _nodes(_json(answer), told.scheme)
            yield from sorted((each for each in found if each != first), key=self._is_left)
        if self._is_left(first):
            yield first

    def _is_left(self, node: str) -> bool:
        return time.monotonic() < self._left.get(node, 0)

    def _quoted(self, name: str) -> str:
        return urllib.parse.quote(f"{self._folder}/{below(name)}" if name else self._folder or "/")

    def _status(self, name: str) -> Mapping[str, Any]:
        with self._asked("GETFILESTATUS", name) as answer:
            return _checked(_json(answer).get("FileStatus"))

    def _listed(self, folder: str) -> Iterator[Entry]:
        after, seen = "", set[str]()
        while True:
            try:
                # In this spelling: Hadoop 3.5 ignores the spelling of the documentation, startAfter.
                with self._asked("LISTSTATUS_BATCH", folder, **({"startafter": after} if after else {})) as answer:
                    listing = _json(answer).get("DirectoryListing", {})
            except Absent:
                return
            found = listing.get("partialListing", {}).get("FileStatuses", {}).get("FileStatus")
            if not isinstance(found, list):
                raise OSError("the answer to LISTSTATUS_BATCH is not one of WebHDFS")
            for status in map(_checked, found):
                if not status["pathSuffix"] and len(found) == 1 and status["type"] != "DIRECTORY":
                    return  # a file is listed as itself
                name = required_name(status["pathSuffix"], self.location(folder))
                if name in seen:
                    raise Damaged(f"its listing has the name {name!r} twice")
                seen.add(name)
                after = name
                yield _entry(name, status)
            if not found or not listing.get("remainingEntries"):
                return

    def _asked(self, call: str, name: str, **parameters: object) -> _Answer:
        """The answer of the NameNode that is active. Absent if the file or folder does not exist.

        While a NameNode answers that it is in standby or starts up, the call waits for up to 20 seconds for one to become active.
        """
        path = self._quoted(name)
        query = urllib.parse.urlencode({"op": call, "user.name": self._user, **parameters})
        deadline = time.monotonic() + _FAILOVER_S
        while True:
            comes, failed = False, ""
            for address in tuple(self._addresses):
                try:
                    answer = _OPENER.open(f"{address}{_PREFIX}{path}?{query}", timeout=_TIMEOUT_S)
                    assert isinstance(answer, HTTPResponse)
                except urllib.error.HTTPError as error:
                    if error.code == _ELSEWHERE:
                        return error
                    kind, fault = _fault(call, error)
                    if kind not in _NOT_ACTIVE:
                        raise fault from None
                    comes, failed = True, str(fault)
                except (OSError, HTTPException) as error:
                    failed = f"{address}: {error}"
                else:
                    if self._addresses[0] != address:
                        self._addresses = [address, *(each for each in self._addresses if each != address)]
                    return answer
            if not comes or time.monotonic() > deadline:
                break
            time.sleep(_FAILOVER_WAIT_S)
        raise OSError(
            f"no active NameNode answers WebHDFS at {' or '.join(self._addresses)} ({failed}). Another address may be given in the URL, as "
            "?webhdfs=host:9870 with several addresses by commas, or by dfs.namenode.http-address in the hdfs-site.xml of HADOOP_CONF_DIR"
        )


class HdfsFile(RemoteFile):
    """A file that is read at positions."""

    def __init__(self, store: HdfsStore, name: str, status: Mapping[str, Any]) -> None:
        self._store, self._name = store, name
        self.size = status["length"]
        self.tag = _tag(status)

    def read(self, position: int, count: int) -> bytes:
        """By two requests."""
        end = min(position + count, self.size)
        if end <= position:
            return b""
        try:
            return self._store.bytes_of(self._name, position, end - position)
        except (OSError, HTTPException) as error:
            # The NameNode may have known a file whose blocks were just deleted.
            if self._store.tag(self._name) != self.tag:
                raise Absent from None
            raise OSError(str(error)) from None

    def close(self) -> None:
        """Asks nothing."""


def addresses(authority: str, settings: str) -> list[str]:
    """The addresses of WebHDFS for the authority of an hdfs:// URL.

    They are `webhdfs` of the settings in the URL; or the addresses of hdfs-site.xml in HADOOP_CONF_DIR for the service or its one NameNode;
    or port 9870 of the authority's host. ValueError if there are other settings, or it is not the address of a server; OSError if the file
    cannot be read.
    """
    pairs = urllib.parse.parse_qsl(settings, keep_blank_values=True)
    if unknown := [name for name, _ in pairs if name != "webhdfs"]:
        raise ValueError(f"{unknown[0]!r} is no setting of a root in HDFS; leave it out, or give webhdfs=host:9870")
    given = [each for _, value in pairs for each in value.split(",")]
    if wrong := [each for each in given if not _ADDRESS.fullmatch(each)]:
        raise ValueError(f"webhdfs is {wrong[0]!r}; it must be host:port, or http:// or https:// and these, several with commas")
    found = given or _configured(authority) or [f"{authority.partition(':')[0]}:{PORT}"]
    return [each.rstrip("/") if "://" in each else f"http://{each}" for each in found]


def user() -> str:
    """The name with which HDFS is asked, as its own clients choose it where there is no Kerberos."""
    return os.environ.get("HADOOP_USER_NAME") or getpass.getuser()


def _configured(authority: str) -> list[str]:
    file = Path(os.environ.get("HADOOP_CONF_DIR") or "", "hdfs-site.xml")
    if not os.environ.get("HADOOP_CONF_DIR"):
        return []
    try:
        properties = {each.findtext("name"): (each.findtext("value") or "").strip() for each in ElementTree.parse(file).iter("property")}
    except FileNotFoundError:
        return []
    except ElementTree.ParseError as error:
        raise OSError(f"{file} is not XML: {error}") from None
    secure = properties.get("dfs.http.policy") == "HTTPS_ONLY"
    key, scheme = ("dfs.namenode.https-address", "https") if secure else ("dfs.namenode.http-address", "http")
    host = authority.partition(":")[0]
    nodes = [node.strip() for node in (properties.get(f"dfs.ha.namenodes.{authority}") or "").split(",") if node.strip()]
    if nodes:
        return [f"{scheme}://{each}" for node in nodes if (each := properties.get(f"{key}.{authority}.{node}"))]
    # The file may be of another cluster.
    one = properties.get(key) or ""
    return [f"{scheme}://{one}"] if one.partition(":")[0] == host else []


# A proxy for the web does not lead to a cluster, and Hadoop's clients take none.
class _NotToDataNodes(urllib.request.HTTPRedirectHandler):
    """Goes to no DataNode: `HdfsStore.bytes_of` does."""

    def http_error_307(self, *_: object) -> None:
        """Makes an error of it."""


_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NotToDataNodes)


def _bytes(place: urllib.parse.SplitResult, count: int, wait_s: float) -> bytes:
    """The bytes that a DataNode has at an address. TimeoutError if it says nothing for so long."""
    try:
        with _OPENER.open(place.geturl(), timeout=wait_s) as answer:
            return _whole(answer, count)
    except urllib.error.HTTPError as error:
        raise _fault("OPEN", error)[1] from None
    except urllib.error.URLError as error:
        raise (error.reason if isinstance(error.reason, OSError) else OSError(str(error.reason))) from None
    except HTTPException as error:
        raise OSError(repr(error)) from None


def _whole(answer: _Answer, count: int) -> bytes:
    found = _read(answer, count)
    if len(found) < count:
        raise OSError(f"the answer ended after {len(found)} of {count} bytes")
    return found


def _nodes(answer: dict[str, Any], scheme: str) -> list[str]:
    """The DataNodes that an answer to GET_BLOCK_LOCATIONS names, as host:port of their interface of this scheme."""
    port = "infoSecurePort" if scheme == "https" else "infoPort"
    try:
        blocks = answer["LocatedBlocks"]["locatedBlocks"]
        return list(dict.fromkeys(f"{node['hostName']}:{node[port]:d}" for block in blocks for node in block["locations"] if node[port]))
    except (KeyError, TypeError, ValueError):
        raise OSError("the answer to GET_BLOCK_LOCATIONS is not one of WebHDFS") from None


def _read(answer: _Answer, count: int) -> bytes:
    try:
        return answer.read(count)
    except HTTPException as error:
        raise OSError(f"the answer broke off: {error!r}") from None


def _json(answer: _Answer) -> dict[str, Any]:
    text = _read(answer, _ANSWER_BYTES_MAX)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise OSError("the answer is not one of WebHDFS")
    return found


def _checked(status: Any) -> Mapping[str, Any]:
    """The status of a file, in which all that is used has its type. OSError otherwise."""
    if isinstance(status, dict) and status.get("type") in _KINDS and isinstance(status.setdefault("pathSuffix", ""), str):
        numbers = [status.get(name) for name in ("length", "modificationTime", "fileId")]
        if all(type(each) is int and each >= 0 for each in numbers):
            return status
    raise OSError("the answer is not the status of a file, as WebHDFS has it")


def _entry(name: str, status: Mapping[str, Any]) -> Entry:
    return Entry(name, _KINDS[status["type"]], status["length"], status["modificationTime"] / 1000, 1)  # type: ignore[arg-type]


def _tag(status: Mapping[str, Any]) -> Hashable:
    return status["fileId"], status["modificationTime"], status["length"]


def _fault(call: str, error: urllib.error.HTTPError) -> tuple[str, Exception]:
    """The class of the exception in an answer, and the exception here: Absent, PermissionError or OSError."""
    kind, message = _told(error)
    if kind in _NOT_THERE or "(is not a directory)" in message:
        return kind, Absent()
    return kind, PermissionError(message) if kind == "AccessControlException" else OSError(f"{call}: {kind}: {message}")


def _told(error: urllib.error.HTTPError) -> tuple[str, str]:
    """The class and the message of the exception in an answer."""
    if error.code == 401:
        return "AuthenticationException", "HDFS wants a ticket of Kerberos, which this reader cannot give"
    try:
        told = json.loads(error.read(_TOLD_BYTES_MAX))["RemoteException"]
        return str(told["exception"]), str(told["message"]).partition("\n")[0][:500]
    except (ValueError, KeyError, TypeError, OSError, HTTPException, RecursionError):
        return f"HTTP {error.code}", str(error.reason)
