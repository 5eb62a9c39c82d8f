"""Random calls that place, move, merge, delete and rebuild, beside a model: each record is where it must be, each key in order."""

from pathlib import Path

import pytest
from handmade import draw_seed, either
from logtool import LogTool
from protocol.routing_world import World


@pytest.mark.parametrize("number", range(either(2, 60)))
def test_each_record_is_where_the_model_says(tool: LogTool, tmp_path: Path, number: int) -> None:
    world = World(tool, tmp_path, seed := draw_seed() + number)
    try:
        world.run(either(25, 120))
    except BaseException:
        print(f"seed {seed}: {world.acts}")
        raise
