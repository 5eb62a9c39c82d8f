package io.sparklog.format;

/**
 * Walks the headers of one record that {@link BatchDecoder} has checked: {@link #open}, then {@link #next} until it is false.
 * One object is used for record after record.
 */
public final class RecordHeaders {
  private byte[] data;
  private int at;
  private int end;
  private int left;
  private int keyAt;
  private int keyLength;
  private int valueAt;
  private int valueLength;

  /** Starts at the headers count of a record, {@code headersAt[i]} to {@code headersEnd[i]}, and returns the count. */
  public int open(byte[] data, int headersAt, int headersEnd) {
    try {
      return begin(data, headersAt, headersEnd);
    } catch (BadBatch e) {
      throw new IllegalStateException("these headers were not checked by BatchDecoder", e);
    }
  }

  /** Moves to the next header; false at the end. */
  public boolean next() {
    try {
      return advance();
    } catch (BadBatch e) {
      throw new IllegalStateException("these headers were not checked by BatchDecoder", e);
    }
  }

  public int keyAt() {
    return keyAt;
  }

  public int keyLength() {
    return keyLength;
  }

  public int valueAt() {
    return valueAt;
  }

  /** −1 if the value is null. */
  public int valueLength() {
    return valueLength;
  }

  /** {@link #open} for bytes that are not checked yet. */
  int begin(byte[] data, int at, int end) throws BadBatch {
    int next = Varint.endOf(data, at, end, Varint.INT_BYTES_MAX);
    int count = Varint.intOf(data, at, next);
    if (count < 0 || count > (end - next) / Layout.RECORD_HEADER_BYTES_MIN) {
      throw new BadBatch("a record claims " + count + " headers in " + (end - next) + " bytes");
    }
    this.data = data;
    this.at = next;
    this.end = end;
    this.left = count;
    return count;
  }

  /** {@link #next} for bytes that are not checked yet. */
  boolean advance() throws BadBatch {
    if (left == 0) {
      return false;
    }
    keyLength = length();
    if (keyLength < 0) {
      throw new BadBatch("a header has no key");
    }
    keyAt = at;
    at += keyLength;
    valueLength = length();
    valueAt = at;
    at += Math.max(valueLength, 0);
    left--;
    return true;
  }

  /** The position after the last header that was read. */
  int position() {
    return at;
  }

  private int length() throws BadBatch {
    int next = Varint.endOf(data, at, end, Varint.INT_BYTES_MAX);
    int length = Varint.intOf(data, at, next);
    if (length < -1 || length > end - next) {
      throw new BadBatch("a header has a length of " + length + " in a record with " + (end - next) + " bytes left");
    }
    at = next;
    return length;
  }
}
