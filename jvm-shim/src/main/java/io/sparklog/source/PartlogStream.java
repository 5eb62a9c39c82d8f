package io.sparklog.source;

import io.sparklog.log.ReadableTopics;
import io.sparklog.read.Filter;
import io.sparklog.read.Selection;
import io.sparklog.read.Split;
import io.sparklog.read.SplitPlanner;
import io.sparklog.spark.SparkErrors;
import io.sparklog.spark.StreamingQueries;
import io.sparklog.spec.Options;
import io.sparklog.spec.Warnings;
import io.sparklog.stream.StreamOffsets;
import io.sparklog.stream.StreamStart;
import io.sparklog.stream.TaskShares;
import io.sparklog.stream.TopicStream;
import io.sparklog.stream.TriggerLimits;
import java.time.Clock;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.CompositeReadLimit;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReadMaxBytes;
import org.apache.spark.sql.connector.read.streaming.ReadMaxRows;
import org.apache.spark.sql.connector.read.streaming.ReadMinRows;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.types.StructType;

/** {@link TopicStream} as Spark's engine of micro-batches calls it: one for each run of a query. */
final class PartlogStream implements MicroBatchStream, SupportsTriggerAvailableNow, ReportsSourceMetrics, StreamingQueries.WriteListener {
  private final ReadableTopics root;
  private final StructType schema;
  private final Options options;
  private final SplitPlanner.SplitSize splitSize;
  private final String checkpoint;
  private final TriggerLimits limits;
  private final TopicStream stream;

  /** The offsets that Spark was given last: it hands their JSON back at every poll. */
  private StreamOffsets given;

  /** The topics that the query both reads and writes, and was warned of. */
  private final Set<String> circles = new HashSet<>();

  /**
   * @param schema the columns to return
   * @param options of a stream
   * @param start the start of the query by its checkpoint
   */
  PartlogStream(ReadableTopics root, StructType schema, Options options, SplitPlanner.SplitSize splitSize, StreamStart start, Clock clock) {
    this.root = root;
    this.schema = schema;
    this.options = options;
    this.splitSize = splitSize;
    this.checkpoint = start.checkpoint();
    this.limits = TriggerLimits.of(options);
    this.stream = new TopicStream(root, options, start, clock);
  }

  @Override
  public synchronized Offset initialOffset() {
    return SparkErrors.run(() -> new StreamOffset(stream.initial()));
  }

  @Override
  public synchronized Offset deserializeOffset(String json) {
    return SparkErrors.run(() -> {
      // Spark asks this first where it repeats the first micro-batch: the start must not be resolved again.
      stream.requireBegun();
      return new StreamOffset(parse(json));
    });
  }

  private StreamOffsets parse(String json) {
    if (given == null || !given.json().equals(json)) {
      given = StreamOffsets.parse(json, checkpoint);
    }
    return given;
  }

  @Override
  public ReadLimit getDefaultReadLimit() {
    List<ReadLimit> given = new ArrayList<>();
    if (limits.bytesMax() < Long.MAX_VALUE) {
      given.add(ReadLimit.maxBytes(limits.bytesMax()));
    }
    if (limits.offsetsMax() < Long.MAX_VALUE) {
      given.add(ReadLimit.maxRows(limits.offsetsMax()));
    }
    if (limits.offsetsMin() > 0) {
      given.add(ReadLimit.minRows(limits.offsetsMin(), limits.delayMs()));
    }
    return given.isEmpty() ? ReadLimit.allAvailable() : ReadLimit.compositeLimit(given.toArray(ReadLimit[]::new));
  }

  /** The limits that Spark asks for; kinds of limits that have no meaning here are ignored. */
  private static TriggerLimits asked(ReadLimit limit, TriggerLimits before) {
    if (limit instanceof CompositeReadLimit all) {
      TriggerLimits asked = before;
      for (ReadLimit part : all.getReadLimits()) {
        asked = asked(part, asked);
      }
      return asked;
    }
    if (limit instanceof ReadMaxRows rows) {
      return before.offsetsMax(rows.maxRows());
    }
    if (limit instanceof ReadMaxBytes bytes) {
      return before.bytesMax(bytes.maxBytes());
    }
    return limit instanceof ReadMinRows rows ? before.offsetsMin(rows.minRows(), rows.maxTriggerDelayMs()) : before;
  }

  @Override
  public Offset latestOffset(Offset start, ReadLimit limit) {
    stream.await();
    return latest(start, limit);
  }

  private synchronized Offset latest(Offset start, ReadLimit limit) {
    return SparkErrors.run(() -> {
      StreamOffsets from = offsets(start);
      given = stream.next(from, asked(limit, TriggerLimits.NONE));
      return new StreamOffset(given);
    });
  }

  @Override
  public Offset latestOffset() {
    throw new UnsupportedOperationException("Spark calls latestOffset(start, limit)");
  }

  @Override
  public synchronized Offset reportLatestOffset() {
    return SparkErrors.run(() -> new StreamOffset(stream.newest()));
  }

  @Override
  public synchronized void prepareForTriggerAvailableNow() {
    SparkErrors.act(stream::stopAtNewest);
  }

  /** Spark may hand back its own kind of offset, which holds the JSON. */
  private StreamOffsets offsets(Offset offset) {
    return offset instanceof StreamOffset own ? own.offsets() : parse(offset.json());
  }

  @Override
  public synchronized InputPartition[] planInputPartitions(Offset start, Offset end) {
    return SparkErrors.run(() -> {
      List<Selection.OffsetRange> ranges = stream.ranges(offsets(start), offsets(end));
      SplitPlanner planner = new SplitPlanner(root, splitSize, options.bool("failOnDataLoss"), stream.walked())
          .withEpochs(RecordVectors.needEpochs(schema));
      List<Split> splits = planner.plan(Selection.of(ranges, Filter.ALL_RECORDS));
      int tasks = Math.max(splitSize.splitsMin(), splitSize.parallelism());
      return TaskShares.of(splits, tasks, splitSize.recordsMax())
          .stream()
          .map(share -> new PartlogReaderFactory.PartlogInputPartition.Plain(share))
          .toArray(InputPartition[]::new);
    });
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new PartlogReaderFactory(root.reference(), schema, options.bool("failOnDataLoss"), Long.MAX_VALUE);
  }

  @Override
  public synchronized Map<String, String> metrics(Optional<Offset> latestConsumedOffset) {
    return SparkErrors.run(() -> stream.metrics(latestConsumedOffset.map(this::offsets).orElse(null)));
  }

  @Override
  public synchronized void written(String location, String topic) {
    if (given != null && location.equals(root.location()) && given.topics().contains(topic) && circles.add(topic)) {
      Warnings.warn(PartlogStream.class,
          "The streaming query with the checkpoint {} writes to topic {} under {}, which it reads: each record that it writes there comes "
              + "back to it. Write to another topic, or filter what comes back.",
          checkpoint, topic, location);
    }
  }

  /**
   * A micro-batch of the query has ended: Spark tells this when it constructs the next micro-batch. The sink's commits and Spark's log show
   * which records were read; no offset is kept here.
   */
  @Override
  public void commit(Offset end) {
    stream.ended();
  }

  @Override
  public void stop() {}

  /** {@code partlog[subscribe=orders] /data/log} */
  @Override
  public String toString() {
    return "partlog[" + stream + "] " + root.location();
  }

  /** {@link StreamOffsets} as Spark keeps them in its log of offsets. Spark compares the JSON. */
  private static final class StreamOffset extends Offset {
    private final StreamOffsets offsets;

    StreamOffset(StreamOffsets offsets) {
      this.offsets = offsets;
    }

    StreamOffsets offsets() {
      return offsets;
    }

    @Override
    public String json() {
      return offsets.json();
    }
  }
}
