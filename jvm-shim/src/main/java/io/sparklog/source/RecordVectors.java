package io.sparklog.source;

import io.sparklog.format.BatchDecoder;
import io.sparklog.format.RecordHeaders;
import io.sparklog.read.SplitReader;
import io.sparklog.read.Times;
import io.sparklog.spark.Columns;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The records of a batch as Spark's columns. Nothing is copied or decoded before Spark asks for it: the vectors hold the decoder's
 * positions and point into its bytes, and are good until the next batch is shown.
 */
final class RecordVectors {
  private static final Set<String> OF_BATCHES = Set.of(Columns.TOPIC, Columns.PARTITION, Columns.OFFSET, Columns.TIMESTAMP_TYPE);

  private final RecordVector[] vectors;
  private final ColumnarBatch batch;

  /** Columns of the names in {@code schema}, in its order, for records of one partition. */
  RecordVectors(StructType schema, String topic, int partition) {
    vectors = Arrays.stream(schema.fields()).map(field -> vector(field, topic, partition)).toArray(RecordVector[]::new);
    batch = new ColumnarBatch(vectors);
  }

  /** Whether these columns can be given without a look at the records. */
  static boolean needHeadersOnly(StructType schema) {
    return OF_BATCHES.containsAll(List.of(schema.fieldNames()));
  }

  private static RecordVector vector(StructField field, String topic, int partition) {
    return switch (field.name()) {
      case Columns.KEY -> new Payload(true);
      case Columns.VALUE -> new Payload(false);
      case Columns.TOPIC -> new Topic(topic);
      case Columns.PARTITION -> new Number(partition);
      case Columns.OFFSET -> new Offset();
      case Columns.TIMESTAMP -> new Timestamp();
      case Columns.TIMESTAMP_TYPE -> new TimestampType();
      case Columns.HEADERS -> new Headers();
      default -> throw new IllegalArgumentException("there is no column " + field.name());
    };
  }

  /** The batch that {@code reader} has come to. */
  ColumnarBatch show(SplitReader reader) {
    for (RecordVector vector : vectors) {
      vector.first = reader.first();
      vector.rows = reader.rows();
      vector.show(reader);
    }
    batch.setNumRows(reader.rows());
    return batch;
  }

  /** A copy, or null if {@code length} is negative. Unlike that of Arrays.copyOfRange it is not zeroed before it is filled. */
  private static byte[] bytes(byte[] data, int at, int length) {
    if (length < 0) {
      return null;
    }
    byte[] bytes = new byte[length];
    System.arraycopy(data, at, bytes, 0, length);
    return bytes;
  }

  /** A column without nulls that has no values of any type; the columns below give it some. */
  private abstract static class RecordVector extends ColumnVector {
    /** The record of row 0. */
    int first;

    int rows;

    RecordVector(DataType type) {
      super(type);
    }

    void show(SplitReader reader) {}

    /** Spark closes a batch when it has read it; the next one uses the same vectors. */
    @Override
    public void close() {}

    @Override
    public boolean hasNull() {
      return numNulls() > 0;
    }

    @Override
    public int numNulls() {
      int nulls = 0;
      for (int row = 0; row < rows; row++) {
        nulls += isNullAt(row) ? 1 : 0;
      }
      return nulls;
    }

    @Override
    public boolean isNullAt(int row) {
      return false;
    }

    private UnsupportedOperationException notOfType(String asked) {
      return new UnsupportedOperationException("a column of type " + type.sql() + " was asked for " + asked);
    }

    @Override
    public boolean getBoolean(int row) {
      throw notOfType("boolean");
    }

    @Override
    public byte getByte(int row) {
      throw notOfType("byte");
    }

    @Override
    public short getShort(int row) {
      throw notOfType("short");
    }

    @Override
    public int getInt(int row) {
      throw notOfType("int");
    }

    @Override
    public long getLong(int row) {
      throw notOfType("long");
    }

    @Override
    public float getFloat(int row) {
      throw notOfType("float");
    }

    @Override
    public double getDouble(int row) {
      throw notOfType("double");
    }

    @Override
    public ColumnarArray getArray(int row) {
      throw notOfType("array");
    }

    @Override
    public ColumnarMap getMap(int row) {
      throw notOfType("map");
    }

    @Override
    public Decimal getDecimal(int row, int precision, int scale) {
      throw notOfType("decimal");
    }

    @Override
    public UTF8String getUTF8String(int row) {
      throw notOfType("string");
    }

    @Override
    public byte[] getBinary(int row) {
      throw notOfType("binary");
    }

    @Override
    public ColumnVector getChild(int ordinal) {
      throw notOfType("child");
    }
  }

  /** {@code key} or {@code value}. */
  private static final class Payload extends RecordVector {
    private final boolean key;
    private byte[] data;
    private int[] at;
    private int[] lengths;

    private Payload(boolean key) {
      super(DataTypes.BinaryType);
      this.key = key;
    }

    @Override
    void show(SplitReader reader) {
      BatchDecoder decoder = reader.batchDecoder();
      data = decoder.data();
      at = key ? decoder.keyAt() : decoder.valueAt();
      lengths = key ? decoder.keyLengths() : decoder.valueLengths();
    }

    @Override
    public boolean isNullAt(int row) {
      return lengths[first + row] < 0;
    }

    @Override
    public byte[] getBinary(int row) {
      int record = first + row;
      return bytes(data, at[record], lengths[record]);
    }
  }

  private static final class Topic extends RecordVector {
    private final UTF8String topic;

    private Topic(String topic) {
      super(DataTypes.StringType);
      this.topic = UTF8String.fromString(topic);
    }

    @Override
    public UTF8String getUTF8String(int row) {
      return topic;
    }
  }

  /** The same number in all rows. */
  private static class Number extends RecordVector {
    int number;

    Number(int number) {
      super(DataTypes.IntegerType);
      this.number = number;
    }

    @Override
    public int getInt(int row) {
      return number;
    }
  }

  /** 0: the writer's time, 1: the time of appending to the log. */
  private static final class TimestampType extends Number {
    private TimestampType() {
      super(0);
    }

    @Override
    void show(SplitReader reader) {
      number = reader.batchDecoder().isLogAppendTime() ? 1 : 0;
    }
  }

  private static final class Offset extends RecordVector {
    private long base;

    /** Null where each is one more than the one before it. */
    private int[] deltas;

    private Offset() {
      super(DataTypes.LongType);
    }

    @Override
    void show(SplitReader reader) {
      base = reader.base();
      deltas = reader.isHeaderOnly() ? null : reader.batchDecoder().offsetDeltas();
    }

    @Override
    public long getLong(int row) {
      int record = first + row;
      return base + (deltas == null ? record : deltas[record]);
    }
  }

  private static final class Timestamp extends RecordVector {
    private long[] timestamps;

    private Timestamp() {
      super(DataTypes.TimestampType);
    }

    @Override
    void show(SplitReader reader) {
      timestamps = reader.batchDecoder().timestamps();
    }

    @Override
    public long getLong(int row) {
      return Times.micros(timestamps[first + row]);
    }
  }

  /**
   * Arrays of headers, null where a record has none, as in Spark's Kafka source. The headers of a batch are decoded when the first is asked
   * for.
   */
  private static final class Headers extends RecordVector {
    private final RecordHeaders headers = new RecordHeaders();
    private final HeaderFields fields = new HeaderFields();
    private byte[] data;
    private int[] at;
    private int[] ends;
    private boolean decoded;
    private int[] starts = new int[0];

    private Headers() {
      super(Columns.HEADERS_TYPE);
    }

    @Override
    void show(SplitReader reader) {
      BatchDecoder decoder = reader.batchDecoder();
      data = decoder.data();
      at = decoder.headersAt();
      ends = decoder.headersEnd();
      decoded = false;
    }

    @Override
    public boolean isNullAt(int row) {
      int record = first + row;
      // A count in one byte tells it at once.
      return data[at[record]] < 0 ? headers.open(data, at[record], ends[record]) == 0 : data[at[record]] == 0;
    }

    @Override
    public ColumnarArray getArray(int row) {
      if (!decoded) {
        decode();
      }
      int count = starts[row + 1] - starts[row];
      return count == 0 ? null : new ColumnarArray(fields, starts[row], count);
    }

    private void decode() {
      if (starts.length <= rows) {
        starts = new int[rows + 1];
      }
      fields.begin(data);
      for (int row = 0; row < rows; row++) {
        starts[row] = fields.count();
        headers.open(data, at[first + row], ends[first + row]);
        while (headers.next()) {
          fields.add(headers);
        }
      }
      starts[rows] = fields.count();
      decoded = true;
    }
  }

  /** All headers of a batch, one after another. */
  private static final class HeaderFields extends RecordVector {
    private final HeaderField keys = new HeaderField(DataTypes.StringType);
    private final HeaderField values = new HeaderField(DataTypes.BinaryType);

    private HeaderFields() {
      super(((ArrayType) Columns.HEADERS_TYPE).elementType());
    }

    private void begin(byte[] data) {
      keys.begin(data);
      values.begin(data);
    }

    private int count() {
      return keys.rows;
    }

    private void add(RecordHeaders header) {
      keys.add(header.keyAt(), header.keyLength());
      values.add(header.valueAt(), header.valueLength());
    }

    @Override
    public ColumnVector getChild(int ordinal) {
      return ordinal == 0 ? keys : values;
    }
  }

  private static final class HeaderField extends RecordVector {
    private byte[] data;
    private int[] at = new int[0];
    private int[] lengths = new int[0];

    private HeaderField(DataType type) {
      super(type);
    }

    private void begin(byte[] data) {
      this.data = data;
      rows = 0;
    }

    private void add(int at, int length) {
      if (rows == this.at.length) {
        int longer = Math.max(64, 2 * rows);
        this.at = Arrays.copyOf(this.at, longer);
        lengths = Arrays.copyOf(lengths, longer);
      }
      this.at[rows] = at;
      lengths[rows++] = length;
    }

    @Override
    public boolean isNullAt(int row) {
      return lengths[row] < 0;
    }

    @Override
    public UTF8String getUTF8String(int row) {
      UTF8String text = UTF8String.fromBytes(data, at[row], lengths[row]);
      // Kafka takes any bytes for a key; a Spark string that is no UTF-8 would fail far from here.
      return text.isValid() ? text : text.makeValid();
    }

    @Override
    public byte[] getBinary(int row) {
      return bytes(data, at[row], lengths[row]);
    }
  }
}
