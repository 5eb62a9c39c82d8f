"""Reads from S3 whose connections are cut: a client of S3 may take that for the end of an object."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from stores.faults import FaultProxy
from stores.s3 import S3
from stores.test_races import IMPATIENT, in_s3

OFTEN = 50
"""More often than any client tries."""


@pytest.mark.usefixtures("settings_in_environment")
@pytest.mark.parametrize("kind", ["cut", "lose"])
def test_a_cut_connection_is_not_damage(s3: S3, jvm: str, fault_proxy: Callable[[str], FaultProxy], kind: str) -> None:
    proxy = fault_proxy(s3.endpoint)
    tool = in_s3(s3, jvm, proxy.endpoint, **IMPATIENT)
    tool.run("append", tag="a")
    whole = tool.run("read")
    assert whole[0].split()[:2] == ["0", "0"]
    proxy.inject(kind, method="GET", key="_partlog/t/")
    assert tool.run("read") == whole, "once is not noticed"
    proxy.clear()
    proxy.inject(kind, method="GET", key=r"_partlog/t/\d{20}\.json$", times=OFTEN)
    assert tool.outcome("states") == ["t IO"]
    proxy.clear()
    proxy.inject(kind, method="GET", key="_partlog/t/data/", times=OFTEN)
    _, error = tool.start("read").communicate(timeout=60)
    assert "IOException" in error and "PARTLOG_" not in error
