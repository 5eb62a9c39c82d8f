"""How large a batch this process may hold, for any configuration of a topic. FORMAT.md section 10."""

from __future__ import annotations

import functools
import os
import resource
from pathlib import Path

from sparklog.errors import SparklogError

_ALWAYS = 64 << 20
"""A batch that the default of `max.message.bytes` allows can always be read."""
_PART = 16
"""A batch is held more than once while it is decoded: in pieces, as a whole, and in the columns made of it."""


@functools.cache
def batch_bytes_max() -> int:
    """The most bytes that the records of a batch may take when decompressed: SPARKLOG_MAX_BATCH_BYTES, or a part of the memory.

    CallError if the variable is not a number of bytes.
    """
    given = os.environ.get("SPARKLOG_MAX_BATCH_BYTES", "")
    if given and not (given.isascii() and given.isdecimal()):
        raise SparklogError(
            "OPTION_VALUE", option="SPARKLOG_MAX_BATCH_BYTES", value=given, reason="it must be a number of bytes, without a unit"
        )
    return max(_ALWAYS, int(given) if given else _memory() // _PART)


def _memory() -> int:
    """The memory that this process may take: the least of the machine's memory, the limit of a control group, and a limit of the shell."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    group = Path("/sys/fs/cgroup/memory.max")
    if group.is_file() and (text := group.read_text(encoding="ascii").strip()).isdecimal():
        found.append(int(text))
    address_space, _ = resource.getrlimit(resource.RLIMIT_AS)
    if address_space != resource.RLIM_INFINITY:
        found.append(address_space)
    return min(found)
