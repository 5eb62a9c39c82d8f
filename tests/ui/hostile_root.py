"""A root whose texts attack what shows them, and whose topics are of all kinds; made by hand."""

from pathlib import Path

from handmade import Record, Topic, batch, batches, records, sample

HOSTILE = (
    "<script>window.owned = 1</script>",
    '<img src=x onerror="window.owned = 1">',
    '"><svg onload="window.owned = 1">',
    "javascript:window.owned=1",
    "</td></table><iframe src='//evil.example/'></iframe>",
    "left\u202eright\u2066 \u200bzero",
    "\x1b[31mred\x1b[0m\x1b]0;title\x07 \x00 \r\n",
    "{{constructor.constructor('window.owned = 1')()}}",
)


def hostile_root(path: Path) -> None:
    """Topics: `t` of handmade.sample, `gaps` with missing offsets, `hostile`, `json`, and `broken`, whose newest version is damaged."""
    sample(path)
    gaps = Topic(path, "gaps")
    for begin in range(0, 3_000, 100):
        deltas = [0, 7, 50, 99]
        octets = batch(records(4, f"g{begin}"), begin, deltas=deltas)
        gaps.commit(gaps.data(octets, offsets="tiled"))
    hostile = Topic(path, "hostile")
    for text in HOSTILE:
        octets = text.encode()
        headers = ((octets.replace(b"\0", b""), octets), (b"null", None))
        hostile.commit(hostile.data(batch([Record(octets, octets, headers=headers)])), writer=text.replace("\0", ""))
    plain = Topic(path, "json", partitions=3)
    values = [b'{"id": %d, "big": 12345678901234567890, "deep": {"list": [1, 2.50, null, "\\u202e"]}}' % number for number in range(60)]
    for partition in range(3):
        plain.commit(plain.data(batches([Record(value, b"\xff\x00key%d" % partition) for value in values]), partition))
    broken = Topic(path, "broken")
    broken.append(records(3))
    broken.append(records(3))
    broken.version_file(1).write_bytes(broken.version_file(1).read_bytes().replace(b'"time"', b'"tame"'))
