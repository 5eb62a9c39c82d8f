package io.sparklog.source;

import static io.sparklog.kit.Wrong.require;

import io.sparklog.admin.Administration;
import io.sparklog.kit.Wrong;
import io.sparklog.log.State;
import io.sparklog.source.KeyedLog.Given;
import io.sparklog.spark.Columns;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * A topic that is written, re-routed, merged and deleted from at random. Reads of the topic must tell the order of the writes: the records
 * of each key are in this order by routing epoch and offset.
 */
final class EpochHistory {
  private static final int KEYS = 30;

  /** For most batches, these need no more than the header. */
  private static final StructType PLACES = new StructType().add(Columns.PARTITION, DataTypes.IntegerType, false)
      .add(Columns.OFFSET, DataTypes.LongType, false)
      .add(Columns.METADATA.apply(Columns.ROUTING_EPOCH));

  private static final StructType WITH_KEYS = PLACES.add(Columns.KEY, DataTypes.BinaryType);

  private final Random random;
  private final Path directory;
  private final KeyedLog log;
  private final Map<String, String> config;

  /** After each write: the end offsets of the partitions, and the routing epoch. */
  private final List<long[]> ends = new ArrayList<>();
  private final List<Integer> epochs = new ArrayList<>();

  /** By partition and offset, the routing epoch that the read before this one found. */
  private Map<List<Long>, Integer> found = new HashMap<>();

  private EpochHistory(long seed, Path directory) throws IOException {
    random = new Random(seed);
    this.directory = directory;
    log = new KeyedLog(directory);
    config = Map.of("partitions", "3", "partitioner", random.nextBoolean() ? "murmur2" : "murmur3", "placement",
        random.nextBoolean() ? "on_first_write" : "modulo");
    write();
  }

  /** How a random history is read: {@code in order}, or {@code wrong} and why. */
  static String run(long seed, Path directory) throws IOException {
    try {
      EpochHistory history = new EpochHistory(seed, directory);
      for (int step = 0; step < 40; step++) {
        history.step();
      }
      history.read();
      return "in order";
    } catch (Wrong wrong) {
      return "wrong: " + wrong.getMessage();
    }
  }

  private void step() throws IOException {
    switch (random.nextInt(9)) {
      case 0, 1, 2 -> write();
      case 3, 4 -> move();
      case 5 -> reroute();
      case 6 -> log.merge("t");
      case 7 -> delete();
      default -> read();
    }
  }

  private void write() throws IOException {
    List<Given> records = new ArrayList<>();
    for (int i = random.nextInt(40); i >= 0; i--) {
      records.add(new Given("k" + random.nextInt(KEYS), null));
    }
    log.write("t", config, 100, records);
    ends.add(log.state("t").ends());
    epochs.add(log.state("t").routing().epoch());
  }

  /** Moves the slots of one key or two: other partitions are not cut, and a key may come back. */
  private void move() {
    State state = log.state("t");
    TreeMap<Integer, Integer> moves = new TreeMap<>();
    for (int i = random.nextInt(2); i >= 0; i--) {
      byte[] key = ("k" + random.nextInt(KEYS)).getBytes(StandardCharsets.UTF_8);
      int slot = state.routing().table().slot(state.config().partitioner(), key);
      state.partition(key).ifPresent(bound -> moves.put(slot, open(state)));
    }
    if (!moves.isEmpty()) {
      log.of("t").move(state, moves, false);
    }
  }

  private int open(State state) {
    int[] open = IntStream.range(0, state.partitions()).filter(state.router()::isOpen).toArray();
    return open[random.nextInt(open.length)];
  }

  private void reroute() {
    State state = log.state("t");
    int one = open(state);
    switch (random.nextInt(3)) {
      case 0 -> log.of("t").addPartitions(state.partitions() + 1, Administration.RerouteTime.NOW, false);
      case 1 -> log.of("t").reroute(new TreeMap<>(Map.of(one, 1L + random.nextInt(5))), Administration.RerouteTime.NOW, false);
      default -> {
        if (IntStream.range(0, state.partitions()).filter(state.router()::isOpen).count() > 1) {
          log.of("t").closePartitions(List.of(one), Administration.RerouteTime.NOW, false);
        }
      }
    }
  }

  /** Deletes old records, in some partitions or in all: re-routes are forgotten. */
  private void delete() {
    State state = log.state("t");
    boolean ofAll = random.nextBoolean();
    TreeMap<Integer, Long> offsets = new TreeMap<>();
    for (int p = 0; p < state.partitions(); p++) {
      if (ofAll || random.nextBoolean()) {
        long left = state.end(p) - state.start(p);
        offsets.put(p, state.start(p) + (ofAll ? left - Math.min(left, random.nextInt(4)) : random.nextLong(left + 1)));
      }
    }
    log.of("t").deleteRecords(offsets, new TreeMap<>(), false);
  }

  /** @param write the number of the write that added the record */
  private record Seen(int epoch, long offset, int write, int partition) {}

  /** Reads the topic with its keys and without, each in splits of any size. */
  private void read() throws IOException {
    check(rows(WITH_KEYS));
    Map<List<Long>, Integer> places = new HashMap<>();
    rows(PLACES).forEach(row -> places.put(place(row), (int) row.get(Columns.ROUTING_EPOCH)));
    require(places.equals(found), "without keys there are other epochs");
  }

  private static List<Long> place(Map<String, Object> row) {
    return List.of((long) (int) row.get(Columns.PARTITION), (long) row.get(Columns.OFFSET));
  }

  private List<Map<String, Object>> rows(StructType columns) throws IOException {
    PartlogScanBuilder builder = Reads.of(directory, "includeHeaders", "false", "subscribe", "t")
        .with("minPartitions", Integer.toString(1 + random.nextInt(20)))
        .with("maxRecordsPerPartition", Integer.toString(5 + random.nextInt(100)))
        .builder();
    builder.pruneColumns(columns);
    return rows((PartlogScan) builder.build());
  }

  private static List<Map<String, Object>> rows(PartlogScan scan) throws IOException {
    List<Map<String, Object>> rows = new ArrayList<>();
    Batch batch = scan.toBatch();
    for (InputPartition part : batch.planInputPartitions()) {
      try (PartitionReader<ColumnarBatch> reader = Reads.copy(batch.createReaderFactory()).createColumnarReader(Reads.copy(part))) {
        while (reader.next()) {
          for (int i = 0; i < reader.get().numRows(); i++) {
            rows.add(row(scan.readSchema(), reader.get(), i));
          }
        }
      }
    }
    return rows;
  }

  private static Map<String, Object> row(StructType schema, ColumnarBatch batch, int row) {
    Map<String, Object> values = new HashMap<>();
    for (int column = 0; column < schema.length(); column++) {
      values.put(schema.fieldNames()[column], switch (schema.fieldNames()[column]) {
        case Columns.KEY -> new String(batch.column(column).getBinary(row), StandardCharsets.UTF_8);
        case Columns.PARTITION, Columns.ROUTING_EPOCH -> batch.column(column).getInt(row);
        default -> batch.column(column).getLong(row);
      });
    }
    return values;
  }

  private void check(List<Map<String, Object>> rows) {
    int newest = log.state("t").routing().epoch();
    Map<List<Long>, Integer> now = new HashMap<>();
    Map<String, List<Seen>> byKey = new HashMap<>();
    for (Map<String, Object> row : rows) {
      int partition = (int) row.get(Columns.PARTITION);
      long offset = (long) row.get(Columns.OFFSET);
      int epoch = (int) row.get(Columns.ROUTING_EPOCH);
      int write = IntStream.range(0, ends.size())
          .filter(n -> partition < ends.get(n).length && offset < ends.get(n)[partition])
          .findFirst()
          .orElseThrow();
      String of = row + " of write " + write;
      require(epoch >= epochs.get(write) && epoch <= newest, of + ", in epoch " + epochs.get(write));
      require(epoch >= found.getOrDefault(place(row), 0), of + ": the epoch was higher");
      now.put(place(row), epoch);
      byKey.computeIfAbsent((String) row.get(Columns.KEY), key -> new ArrayList<>()).add(new Seen(epoch, offset, write, partition));
    }
    found = now;
    byKey.forEach(EpochHistory::requireOrder);
  }

  private static void requireOrder(String key, List<Seen> records) {
    records.sort((a, b) -> a.epoch != b.epoch ? Integer.compare(a.epoch, b.epoch) : Long.compare(a.offset, b.offset));
    Map<Integer, Integer> partitions = new HashMap<>();
    for (int i = 0; i < records.size(); i++) {
      Seen last = i == 0 ? null : records.get(i - 1);
      Seen next = records.get(i);
      require(last == null || last.write <= next.write, key + ": " + next + " after " + last);
      Integer before = partitions.put(next.epoch, next.partition);
      require(before == null || before == next.partition, key + ": " + next + ", and in this epoch in partition " + before);
    }
    require(new HashSet<>(records).size() == records.size(), key + ": a record comes twice");
  }
}
