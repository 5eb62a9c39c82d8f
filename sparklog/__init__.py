"""A partitioned log for Spark that needs no server."""

from typing import TYPE_CHECKING, Any

from sparklog.errors import CallError, DataError, GenerationFencedError, RetryError, SparklogError, UnknownOutcomeError, UpgradeError
from sparklog.router import partition_for
from sparklog.spark.attach import attach
from sparklog.spark.progress import progress
from sparklog.spark.session import configure, jar, session
from sparklog.spark.txn_options import txn_options

if TYPE_CHECKING:
    from sparklog import groups as groups
    from sparklog.consumer import Consumer, ConsumerRecord, TopicPartition
    from sparklog.log.log import Log
    from sparklog.log.topic import Topic
    from sparklog.producer import Producer, RecordFuture, RecordMetadata
    from sparklog.queries.placement import Placement

__version__ = "0.1.0"

__all__ = [
    "CallError",
    "Consumer",
    "ConsumerRecord",
    "DataError",
    "GenerationFencedError",
    "Log",
    "Placement",
    "Producer",
    "RecordFuture",
    "RecordMetadata",
    "RetryError",
    "SparklogError",
    "Topic",
    "TopicPartition",
    "UnknownOutcomeError",
    "UpgradeError",
    "attach",
    "configure",
    "jar",
    "partition_for",
    "progress",
    "session",
    "txn_options",
]

# Texts and pages show the public name. The price: `inspect.getsource` does not find these classes, and httpx's neither.
for _name in {*__all__} & {*globals()}:  # the classes that are imported late do so themselves
    globals()[_name].__module__ = __name__


def __dir__() -> list[str]:
    return sorted({*__all__, "groups", *(name for name in globals() if name.startswith("__"))})


if not TYPE_CHECKING:  # type checkers then refuse a name that does not exist

    def __getattr__(name: str) -> Any:
        # These import Arrow. A program that only configures Spark should not wait for that.
        if name in ("Log", "Topic"):
            from sparklog import log

            return getattr(log, name)
        if name == "Placement":
            from sparklog.queries.placement import Placement

            return Placement
        if name in ("Producer", "RecordFuture", "RecordMetadata"):
            from sparklog import producer

            return getattr(producer, name)
        if name == "groups":
            import importlib

            return importlib.import_module("sparklog.groups")
        if name in ("Consumer", "ConsumerRecord", "TopicPartition"):
            from sparklog import consumer

            return getattr(consumer, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
