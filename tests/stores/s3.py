"""An S3 server: versitygw, which keeps objects as plain files, and of which races have shown that it lets one conditional put win."""

import datetime
import hashlib
import hmac
from collections.abc import Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from ports import HOST, free_port
from pyarrow.fs import S3FileSystem
from stores.processes import Daemon, Servers, is_listening

ACCESS_KEY, SECRET_KEY, REGION = "sparklog", "sparklog-secret", "us-east-1"


class S3(Servers):
    """One server with one bucket, called versitygw.

    `endpoint` has the form "http://127.0.0.1:port". Each method that takes an `endpoint` can be given that of a `FaultProxy` instead.
    """

    bucket = "bucket"
    access_key, secret_key, region = ACCESS_KEY, SECRET_KEY, REGION

    def __init__(self, folder: Path, program: Path) -> None:
        self.port = free_port()
        self.endpoint = f"http://{HOST}:{self.port}"
        self.objects = folder / "objects"
        (self.objects / self.bucket).mkdir(parents=True)
        keys = {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}
        command = [str(program), "--port", f"{HOST}:{self.port}", "--region", REGION, "--quiet", "posix", str(self.objects)]
        self.daemons = {"versitygw": Daemon("versitygw", command, folder, keys)}

    def start_all(self) -> None:
        """Starts the server, and waits until it answers."""
        self.start()

    def start(self) -> None:
        """Starts the server again that was killed, with the objects that it left."""
        self.daemons["versitygw"].start()
        self.daemons["versitygw"].wait_until(lambda: is_listening(HOST, self.port))

    def kill(self, name: str = "versitygw") -> None:
        """SIGKILL in whatever the server does."""
        super().kill(name)

    def filesystem(self, endpoint: str | None = None, **settings: Any) -> S3FileSystem:
        """The server for pyarrow; files there are named "bucket/…". `settings` are further ones of S3FileSystem."""
        scheme, _, address = (endpoint or self.endpoint).partition("://")
        where = {"endpoint_override": address, "scheme": scheme, "region": REGION}
        return S3FileSystem(access_key=ACCESS_KEY, secret_key=SECRET_KEY, **{**where, **settings})

    def settings(self, endpoint: str | None = None) -> dict[str, str]:
        """The settings of Hadoop's S3A for `s3a://bucket/…`, as a user gives them for a server that is not of AWS."""
        return {
            "fs.s3a.endpoint": endpoint or self.endpoint,
            "fs.s3a.endpoint.region": REGION,
            "fs.s3a.path.style.access": "true",
            "fs.s3a.connection.ssl.enabled": "false",
            "fs.s3a.access.key": ACCESS_KEY,
            "fs.s3a.secret.key": SECRET_KEY,
        }

    def ask(
        self,
        method: str,
        key: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        endpoint: str | None = None,
        query: Mapping[str, str] | None = None,
    ) -> tuple[int, bytes]:
        """Sends one signed request for a key of the bucket, never a second one, and returns the status and the body of the answer.

        The key "" stands for the bucket.
        """
        address = (endpoint or self.endpoint).partition("://")[2]
        path = f"/{self.bucket}/{quote(key)}"
        asked = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in sorted((query or {}).items()))
        connection = HTTPConnection(address, timeout=60)
        try:
            connection.request(method, f"{path}?{asked}" if asked else path, body, _signed(method, address, path, asked, headers or {}))
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def unfinished(self, below: str) -> list[tuple[str, str]]:
        """The uploads in parts that were begun, and neither completed nor aborted, of keys that begin so: key and id."""
        status, answer = self.ask("GET", "", query={"uploads": "", "prefix": below})
        assert status == 200, answer
        uploads = ElementTree.fromstring(answer).iterfind("{*}Upload")
        return [(upload.findtext("{*}Key", ""), upload.findtext("{*}UploadId", "")) for upload in uploads]

    def parts(self, key: str, upload: str) -> list[int]:
        """The lengths of the parts that an upload has so far."""
        status, answer = self.ask("GET", key, query={"uploadId": upload})
        assert status == 200, answer
        return [int(part.findtext("{*}Size", "")) for part in ElementTree.fromstring(answer).iterfind("{*}Part")]

    def abort(self, key: str, upload: str) -> None:
        """Ends an upload and frees its parts, as a lifecycle rule does after some days."""
        status, answer = self.ask("DELETE", key, query={"uploadId": upload})
        assert status == 204, answer


def _signed(method: str, host: str, path: str, query: str, headers: Mapping[str, str]) -> dict[str, str]:
    """The headers with AWS's signature, version 4. The query is in the order of its names."""

    def keyed(key: bytes, text: str) -> bytes:
        return hmac.digest(key, text.encode(), "sha256")

    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    scope = (now[:8], REGION, "s3", "aws4_request")
    signed = {"host": host, "x-amz-content-sha256": "UNSIGNED-PAYLOAD", "x-amz-date": now}
    lines = "".join(f"{name}:{value}\n" for name, value in signed.items())
    canonical = "\n".join((method, path, query, lines, ";".join(signed), "UNSIGNED-PAYLOAD"))
    to_sign = "\n".join(("AWS4-HMAC-SHA256", now, "/".join(scope), hashlib.sha256(canonical.encode()).hexdigest()))
    key = f"AWS4{SECRET_KEY}".encode()
    for part in scope:
        key = keyed(key, part)
    credential, signature = f"{ACCESS_KEY}/{'/'.join(scope)}", keyed(key, to_sign).hex()
    signed["authorization"] = f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={';'.join(signed)}, Signature={signature}"
    return {**headers, **signed}
