package io.sparklog.merge;

/**
 * The result of merging.
 *
 * @param replaced how many segments it replaced
 * @param by how many new ones
 * @param bytes of the new ones
 */
public record MergeCounts(long replaced, long by, long bytes) {
  static final MergeCounts NOTHING = new MergeCounts(0, 0, 0);

  MergeCounts and(MergeCounts more) {
    return new MergeCounts(replaced + more.replaced, by + more.by, bytes + more.bytes);
  }
}
