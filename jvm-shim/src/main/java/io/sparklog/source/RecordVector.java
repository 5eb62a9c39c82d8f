package io.sparklog.source;

import io.sparklog.read.VisibleRecords;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/** A column of records without nulls and without values of any type; subclasses override what their type has. */
abstract class RecordVector extends ColumnVector {
  /** The record of row 0. */
  int first;

  int rows;

  RecordVector(DataType type) {
    super(type);
  }

  /** Prepares for a batch, whose records from {@link #first} on are the rows. */
  void show(VisibleRecords records) {}

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

  /** A copy, or null if {@code length} is negative. Unlike an array of Arrays.copyOfRange, it is not zeroed before it is filled. */
  static byte[] bytes(byte[] data, int at, int length) {
    if (length < 0) {
      return null;
    }
    byte[] bytes = new byte[length];
    System.arraycopy(data, at, bytes, 0, length);
    return bytes;
  }
}
