package io.sparklog.log;

import io.sparklog.spec.Warnings;
import io.sparklog.storage.Step;

/** What follows a commit and cannot fail it: the Kafka view, and a checkpoint if one is due. FORMAT.md sections 6 and 8. */
public final class Upkeep {
  private final TopicLog log;
  private final String txn;

  /** @param txn a random identity, for the names of temporary files */
  public Upkeep(TopicLog log, String txn) {
    this.log = log;
    this.txn = txn;
  }

  /** Publishes what {@code version} added. A failure is logged only: the next write or {@code CALL partlog.publish} repairs it. */
  public void after(Version version) {
    // An interrupt closes the channels that are in use: it waits.
    boolean interrupted = Thread.interrupted();
    try {
      Step.COMMIT_DONE.reached();
      State state = log.newest().orElseThrow();
      Publisher.publish(log.store(), state, txn, version.added());
      if (state.version() - Math.max(0, state.checkpointVersion()) >= Checkpoint.VERSIONS) {
        Checkpoint.write(log.store(), state, txn);
        log.noteCheckpoint(state);
      }
    } catch (Throwable e) { // An Error, too, must not make a commit that is done look as if it had failed.
      Warnings.warn(Upkeep.class,
          "version {} of topic {} is committed, but publishing or the checkpoint failed; the next write or CALL partlog.publish repairs it",
          version.version(), log.topic(), e);
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
