package io.sparklog.sink;

import io.sparklog.format.HeadersEncoder;
import io.sparklog.spark.SparkErrors;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.Stores;
import io.sparklog.write.TaskWriter;
import io.sparklog.write.TopicBuffer;
import io.sparklog.write.TopicReport;
import java.io.IOException;
import java.util.Iterator;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** Takes the rows of one task apart; key, value and headers are copied once, straight into record batches. */
final class RowWriter implements DataWriter<InternalRow> {
  private final WritePlan plan;
  private final RowColumns columns;
  private final TaskWriter writer;
  private final UnsafeProjection toUnsafe;

  /** A row in a page of Spark's memory, as a sorted one is, and not in a byte[], is copied to this. */
  private final UnsafeRow fromPage;

  private final HeadersEncoder headers = new HeadersEncoder();
  private UTF8String topicName;
  private TopicBuffer topic;

  RowWriter(WritePlan plan, int task, int tasks, long attempt) {
    this.plan = plan;
    this.columns = plan.columns();
    this.writer = new TaskWriter(Stores.open(plan.store()), plan.txn(), task, tasks, attempt, plan.batchBytes(), plan.bufferBytes());
    this.toUnsafe = UnsafeProjection.create(columns.schema());
    this.fromPage = UnsafeRow.createFromByteArray(0, columns.schema().size());
    if (plan.topic() != null) {
      topic = writer.topic(plan.topicPlan(plan.topic()));
    }
  }

  @Override
  public void writeAll(Iterator<InternalRow> rows) {
    SparkErrors.act(() -> {
      while (rows.hasNext()) {
        append(rows.next());
      }
      // Spark asks for the metrics before it commits.
      writer.closeBatches();
    });
  }

  @Override
  public void write(InternalRow row) {
    SparkErrors.act(() -> append(row));
  }

  private void append(InternalRow given) throws IOException {
    UnsafeRow row = given instanceof UnsafeRow unsafe ? unsafe : toUnsafe.apply(given);
    if (!(row.getBaseObject() instanceof byte[])) {
      fromPage.copyFrom(row);
      row = fromPage;
    }
    byte[] from = (byte[]) row.getBaseObject();
    TopicBuffer to = plan.topic() != null ? topic : topic(row);
    long timestamp = timestampMs(row, to);
    int keyLength = length(row, columns.key());
    int keyAt = keyLength > 0 ? at(row, columns.key()) : 0;
    int valueLength = length(row, columns.value());
    int valueAt = valueLength > 0 ? at(row, columns.value()) : 0;
    int headersBytes = encodeHeaders(row);
    if (columns.partition() >= 0 && !row.isNullAt(columns.partition())) {
      int partition = row.getInt(columns.partition());
      to.appendTo(partition, timestamp, from, keyAt, keyLength, valueAt, valueLength, headers.buffer(), headersBytes);
    } else {
      to.append(timestamp, from, keyAt, keyLength, valueAt, valueLength, headers.buffer(), headersBytes);
    }
  }

  private TopicBuffer topic(UnsafeRow row) {
    if (row.isNullAt(columns.topic())) {
      throw PartlogException.of("TOPIC_NULL");
    }
    UTF8String name = row.getUTF8String(columns.topic());
    if (!name.equals(topicName)) {
      // A clone: the row's memory is used again for the next one.
      topicName = name.clone();
      topic = writer.topic(plan.topicPlan(topicName.toString()));
    }
    return topic;
  }

  private long timestampMs(UnsafeRow row, TopicBuffer to) {
    if (columns.timestamp() < 0 || row.isNullAt(columns.timestamp()) || to.plan().config().logAppendTime()) {
      return plan.timeMs();
    }
    // Floor, not towards zero: the microsecond before 1970 is before 1970.
    return Math.floorDiv(row.getLong(columns.timestamp()), 1000L);
  }

  /** The length of a STRING or BINARY field; -1 if the field is null or missing. An UnsafeRow keeps both as (offset, length). */
  private static int length(UnsafeRow row, int column) {
    return column < 0 || row.isNullAt(column) ? -1 : (int) row.getLong(column);
  }

  /** Where a STRING or BINARY field begins in the array of its row. */
  private static int at(UnsafeRow row, int column) {
    return (int) (row.getBaseOffset() - Platform.BYTE_ARRAY_OFFSET + (row.getLong(column) >>> 32));
  }

  /** Encodes the headers. @return how many bytes they take; {@link TopicBuffer#NO_HEADERS_BYTES} without headers */
  private int encodeHeaders(UnsafeRow row) {
    if (columns.headers() < 0 || row.isNullAt(columns.headers())) {
      return TopicBuffer.NO_HEADERS_BYTES;
    }
    ArrayData array = row.getArray(columns.headers());
    headers.begin(array.numElements());
    for (int i = 0; i < array.numElements(); i++) {
      InternalRow header = array.isNullAt(i) ? null : array.getStruct(i, 2);
      if (header == null || header.isNullAt(columns.headerKey())) {
        throw PartlogException.of("HEADER_KEY_NULL", "topic", plan.topic() == null ? String.valueOf(topicName) : plan.topic(), "root",
            plan.store().root());
      }
      byte[] value = header.isNullAt(columns.headerValue()) ? null : header.getBinary(columns.headerValue());
      headers.add(header.getUTF8String(columns.headerKey()).getBytes(), value);
    }
    return headers.bytes();
  }

  @Override
  public WriterCommitMessage commit() {
    return SparkErrors.run(() -> new Report(writer.finish()));
  }

  @Override
  public void abort() {
    writer.abort();
  }

  @Override
  public void close() {
    writer.close();
  }

  @Override
  public CustomTaskMetric[] currentMetricsValues() {
    return WriteMetrics.of(writer);
  }

  /** The reports of a task by topic, which Spark carries to the driver. */
  record Report(Map<String, TopicReport> topics) implements WriterCommitMessage {}
}
