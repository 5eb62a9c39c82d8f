package io.sparklog.log;

import io.sparklog.format.Codec;
import io.sparklog.json.Damaged;
import io.sparklog.routing.Partitioner;
import io.sparklog.routing.Router;
import io.sparklog.routing.Routing;
import io.sparklog.routing.SlotTable;
import io.sparklog.segment.Segment;
import io.sparklog.spec.Option;
import io.sparklog.spec.Options;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Shown;
import java.io.Serializable;
import java.util.Collections;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * A topic's configuration. Values are text, like in version files and in Kafka; unknown keys and values are kept. FORMAT.md section 5.
 *
 * <p>A later version of sparklog may have written a value that this one does not know. Programs that the key binds refuse the topic, and
 * find it by {@link #requireKnownTo}. For all others, the default of the key stands in the place of the value.
 */
public final class TopicConfig implements Serializable {
  private static final long serialVersionUID = 1;

  public static final String PARTITIONS = "partitions";
  public static final String PARTITIONER = "partitioner";
  public static final String COMPRESSION = "compression.type";
  public static final String SEGMENT_BYTES = "segment.bytes";
  public static final String SEGMENT_MS = "segment.ms";
  public static final String MAX_MESSAGE_BYTES = "max.message.bytes";
  public static final String TIMESTAMP_TYPE = "message.timestamp.type";
  public static final String INDEX_INTERVAL_BYTES = "index.interval.bytes";
  public static final String RETENTION_MS = "retention.ms";
  public static final String RETENTION_BYTES = "retention.bytes";
  public static final String FILE_DELETE_DELAY_MS = "file.delete.delay.ms";
  public static final String VERSIONS_KEEP_MS = "versions.keep.ms";
  public static final String TRANSACTION_RETENTION_MS = "transaction.retention.ms";
  public static final String PRODUCER_EXPIRATION_MS = "producer.id.expiration.ms";
  public static final String PRODUCERS_MAX = "producer.ids.max";
  public static final String KAFKA_VIEW = "kafka.view";
  public static final String PLACEMENT = "placement";
  public static final String PLACEMENT_SLOTS = "placement.slots";
  public static final String PLACEMENT_SHARES = "placement.shares";
  public static final String PENDING_WEIGHTS = "routing.pending.weights";
  public static final String KEY_TYPE = "key.type";
  public static final String VALUE_TYPE = "value.type";

  /** A setting of Kafka's clients, of words with commas in between. No option of ours sets it. */
  public static final String CLEANUP_POLICY = "cleanup.policy";

  /** The value of {@link #PLACEMENT_SHARES} and {@link #PENDING_WEIGHTS} that asks for nothing. */
  public static final String NOTHING = "none";

  /** The word of {@link #CLEANUP_POLICY} with which retention counts. */
  private static final String DELETE = "delete";

  /** The options that declare the known keys. */
  private static final Map<String, Option> KNOWN = Stream
      .of(PARTITIONS, PARTITIONER, COMPRESSION, SEGMENT_BYTES, SEGMENT_MS, MAX_MESSAGE_BYTES, TIMESTAMP_TYPE, INDEX_INTERVAL_BYTES,
          RETENTION_MS, RETENTION_BYTES, FILE_DELETE_DELAY_MS, VERSIONS_KEEP_MS, TRANSACTION_RETENTION_MS, PRODUCER_EXPIRATION_MS,
          PRODUCERS_MAX, KAFKA_VIEW, PLACEMENT, PLACEMENT_SLOTS, PLACEMENT_SHARES, PENDING_WEIGHTS, KEY_TYPE, VALUE_TYPE)
      .collect(Collectors.toUnmodifiableMap(key -> key, Option::ofTopic));

  /** The keys that record readers need. */
  private static final Set<String> OF_RECORD_READERS = Set.of(PARTITIONS, MAX_MESSAGE_BYTES);

  /** The keys that bind key readers and writers. All others bind writers alone. */
  private static final Set<String> OF_KEY_READERS = Set.of(PARTITIONER, PLACEMENT, PLACEMENT_SLOTS);

  private final TreeMap<String, String> entries;
  private final TreeSet<String> unknown = new TreeSet<>();
  private final Partitioner partitioner;
  private final int partitions;
  private final Codec codec;
  private final int segmentBytes;
  private final long segmentMs;
  private final int maxMessageBytes;
  private final boolean logAppendTime;
  private final int indexIntervalBytes;
  private final boolean hasRetention;
  private final long retentionMs;
  private final long retentionBytes;
  private final long fileDeleteDelayMs;
  private final long versionsKeepMs;
  private final long transactionRetentionMs;
  private final long producerExpirationMs;
  private final int producersMax;

  /**
   * Takes the entries of a version file or a checkpoint. FORMAT.md sections 5 and 10 allow the values that the options allow, in one
   * form each.
   *
   * @throws Damaged that names the key that record readers need, and whose value is missing or not allowed
   */
  TopicConfig(Map<String, String> entries) throws Damaged {
    this.entries = new TreeMap<>(entries);
    for (Map.Entry<String, Option> known : KNOWN.entrySet()) {
      String value = get(known.getKey());
      if (value == null || !known.getValue().isCanonical(value)) {
        Damaged.unless(!OF_RECORD_READERS.contains(known.getKey()), () -> "config " + whyUnknown(known.getKey()));
        unknown.add(known.getKey());
      }
    }
    this.partitioner = Partitioner.named(usable(PARTITIONER));
    this.partitions = Integer.parseInt(entries.get(PARTITIONS));
    this.codec = Codec.named(usable(COMPRESSION));
    this.segmentBytes = Integer.parseInt(usable(SEGMENT_BYTES));
    this.segmentMs = Long.parseLong(usable(SEGMENT_MS));
    this.maxMessageBytes = Integer.parseInt(entries.get(MAX_MESSAGE_BYTES));
    this.logAppendTime = usable(TIMESTAMP_TYPE).equals("LogAppendTime");
    this.indexIntervalBytes = Integer.parseInt(usable(INDEX_INTERVAL_BYTES));
    boolean hasRetention = Stream.of(entries.getOrDefault(CLEANUP_POLICY, DELETE).split(",")).map(String::trim).anyMatch(DELETE::equals);
    this.retentionMs = hasRetention ? Long.parseLong(usable(RETENTION_MS)) : -1;
    this.retentionBytes = hasRetention ? Long.parseLong(usable(RETENTION_BYTES)) : -1;
    this.hasRetention = hasRetention;
    this.fileDeleteDelayMs = Long.parseLong(usable(FILE_DELETE_DELAY_MS));
    this.versionsKeepMs = Long.parseLong(usable(VERSIONS_KEEP_MS));
    this.transactionRetentionMs = Long.parseLong(usable(TRANSACTION_RETENTION_MS));
    this.producerExpirationMs = Long.parseLong(usable(PRODUCER_EXPIRATION_MS));
    this.producersMax = Integer.parseInt(usable(PRODUCERS_MAX));
  }

  /** Whether this version of sparklog knows the values of all keys that bind these programs. */
  boolean areKnownTo(Feature.Binds programs) {
    return unknownTo(programs).isEmpty();
  }

  /**
   * Refuses the topic to programs that a key with an unknown value binds.
   *
   * @param location of the file of the version, for messages
   * @throws PartlogException FORMAT_TOO_NEW
   */
  void requireKnownTo(Feature.Binds programs, String location) {
    unknownTo(programs).ifPresent(key -> {
      throw PartlogException.of("FORMAT_TOO_NEW", "file", location, "reason", "its setting " + whyUnknown(key));
    });
  }

  private Optional<String> unknownTo(Feature.Binds programs) {
    return unknown.stream().filter(key -> programs == Feature.Binds.WRITERS || OF_KEY_READERS.contains(key)).findFirst();
  }

  private String whyUnknown(String key) {
    String value = get(key);
    return key + " is " + (value == null ? "missing" : Shown.value(value) + ", not " + KNOWN.get(key).expected());
  }

  /** The value of a known key, or its default if the value is unknown. */
  String usable(String key) {
    return unknown.contains(key) ? KNOWN.get(key).defaultValue() : get(key);
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

  /** As {@link #entries}, and the defaults of the other known keys. */
  public SortedMap<String, String> settings() {
    TreeMap<String, String> settings = new TreeMap<>(entries);
    KNOWN.keySet().forEach(key -> settings.put(key, get(key)));
    return settings;
  }

  /** Whether this version of the program knows the key, in any topic. */
  public static boolean isDeclared(String key) {
    return KNOWN.containsKey(key);
  }

  /** The value of a known key: its entry, or the default of an optional key. Null if it is missing. */
  public String get(String key) {
    Option known = KNOWN.get(key);
    return entries.getOrDefault(key, known != null && known.isOptional() ? known.defaultValue() : null);
  }

  public int partitions() {
    return partitions;
  }

  /** How keys are hashed. */
  public Partitioner partitioner() {
    return partitioner;
  }

  /** Whether a slot has no partition before the first record of its keys is written. */
  public boolean bindsSlots() {
    return usable(PLACEMENT).equals("on_first_write");
  }

  /** The routing of a topic of this configuration that begins. */
  public Routing routing() {
    return bindsSlots()
        ? Routing.beginning(partitions, SlotTable.unbound(Integer.parseInt(usable(PLACEMENT_SLOTS))))
        : Routing.modulo(partitions);
  }

  /** Where keys go in a topic of this configuration that begins. */
  public Router beginning() {
    return routing().router(partitioner, bindsSlots());
  }

  /**
   * The numbers by partition that a value of {@link #PLACEMENT_SHARES} or {@link #PENDING_WEIGHTS} asks for in a routing epoch. Empty if it
   * asks for nothing, or in another routing epoch, or until {@code nowMs} or before.
   */
  static Optional<int[]> wanted(String value, int epoch, long nowMs) {
    String[] parts = value.split(":");
    boolean isOver = parts.length == 1 || Long.parseLong(parts[0]) != epoch || parts.length == 3 && Long.parseLong(parts[1]) <= nowMs;
    return isOver ? Optional.empty() : Optional.of(Stream.of(parts[parts.length - 1].split(",")).mapToInt(Integer::parseInt).toArray());
  }

  public Codec codec() {
    return codec;
  }

  /** The most bytes of a segment. */
  public int segmentBytes() {
    return segmentBytes;
  }

  /** How far apart the times of records may lie, in ms, that a merge puts into one segment. */
  public long segmentMs() {
    return segmentMs;
  }

  /** The most bytes of a batch before compression. */
  public int maxMessageBytes() {
    return maxMessageBytes;
  }

  public boolean logAppendTime() {
    return logAppendTime;
  }

  public int indexIntervalBytes() {
    return indexIntervalBytes;
  }

  /** Whether retention may delete records. A topic that is compacted, and no more, keeps the newest record of each key at a broker. */
  public boolean hasRetention() {
    return hasRetention;
  }

  /** How long after their time records are kept; −1: for ever. */
  public long retentionMs() {
    return retentionMs;
  }

  /** How many bytes of segments are kept in each partition; −1: all. */
  public long retentionBytes() {
    return retentionBytes;
  }

  /** How long a data file is kept after a version removed it. */
  public long fileDeleteDelayMs() {
    return fileDeleteDelayMs;
  }

  /** Whether nothing need be kept for the versions before a version of this time, by a clock. FORMAT.md section 12. */
  public boolean isOld(long versionMs, long nowMs) {
    return Math.abs(nowMs - versionMs) >= versionsKeepMs;
  }

  /** How long the files of a version are kept after the next version. */
  public long versionsKeepMs() {
    return versionsKeepMs;
  }

  /** How long after its last version a query id is known; −1: for ever. FORMAT.md section 7.6. */
  long transactionRetentionMs() {
    return transactionRetentionMs;
  }

  /** How long after its last batch a producer is known. FORMAT.md annex B. */
  public long producerExpirationMs() {
    return producerExpirationMs;
  }

  /** How many producers are known, counted in each partition. */
  public int producersMax() {
    return producersMax;
  }

  /** Whether a live segment belongs in the Kafka view. FORMAT.md section 8. */
  public boolean isInView(Segment segment) {
    return switch (usable(KAFKA_VIEW)) {
      case "none" -> false;
      case "merged" -> segment.isInOwnFile();
      default -> true;
    };
  }

  /** Whether the topic has a Kafka view. */
  public boolean hasView() {
    return !usable(KAFKA_VIEW).equals("none");
  }

  /** The most bytes of a batch that a writer makes. */
  public int batchBytesMax() {
    return Math.min(maxMessageBytes, segmentBytes);
  }

  /** The most bytes that a batch may decompress to. FORMAT.md section 10. */
  public long decompressedBytesMax() {
    return decompressedBytesMax(maxMessageBytes);
  }

  /** As {@link #decompressedBytesMax()}, of a topic with this {@code max.message.bytes}. */
  public static long decompressedBytesMax(int maxMessageBytes) {
    return Math.max(64L << 20, maxMessageBytes);
  }
}
