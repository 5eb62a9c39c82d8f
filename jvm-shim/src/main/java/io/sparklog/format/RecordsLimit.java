package io.sparklog.format;

/**
 * How many bytes the records of one batch may take when decompressed. FORMAT.md section 10. The limit of a topic may be forged, so that
 * each process has a limit of its own too.
 *
 * @param ofTopic the most that the topic allows; a batch that takes more is damaged
 * @param ofProcess the most that this process may hold; a batch that takes more is right, and this process cannot read it
 */
record RecordsLimit(long ofTopic, long ofProcess) {
  /** A batch that the default of {@code max.message.bytes} allows can always be read. */
  private static final long ALWAYS = 64L << 20;

  /** A batch is held more than once while it is decoded: as it is on disk, decompressed, and in a buffer that grows. */
  private static final int PART = 4;

  RecordsLimit {
    ofTopic = Math.min(ofTopic, Layout.BATCH_BYTES_MAX);
  }

  /** The limits in this process for a topic that allows {@code ofTopic} bytes. */
  static RecordsLimit here(long ofTopic) {
    return new RecordsLimit(ofTopic, ofProcess(Runtime.getRuntime().maxMemory()));
  }

  static long ofProcess(long memory) {
    return Math.max(ALWAYS, memory / PART);
  }

  int bytes() {
    return (int) Math.min(ofTopic, ofProcess);
  }

  /** Checks the size of a batch before it is read. */
  void requireReadable(long batchBytes) throws BadBatch {
    if (batchBytes > batchBytesMax(ofTopic)) {
      throw new BadBatch("it has " + batchBytes + " bytes; the limit is " + batchBytesMax(ofTopic));
    }
    if (batchBytes > batchBytesMax(ofProcess)) {
      throw BadBatch.tooLarge(ofProcess);
    }
  }

  /** No right compression makes more of {@code recordsBytes}. */
  private static long batchBytesMax(long recordsBytes) {
    return Layout.HEADER_BYTES + recordsBytes / 8 * 9;
  }

  /** The records of a batch take more than {@link #bytes}. */
  BadBatch exceeded() {
    return ofProcess < ofTopic
        ? BadBatch.tooLarge(ofProcess)
        : new BadBatch("its records take more than " + ofTopic + " bytes when decompressed");
  }
}
