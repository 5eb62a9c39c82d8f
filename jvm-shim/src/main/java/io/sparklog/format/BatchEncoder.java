package io.sparklog.format;

import io.sparklog.spec.Invariant;
import java.util.Arrays;
import java.util.zip.CRC32C;

/**
 * One open batch of one partition, used again after {@link #close}. Its memory grows with its records, so that thousands can be open at
 * once.
 *
 * <p>For each record: {@link #begin}, then copy key, value and headers to where {@link #keyAt}, {@link #valueAt} and
 * {@link #headersAt} say.
 */
public final class BatchEncoder {
  private static final byte[] NOTHING = new byte[0];
  private static final int FIRST_BYTES = 1024;

  private final Codec codec;
  private int attributes;
  private final CRC32C crc = new CRC32C();

  private byte[] buffer = NOTHING;
  private int end = Layout.HEADER_BYTES;
  private int records;
  private long baseTimestamp;
  private long minTimestamp;
  private long maxTimestamp;
  private boolean ordered;
  private int keyAt;
  private int valueAt;
  private int headersAt;

  public BatchEncoder(Codec codec, boolean logAppendTime) {
    this.codec = codec;
    begin(logAppendTime);
  }

  public boolean isEmpty() {
    return records == 0;
  }

  /** Whether a record may join the open batch, which gives all its records one time if that is of appending. */
  public boolean takes(boolean logAppendTime, long timestamp) {
    boolean isOfBatch = logAppendTime == ((attributes & Layout.LOG_APPEND_TIME_MASK) != 0);
    return isOfBatch && (!logAppendTime || records == 0 || timestamp == maxTimestamp);
  }

  /** Says of the times of the next batch whether they are of appending. The encoder must be empty. */
  public void begin(boolean logAppendTime) {
    Invariant.require(records == 0, () -> "a batch of " + records + " records becomes one of other times");
    attributes = codec.id() | (logAppendTime ? Layout.LOG_APPEND_TIME_MASK : 0);
  }

  public int records() {
    return records;
  }

  /** Bytes of the batch so far, before compression, header included. */
  public int bytes() {
    return end;
  }

  /** Bytes of memory that the encoder holds. */
  public int capacityBytes() {
    return buffer.length;
  }

  /**
   * The number of {@link #bytes} with this record too; {@link Integer#MAX_VALUE} if a batch cannot hold that many bytes or records.
   *
   * @param keyLength −1 for null, as {@code valueLength}
   * @param headersBytes of the encoded headers, their count included: 1 without headers
   */
  public int bytesWith(long timestamp, int keyLength, int valueLength, int headersBytes) {
    long body = bodyBytes(timestamp, keyLength, valueLength, headersBytes);
    if (body > Layout.BATCH_BYTES_MAX || records == Layout.BATCH_RECORDS_MAX) {
      return Integer.MAX_VALUE;
    }
    long total = end + Varint.sizeOf((int) body) + body;
    return total > Layout.BATCH_BYTES_MAX ? Integer.MAX_VALUE : (int) total;
  }

  /** Reserves a record and writes all of it except key, value and headers. Writes the headers count 0 if there are no headers. */
  public void begin(long timestamp, int keyLength, int valueLength, int headersBytes) {
    long body = bodyBytes(timestamp, keyLength, valueLength, headersBytes);
    long needed = end + body + Varint.INT_BYTES_MAX;
    if (needed > buffer.length) {
      buffer = Arrays.copyOf(buffer, Layout.grown(Math.max(buffer.length, FIRST_BYTES), needed));
    }
    if (records == 0) {
      baseTimestamp = timestamp;
      minTimestamp = timestamp;
      maxTimestamp = timestamp;
      ordered = true;
    } else {
      ordered &= timestamp >= maxTimestamp;
      minTimestamp = Math.min(minTimestamp, timestamp);
      maxTimestamp = Math.max(maxTimestamp, timestamp);
    }
    byte[] to = buffer;
    int at = Varint.write(to, end, (int) body);
    to[at] = 0;
    at = Varint.write(to, at + 1, timestamp - baseTimestamp);
    at = Varint.write(to, at, records);
    keyAt = Varint.write(to, at, keyLength);
    valueAt = Varint.write(to, keyAt + Math.max(keyLength, 0), valueLength);
    headersAt = valueAt + Math.max(valueLength, 0);
    to[headersAt] = 0;
    end = headersAt + headersBytes;
    records++;
  }

  /** The array for keys, values and headers. The next {@link #begin} may replace it by a new one. */
  public byte[] buffer() {
    return buffer;
  }

  public int keyAt() {
    return keyAt;
  }

  public int valueAt() {
    return valueAt;
  }

  public int headersAt() {
    return headersAt;
  }

  /** The least time of the open batch; undefined if it is empty. */
  public long minTimestamp() {
    return minTimestamp;
  }

  public long maxTimestamp() {
    return maxTimestamp;
  }

  /** Whether times in the open batch never fall from one record to the next; undefined if it is empty. */
  public boolean isOrdered() {
    return ordered;
  }

  /** The finished batch, which must hold a record; this encoder is then empty again. */
  public byte[] close(long baseOffset) {
    if (records == 0) {
      throw new IllegalStateException("a batch without records is never written");
    }
    byte[] batch = codec == Codec.NONE
        ? Arrays.copyOf(buffer, end)
        : Compressor.compressed(codec, buffer, Layout.HEADER_BYTES, end - Layout.HEADER_BYTES, Layout.HEADER_BYTES);
    BatchHeader.write(batch, baseOffset, attributes, records - 1, baseTimestamp, maxTimestamp, records);
    BatchHeader.seal(batch, crc);
    end = Layout.HEADER_BYTES;
    records = 0;
    return batch;
  }

  /** Releases the memory, and with it the records of the open batch. The encoder can still be used. */
  public void release() {
    buffer = NOTHING;
    end = Layout.HEADER_BYTES;
    records = 0;
  }

  /** Bytes of a record after its length field. */
  private long bodyBytes(long timestamp, int keyLength, int valueLength, int headersBytes) {
    long delta = records == 0 ? 0 : timestamp - baseTimestamp;
    return 1L // attributes
        + Varint.sizeOf(delta) + Varint.sizeOf(records) + Varint.sizeOf(keyLength) + Math.max(keyLength, 0) + Varint.sizeOf(valueLength)
        + Math.max(valueLength, 0) + headersBytes;
  }
}
