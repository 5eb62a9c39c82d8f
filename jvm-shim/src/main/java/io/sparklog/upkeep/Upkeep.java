package io.sparklog.upkeep;

import io.sparklog.log.Query;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.log.Version;
import io.sparklog.spec.Warnings;
import io.sparklog.storage.Step;
import java.io.IOException;
import java.util.Optional;

/** What follows a commit and cannot fail it: the Kafka view, and a checkpoint if one is due. FORMAT.md sections 6 and 8. */
public final class Upkeep {
  private final TopicLog log;
  private final String txn;

  /** @param txn a random identity, for the names of temporary files */
  public Upkeep(TopicLog log, String txn) {
    this.log = log;
    this.txn = txn;
  }

  /**
   * Publishes what {@code version} added. A failure is logged only: the next write or {@code CALL partlog.publish} repairs it.
   *
   * @return the state that it brought up to date; empty if it failed
   */
  public Optional<State> after(Version version) {
    return attempt(() -> Optional.of(follow(log.newest().orElseThrow(), version)));
  }

  /**
   * As {@link #after}, when a write was found to be committed already: who committed it may have died before this. Only if nothing was
   * committed since.
   *
   * @param query of that write; null if it has none
   */
  public void afterRepeat(Query query) {
    if (query == null) {
      return;
    }
    attempt(() -> {
      State state = log.newest().orElseThrow();
      if (state.query(query.id()).filter(query::isNumbered).isPresent()) {
        Optional<Version> version = log.versionOf(query, state, state.version());
        if (version.isPresent()) {
          return Optional.of(follow(state, version.get()));
        }
      }
      return Optional.empty();
    });
  }

  private State follow(State state, Version version) throws IOException {
    Step.COMMIT_DONE.reached();
    Publisher.publish(log.store(), state, txn, version.added());
    if (state.isCheckpointDue(log.pace().checkpointVersions())) {
      log.writeCheckpoint(state, txn);
    }
    return state;
  }

  private interface Part {
    Optional<State> run() throws IOException;
  }

  private Optional<State> attempt(Part part) {
    // An interrupt closes the channels that are in use: it waits.
    boolean interrupted = Thread.interrupted();
    try {
      return part.run();
    } catch (Throwable e) { // An Error, too, must not make a commit that is done look as if it had failed.
      Warnings.warn(Upkeep.class,
          "a write to topic {} is committed, but publishing or the checkpoint failed; the next write or CALL partlog.publish repairs it",
          log.topic(), e);
      return Optional.empty();
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
