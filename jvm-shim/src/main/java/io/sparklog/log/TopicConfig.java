package io.sparklog.log;

import io.sparklog.format.Codec;
import io.sparklog.format.TimestampType;
import io.sparklog.partition.Partitioner;
import io.sparklog.spec.Option;
import io.sparklog.spec.Options;
import java.io.Serializable;
import java.util.Collections;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** A topic's configuration. Values are text, as in version files and in Kafka; unknown keys are kept. FORMAT.md section 5. */
public final class TopicConfig implements Serializable {
  private static final long serialVersionUID = 1;

  public static final String PARTITIONS = "partitions";
  public static final String PARTITIONER = "partitioner";
  public static final String COMPRESSION = "compression.type";
  public static final String SEGMENT_BYTES = "segment.bytes";
  public static final String MAX_MESSAGE_BYTES = "max.message.bytes";
  public static final String TIMESTAMP_TYPE = "message.timestamp.type";
  public static final String INDEX_INTERVAL_BYTES = "index.interval.bytes";

  /** The options that declare the known keys. */
  private static final Map<String, Option> KNOWN = Stream
      .of(PARTITIONS, PARTITIONER, COMPRESSION, SEGMENT_BYTES, MAX_MESSAGE_BYTES, TIMESTAMP_TYPE, INDEX_INTERVAL_BYTES)
      .collect(Collectors.toUnmodifiableMap(key -> key, Option::ofTopic));

  private final TreeMap<String, String> entries;
  private final int partitions;
  private final Partitioner partitioner;
  private final Codec codec;
  private final int segmentBytes;
  private final int maxMessageBytes;
  private final TimestampType timestampType;
  private final int indexIntervalBytes;

  /**
   * What version files and checkpoints hold. FORMAT.md sections 5 and 10 allow the values that the options allow, in one form each.
   *
   * @throws Damaged that names the key whose value is missing or not allowed
   */
  TopicConfig(Map<String, String> entries) throws Damaged {
    this.entries = new TreeMap<>(entries);
    for (Map.Entry<String, Option> known : KNOWN.entrySet()) {
      String value = entries.get(known.getKey());
      Damaged.unless(value != null, "config " + known.getKey() + " is missing");
      Damaged.unless(known.getValue().isCanonical(value),
          "config " + known.getKey() + " is " + value + ", not " + known.getValue().expected());
    }
    this.partitions = Integer.parseInt(entries.get(PARTITIONS));
    this.partitioner = Partitioner.named(entries.get(PARTITIONER));
    this.codec = Codec.named(entries.get(COMPRESSION));
    this.segmentBytes = Integer.parseInt(entries.get(SEGMENT_BYTES));
    this.maxMessageBytes = Integer.parseInt(entries.get(MAX_MESSAGE_BYTES));
    this.timestampType = TimestampType.named(entries.get(TIMESTAMP_TYPE));
    this.indexIntervalBytes = Integer.parseInt(entries.get(INDEX_INTERVAL_BYTES));
  }

  /** The configuration that options give, after {@link Options} has checked them. */
  public static TopicConfig of(Map<String, String> checked) {
    try {
      return new TopicConfig(checked);
    } catch (Damaged e) {
      throw new IllegalStateException(e);
    }
  }

  public SortedMap<String, String> entries() {
    return Collections.unmodifiableSortedMap(entries);
  }

  public int partitions() {
    return partitions;
  }

  public Partitioner partitioner() {
    return partitioner;
  }

  public Codec codec() {
    return codec;
  }

  /** The most bytes of a segment. */
  public int segmentBytes() {
    return segmentBytes;
  }

  /** The most bytes of a batch before compression. */
  public int maxMessageBytes() {
    return maxMessageBytes;
  }

  public boolean logAppendTime() {
    return timestampType == TimestampType.LOG_APPEND_TIME;
  }

  public int indexIntervalBytes() {
    return indexIntervalBytes;
  }

  /** The most bytes of a batch that a writer makes. */
  public int batchBytesMax() {
    return Math.min(maxMessageBytes, segmentBytes);
  }

  /** The most bytes that a batch may decompress to. FORMAT.md section 10. */
  public long decompressedBytesMax() {
    return Math.max(64L << 20, maxMessageBytes);
  }

  /** {@code "8 partitions by murmur3"}: what two writers must agree on. */
  public String routing() {
    return partitions + " partitions by " + partitioner.optionName();
  }
}
