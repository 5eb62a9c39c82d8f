"""Reads topics on and on without a JVM and without Spark, under the names that Kafka's clients for Python have."""

from sparklog.consumer.consumer import Consumer
from sparklog.consumer.delta_output import DeltaOutput
from sparklog.consumer.records import (
    ConsumerRecord,
    Fetched,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    RecordDeserializationError,
    TopicPartition,
)

__all__ = [
    "Consumer",
    "ConsumerRecord",
    "DeltaOutput",
    "Fetched",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "RecordDeserializationError",
    "TopicPartition",
]
