/**
 * Writing, without Spark: record batches into data files, and one commit for each topic. A task fills a {@link
 * io.sparklog.write.TaskWriter}, which makes a {@link io.sparklog.write.TopicReport} of each topic; the driver hands the reports to {@link
 * io.sparklog.write.TopicCommits}. FORMAT.md section 7.
 *
 * <p>The classes of a write, each row beside the name of its package:
 *
 * <pre>{@code
 *            on the driver                             in each task                           on the driver
 *  catalog   PartlogProvider, PartlogTable, NewTable
 *  sink      PartlogWrite, WritePlan ----------------> RowWriter, RowColumns --     Report -> PartlogBatchWrite, PartlogStreamWrite
 *                  |                                     |                                      +- WritesOfEpoch, SinkMetrics
 *                  |                                     |                                      +- DriverWrite
 *  spark           |                                     |                                      +- StreamingQueries
 *                  |                                     |                                      |
 *  write           TopicPlan                             TaskWriter                             TopicCommits
 *                  |                                     +- TopicBuffer (a topic)               +- Append (a Change)
 *                  |                                     |   +- PartitionBuffer --> Piece       |   +- PieceCollector
 *                  |                                     +- TaskFiles, TaskTotals               |
 *  upkeep                                                                                       +- TopicWork --> Upkeep
 *  view                                                                                         |   +- KafkaView, SegmentView
 *  log             Root, TopicLog --> State                                                     +- Committer --> NextVersion, Version
 *  segment                                               SegmentBuilder --> Segment
 *  routing                                               Router, Partitioner, NullKeyRouter
 *  format                                                BatchEncoder, Compressor               IndexBuilder
 *  storage         StoreRef, Stores -------------------> LocalStore, HdfsStore, S3Store          LogStore.putIfAbsent, LinkingStore.link
 * }</pre>
 */
package io.sparklog.write;
