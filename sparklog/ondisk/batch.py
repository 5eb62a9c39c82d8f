"""Record batches: from bytes to records, everything checked first. FORMAT.md sections 3 and 10."""

from __future__ import annotations

import google_crc32c
import numpy as np

from sparklog.ondisk.codecs import decompress
from sparklog.ondisk.layout import HEADER_BYTES, SUMMED_FROM, Damaged, Header
from sparklog.ondisk.records import Section


def crc32c(data: memoryview) -> int:
    # Of what need not be copied, google-crc32c takes NumPy's arrays only.
    return int(google_crc32c.value(np.frombuffer(data, dtype=np.uint8)))


def section(header: Header, batch: memoryview, base_offset: int, decompressed_max: int) -> Section:
    """The records of a whole batch, once its checksum is known to be right."""
    if (found := crc32c(batch[SUMMED_FROM:])) != header.crc:
        raise Damaged(f"its checksum is {header.crc:08x} where its bytes have {found:08x}")
    payload = batch[HEADER_BYTES:]
    if header.codec == 0 or not payload:
        return Section(header, base_offset, [payload], len(payload))
    pieces = decompress(header.codec, payload, decompressed_max)
    return Section(header, base_offset, pieces, sum(map(len, pieces)))
