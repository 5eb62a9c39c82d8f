package io.sparklog.merge;

/**
 * The result of merging.
 *
 * @param replaced how many segments it replaced
 * @param by how many new ones
 * @param bytes of the new ones
 */
public record MergeResult(long replaced, long by, long bytes) {
  static final MergeResult NOTHING = new MergeResult(0, 0, 0);

  MergeResult and(MergeResult more) {
    return new MergeResult(replaced + more.replaced, by + more.by, bytes + more.bytes);
  }
}
