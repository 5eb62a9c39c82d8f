package io.sparklog.format;

import java.util.Arrays;

/** Builds the encoded headers of one record, count included, in a buffer that is used again for the next record. */
public final class HeadersEncoder {
  private byte[] buffer = new byte[64];
  private int at;
  private int missing;

  /** Starts a record with exactly {@code count} headers. */
  public void begin(int count) {
    missing = count;
    at = Varint.write(buffer, 0, count);
  }

  /** Adds a header; its key is UTF-8, its value may be null. */
  public void add(byte[] key, byte[] valueOrNull) {
    add(key, 0, key.length, valueOrNull, 0, valueOrNull == null ? -1 : valueOrNull.length);
  }

  /** Adds a header from parts of arrays; a value of length −1 is null, and so may be its array. */
  public void add(byte[] key, int keyAt, int keyLength, byte[] value, int valueAt, int valueLength) {
    if (--missing < 0) {
      throw new IllegalStateException("more headers than begin() announced");
    }
    grow(2L * Varint.INT_BYTES_MAX + keyLength + Math.max(valueLength, 0));
    at = Varint.write(buffer, at, keyLength);
    System.arraycopy(key, keyAt, buffer, at, keyLength);
    at = Varint.write(buffer, at + keyLength, valueLength);
    if (valueLength > 0) {
      System.arraycopy(value, valueAt, buffer, at, valueLength);
      at += valueLength;
    }
  }

  /** How many bytes of {@link #buffer()} the headers take, from 0 on. */
  public int bytes() {
    if (missing != 0) {
      throw new IllegalStateException(missing + " headers fewer than begin() announced");
    }
    return at;
  }

  public byte[] buffer() {
    return buffer;
  }

  private void grow(long more) {
    if (buffer.length - at < more) {
      buffer = Arrays.copyOf(buffer, Layout.grown(buffer.length, at + more));
    }
  }
}
