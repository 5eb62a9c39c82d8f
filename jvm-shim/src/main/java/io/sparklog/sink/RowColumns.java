package io.sparklog.sink;

import io.sparklog.spark.Columns;
import io.sparklog.spec.PartlogException;
import java.io.Serializable;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.types.VariantType;

/**
 * The index of each column of a topic in the rows of a write; −1 if the rows do not have it.
 *
 * @param headerKey the index of the key within a header, 0 or 1; the other field is its value
 */
record RowColumns(StructType schema, int key, int value, int headers, int partition, int topic, int timestamp,
    int headerKey) implements Serializable {
  private static final List<String> WRITTEN = List.of(Columns.KEY, Columns.VALUE, Columns.HEADERS, Columns.PARTITION, Columns.TOPIC,
      Columns.TIMESTAMP);

  /** Columns of a read that a write does not need; accepted, so that the rows of a read can be written. */
  private static final List<String> IGNORED = List.of(Columns.OFFSET, Columns.TIMESTAMP_TYPE, Columns.ROUTING_EPOCH);

  /** @throws PartlogException COLUMN_REQUIRED, COLUMN_TYPE, COLUMN_UNKNOWN, TOPIC_REQUIRED */
  static RowColumns of(StructType schema, boolean topicGiven) {
    int[] found = new int[WRITTEN.size()];
    Arrays.fill(found, -1);
    for (int i = 0; i < schema.size(); i++) {
      String name = schema.apply(i).name();
      int column = indexIn(WRITTEN, name);
      if (column < 0 && indexIn(IGNORED, name) < 0 || column >= 0 && found[column] >= 0) {
        if (indexIn(Arrays.asList(schema.fieldNames()), Columns.VALUE) < 0) {
          throw required(schema);
        }
        throw PartlogException.of("COLUMN_UNKNOWN", "column", name, "known", Columns.WRITTEN);
      }
      if (column >= 0) {
        found[column] = i;
      }
    }
    RowColumns columns = new RowColumns(schema, found[0], found[1], found[2], found[3], found[4], found[5], headerKey(schema, found[2]));
    if (columns.value < 0) {
      throw required(schema);
    }
    columns.checkBytes(columns.value);
    columns.checkBytes(columns.key);
    columns.check(columns.partition, DataTypes.IntegerType);
    columns.check(columns.timestamp, DataTypes.TimestampType);
    if (!topicGiven) {
      if (columns.topic < 0) {
        throw PartlogException.of("TOPIC_REQUIRED", "reason", "there is no option `topic`, and the rows have no column `topic`", "way",
            "Set option(\"topic\", …), or give the DataFrame a STRING column `topic`");
      }
      columns.checkTopic();
    }
    return columns;
  }

  private static int indexIn(List<String> names, String name) {
    for (int i = 0; i < names.size(); i++) {
      if (names.get(i).equalsIgnoreCase(name)) {
        return i;
      }
    }
    return -1;
  }

  private static PartlogException required(StructType schema) {
    return PartlogException.of("COLUMN_REQUIRED", "columns", schema.isEmpty() ? "none" : String.join(", ", schema.fieldNames()));
  }

  int headerValue() {
    return 1 - headerKey;
  }

  private void checkBytes(int column) {
    if (column >= 0 && !isNull(type(column)) && !isText(type(column)) && !(type(column) instanceof BinaryType)) {
      String name = schema.apply(column).name();
      throw wrong(schema, column, "STRING or BINARY", isAtomic(type(column)) ? "CAST(" + name + " AS STRING)" : "to_json(" + name + ")");
    }
  }

  private void checkTopic() {
    if (!isText(type(topic))) {
      throw wrong(schema, topic, "STRING", "CAST(topic AS STRING)");
    }
  }

  private void check(int column, DataType type) {
    if (column >= 0 && !isNull(type(column)) && !type(column).equals(type)) {
      String name = schema.apply(column).name();
      boolean millis = type instanceof TimestampType && type(column) instanceof LongType;
      throw wrong(schema, column, type.sql(), millis ? "timestamp_millis(" + name + ")" : "CAST(" + name + " AS " + type.sql() + ")");
    }
  }

  /** By name, in any case and order: two fields of the right types under other names may be meant the other way round. */
  private static int headerKey(StructType schema, int headers) {
    if (headers < 0 || isNull(schema.apply(headers).dataType())) {
      return -1;
    }
    DataType type = schema.apply(headers).dataType();
    if (type instanceof ArrayType array && array.elementType() instanceof StructType header && header.size() == 2) {
      List<String> names = Arrays.asList(header.fieldNames());
      int key = indexIn(names, Columns.KEY);
      if (key >= 0 && indexIn(names, Columns.VALUE) == 1 - key && isText(header.apply(key).dataType())
          && header.apply(1 - key).dataType() instanceof BinaryType) {
        return key;
      }
    }
    String example = type instanceof MapType
        ? "transform(map_entries(headers), h -> named_struct('key', h.key, 'value', CAST(h.value AS BINARY)))"
        : "array(named_struct('key', 'trace', 'value', CAST('4711' AS BINARY)))";
    throw wrong(schema, headers, "ARRAY<STRUCT<key: STRING, value: BINARY>>", example);
  }

  /** Whether a cast to STRING gives the text that a user expects. */
  private static boolean isAtomic(DataType type) {
    return !(type instanceof StructType || type instanceof MapType || type instanceof ArrayType || type instanceof VariantType);
  }

  private static boolean isText(DataType type) {
    return type instanceof StringType;
  }

  /** Whether a column is a NULL of no other type, such as in VALUES ('k', NULL): it is null in each row. */
  private static boolean isNull(DataType type) {
    return type instanceof NullType;
  }

  private DataType type(int column) {
    return schema.apply(column).dataType();
  }

  private static PartlogException wrong(StructType schema, int column, String expected, String example) {
    StructField field = schema.apply(column);
    return PartlogException.of("COLUMN_TYPE", "column", field.name(), "found", field.dataType().sql(), "expected", expected, "example",
        example);
  }
}
