"""Attempts at a change that others may make first."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator

_PAUSE_S = 0.2
_LONGEST_S = 3.2


def attempts() -> Iterator[int]:
    """Numbers from 0 on, with a random pause before each but the first. The pause is up to 0.2 s, then up to twice as long each time, at
    most 3.2 s.

    All members of a large group change its state when a member comes or goes. With the pauses they do not overtake one another for long.
    """
    for number in itertools.count():
        yield number
        time.sleep(random.random() * min(_PAUSE_S * 2**number, _LONGEST_S))
