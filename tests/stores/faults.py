"""A proxy in front of an S3 server or of WebHDFS that makes single requests go wrong, and knows all of them."""

import json
import random
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from ports import HOST

CONTROL = "/.faults"
BEGINS_BYTES = 256
KINDS = ("cut", "lose", "late", "delay", "answer", "belie", "tear")
_CODES = {
    301: "PermanentRedirect",
    400: "InvalidRequest",
    403: "AccessDenied",
    404: "NoSuchBucket",
    408: "RequestTimeout",
    409: "ConditionalRequestConflict",
    412: "PreconditionFailed",
    500: "InternalError",
    501: "NotImplemented",
    503: "SlowDown",
}
# Headers of a connection, not of a request.
_OF_CONNECTION = {"connection", "content-length", "expect", "keep-alive", "transfer-encoding"}


@dataclass(frozen=True)
class Fault:
    """How a request goes wrong, by `kind`:

    * cut: the connection ends before the server has the request
    * lose: the server does what it is asked, and the connection ends without an answer
    * late: the connection ends at once, and the server gets the request `seconds` later
    * delay: the server gets the request `seconds` later, and the client waits for the answer
    * answer: the client is told `status`, and the server never gets the request
    * belie: the server does what it is asked, and the client is told `status`
    * tear: the connection ends after half of the answer's body
    """

    kind: str
    status: int = 503
    seconds: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"there is no fault {self.kind!r}, but {', '.join(KINDS)}")


@dataclass
class Request:
    """A request, and what became of it."""

    method: str
    key: str
    """The path without the slash before it, not quoted: "bucket/a b"."""
    query: str
    headers: dict[str, str]
    """By names in lower case."""
    fault: Fault | None
    begins: bytes = b""
    """The first bytes of what the client sent. S3A's begin with a line of the encoding, and then are those of the object."""
    told: int | None = None
    """The status that the client was told; None while it was told none."""
    done: int | None = None
    """The status that the server answered; None while it has answered none."""
    sent: int = 0
    """The bytes of the answer's body."""
    began: float = 0.0
    ended: float = float("inf")
    """By `time.monotonic`: when the request came, and when its answer went to the client or the connection ended; infinite until then."""

    @property
    def span(self) -> tuple[int, int] | None:
        """The bytes of a file that are asked for, from the first to before the end; None if the request names none."""
        if asked := re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("range", "")):
            return int(asked[1]), int(asked[2]) + 1
        of_webhdfs = {name: values[0] for name, values in parse_qs(self.query).items()}
        if of_webhdfs.get("op") == "OPEN" and "length" in of_webhdfs:
            first = int(of_webhdfs.get("offset", 0))
            return first, first + int(of_webhdfs["length"])
        return None

    @property
    def kind(self) -> str:
        """The method, with a name of its own for each kind of request that S3 lists in its prices."""
        if self.method == "GET" and ("list-type=" in self.query or "uploads" in self.query):
            return "LIST"
        return "COPY" if self.method == "PUT" and "x-amz-copy-source" in self.headers else self.method

    @property
    def is_conditional(self) -> bool:
        """Whether S3 does it only where there is no such object yet."""
        return self.headers.get("if-none-match") == "*"


@dataclass
class _Rule:
    fault: Fault
    method: str
    key: str
    times: int

    def takes(self, method: str, key: str) -> bool:
        return self.times > 0 and re.fullmatch(self.method, method) is not None and re.search(self.key, key) is not None


@dataclass
class _Chance:
    rate: float
    faults: Sequence[Fault]
    method: str
    draw: random.Random


def most_at_once(requests: Sequence[Request]) -> int:
    """How many of the requests the proxy had at one moment, at most."""
    most = now = 0
    for _, step in sorted([(each.began, 1) for each in requests] + [(each.ended, -1) for each in requests]):
        now += step
        most = max(most, now)
    return most


def rounds(requests: Sequence[Request]) -> int:
    """How many of the requests came one after another, at most: each came after the answer to the one before it.

    A client needs at least so many times the time of one request.
    """
    number, ended = 0, float("-inf")
    for each in sorted(requests, key=lambda request: request.ended):
        if each.began >= ended:
            number, ended = number + 1, each.ended
    return number


class FaultProxy:
    """Listens at `endpoint`, and sends what it gets on to the target, "127.0.0.1:port" or "http://127.0.0.1:port".

    `requests` are those that came since `clear`, in their order. A program in another process can do the same by HTTP: `POST /.faults` with
    a JSON list of arguments of `inject` takes the place of all faults and clears the requests, `DELETE /.faults` ends the faults alone, and
    `GET /.faults` lists the requests.

    `before` is called with each request before the server has it, in a thread of that request: a test can act there while the client waits,
    and give the request a fault.

    With `delay_s`, the server gets each request so many seconds later. With `bytes_per_s`, the bodies of each connection go no faster.
    """

    def __init__(self, target: str, *, delay_s: float = 0.0, bytes_per_s: float = float("inf")) -> None:
        self.requests: list[Request] = []
        self.before: Callable[[Request], None] = lambda _: None
        self.target = target.rpartition("/")[2]
        self.delay_s, self.bytes_per_s = delay_s, bytes_per_s
        self._lock = threading.Lock()
        self._rules: list[_Rule] = []
        self._chance: _Chance | None = None
        self._server = _Server((HOST, 0), _Handler)
        self._server.proxy = self
        self.port = self._server.server_port
        self.endpoint = f"http://{HOST}:{self.port}"

    def __enter__(self) -> "FaultProxy":
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    def inject(self, kind: str, *, method: str = ".*", key: str = "", times: int = 1, status: int = 503, seconds: float = 1.0) -> None:
        """Lets the next `times` requests go wrong whose method is `method` and whose key contains `key`: both are regular expressions."""
        with self._lock:
            self._rules.append(_Rule(Fault(kind, status, seconds), method, key, times))

    def inject_at_random(self, rate: float, faults: Sequence[Fault], seed: int, *, method: str = ".*") -> None:
        """Lets this share of the requests (0 to 1) go wrong, each by one of the faults. The seed decides by the order of the requests."""
        with self._lock:
            self._chance = _Chance(rate, faults, method, random.Random(seed))

    def clear(self) -> None:
        """Forgets all faults and all requests."""
        self.heal()
        with self._lock:
            self.requests, self.before = [], lambda _: None

    def heal(self) -> None:
        """Forgets all faults, but for those of requests that came."""
        with self._lock:
            self._rules, self._chance = [], None

    def count(self, key: str = "") -> Counter[str]:
        """How many requests of each method came for keys that contain this regular expression."""
        return Counter(request.method for request in list(self.requests) if re.search(key, request.key))

    @contextmanager
    def counting(self, key: str = "") -> Iterator[Counter[str]]:
        """Gives the growth of `count` in the block, which is filled in at its end."""
        before, grown = self.count(key), Counter[str]()
        yield grown
        grown.update(self.count(key) - before)

    def wait_for_late(self, limit_s: float = 30.0) -> None:
        """Waits until the server has answered all requests that were late."""
        deadline = time.monotonic() + limit_s
        while any(request.fault and request.fault.kind == "late" and request.done is None for request in list(self.requests)):
            assert time.monotonic() < deadline, "a late request has no answer"
            time.sleep(0.01)

    def came(self, method: str, key: str, query: str, headers: dict[str, str], body: bytes) -> Request:
        with self._lock:
            rule = next((rule for rule in self._rules if rule.takes(method, key)), None)
            fault = rule.fault if rule else None
            if rule:
                rule.times -= 1
            elif self._chance and re.fullmatch(self._chance.method, method) and self._chance.draw.random() < self._chance.rate:
                fault = self._chance.draw.choice(self._chance.faults)
            request = Request(method, key, query, headers, fault, body[:BEGINS_BYTES], began=time.monotonic())
            self.requests.append(request)
            return request

    def control(self, method: str, body: bytes) -> Any:
        if method == "DELETE":
            self.heal()
        if body:
            self.clear()
            for arguments in json.loads(body):
                self.inject(**arguments)
        return [
            {
                "method": each.method,
                "key": each.key,
                "query": each.query,
                "told": each.told,
                "done": each.done,
                "conditional": each.is_conditional,
            }
            for each in list(self.requests)
        ]


@dataclass
class _Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @classmethod
    def of(cls, status: int) -> "_Answer":
        """As S3 words it."""
        text = f"<?xml version='1.0' encoding='UTF-8'?><Error><Code>{_CODES.get(status, 'Other')}</Code><Message>injected</Message></Error>"
        return cls(status, [("Content-Type", "application/xml")], text.encode())


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    proxy: FaultProxy

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is none of the test's business."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def handle_one_request(self) -> None:
        with suppress(ConnectionError):
            super().handle_one_request()
            return
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _serve(self) -> None:
        body = self._body()
        if self.path == CONTROL:
            told = json.dumps(self.server.proxy.control(self.command, body)).encode()
            return self._reply(_Answer(200, [("Content-Type", "application/json")], told))
        # A NameNode sends its client on to a DataNode, which the client asks through the proxy, too: "/@127.0.0.1:port/webhdfs/…".
        through = re.match(r"/@([^/]+)(/.*)", self.path)
        target, path = through.groups() if through else (self.server.proxy.target, self.path)
        url = urlsplit(path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        proxy = self.server.proxy
        request = proxy.came(self.command, unquote(url.path)[1:], url.query, headers, body)
        proxy.before(request)
        time.sleep(proxy.delay_s + len(body) / proxy.bytes_per_s)
        fault = request.fault or Fault("delay", seconds=0)
        if fault.kind in ("cut", "late"):
            self._cut()
        if fault.kind in ("late", "delay"):
            time.sleep(fault.seconds)
        answer = None
        if fault.kind not in ("cut", "answer"):
            answer = self._send_on(target, path, body)
            request.done = answer.status if answer else None
        if fault.kind in ("answer", "belie"):
            answer = _Answer.of(fault.status)
        if answer is None or fault.kind in ("late", "lose"):
            request.ended = time.monotonic()
            return self._cut()
        request.told, request.sent = answer.status, len(answer.body)
        time.sleep(len(answer.body) / proxy.bytes_per_s)
        request.ended = time.monotonic()
        return self._reply(answer, torn=fault.kind == "tear")

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        chunks = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(chunks)

    def _send_on(self, target: str, path: str, body: bytes) -> _Answer | None:
        """The server's answer; None if it is not there, or ends the connection."""
        connection = HTTPConnection(target, timeout=60)
        try:
            connection.putrequest(self.command, path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in _OF_CONNECTION:
                    connection.putheader(name, value)
            if body or self.command in ("PUT", "POST"):
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, HTTPException):
            return None
        finally:
            connection.close()
        kept = _OF_CONNECTION - {"content-length"} if self.command == "HEAD" else _OF_CONNECTION
        through = rf"{self.server.proxy.endpoint}/@\1/"
        headers = [
            (name, re.sub("^http://([^/]+)/", through, value) if name.lower() == "location" else value)
            for name, value in answer.getheaders()
            if name.lower() not in kept
        ]
        return _Answer(answer.status, headers, content)

    def _reply(self, answer: _Answer, *, torn: bool = False) -> None:
        self.send_response_only(answer.status)
        for name, value in answer.headers:
            self.send_header(name, value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body[: len(answer.body) // 2] if torn else answer.body)
        if torn:
            self._cut()

    def _cut(self) -> None:
        """Ends the connection. The client is told nothing, or no more than it was."""
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
