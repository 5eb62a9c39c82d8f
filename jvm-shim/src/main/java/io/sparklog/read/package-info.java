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
 *  read         +- Selection, Filter, Intervals (which records)         SplitReader (a split: its extents, one after another)
 *               +- SplitPlanner, SplitSize --> Split ------------------>  +- VisibleRecords, RecordFilter, Keys (which of a batch)
 *                    +- ExtentFinder, BatchLocator                        |
 *               LaterState, on both sides: the newest state, when a data file is gone
 *  log          ReadableTopics <-- Root, TopicLog --> State <-- Version, Checkpoint
 *  segment      Extent                                                  ExtentReader, ReadAhead (an extent: its batches)
 *               SegmentFile, BatchWalk, on both sides: an opened segment, and a walk over its headers
 *  format     OffsetIndex                                             BatchHeader, BatchDecoder, RecordParser, Decompressor
 *  storage    ReadStore.list, ReadStore.read                          StoreRef, FileReader
 * }</pre>
 */
package io.sparklog.read;
