"""Reads topics on and on without a JVM and without Spark, under the names that Kafka's clients for Python have.

The classes of a consumer, each row beside the name of its package:

     consumer     Consumer (the program's calls, arguments, and errors)
                    +- Shell (answers requests: files, time, callbacks, asynchronous commits) --> Owner, Membership
                         +- Core (the state of the consumer, without I/O: it runs its parts, and follows the group)
                         |    +- Subscription (the topics that the program named, in their newest known states)
                         |    +- Shares (the partitions that it holds, with their positions and fetched records)
                         |    +- Committing (commits of positions), Callbacks (notifications of the program)
                         |    +- Fetching (the next records) --> Reroutes, Barrier (the partitions that wait at re-routes)
                         +- Alone, Owned, Shared (the group: none, one of its own, one that is shared)
                         +- TopicReads (a topic: its newest state, and where in its segments the last reads stopped)
     membership   Membership (answers requests: table, lock, clock) --> Heartbeater (a thread, and the heartbeats of others)
                    +- Standing (the state of a member, without I/O) --> Holdings (its shares, and their committed positions)
     offsets      OffsetTable (for operators and viewers) --+
                  Owner (one generation of a group) --------+-> Generations (claims and commits) --> Lake (the Delta table)
     ondisk       TopicLogs (each topic of a root is opened once), TopicWatch (looks for commits), PartitionReader.part (whole batches)
"""

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
