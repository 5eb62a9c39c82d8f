package io.sparklog.catalog;

import io.sparklog.read.Times;
import io.sparklog.spec.Signature;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** The rows that a procedure returns, with the columns that it declares. */
final class Answer {
  private final List<Signature.Column> columns;
  private final List<InternalRow> rows = new ArrayList<>();

  Answer(Signature signature) {
    this.columns = signature.columns();
  }

  /** Rows that are known when the query is planned: no task runs for them. */
  record Rows(StructType readSchema, InternalRow[] rows) implements LocalScan {}

  LocalScan scan() {
    return new Rows(schema(columns), rows.toArray(InternalRow[]::new));
  }

  /** The columns in SQL. */
  public static StructType schema(List<Signature.Column> columns) {
    StructType schema = new StructType();
    for (Signature.Column column : columns) {
      schema = schema.add(column.name(), type(column), column.isNullable(), column.text());
    }
    return schema;
  }

  /**
   * Adds a row.
   *
   * @param values of the columns after the first, boxed as they are declared. A timestamp is a Long: milliseconds since 1970-01-01 UTC, -1
   *     without a time
   */
  void add(String topic, Object... values) {
    Object[] all = new Object[values.length + 1];
    all[0] = topic;
    System.arraycopy(values, 0, all, 1, values.length);
    rows.add(row(columns, all));
  }

  /** A row of these columns. @param values as of {@link #add}, of all columns */
  public static InternalRow row(List<Signature.Column> columns, Object... values) {
    if (values.length != columns.size()) {
      throw new IllegalStateException("a row has " + values.length + " values for the columns " + columns);
    }
    Object[] cells = new Object[values.length];
    for (int i = 0; i < cells.length; i++) {
      cells[i] = cell(columns.get(i), values[i]);
    }
    return new GenericInternalRow(cells);
  }

  private static Object cell(Signature.Column column, Object value) {
    Object cell = switch (column.type()) {
      case "string" -> UTF8String.fromString((String) value);
      case "int" -> (Integer) value;
      case "long" -> (Long) value;
      case "double" -> (Double) value;
      case "boolean" -> (Boolean) value;
      default -> (Long) value < 0 ? null : Times.micros((Long) value);
    };
    if (cell == null && !column.isNullable()) {
      throw new IllegalStateException("a row has no " + column.name());
    }
    return cell;
  }

  private static DataType type(Signature.Column column) {
    return switch (column.type()) {
      case "string" -> DataTypes.StringType;
      case "int" -> DataTypes.IntegerType;
      case "long" -> DataTypes.LongType;
      case "double" -> DataTypes.DoubleType;
      case "boolean" -> DataTypes.BooleanType;
      case "timestamp" -> DataTypes.TimestampType;
      default -> throw new IllegalStateException("procedures.json has a column of type " + column.type());
    };
  }
}
