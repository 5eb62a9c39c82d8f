"""Conditions that every request and every response must meet. The page is for one's own browser, which also visits other sites."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sparklog.ui.responses import Refused, failure, respond

HEADERS = {
    # Scripts and styles are files of this server. Nothing else is loaded, and no text can become code.
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}
_PATH_MAX = 1_024
_QUERY_MAX = 16_384


class Guard:
    """Refuses requests that another site could have made, and requests of another kind than reading."""

    def __init__(self, app: ASGIApp, hosts: Collection[str] = ()) -> None:
        self._app = app
        self._hosts = {"localhost", *(host.lower().rstrip(".") for host in hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                for name, value in HEADERS.items():
                    headers[name] = value
                message = {**message, "headers": headers.raw}
            await send(message)

        try:
            self._require(scope)
        except Refused as refused:
            await respond(*failure(refused))(scope, receive, guarded)
        else:
            await self._app(scope, receive, guarded)

    def _require(self, scope: Scope) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            raise Refused(405, "GET_ONLY", "This page only reads: send GET.")
        if len(scope["path"]) > _PATH_MAX or len(scope["query_string"]) > _QUERY_MAX:
            raise Refused(414, "TOO_LONG", f"A path has at most {_PATH_MAX:,} characters, and a query {_QUERY_MAX:,}.")
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._is_known(host):
            text = f"This server does not answer for the host {host[:200]!r}: use its address, or name the host with --allow-host."
            raise Refused(421, "HOST_UNKNOWN", text)
        # A browser says where a request comes from. A link from elsewhere may open the page, but not data: a frame that is not shown would
        # download a file, or follow a topic.
        linked = headers.get("sec-fetch-mode") == "navigate" and not scope["path"].startswith("/api/")
        own = headers.get("sec-fetch-site", "none") in ("none", "same-origin")
        if not (own or linked) or headers.get("origin", f"//{host}").partition("//")[2] != host:
            raise Refused(403, "OTHER_SITE", "Another site asked for this, in your browser.")

    def _is_known(self, host: str) -> bool:
        """Whether a site that an attacker named cannot be behind the Host of a request. An address cannot be bound to another one."""
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
        name = name.lower().rstrip(".")
        if name in self._hosts:
            return True
        try:
            ipaddress.ip_address(name[1:-1] if name[:1] == "[" and name[-1:] == "]" else name)
        except ValueError:
            return False
        return True
