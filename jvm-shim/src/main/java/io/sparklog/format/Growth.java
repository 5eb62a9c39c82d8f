package io.sparklog.format;

/** How buffers grow: to the needed size, and by at least half, so that copying stays linear; never beyond the limit of an array. */
final class Growth {
  private Growth() {}

  static int of(int length, long needed) {
    if (needed > Layout.BATCH_BYTES_MAX) {
      throw new IllegalStateException(needed + " bytes do not fit an array");
    }
    return (int) Math.min(Layout.BATCH_BYTES_MAX, Math.max(needed, length + (length >> 1)));
  }
}
