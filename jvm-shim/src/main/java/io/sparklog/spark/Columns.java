package io.sparklog.spark;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** The columns of a topic, as Spark's Kafka source has them. */
public final class Columns {
  public static final String KEY = "key";
  public static final String VALUE = "value";
  public static final String TOPIC = "topic";
  public static final String PARTITION = "partition";
  public static final String OFFSET = "offset";
  public static final String TIMESTAMP = "timestamp";
  public static final String TIMESTAMP_TYPE = "timestampType";
  public static final String HEADERS = "headers";

  /** The routing epoch of a record: a metadata column, which {@code *} does not have. */
  public static final String ROUTING_EPOCH = "_routing_epoch";

  /** The columns that a query gets only where it names them. */
  public static final StructType METADATA = new StructType().add(ROUTING_EPOCH, DataTypes.IntegerType, false,
      "The records of a key are in order by _routing_epoch and offset.");

  /** The columns that can be written, as errors list them. */
  public static final String WRITTEN = String.join(", ", VALUE, KEY, HEADERS, PARTITION, TOPIC, TIMESTAMP) + ", each at most once";

  /** {@code ARRAY<STRUCT<key STRING, value BINARY>>}; a header's key is never null. */
  public static final DataType HEADERS_TYPE = DataTypes
      .createArrayType(new StructType().add(KEY, DataTypes.StringType, false).add(VALUE, DataTypes.BinaryType, true), false);

  private static final StructType WITHOUT_HEADERS = new StructType().add(KEY, DataTypes.BinaryType, true)
      .add(VALUE, DataTypes.BinaryType, true)
      .add(TOPIC, DataTypes.StringType, false)
      .add(PARTITION, DataTypes.IntegerType, false)
      .add(OFFSET, DataTypes.LongType, false)
      .add(TIMESTAMP, DataTypes.TimestampType, false)
      .add(TIMESTAMP_TYPE, DataTypes.IntegerType, false);

  private static final StructType ALL = WITHOUT_HEADERS.add(new StructField(HEADERS, HEADERS_TYPE, true, Metadata.empty()));

  private Columns() {}

  /**
   * All columns, as a catalog shows them.
   *
   * @param keyIsText whether the key is STRING, and not BINARY
   */
  public static StructType typed(boolean keyIsText, boolean valueIsText) {
    StructType typed = new StructType();
    for (StructField field : ALL.fields()) {
      boolean isText = field.name().equals(KEY) ? keyIsText : field.name().equals(VALUE) && valueIsText;
      typed = isText ? typed.add(field.name(), DataTypes.StringType, true) : typed.add(field);
    }
    return typed;
  }

  /** The columns that a read returns. */
  public static StructType read(boolean headers) {
    return headers ? ALL : WITHOUT_HEADERS;
  }
}
