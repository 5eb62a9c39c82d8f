package io.sparklog.format;

import java.util.Arrays;

/** A buffer for decompressed records, which grows as output really comes, up to a bound. */
final class DecompressedBytes {
  private static final byte[] NONE = new byte[0];

  final int bytesMax;
  private final RecordsLimit limit;
  byte[] buffer = NONE;

  DecompressedBytes(RecordsLimit limit) {
    this.bytesMax = limit.bytes();
    this.limit = limit;
  }

  /**
   * Makes room for {@code needed} bytes from {@code end} on, and if it must grow, for {@code wanted} where the bound allows. It keeps the
   * bytes before {@code end}.
   */
  void room(int end, int needed, long wanted) throws BadBatch {
    if (needed > bytesMax - end) {
      throw tooLarge();
    }
    if (buffer.length - end < needed) {
      int length = Math.min(bytesMax, Layout.grown(buffer.length, Math.min(bytesMax, end + wanted)));
      buffer = end == 0 ? NONE : buffer; // A process with little memory has no room for the old one and the new one.
      buffer = Arrays.copyOf(buffer, length);
    }
  }

  BadBatch tooLarge() {
    return limit.exceeded();
  }
}
