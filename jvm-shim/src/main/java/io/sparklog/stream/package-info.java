/**
 * The next reads of a streaming query, without Spark: its topics and where they began, the limits of a trigger, and the shares of
 * partitions and tasks. FORMAT.md annex F.
 *
 * <p>The classes of a stream, each row beside the name of its package:
 *
 * <pre>{@code
 *  source     PartlogScan --> PartlogStream (Spark's calls and its log of offsets)
 *                               |
 *  stream                       TopicStream (the end and the records of the next micro-batch)
 *                               +- StreamTopics, StreamStart (the topics by id, and where the query began), StreamOffsets
 *                               +- Barrier (not over a re-route), TriggerLimits, OffsetShares, ByteShares (the share of waiting records)
 *                               +- Lag (the metrics)
 *                               +- TaskShares (small splits share a task) --> as in a batch
 *  feed                         CommitReader (an idle query waits between refreshes)
 *  log                          ReadableTopics.recentTopics, .newest, QueryStart (a file of the query's checkpoint)
 *  storage                      CheckpointFolders, CheckpointFolder, HadoopFolder
 * }</pre>
 */
package io.sparklog.stream;
