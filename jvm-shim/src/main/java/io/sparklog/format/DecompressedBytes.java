package io.sparklog.format;

import java.util.Arrays;

/** A buffer for decompressed records, which grows as output really comes, up to a bound. */
final class DecompressedBytes {
  final int bytesMax;
  private final RecordsLimit limit;
  byte[] buffer = new byte[0];

  DecompressedBytes(RecordsLimit limit) {
    this.bytesMax = limit.bytes();
    this.limit = limit;
  }

  /** Makes room for {@code needed} bytes from {@code end} on, and if it must grow, for {@code wanted} where the bound allows. */
  void room(int end, int needed, long wanted) throws BadBatch {
    if (needed > bytesMax - end) {
      throw tooLarge();
    }
    if (buffer.length - end < needed) {
      buffer = Arrays.copyOf(buffer, Math.min(bytesMax, Growth.of(buffer.length, Math.min(bytesMax, end + wanted))));
    }
  }

  BadBatch tooLarge() {
    return limit.exceeded();
  }
}
