package io.sparklog.source;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.sparklog.kit.WrittenTopic;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.read.Split;
import io.sparklog.spark.Columns;
import io.sparklog.spec.Options;
import io.sparklog.storage.Stores;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Reads as Spark does, through its interfaces alone and without a session; plan and factory go through serialization. */
public final class Reads {
  private final Path root;
  private final TreeMap<String, String> options = new TreeMap<>();
  private boolean functions;
  private State then;

  private Reads(Path root) {
    this.root = root;
  }

  public static Reads of(Path root, String... keysAndValues) {
    Reads reads = new Reads(root);
    for (int i = 0; i < keysAndValues.length; i += 2) {
      reads.options.put(keysAndValues[i], keysAndValues[i + 1]);
    }
    return reads;
  }

  Reads with(String key, String value) {
    options.put(key, value);
    return this;
  }

  /** As a table of a catalog that has our functions. */
  Reads ofCatalog() {
    functions = true;
    return this;
  }

  /** Reads an earlier state. */
  public Reads at(State earlier) {
    then = earlier;
    return this;
  }

  PartlogScanBuilder builder() {
    Options read = Options.of(options, Options.Side.READ);
    PartlogScanBuilder builder = new PartlogScanBuilder(new Root(Stores.open(root.toString())), Columns.read(read.bool("includeHeaders")),
        read, functions, Clock.systemUTC(), new Random(1));
    return then == null ? builder : builder.only(then.topicId(), "VERSION AS OF " + then.version(), Optional.of(then));
  }

  PartlogScan scan() {
    return (PartlogScan) builder().build();
  }

  public List<Split> splits() {
    return splits(scan());
  }

  public static List<Split> splits(PartlogScan scan) {
    return Arrays.stream(scan.toBatch().planInputPartitions())
        .flatMap(partition -> ((PartlogReaderFactory.PartlogInputPartition) partition).splits().stream())
        .toList();
  }

  public List<WrittenTopic.Row> rows() throws IOException {
    return rows(scan());
  }

  /** The offsets of all rows, asked for without anything else: most batches are not decoded for that. */
  List<Long> offsets() throws IOException {
    return rows(scanOfOffsets()).stream().map(WrittenTopic.Row::offset).toList();
  }

  PartlogScan scanOfOffsets() {
    PartlogScanBuilder builder = builder();
    builder.pruneColumns(new StructType().add("offset", DataTypes.LongType));
    return (PartlogScan) builder.build();
  }

  /** All rows, split after split. */
  public static List<WrittenTopic.Row> rows(PartlogScan scan) throws IOException {
    List<WrittenTopic.Row> rows = new ArrayList<>();
    Batch batch = scan.toBatch();
    for (InputPartition split : batch.planInputPartitions()) {
      rows.addAll(rows(copy(batch.createReaderFactory()), copy(split), scan.readSchema()));
    }
    return rows;
  }

  /** All columns of all records of {@code splits}. */
  public static List<WrittenTopic.Row> rows(Path root, List<Split> splits) throws IOException {
    StructType schema = Columns.read(true);
    PartitionReaderFactory factory = new PartlogReaderFactory(Root.of(root.toString()).reference(), schema, true, Long.MAX_VALUE);
    List<WrittenTopic.Row> rows = new ArrayList<>();
    for (Split split : splits) {
      rows.addAll(rows(copy(factory), copy(new PartlogReaderFactory.PartlogInputPartition.Plain(List.of(split))), schema));
    }
    return rows;
  }

  public static List<WrittenTopic.Row> rows(PartitionReaderFactory factory, InputPartition split, StructType schema) throws IOException {
    List<WrittenTopic.Row> rows = new ArrayList<>();
    try (PartitionReader<ColumnarBatch> reader = factory.createColumnarReader(split)) {
      while (reader.next()) {
        ColumnarBatch batch = reader.get();
        Map<String, ColumnVector> columns = new HashMap<>();
        for (int i = 0; i < schema.length(); i++) {
          columns.put(schema.fieldNames()[i], batch.column(i));
        }
        for (int row = 0; row < batch.numRows(); row++) {
          rows.add(row(columns, row));
        }
        batch.closeIfFreeable();
      }
    }
    return rows;
  }

  /** As assertEquals, with the first difference alone as the message. */
  public static void assertRows(List<WrittenTopic.Row> expected, List<WrittenTopic.Row> found, String of) {
    int at = 0;
    while (at < expected.size() && at < found.size() && expected.get(at).equals(found.get(at))) {
      at++;
    }
    assertEquals(at < expected.size() ? expected.get(at) : null, at < found.size() ? found.get(at) : null, "row " + at + " of " + of);
  }

  private static WrittenTopic.Row row(Map<String, ColumnVector> columns, int row) {
    return new WrittenTopic.Row(columns.containsKey("topic") ? columns.get("topic").getUTF8String(row).toString() : null,
        columns.containsKey("partition") ? columns.get("partition").getInt(row) : -1,
        columns.containsKey("offset") ? columns.get("offset").getLong(row) : -1,
        columns.containsKey("timestamp") ? Math.floorDiv(columns.get("timestamp").getLong(row), 1000) : -1, text(columns.get("key"), row),
        text(columns.get("value"), row), headers(columns.get("headers"), row));
  }

  private static String text(ColumnVector column, int row) {
    if (column == null || column.isNullAt(row)) {
      return null;
    }
    return new String(column.getBinary(row), StandardCharsets.UTF_8);
  }

  private static List<String> headers(ColumnVector column, int row) {
    if (column == null || column.isNullAt(row)) {
      return null;
    }
    List<String> headers = new ArrayList<>();
    ColumnarArray array = column.getArray(row);
    for (int i = 0; i < array.numElements(); i++) {
      byte[] value = array.getStruct(i, 2).getBinary(1);
      headers.add(array.getStruct(i, 2).getUTF8String(0) + (value == null ? "" : "=" + new String(value, StandardCharsets.UTF_8)));
    }
    return headers;
  }

  /** An object as Spark sends it. */
  static byte[] bytes(Object object) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
      out.writeObject(object);
    }
    return bytes.toByteArray();
  }

  @SuppressWarnings("unchecked")
  static <T> T copy(T object) throws IOException {
    try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes(object)))) {
      return (T) in.readObject();
    } catch (ClassNotFoundException e) {
      throw new IllegalStateException(e);
    }
  }
}
