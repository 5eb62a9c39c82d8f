package io.sparklog.log;

import io.sparklog.format.Codec;
import io.sparklog.partition.Partitioner;
import java.io.Serializable;
import java.util.Collections;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * What a topic was created with. Values are text, as in version files and in Kafka; keys that are not known are kept. FORMAT.md section 5.
 */
public final class TopicConfig implements Serializable {
  private static final long serialVersionUID = 1;

  public static final String PARTITIONS = "partitions";
  public static final String PARTITIONER = "partitioner";
  public static final String COMPRESSION = "compression.type";
  public static final String SEGMENT_BYTES = "segment.bytes";
  public static final String MAX_MESSAGE_BYTES = "max.message.bytes";
  public static final String TIMESTAMP_TYPE = "message.timestamp.type";
  public static final String INDEX_INTERVAL_BYTES = "index.interval.bytes";

  private final TreeMap<String, String> entries;
  private final int partitions;
  private final Partitioner partitioner;
  private final Codec codec;
  private final int segmentBytes;
  private final int maxMessageBytes;
  private final boolean logAppendTime;
  private final int indexIntervalBytes;

  /** What a version file or a checkpoint holds. @throws Damaged that names the key whose value is missing or out of range */
  TopicConfig(Map<String, String> entries) throws Damaged {
    this.entries = new TreeMap<>(entries);
    this.partitions = number(PARTITIONS, 1, Names.PARTITIONS_MAX);
    this.partitioner = known(PARTITIONER, Partitioner.named(text(PARTITIONER)));
    this.codec = known(COMPRESSION, Codec.named(text(COMPRESSION)));
    this.segmentBytes = number(SEGMENT_BYTES, 1024, Integer.MAX_VALUE);
    this.maxMessageBytes = number(MAX_MESSAGE_BYTES, 128, 1 << 30);
    this.logAppendTime = known(TIMESTAMP_TYPE, text(TIMESTAMP_TYPE).matches("CreateTime|LogAppendTime") ? text(TIMESTAMP_TYPE) : null)
        .startsWith("L");
    this.indexIntervalBytes = number(INDEX_INTERVAL_BYTES, 0, Integer.MAX_VALUE);
  }

  /** The configuration that options give, after {@link io.sparklog.spec.Options} has checked them. */
  public static TopicConfig of(Map<String, String> checked) {
    try {
      return new TopicConfig(checked);
    } catch (Damaged e) {
      throw new IllegalStateException(e);
    }
  }

  private String text(String key) throws Damaged {
    return known(key, entries.get(key));
  }

  private int number(String key, int least, int most) throws Damaged {
    String text = text(key);
    long value = text.matches("0|[1-9][0-9]{0,9}") ? Long.parseLong(text) : -1;
    if (value < least || value > most) {
      throw new Damaged("config " + key + " is " + text + ", not a number from " + least + " to " + most);
    }
    return (int) value;
  }

  private <T> T known(String key, T value) throws Damaged {
    if (value == null) {
      throw new Damaged("config " + key + " is " + entries.get(key));
    }
    return value;
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

  /** No segment is larger. */
  public int segmentBytes() {
    return segmentBytes;
  }

  /** No batch is larger before compression. */
  public int maxMessageBytes() {
    return maxMessageBytes;
  }

  public boolean logAppendTime() {
    return logAppendTime;
  }

  public int indexIntervalBytes() {
    return indexIntervalBytes;
  }

  /** What a batch of the topic may have at most, and the name of the setting that says so. */
  public int batchBytesMax() {
    return Math.min(maxMessageBytes, segmentBytes);
  }

  /** The bound of FORMAT.md section 10 on what a batch decompresses to. */
  public long decompressedBytesMax() {
    return Math.max(64L << 20, maxMessageBytes);
  }

  /** {@code "8 partitions by murmur3"}: what two writers must agree on. */
  public String routing() {
    return partitions + " partitions by " + partitioner.optionName();
  }
}
