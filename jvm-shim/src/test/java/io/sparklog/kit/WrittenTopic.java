package io.sparklog.kit;

import io.sparklog.admin.Administration;
import io.sparklog.format.BatchEncoder;
import io.sparklog.format.BatchHeader;
import io.sparklog.format.HeadersEncoder;
import io.sparklog.format.Layout;
import io.sparklog.log.Committer;
import io.sparklog.log.NextVersion;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.routing.Bindings;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.storage.FileAppender;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Stores;
import io.sparklog.upkeep.TopicWork;
import io.sparklog.write.Once;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import io.sparklog.write.TopicReport;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.function.LongToIntFunction;
import java.util.function.LongUnaryOperator;
import java.util.zip.CRC32C;

/** A topic whose batches and segments a test lays out itself, and what a reader must find in it. */
public final class WrittenTopic {
  /** A record as a reader sees it; bytes as text. */
  public record Row(String topic, int partition, long offset, long timestampMs, String key, String value, List<String> headers) {}

  public final Path directory;
  public final LogStore store;
  public final Root root;
  public final String topic;
  public final TreeMap<String, String> config = new TreeMap<>(
      Map.of("partitions", "3", "partitioner", "murmur3", "compression.type", "none", "segment.bytes", "1073741824", "max.message.bytes",
          "1048588", "message.timestamp.type", "CreateTime", "index.interval.bytes", "4096"));

  /** All records written, by partition and offset. */
  public final List<List<Row>> rows = new ArrayList<>();

  /** A topic that is created again gets another identity. */
  private static int made;

  private final Random random = new Random(made++);

  /** How many bytes the value at an offset is padded with. */
  public LongToIntFunction padding = offset -> random.nextInt(200);

  /** The time of the record at an offset, in ms. */
  public LongUnaryOperator times = WrittenTopic::time;

  private final List<TopicReport> pending = new ArrayList<>();
  private TopicPlan plan;
  private String txn;
  private int tasks;

  public WrittenTopic(Path directory, String topic) {
    this.directory = directory;
    this.store = Stores.open(directory.toString());
    this.root = new Root(store);
    this.topic = topic;
  }

  public WrittenTopic with(String setting, String value) {
    config.put(setting, value);
    return this;
  }

  private void begin() {
    if (plan == null) {
      plan = TopicPlan.of(topic, root.topic(topic).latest(), config);
      txn = Names.identity(random);
    }
    while (rows.size() < plan.config().partitions()) {
      rows.add(new ArrayList<>());
    }
  }

  /** A segment in a data file of its own, of batches with a given number of records. */
  public WrittenTopic segment(int partition, int... recordsOfBatches) throws IOException {
    begin();
    TopicConfig topicConfig = plan.config();
    BatchEncoder encoder = new BatchEncoder(topicConfig.codec(), topicConfig.logAppendTime());
    ByteArrayOutputStream segment = new ByteArrayOutputStream();
    CRC32C headerCrc = new CRC32C();
    int records = 0;
    long least = Long.MAX_VALUE;
    long greatest = -1;
    boolean ordered = true;
    for (int count : recordsOfBatches) {
      int before = records;
      for (int i = 0; i < count; i++, records++) {
        Row row = row(partition, rows.get(partition).size());
        rows.get(partition).add(row);
        add(encoder, row);
      }
      least = Math.max(-1, Math.min(least, encoder.minTimestamp()));
      ordered &= encoder.isOrdered() && encoder.minTimestamp() >= greatest;
      greatest = Math.max(greatest, encoder.maxTimestamp());
      byte[] batch = encoder.close(before);
      BatchHeader.addTo(headerCrc, batch, 0);
      segment.writeBytes(batch);
    }
    String file = plan.folder(txn) + "/" + Names.ownFile(partition, tasks, tasks, 0);
    try (FileAppender writer = store.create(Names.topicFile(topic, file))) {
      writer.write(segment.toByteArray(), 0, segment.size());
      writer.sync();
    }
    TopicReport.Piece piece = new TopicReport.Piece.InFile(new Segment(partition, file, 0, segment.size(), 0, records, records,
        recordsOfBatches.length, least, greatest, Segment.Offsets.DENSE, false, ordered, (int) headerCrc.getValue()));
    pending.add(new TopicReport(List.of(piece), Bindings.SlotSet.NONE));
    tasks++;
    return this;
  }

  private static void add(BatchEncoder encoder, Row row) {
    HeadersEncoder headers = new HeadersEncoder();
    int headersBytes = 1;
    if (row.headers != null) {
      headers.begin(row.headers.size());
      for (String header : row.headers) {
        String[] parts = header.split("=", 2);
        headers.add(bytes(parts[0]), parts.length == 1 ? null : bytes(parts[1]));
      }
      headersBytes = headers.bytes();
    }
    byte[] key = bytes(row.key);
    byte[] value = bytes(row.value);
    encoder.begin(row.timestampMs, key == null ? -1 : key.length, value == null ? -1 : value.length, headersBytes);
    copy(key, encoder.buffer(), encoder.keyAt());
    copy(value, encoder.buffer(), encoder.valueAt());
    if (row.headers != null) {
      System.arraycopy(headers.buffer(), 0, encoder.buffer(), encoder.headersAt(), headersBytes);
    }
  }

  private static void copy(byte[] from, byte[] to, int at) {
    if (from != null) {
      System.arraycopy(from, 0, to, at, from.length);
    }
  }

  private static byte[] bytes(String text) {
    return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
  }

  /**
   * Every kind of record: null and empty keys and values, and headers of all sorts. Times rise by 10 ms with an offset, with one in ten a
   * step back.
   */
  private Row row(int partition, long offset) {
    int kind = (int) (offset % 7);
    String key = kind == 0 ? null : kind == 1 ? "" : "k" + offset;
    String value = kind == 2
        ? null
        : kind == 3 ? "" : "value of " + partition + "/" + offset + " " + "x".repeat(padding.applyAsInt(offset));
    List<String> headers = kind == 4 ? List.of("a=1", "a=2", "ü=ß", "null") : kind == 5 ? List.of("empty=") : null;
    return new Row(topic, partition, offset, times.applyAsLong(offset), key, value, headers);
  }

  public static long time(long offset) {
    return 1_000_000 + 10 * offset - (offset % 10 == 9 ? 500 : 0);
  }

  /** Commits the segments laid since the last commit. */
  public WrittenTopic commit() {
    begin();
    new TopicCommits(root, txn, topic -> Once.NEVER, Clock.systemUTC(), random).commit(plan, pending);
    pending.clear();
    plan = null;
    return this;
  }

  /** Adds partitions, so that there are {@code count}, by a re-route that moves no slot. */
  public void partitions(int count) {
    int[] weights = new int[count];
    Arrays.fill(weights, 1);
    new Committer(root.topic(topic), Names.identity(random), Clock.systemUTC(), random)
        .commit(newest -> Optional.of(NextVersion.rerouting(root.topic(topic), newest.get(), weights, List.of(), Map.of())));
  }

  /** Changes where keys go, as an operator does. */
  public Administration operator() {
    return new Administration(new TopicWork(root.topic(topic), Clock.systemUTC(), random));
  }

  /** The newest state. */
  public State state() {
    return root.topic(topic).newest().orElseThrow();
  }

  /** The records of [start, end) of a partition. */
  public List<Row> rows(int partition, long start, long end) {
    return rows.get(partition).subList((int) start, (int) end);
  }

  public List<Row> allRows() {
    return rows.stream().flatMap(List::stream).toList();
  }

  public long[] ends() {
    return rows.stream().mapToLong(List::size).toArray();
  }

  /** {@code {"t":{"0":…}}} */
  public String json(long... numbers) {
    StringBuilder json = new StringBuilder("{\"" + topic + "\":{");
    for (int p = 0; p < numbers.length; p++) {
      json.append(p == 0 ? "" : ",").append("\"").append(p).append("\":").append(numbers[p]);
    }
    return json + "}}";
  }

  /** The data file of the nth live segment of a partition. */
  public Path dataFile(int partition, int n) {
    return directory.resolve(Names.topicFile(topic, root.state(topic).segments(partition).get(n).file()));
  }

  public Path viewFile(int partition, int n, String kind) {
    return directory.resolve(Names.viewFolder(topic, partition))
        .resolve(Names.viewFile(root.state(topic).segments(partition).get(n).base(), kind));
  }

  /** A version as a later release will write it: a segment moves to another data file, as by merging, and the old file is deleted. */
  public void move(int partition, int n) throws IOException {
    Segment segment = root.state(topic).segments(partition).get(n);
    String moved = Names.dataFolder(root.state(topic).version() + 1, Names.identity(random)) + "/" + Names.ownFile(partition, 0, 0, 0);
    Path target = directory.resolve(Names.topicFile(topic, moved));
    Files.createDirectories(target.getParent());
    Files.copy(dataFile(partition, n), target);
    write(next -> next.remove(segment).add(segment, moved, segment.base()));
    Files.delete(directory.resolve(Names.topicFile(topic, segment.file())));
  }

  /** A version with many segments more, all in the data file of the first. */
  public void repeat(int partition, int times) throws IOException {
    Segment segment = root.state(topic).segments(partition).get(0);
    write(next -> {
      long end = root.state(topic).end(partition);
      for (int i = 0; i < times; i++, end += segment.records()) {
        next.add(segment, segment.file(), end);
      }
      next.end(partition, end);
    });
  }

  /** A version as a later release will write it: the first segment of a partition expires, and its file is deleted. */
  public void expire(int partition) throws IOException {
    Segment segment = root.state(topic).segments(partition).get(0);
    write(next -> next.remove(segment).start(partition, segment.end()));
    Files.delete(directory.resolve(Names.topicFile(topic, segment.file())));
  }

  /**
   * A version as a later release will write it: a segment with gaps in its batches, as compaction leaves it.
   *
   * @param end of the segment
   * @param batches as {@link #gappyBatch} makes them
   */
  public void tiled(int partition, long end, byte[]... batches) throws IOException {
    State state = root.state(topic);
    String file = Names.dataFolder(state.version() + 1, Names.identity(random)) + "/" + Names.ownFile(partition, 0, 0, 0);
    Path target = directory.resolve(Names.topicFile(topic, file));
    Files.createDirectories(target.getParent());
    CRC32C headerCrc = new CRC32C();
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    long records = 0;
    long greatest = -1;
    for (byte[] batch : batches) {
      BatchHeader.addTo(headerCrc, batch, 0);
      bytes.writeBytes(batch);
      records += BatchHeader.count(batch, 0);
      greatest = Math.max(greatest, BatchHeader.maxTimestamp(batch, 0));
    }
    Files.write(target, bytes.toByteArray());
    Segment segment = new Segment(partition, file, 0, bytes.size(), state.end(partition), end, records, batches.length, 0, greatest,
        Segment.Offsets.TILED, false, false, (int) headerCrc.getValue());
    write(next -> next.add(segment, file, segment.base()).end(partition, end));
  }

  /** A batch of offsets from {@code base} on, of which the last ones up to {@code base + lastDelta} are missing. */
  public byte[] gappyBatch(int partition, long base, int count, int lastDelta) {
    begin();
    BatchEncoder encoder = new BatchEncoder(plan.config().codec(), false);
    for (int i = 0; i < count; i++) {
      Row row = row(partition, base + i);
      add(encoder, row);
      rows.get(partition).add(row);
    }
    byte[] batch = encoder.close(base);
    ByteBuffer fields = ByteBuffer.wrap(batch);
    fields.putInt(Layout.LAST_OFFSET_DELTA_AT, lastDelta);
    CRC32C crc = new CRC32C();
    crc.update(batch, Layout.ATTRIBUTES_AT, batch.length - Layout.ATTRIBUTES_AT);
    fields.putInt(Layout.CRC_AT, (int) crc.getValue());
    return batch;
  }

  private void write(Consumer<HandmadeVersion> change) throws IOException {
    HandmadeVersion next = HandmadeVersion.after(directory, root.state(topic), Names.identity(random));
    change.accept(next);
    next.write();
  }

  public static int[] times(int count, int each) {
    int[] batches = new int[count];
    Arrays.fill(batches, each);
    return batches;
  }
}
