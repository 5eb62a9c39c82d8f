"""A topic made by hand, and the same topic through `sparklog.Log`."""

import os
from pathlib import Path

import hypothesis
import pytest
from handmade import Topic, sample

import sparklog

# As `handmade.draw_seed` does it: the same cases in each `make test`, others in `make soak`. A machine that is busy is slow, and that is
# not a fault.
hypothesis.settings.register_profile(
    "sparklog", derandomize="SPARKLOG_SEED" not in os.environ, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("sparklog")


@pytest.fixture
def topic(tmp_path: Path) -> Topic:
    return sample(tmp_path)


@pytest.fixture
def log(topic: Topic) -> sparklog.Topic:
    return sparklog.Log(topic.root).topic("t")
