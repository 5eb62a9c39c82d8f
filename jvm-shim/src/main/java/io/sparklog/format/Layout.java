package io.sparklog.format;

/** The position of each field of a batch header, and the meaning of its attribute bits. FORMAT.md section 3. */
public final class Layout {
  public static final int BASE_OFFSET_AT = 0;
  public static final int LENGTH_AT = BASE_OFFSET_AT + Long.BYTES;
  public static final int LEADER_EPOCH_AT = LENGTH_AT + Integer.BYTES;
  public static final int MAGIC_AT = LEADER_EPOCH_AT + Integer.BYTES;
  public static final int CRC_AT = MAGIC_AT + Byte.BYTES;
  public static final int ATTRIBUTES_AT = CRC_AT + Integer.BYTES;
  public static final int LAST_OFFSET_DELTA_AT = ATTRIBUTES_AT + Short.BYTES;
  public static final int BASE_TIMESTAMP_AT = LAST_OFFSET_DELTA_AT + Integer.BYTES;
  public static final int MAX_TIMESTAMP_AT = BASE_TIMESTAMP_AT + Long.BYTES;
  public static final int PRODUCER_ID_AT = MAX_TIMESTAMP_AT + Long.BYTES;
  public static final int PRODUCER_EPOCH_AT = PRODUCER_ID_AT + Long.BYTES;
  public static final int BASE_SEQUENCE_AT = PRODUCER_EPOCH_AT + Short.BYTES;
  public static final int COUNT_AT = BASE_SEQUENCE_AT + Integer.BYTES;
  public static final int HEADER_BYTES = COUNT_AT + Integer.BYTES;

  /** The length field counts the bytes after itself; these are the bytes up to its end. */
  public static final int UNCOUNTED_BYTES = LENGTH_AT + Integer.BYTES;

  public static final byte MAGIC = 2;

  /** A JVM cannot make arrays of all lengths up to 2³¹ − 1, so no batch may need one. FORMAT.md section 10. */
  public static final int BATCH_BYTES_MAX = Integer.MAX_VALUE - 64;

  /** Bounded because a reader keeps more bytes for each record than a small record has. FORMAT.md section 10. */
  public static final int BATCH_RECORDS_MAX = 1 << 20;

  public static final int CODEC_MASK = 0x07;
  public static final int LOG_APPEND_TIME_MASK = 0x08;
  public static final int TRANSACTIONAL_MASK = 0x10;
  static final int ATTRIBUTES_MASK = CODEC_MASK | LOG_APPEND_TIME_MASK;

  /** Length, attributes, time delta, offset delta, key length, value length and headers count take a byte each at least. */
  static final int RECORD_BYTES_MIN = 7;

  /** Key length and value length of a record header. */
  static final int RECORD_HEADER_BYTES_MIN = 2;

  private Layout() {}

  /** How a buffer grows: to the needed size, and by at least half, so that copying stays linear; never beyond the limit of an array. */
  static int grown(int length, long needed) {
    if (needed > BATCH_BYTES_MAX) {
      throw new IllegalStateException(needed + " bytes do not fit an array");
    }
    return (int) Math.min(BATCH_BYTES_MAX, Math.max(needed, length + (length >> 1)));
  }
}
