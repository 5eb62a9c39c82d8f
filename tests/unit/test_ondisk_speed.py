"""How fast the reader in Python decodes, beside kafka-python over the same batches."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_decoding_is_ten_times_as_fast_as_kafka_python(repository: Path) -> None:
    command = [sys.executable, str(repository / "bench" / "decode_python.py")]
    environment = os.environ | {"PYTHONPATH": str(repository)}
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    lines = [json.loads(line) for line in printed.splitlines()]
    print(printed)
    # Where batches are compressed, both spend their time in the same library.
    ratios = {line["case"]: line["ratio"] for line in lines if "gzip" not in line["case"]}
    assert len(ratios) == len(lines) - 1
    assert min(ratios.values()) >= 10, ratios
