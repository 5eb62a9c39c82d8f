"""Tasks of Spark that wait for the test, so that what happens meanwhile is no matter of time."""

import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

WAIT_S = 600


class Held:
    """`held(value)` in SQL, and `held` in DataFrames: the value, once the test lets its task go on, or after two minutes."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        folder.mkdir()

        @udf(returnType="string", useArrow=False)
        def held(value: str) -> str:
            (folder / f"began-{value}").touch()
            end = time.monotonic() + WAIT_S
            while not (folder / "goes-on").exists() and time.monotonic() < end:
                time.sleep(0.02)
            return value

        self.folder, self.held = folder, held
        spark.udf.register("held", held)

    def wait_for(self, *values: str) -> None:
        """Waits until the tasks of values have begun: what they belong to was planned before."""
        end = time.monotonic() + WAIT_S
        while not all((self.folder / f"began-{value}").exists() for value in values):
            assert time.monotonic() < end, values
            time.sleep(0.02)

    def go_on(self) -> None:
        (self.folder / "goes-on").touch()
