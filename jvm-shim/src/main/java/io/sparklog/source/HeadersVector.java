package io.sparklog.source;

import io.sparklog.format.BatchDecoder;
import io.sparklog.format.RecordHeaders;
import io.sparklog.read.VisibleRecords;
import io.sparklog.spark.Columns;
import java.util.Arrays;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Arrays of headers, null for a record without headers, like in Spark's Kafka source. The headers of a batch are decoded on first access.
 */
final class HeadersVector extends RecordVector {
  private final RecordHeaders headers = new RecordHeaders();
  private final HeaderFields fields = new HeaderFields();
  private byte[] data;
  private int[] at;
  private int[] ends;
  private boolean decoded;
  private int[] starts = new int[0];

  HeadersVector() {
    super(Columns.HEADERS_TYPE);
  }

  @Override
  void show(VisibleRecords records) {
    BatchDecoder decoder = records.decoder();
    data = decoder.data();
    at = decoder.headersAt();
    ends = decoder.headersEnd();
    decoded = false;
  }

  @Override
  public boolean isNullAt(int row) {
    int record = first + row;
    // Usually the count has one byte.
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
      // Kafka accepts any bytes as a key; a Spark string that is not UTF-8 would fail far from here.
      return text.isValid() ? text : text.makeValid();
    }

    @Override
    public byte[] getBinary(int row) {
      return bytes(data, at[row], lengths[row]);
    }
  }
}
