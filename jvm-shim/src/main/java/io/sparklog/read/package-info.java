/**
 * Reading, without Spark: which records are wanted ({@link io.sparklog.read.Selection}), how they are shared out to tasks ({@link
 * io.sparklog.read.SplitPlanner}), and how a task reads its share, checked ({@link io.sparklog.read.SplitReader}). FORMAT.md section 9.
 *
 * <p>The classes of a read, each row beside the name of its package:
 *
 * <pre>{@code
 *             on the driver                                           in each task
 *  catalog    PartlogProvider, PartlogTable
 *  source     PartlogScanBuilder -- Predicates, PushedDown            PartlogReaderFactory <-- PartlogInputPartition
 *               +- AggregateScan (counts: from the state alone)          |
 *               +- PartlogScan, PartlogBatch                            PartlogReader -- RecordVectors, RecordVector, HeadersVector
 *                    +- ReadRequest, QueryStates (a state for a query)  |
 *  query        +- Subscription, PartitionJson (which partitions)         |
 *               +- OffsetBounds, Bound, TimeSearch (which offsets)        |
 *  read         +- Selection, Filter, Intervals (which records)         SplitReader (a split)
 *               +- SplitPlanner (SplitSize) --> Split ----------------->  +- VisibleRecords, RecordFilter, Keys (which of a batch)
 *                    +- ExtentFinder, BatchLocator                        +- PartitionCursor (the extents, one after another)
 *               LaterState, on both sides: the newest state, when a data file is gone
 *  log          ReadableTopics <-- Root, TopicLog --> State <-- Version, Checkpoint
 *  segment      Extent                                                  ExtentReader, ReadAhead (an extent: its batches)
 *               SegmentFile, BatchWalk, on both sides: an opened segment, and a walk over its headers
 *  format     OffsetIndex                                             BatchHeader, BatchDecoder, RecordParser, Decompressor
 *  storage    ReadStore.list, ReadStore.read                          StoreRef, FileReader
 * }</pre>
 *
 * <p>A {@link io.sparklog.read.PartitionCursor} also reads without a split, from any offset of a partition, and waits at the end offset.
 * These events may happen between its calls, or within a call:
 *
 * <ul>
 * <li>A merge or a clean-up deleted the data file: the cursor goes on in the file that has the same offsets in the newest state.
 * <li>The data file is gone, and the newest state still has the file: SEGMENT_MISSING.
 * <li>The log start offset rose above the position: OFFSETS_EXPIRED. A caller that may lose records opens a cursor at the log start offset.
 * <li>The topic was deleted: TOPIC_NOT_FOUND. Another topic has the name: TOPIC_REPLACED, also if its offsets would fit.
 * <li>Partitions were added, or keys were re-routed: no effect, since the partition keeps its offsets.
 * <li>The first position is above the end offset: OFFSETS_OUT_OF_RANGE. Later this cannot happen, since end offsets never fall.
 * </ul>
 */
package io.sparklog.read;
