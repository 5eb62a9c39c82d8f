package io.sparklog.commits;

/**
 * How batches wait for their commit.
 *
 * @param lingerMs how long the first batch waits for others while no commit is under way
 * @param intervalMs the least time between the beginnings of two commits of a topic
 * @param queuedBytesMax how many bytes may wait, of all topics; more are refused
 * @param mergeBytes how many bytes the upkeep after a commit may merge
 * @param keysAnywhere whether records with keys are taken in topics with slots. Their readers may see a key out of order then
 */
public record CommitSettings(long lingerMs, long intervalMs, long queuedBytesMax, long mergeBytes, boolean keysAnywhere) {
  public static final CommitSettings USUAL = new CommitSettings(0, 0, 256L << 20, 32L << 20, false);

  /** The same, for batches that others wait for: they wait for nothing but the commit before. */
  CommitSettings withoutWait() {
    return new CommitSettings(0, 0, queuedBytesMax, mergeBytes, keysAnywhere);
  }
}
