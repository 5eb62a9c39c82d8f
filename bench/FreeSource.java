import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * The cost of a query in Spark alone: a source that reads and decodes nothing. Each task fills one batch in Spark's own
 * vectors, with columns of the names and types that partlog has, and gives it again and again.
 *
 * <p>Options: {@code records} in all, {@code partitions}, {@code keyBytes} and {@code valueBytes} of a record.
 */
public final class FreeSource implements TableProvider {
  /** About as many as there are in a record batch of the benchmarks. */
  private static final int BATCH_ROWS = 2048;

  /** Spark passes the schema of the reader on, and asks for none. */
  @Override
  public boolean supportsExternalMetadata() {
    return true;
  }

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    throw new IllegalArgumentException("give the schema of the read that this one stands beside");
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    return new Free(schema);
  }

  private record Free(StructType read) implements SupportsRead {
    @Override
    public String name() {
      return "free";
    }

    @Override
    public Column[] columns() {
      return Arrays.stream(read.fields())
          .map(field -> Column.create(field.name(), field.dataType(), field.nullable()))
          .toArray(Column[]::new);
    }

    @Override
    public Set<TableCapability> capabilities() {
      return Set.of(TableCapability.BATCH_READ);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      return new Builder(read, options);
    }
  }

  private static final class Builder implements SupportsPushDownRequiredColumns {
    private final CaseInsensitiveStringMap options;
    private StructType schema;

    private Builder(StructType schema, CaseInsensitiveStringMap options) {
      this.schema = schema;
      this.options = options;
    }

    @Override
    public void pruneColumns(StructType required) {
      schema = required;
    }

    @Override
    public Scan build() {
      return new FreeScan(schema, options);
    }
  }

  private record FreeScan(StructType readSchema, CaseInsensitiveStringMap options) implements Scan, Batch {
    @Override
    public Batch toBatch() {
      return this;
    }

    @Override
    public InputPartition[] planInputPartitions() {
      long records = options.getLong("records", 0);
      int partitions = options.getInt("partitions", 1);
      return IntStream.range(0, partitions)
          .mapToObj(p -> new Part(readSchema, records / partitions + (p < records % partitions ? 1 : 0), options.getInt("keyBytes", 0),
              options.getInt("valueBytes", 0)))
          .toArray(InputPartition[]::new);
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
      return new Readers();
    }
  }

  private record Part(StructType schema, long records, int keyBytes, int valueBytes) implements InputPartition {}

  private static final class Readers implements PartitionReaderFactory {
    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      throw new UnsupportedOperationException();
    }

    @Override
    public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
      return new Reader((Part) partition);
    }

    @Override
    public boolean supportColumnarReads(InputPartition partition) {
      return true;
    }
  }

  private static final class Reader implements PartitionReader<ColumnarBatch> {
    private final ColumnarBatch batch;
    private long left;

    private Reader(Part part) {
      left = part.records();
      OnHeapColumnVector[] columns = OnHeapColumnVector.allocateColumns(BATCH_ROWS, part.schema());
      Random random = new Random(42);
      for (int c = 0; c < columns.length; c++) {
        for (int row = 0; row < BATCH_ROWS; row++) {
          switch (part.schema().fieldNames()[c]) {
            case "key" -> columns[c].putByteArray(row, bytes(random, part.keyBytes()));
            case "value" -> columns[c].putByteArray(row, bytes(random, part.valueBytes()));
            case "topic" -> columns[c].putByteArray(row, "t".getBytes(StandardCharsets.UTF_8));
            case "offset", "timestamp" -> columns[c].putLong(row, row);
            default -> columns[c].putInt(row, 0);
          }
        }
      }
      batch = new ColumnarBatch(columns);
    }

    private static byte[] bytes(Random random, int count) {
      byte[] bytes = new byte[count];
      random.nextBytes(bytes);
      return bytes;
    }

    @Override
    public boolean next() {
      batch.setNumRows((int) Math.min(left, BATCH_ROWS));
      left -= batch.numRows();
      return batch.numRows() > 0;
    }

    @Override
    public ColumnarBatch get() {
      return batch;
    }

    @Override
    public void close() {}
  }
}
