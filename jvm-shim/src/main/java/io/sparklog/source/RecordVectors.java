package io.sparklog.source;

import io.sparklog.format.BatchDecoder;
import io.sparklog.read.Split;
import io.sparklog.read.Times;
import io.sparklog.read.VisibleRecords;
import io.sparklog.routing.Routing;
import io.sparklog.spark.Columns;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The records of a batch as Spark's columns. Nothing is copied or decoded before Spark asks for it. The vectors hold the decoder's
 * positions and point into its bytes. They are valid until the next batch is shown.
 */
final class RecordVectors {
  private static final Set<String> OF_BATCHES = Set.of(Columns.TOPIC, Columns.PARTITION, Columns.OFFSET, Columns.TIMESTAMP_TYPE,
      Columns.ROUTING_EPOCH);

  private final RecordVector[] vectors;
  private final ColumnarBatch batch;

  /** Columns of the names in {@code schema}, in its order, for the records of a split. */
  RecordVectors(StructType schema, Split split) {
    vectors = Arrays.stream(schema.fields()).map(field -> vector(field, split)).toArray(RecordVector[]::new);
    batch = new ColumnarBatch(vectors);
  }

  /** Whether these columns have the routing epochs of the records. */
  static boolean needEpochs(StructType schema) {
    return List.of(schema.fieldNames()).contains(Columns.ROUTING_EPOCH);
  }

  /** Whether these columns need no more of the records than their offsets. */
  static boolean needOffsetsOnly(StructType schema) {
    return OF_BATCHES.containsAll(List.of(schema.fieldNames()));
  }

  private static RecordVector vector(StructField field, Split split) {
    return switch (field.name()) {
      case Columns.KEY -> new Payload(true, field.dataType());
      case Columns.VALUE -> new Payload(false, field.dataType());
      case Columns.TOPIC -> new TopicName(split.topic());
      case Columns.PARTITION -> new ConstantInt(split.partition());
      case Columns.OFFSET -> new Offset();
      case Columns.TIMESTAMP -> new Timestamp();
      case Columns.TIMESTAMP_TYPE -> new TypeOfTimestamp();
      case Columns.HEADERS -> new HeadersVector();
      case Columns.ROUTING_EPOCH -> new RoutingEpoch(split.epochs());
      default -> throw new IllegalArgumentException("there is no column " + field.name());
    };
  }

  /** Shows the records of a batch; good until the next call. */
  ColumnarBatch show(VisibleRecords records) {
    for (RecordVector vector : vectors) {
      vector.first = records.first();
      vector.rows = records.rows();
      vector.show(records);
    }
    batch.setNumRows(records.rows());
    return batch;
  }

  /** {@code key} or {@code value}. */
  private static final class Payload extends RecordVector {
    private final boolean key;
    private byte[] data;
    private int[] at;
    private int[] lengths;

    /** @param type BINARY, or STRING for the same bytes */
    private Payload(boolean key, DataType type) {
      super(type);
      this.key = key;
    }

    @Override
    void show(VisibleRecords records) {
      BatchDecoder decoder = records.decoder();
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

    @Override
    public UTF8String getUTF8String(int row) {
      int record = first + row;
      return UTF8String.fromBytes(data, at[record], lengths[record]);
    }
  }

  private static final class TopicName extends RecordVector {
    private final UTF8String topic;

    private TopicName(String topic) {
      super(DataTypes.StringType);
      this.topic = UTF8String.fromString(topic);
    }

    @Override
    public UTF8String getUTF8String(int row) {
      return topic;
    }
  }

  /** The same number in all rows. */
  private static class ConstantInt extends RecordVector {
    int number;

    ConstantInt(int number) {
      super(DataTypes.IntegerType);
      this.number = number;
    }

    @Override
    public int getInt(int row) {
      return number;
    }
  }

  /** 0: the writer's time, 1: the time of appending to the log. */
  private static final class TypeOfTimestamp extends ConstantInt {
    private TypeOfTimestamp() {
      super(0);
    }

    @Override
    void show(VisibleRecords records) {
      number = records.decoder().isLogAppendTime() ? 1 : 0;
    }
  }

  private static class Offset extends RecordVector {
    private long base;

    /** Null if each is one more than the one before it. */
    private int[] deltas;

    private Offset() {
      this(DataTypes.LongType);
    }

    private Offset(DataType type) {
      super(type);
    }

    @Override
    void show(VisibleRecords records) {
      base = records.base();
      deltas = records.isHeaderOnly() ? null : records.decoder().offsetDeltas();
    }

    @Override
    public long getLong(int row) {
      int record = first + row;
      return base + (deltas == null ? record : deltas[record]);
    }
  }

  /** By the offset. */
  private static final class RoutingEpoch extends Offset {
    private final Routing.RoutingEpochs epochs;

    private RoutingEpoch(Routing.RoutingEpochs epochs) {
      super(DataTypes.IntegerType);
      this.epochs = epochs;
    }

    @Override
    public int getInt(int row) {
      return epochs.at(getLong(row));
    }
  }

  private static final class Timestamp extends RecordVector {
    private long[] timestamps;

    private Timestamp() {
      super(DataTypes.TimestampType);
    }

    @Override
    void show(VisibleRecords records) {
      timestamps = records.decoder().timestamps();
    }

    @Override
    public long getLong(int row) {
      return Times.micros(timestamps[first + row]);
    }
  }
}
