"""Answers as JSON: ASCII, exact numbers, bounded bytes, and errors with the texts of the log."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sparklog.errors import SparklogError, declared

_EXACT = 2**53 - 1
"""JavaScript reads larger integers as another number, so they are sent as text."""
_AT_ONCE = 4
"""So many requests read at a time; a thread and a few megabytes each. The others wait."""
_WAIT_S = 15
_ANSWER_S = 30
_DOWNLOADS = 4
_PIECE = 1 << 18
_STATUS = {"call": 400, "data": 500, "upgrade": 500, "retry": 503, "unknown": 500, "fenced": 409}
_ABSENT = {"TOPIC_NOT_FOUND", "PARTITION_NOT_FOUND", "GROUP_NOT_FOUND", "OFFSETS_TABLE_NOT_FOUND", "ROOT_NOT_FOUND"}
_reading = threading.BoundedSemaphore(_AT_ONCE)


class Refused(Exception):
    """A request that is not answered, for a reason that is not the log's."""

    def __init__(self, status: int, condition: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.condition = condition


def written(content: object) -> bytes:
    """JSON in ASCII, in which every integer is exact."""
    return json.dumps(_exact(content), separators=(",", ":"), allow_nan=False).encode("ascii")


def _exact(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _exact(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_exact(each) for each in content]
    if isinstance(content, int) and not -_EXACT <= content <= _EXACT:
        return str(content)
    return content


def failure(error: Exception) -> tuple[int, dict[str, Any]]:
    """The status and the content with which an error is answered."""
    if isinstance(error, SparklogError):
        kind = declared()[error.id].kind
        content = {"condition": error.condition, "text": text_of(error), "kind": kind}
        return 404 if error.id in _ABSENT else _STATUS[kind], {"error": content}
    if isinstance(error, Refused):
        return error.status, {"error": {"condition": error.condition, "text": str(error), "kind": "call"}}
    text = f"{type(error).__name__}: {error}"[:2_000]
    return 500, {"error": {"condition": "UNEXPECTED", "text": text, "kind": "unknown"}}


def text_of(error: SparklogError) -> str:
    """The text of an error, without its condition."""
    return str(error).removeprefix(f"[{error.condition}] ")


def respond(status: int, content: object) -> Response:
    """A response that is JSON."""
    return Response(written(content), status, media_type="application/json")


class Download(Response):
    """Bytes that a browser saves as a file. They are sent in pieces, and kept until the browser has them, so there are few at a time."""

    _open = 0

    def __init__(self, name: str, data: bytes) -> None:
        headers = {"content-disposition": f'attachment; filename="{name}"', "content-length": str(len(data))}
        super().__init__(None, media_type="application/octet-stream", headers=headers)
        self._data = memoryview(data)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if Download._open >= _DOWNLOADS:
            await respond(*failure(Refused(503, "BUSY", f"{_DOWNLOADS} files are being saved. Try again.")))(scope, receive, send)
            return
        Download._open += 1
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            for first in range(0, len(self._data), _PIECE):
                await send({"type": "http.response.body", "body": bytes(self._data[first : first + _PIECE]), "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            Download._open -= 1


def answering(answer: Callable[[Request], object]) -> Callable[[Request], Any]:
    """An endpoint that answers with the result of a function, which runs in a thread, or with the error that it raises."""

    def limited(request: Request) -> Response:
        if not _reading.acquire(timeout=_WAIT_S):
            raise Refused(503, "BUSY", f"{_AT_ONCE} other requests are being read. Try again.")
        try:
            found = answer(request)
            return found if isinstance(found, Response) else respond(200, found)
        finally:
            _reading.release()

    async def endpoint(request: Request) -> Response:
        try:
            with anyio.fail_after(_ANSWER_S):
                return await anyio.to_thread.run_sync(limited, request, abandon_on_cancel=True)
        except TimeoutError:
            return respond(*failure(Refused(503, "TOOK_TOO_LONG", f"It took more than {_ANSWER_S} seconds. Ask for less.")))
        except Exception as error:
            return respond(*failure(error))

    return endpoint
