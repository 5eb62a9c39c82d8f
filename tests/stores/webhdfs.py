"""Files of HDFS by its HTTP interface, for tests that look at a store from outside."""

import getpass
import json
import string
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence


class WebHdfs:
    """Asks the NameNode that is active of these addresses, "127.0.0.1:port" each. OSError if none is."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = addresses

    def write(self, path: str, content: bytes) -> None:
        """Writes a file that is not there yet, and the folders above it. HTTPError 403 if it is there."""
        place = self._place("PUT", path, op="CREATE", overwrite="false")
        with urllib.request.urlopen(urllib.request.Request(place, content, method="PUT"), timeout=60):
            pass

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """The bytes of a file from `offset` on. HTTPError 404 if it is not there."""
        place = self._place("GET", path, op="OPEN", offset=offset, **({} if length is None else {"length": length}))
        with urllib.request.urlopen(place, timeout=60) as answer:
            return bytes(answer.read())

    def data_nodes(self, path: str) -> int:
        """How many DataNodes have all blocks of a file."""
        query = urllib.parse.urlencode({"op": "GET_BLOCK_LOCATIONS", "user.name": getpass.getuser()})
        with urllib.request.urlopen(f"http://{self._addresses[0]}/webhdfs/v1{urllib.parse.quote(path)}?{query}", timeout=60) as answer:
            blocks = json.load(answer)["LocatedBlocks"]["locatedBlocks"]
        return min(len(block["locations"]) for block in blocks)

    def delete(self, path: str) -> None:
        """Deletes a file, or a folder with all that is in it, if it is there."""
        query = urllib.parse.urlencode({"op": "DELETE", "recursive": "true", "user.name": getpass.getuser()})
        url = f"http://{self._addresses[0]}/webhdfs/v1{urllib.parse.quote(path)}?{query}"
        with urllib.request.urlopen(urllib.request.Request(url, method="DELETE"), timeout=60):
            pass

    def _place(self, method: str, path: str, **parameters: object) -> str:
        """Where the NameNode sends a client for bytes. A failover is waited out."""
        query = urllib.parse.urlencode({**parameters, "noredirect": "true", "user.name": getpass.getuser()})
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            for address in self._addresses:
                request = urllib.request.Request(f"http://{address}/webhdfs/v1{urllib.parse.quote(path)}?{query}", method=method)
                try:
                    with urllib.request.urlopen(request, timeout=60) as answer:
                        return urllib.parse.quote(str(json.load(answer)["Location"]), safe=string.punctuation)
                except urllib.error.HTTPError as error:
                    told = error.read()
                    # A NameNode that starts up says the second.
                    if error.code != 403 or not (b"StandbyException" in told or b"RetriableException" in told):
                        raise
                except OSError:
                    continue
            time.sleep(0.1)
        raise OSError(f"no active NameNode answers at {', '.join(self._addresses)}")
