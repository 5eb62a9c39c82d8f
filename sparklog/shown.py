"""Names and texts as messages show them. `io.sparklog.spec.Shown` shows the same; `tests/vectors/names_shown.json` has cases.

A name with a scheme may hold credentials before `@` and settings after `?`. Messages and logs must not have these.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_NAME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):(//([^/?]*))?(/?[^?]*)(\?.*)?", re.DOTALL)
_IN_TEXT = re.compile(r"(?<![a-zA-Z0-9+.-])([0-9+.-]*)([a-zA-Z][a-zA-Z0-9+.-]*:/(?:[^ \t\n\x0b\f\r'\"`<>]*[^ \t\n\x0b\f\r'\"`<>:;,.)])?)")
"""The punctuation after a name does not belong to it: with a colon there, a port would be taken for a secret.

A match begins where a run of the characters of schemes begins, so that a long run is walked through once.
"""
_BUCKETS = re.compile(r"s3.*|gs", re.DOTALL)
_AZURE = re.compile(r"(abfs|wasb)s?")
"""In their names, a container has the place of a user."""
_ADDRESS = re.compile(r"^\[[0-9a-fA-F:.]*\]")
_NO_PORT = re.compile(r".*:.*[^0-9].*|.*:.*:.*|.*:[0-9]{6,}", re.DOTALL)
_CUT = "…"
"""It stands in the place of a part that is not shown."""
_VALUE_CHARACTERS = 100


def name(given: str) -> str:
    """A name, less its secrets. That of a file on a disk has none."""
    found = _NAME.fullmatch(given)
    if found is None or found[1].lower() == "file" or (found[2] is None and not found[4].startswith("/")):
        return given
    scheme, _, host, path, settings = found.groups()
    rest = "" if settings is None else f"?{_CUT}"
    return f"{scheme}:{path}{rest}" if host is None else f"{scheme}://{_without_credentials(scheme, host, path, rest)}"


def text(given: str) -> str:
    """A text, less the secrets of the names in it. One that begins with a name is taken for that name."""
    return _IN_TEXT.sub(lambda found: found[1] + name(found[2]), name(given))


def value(given: str) -> str:
    """A value out of a file or of an answer as a message shows it: its first characters, if it is long."""
    return given if len(given) <= _VALUE_CHARACTERS else given[:_VALUE_CHARACTERS] + _CUT


def parameters(given: Mapping[str, object]) -> dict[str, str]:
    """The parameters of an error as texts. One may repeat a name that is another one, and has an end that cannot be found in a text."""
    texts = {each: str(found) for each, found in given.items()}
    secret = {found: name(found) for found in texts.values() if name(found) != found}
    for each, found in texts.items():
        for whole, shown in secret.items():
            found = found.replace(whole, shown)
        texts[each] = text(found)
    return texts


def _without_credentials(scheme: str, host: str, path: str, rest: str) -> str:
    before, at, after = host.rpartition("@")
    if at:
        shown = before if _AZURE.fullmatch(scheme.lower()) and ":" not in before else _CUT
        return f"{shown}@{after}{path}{rest}"
    # A bucket does not have a port, and a text that is not a port is a secret.
    bucket = _BUCKETS.fullmatch(scheme.lower())
    plain = _ADDRESS.sub("", after)
    if not (":" in plain if bucket else _NO_PORT.fullmatch(plain)):
        return f"{host}{path}{rest}"
    # "key:secret@bucket" whose secret has a slash in it, or more that cannot be taken apart.
    _, at, after = path.rpartition("@")
    return f"{_CUT}@{after}{rest}" if at else _CUT
