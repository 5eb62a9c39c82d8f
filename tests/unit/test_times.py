"""One text is one time wherever it is given; the connector has the same vectors in TimeTextTest."""

import json
from pathlib import Path

import pytest

from sparklog import CallError, arguments

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "times.json").read_text())


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: repr(vector["time"]))
def test_a_text_is_a_time_or_an_error(vector):
    if vector["millis"] is not None:
        assert arguments.millis(vector["time"]) == vector["millis"]
    else:
        with pytest.raises(CallError, match=r"(?s)Option `--from` has the value .* it is not a time"):
            arguments.millis(vector["time"], "--from")
