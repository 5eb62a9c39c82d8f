package io.sparklog.format;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Locale;
import java.util.zip.CRC32C;

/**
 * Reads the 61 header bytes of a batch, at a position of a buffer that holds all of them.
 *
 * <p>Trust no field before {@link #check}, and no field that the CRC covers before {@link BatchDecoder#decode}.
 */
public final class BatchHeader {
  private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);
  private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.BIG_ENDIAN);
  private static final VarHandle SHORT = MethodHandles.byteArrayViewVarHandle(short[].class, ByteOrder.BIG_ENDIAN);

  private BatchHeader() {}

  /**
   * Checks all that can be checked without the records (FORMAT.md section 3), and returns the number of bytes of the whole batch.
   *
   * @param bytesLeft bytes from {@code at} to the end of the segment, which may be more than the buffer holds
   */
  public static int check(byte[] buffer, int at, long bytesLeft) throws BadBatch {
    if (bytesLeft < Layout.HEADER_BYTES) {
      throw new BadBatch(bytesLeft + " bytes are left, and a batch header has " + Layout.HEADER_BYTES);
    }
    long bytes = (int) INT.get(buffer, at + Layout.LENGTH_AT) + (long) Layout.UNCOUNTED_BYTES;
    if (bytes < Layout.HEADER_BYTES) {
      throw new BadBatch("its length field gives it " + bytes + " bytes, and its header alone has " + Layout.HEADER_BYTES);
    }
    if (bytes > bytesLeft) {
      throw new BadBatch("its length field gives it " + bytes + " bytes, but " + bytesLeft + " are left");
    }
    if (bytes > Layout.BATCH_BYTES_MAX) {
      throw new BadBatch("it has " + bytes + " bytes; the limit is " + Layout.BATCH_BYTES_MAX);
    }
    if (magic(buffer, at) != Layout.MAGIC) {
      throw new BadBatch("its magic number is " + magic(buffer, at) + ", expected " + Layout.MAGIC);
    }
    Codec.of(codecId(buffer, at));
    if (hasReserved(buffer, at)) {
      throw new BadBatch(
          String.format(Locale.ROOT, "its attributes are 0x%04x, and bits 4 to 15 must be 0", attributes(buffer, at) & 0xffff));
    }
    int count = count(buffer, at);
    if (count < 0 || count > Layout.BATCH_RECORDS_MAX) {
      throw new BadBatch("its records count is " + count + "; the limit is " + Layout.BATCH_RECORDS_MAX);
    }
    int lastOffsetDelta = lastOffsetDelta(buffer, at);
    if (lastOffsetDelta < 0) {
      throw new BadBatch("its last offset delta is " + lastOffsetDelta);
    }
    if (count > lastOffsetDelta + 1L) {
      throw new BadBatch("its records count is " + count + ", but its last offset delta of " + lastOffsetDelta + " has no room for them");
    }
    return (int) bytes;
  }

  /**
   * Adds the header to the checksum that a version file keeps of a segment's headers: without the base offset, which may be stamped at any
   * time. FORMAT.md section 4.
   */
  public static void addTo(CRC32C headerCrc, byte[] buffer, int at) {
    headerCrc.update(buffer, at + Layout.LENGTH_AT, Layout.HEADER_BYTES - Layout.LENGTH_AT);
  }

  public static long baseOffset(byte[] buffer, int at) {
    return (long) LONG.get(buffer, at + Layout.BASE_OFFSET_AT);
  }

  /**
   * Whether each of the eight bytes of a base offset field is the byte of the relative or of the absolute offset. A reader may see a half
   * written stamp beside a writer, or after a power loss. FORMAT.md section 4.
   */
  public static boolean isStamped(long field, long relative, long absolute) {
    return field == absolute || field == relative || (bytesThatDiffer(field, relative) & bytesThatDiffer(field, absolute)) == 0;
  }

  /** The highest bit of each byte in which the two differ. */
  private static long bytesThatDiffer(long one, long other) {
    long low = 0x7f7f7f7f7f7f7f7fL;
    long bits = one ^ other;
    return ((bits & low) + low | bits) & ~low;
  }

  /** Changes a field that the batch's CRC does not cover. */
  public static void setBaseOffset(byte[] buffer, int at, long baseOffset) {
    LONG.set(buffer, at + Layout.BASE_OFFSET_AT, baseOffset);
  }

  /** Bytes of the whole batch, header included. */
  public static int totalBytes(byte[] buffer, int at) {
    return (int) INT.get(buffer, at + Layout.LENGTH_AT) + Layout.UNCOUNTED_BYTES;
  }

  public static int leaderEpoch(byte[] buffer, int at) {
    return (int) INT.get(buffer, at + Layout.LEADER_EPOCH_AT);
  }

  public static byte magic(byte[] buffer, int at) {
    return buffer[at + Layout.MAGIC_AT];
  }

  public static long crc(byte[] buffer, int at) {
    return Integer.toUnsignedLong((int) INT.get(buffer, at + Layout.CRC_AT));
  }

  public static int codecId(byte[] buffer, int at) {
    return attributes(buffer, at) & Layout.CODEC_MASK;
  }

  public static boolean isLogAppendTime(byte[] buffer, int at) {
    return (attributes(buffer, at) & Layout.LOG_APPEND_TIME_MASK) != 0;
  }

  public static boolean isTransactional(byte[] buffer, int at) {
    return (attributes(buffer, at) & Layout.TRANSACTIONAL_MASK) != 0;
  }

  /** Whether a bit is set whose meaning only a feature of a later release gives. FORMAT.md section 3.1. */
  public static boolean hasReserved(byte[] buffer, int at) {
    return (attributes(buffer, at) & ~Layout.ATTRIBUTES_MASK) != 0;
  }

  public static int lastOffsetDelta(byte[] buffer, int at) {
    return (int) INT.get(buffer, at + Layout.LAST_OFFSET_DELTA_AT);
  }

  public static long baseTimestamp(byte[] buffer, int at) {
    return (long) LONG.get(buffer, at + Layout.BASE_TIMESTAMP_AT);
  }

  public static long maxTimestamp(byte[] buffer, int at) {
    return (long) LONG.get(buffer, at + Layout.MAX_TIMESTAMP_AT);
  }

  public static long producerId(byte[] buffer, int at) {
    return (long) LONG.get(buffer, at + Layout.PRODUCER_ID_AT);
  }

  public static short producerEpoch(byte[] buffer, int at) {
    return (short) SHORT.get(buffer, at + Layout.PRODUCER_EPOCH_AT);
  }

  public static int baseSequence(byte[] buffer, int at) {
    return (int) INT.get(buffer, at + Layout.BASE_SEQUENCE_AT);
  }

  public static int count(byte[] buffer, int at) {
    return (int) INT.get(buffer, at + Layout.COUNT_AT);
  }

  /** Writes the header of a finished batch without its CRC, which {@link #seal} adds. */
  static void write(byte[] batch, long baseOffset, int attributes, int lastOffsetDelta, long baseTimestamp, long maxTimestamp, int count) {
    LONG.set(batch, Layout.BASE_OFFSET_AT, baseOffset);
    INT.set(batch, Layout.LENGTH_AT, batch.length - Layout.UNCOUNTED_BYTES);
    INT.set(batch, Layout.LEADER_EPOCH_AT, 0);
    batch[Layout.MAGIC_AT] = Layout.MAGIC;
    SHORT.set(batch, Layout.ATTRIBUTES_AT, (short) attributes);
    INT.set(batch, Layout.LAST_OFFSET_DELTA_AT, lastOffsetDelta);
    LONG.set(batch, Layout.BASE_TIMESTAMP_AT, baseTimestamp);
    LONG.set(batch, Layout.MAX_TIMESTAMP_AT, maxTimestamp);
    LONG.set(batch, Layout.PRODUCER_ID_AT, -1L);
    SHORT.set(batch, Layout.PRODUCER_EPOCH_AT, (short) -1);
    INT.set(batch, Layout.BASE_SEQUENCE_AT, -1);
    INT.set(batch, Layout.COUNT_AT, count);
  }

  /** Gives a batch the leader epoch of all batches of a log, which its CRC does not cover. */
  public static void clearLeaderEpoch(byte[] batch) {
    INT.set(batch, Layout.LEADER_EPOCH_AT, 0);
  }

  /** Changes the greatest time of a batch whose records have the times of their producer, and makes the CRC right. */
  public static void setMaxTimestamp(byte[] batch, long maxTimestamp) {
    LONG.set(batch, Layout.MAX_TIMESTAMP_AT, maxTimestamp);
    seal(batch, new CRC32C());
  }

  /** Gives all records of a batch one time, the time of their writer, and makes the CRC right. FORMAT.md section C.1. */
  public static void setLogAppendTime(byte[] batch, long timestamp) {
    batch[Layout.ATTRIBUTES_AT + 1] |= Layout.LOG_APPEND_TIME_MASK;
    LONG.set(batch, Layout.BASE_TIMESTAMP_AT, timestamp);
    setMaxTimestamp(batch, timestamp);
  }

  static void seal(byte[] batch, CRC32C crc) {
    crc.reset();
    crc.update(batch, Layout.ATTRIBUTES_AT, batch.length - Layout.ATTRIBUTES_AT);
    INT.set(batch, Layout.CRC_AT, (int) crc.getValue());
  }

  private static int attributes(byte[] buffer, int at) {
    return (short) SHORT.get(buffer, at + Layout.ATTRIBUTES_AT);
  }
}
