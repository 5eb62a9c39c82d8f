"""A partitioned log for Spark that needs no server."""

from sparklog.errors import CallError, DataError, RetryError, SparklogError, UnknownOutcomeError, UpgradeError
from sparklog.partitioning import murmur2_partition, murmur3_partition, partition_for
from sparklog.session import configure, session

__all__ = [
    "CallError",
    "DataError",
    "RetryError",
    "SparklogError",
    "UnknownOutcomeError",
    "UpgradeError",
    "configure",
    "murmur2_partition",
    "murmur3_partition",
    "partition_for",
    "session",
]
