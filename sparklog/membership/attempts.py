"""Attempts at a change that others may make first."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator

_PAUSE_S = 0.2
_LONGEST_S = 3.2


def attempts() -> Iterator[int]:
    """Numbers from 0 on, and before each but the first a pause: at random up to 0.2 s, then up to twice as long each time, at most 3.2 s.

    So the members of a large group, which all change its state when one of them comes or goes, do not overtake one another for long.
    """
    for number in itertools.count():
        yield number
        time.sleep(random.random() * min(_PAUSE_S * 2**number, _LONGEST_S))
