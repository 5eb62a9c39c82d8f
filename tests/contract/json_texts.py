"""Bytes of version files: right ones that differ from a writer's, and wrong ones that readers must refuse. FORMAT.md section 5."""

import re
from collections.abc import Callable

OTHER_TEXTS: dict[str, Callable[[bytes], bytes]] = {
    "white space": lambda line: b" \t\r" + line.replace(b":", b" :\t", 1) + b"  ",
    "a pair of surrogates in escapes": lambda line: with_field(line, b'"more":"\\ud83d\\uDE00"'),
    "a name in escapes": lambda line: line.replace(b'"time"', b'"\\u0074ime"'),
    "a slash in escapes": lambda line: line.replace(b"data/", b"data\\/"),
    "zero with a sign": lambda line: with_field(line, b'"more":-0'),
    "a time of -0": lambda line: re.sub(rb'"time": ?[0-9]+', b'"time":-0', line),
    "long escapes of a short string": lambda line: with_field(line, b'"more":"' + b"\\u0061" * 32_768 + b'"'),
}
"""Changes of the bytes that leave the meaning as it is."""

WRONG_TEXTS: dict[str, Callable[[bytes], bytes]] = {
    "a byte order mark": lambda line: b"\xef\xbb\xbf" + line,
    **{encoding: lambda line, encoding=encoding: line.decode().encode(encoding) for encoding in ("utf-16-be", "utf-16-le", "utf-32-be")},
    **{
        f"a string of the bytes {octets.hex()}": lambda line, octets=octets: with_field(line, b'"more":"' + octets + b'"')
        for octets in (
            *(b"\xff", b"\x80", b"\xc3", b"\xe2\x82", b"\xc0\xaf", b"\xc1\xbf", b"\xe0\x80\xaf", b"\xf0\x80\x80\xaf"),
            *(b"\xed\xa0\x80", b"\xed\xa0\xbd\xed\xb8\x80", b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80", b"\0", b"\x1f", b"\t"),
            *(rb"\x", rb"\u12", rb"\u+123", rb"\U00000041", rb"\'"),
        )
    },
    **{
        f"the value {value[:40].decode()} of {len(value)} bytes": lambda line, value=value: with_field(line, b'"more":' + value)
        for value in (
            *(b"NaN", b"Infinity", b"-Infinity", b"nan", b"True", b"nul", b"undefined", b"'more'", b"more", b""),
            *(b"1.0", b"0.0", b"1e3", b"1E3", b"1e-400", b"1e400", b"0." + b"1" * 40, b"9" * 30, b"9" * 5_000),
            *(b"+1", b"01", b"-01", b"-", b".5", b"5.", b"0x1", b"1_000", "١".encode(), b"- 1"),
            *(
                b"[1,]",
                b"[,1]",
                b"[1 2]",
                b'{"a":1,}',
                b'{"a"}',
                b"{a:1}",
                b"[",
                b"]",
                b"[" * 8 + b"]" * 8,
                b"[" * 100_000 + b"]" * 100_000,
            ),
            *(b'{"a":1,"a":2}', b'{"a":1,"\\u0061":2}', b'[[{"":1,"":1}]]'),
        )
    },
    "a field twice": lambda line: with_field(line, b'"time":1'),
    "a field twice, once in escapes": lambda line: with_field(line, b'"\\u0074ime":1'),
    "a key of the configuration twice": lambda line: line.replace(b'"config": {', b'"config": {"more":"1","more":"1"', 1),
    "a comment": lambda line: b"/* more */" + line,
    "a comment at the end": lambda line: line + b"// more",
    "a zero at the end": lambda line: line + b"\0",
    "a second value": lambda line: line + b" {}",
    "a separator": lambda line: line + b"\x1e",
    "a space that is none": lambda line: "\u00a0".encode() + line,
    **{f"only {text!r}": lambda line, text=text: text for text in (b"", b" ", b"[]", b"null", b"1", b'""', b"{}")},
}
"""Changes after which the bytes are not JSON, or not the JSON that FORMAT.md allows."""


def with_field(line: bytes, field: bytes) -> bytes:
    """A JSON object with one more field in front."""
    return b"{" + field + b"," + line[1:]
