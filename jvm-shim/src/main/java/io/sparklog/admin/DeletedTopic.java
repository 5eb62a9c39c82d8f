package io.sparklog.admin;

import io.sparklog.log.Failures;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.log.UpkeepHints;
import io.sparklog.log.UpkeepQueue;
import io.sparklog.segment.Names;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.PutObserver;
import io.sparklog.upkeep.CommitLogCleaner;
import io.sparklog.upkeep.DataFolders;
import io.sparklog.upkeep.TopicWork;
import io.sparklog.view.KafkaView;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.time.Clock;

/**
 * The remains of a deleted topic: all but its last version, a checkpoint and a marker may go. FORMAT.md sections 7 and 12.
 *
 * <p>The clean-up is a run of the topic's queue: the upkeep of an earlier commit may be at work, and has {@link UpkeepHints} alone.
 */
final class DeletedTopic implements UpkeepQueue.UpkeepRun {
  private final TopicLog log;
  private final LogStore store;
  private final String topic;
  private final String txn;
  private final Clock clock;
  private final Failures failures;
  private Runnable unforeseen = () -> {};

  DeletedTopic(TopicWork work) {
    this.log = work.log();
    this.store = log.store();
    this.topic = log.topic();
    this.txn = work.identity();
    this.clock = work.clock();
    this.failures = new Failures(store.location(Names.topicFolder(topic)));
  }

  /**
   * Finishes the work after a deletion, unless another topic has begun. May be repeated at any time.
   *
   * @throws PartlogException the first failure, once the rest is done
   */
  void clear() {
    log.owed().add(this);
    log.owed().await(this);
    unforeseen.run();
    failures.throwFirst();
  }

  @Override
  public boolean takes(UpkeepQueue.UpkeepRun later) {
    return false;
  }

  @Override
  public void run() {
    try {
      failures.attempt(() -> log.latest().filter(State::isDeleted).ifPresent(this::clear));
    } catch (RuntimeException | Error e) { // Another caller's thread may do this run, and that caller's commit has not failed.
      unforeseen = () -> {
        throw e;
      };
    }
  }

  private void clear(State deleted) {
    if (!store.isRemote()) {
      // The view first: its names may be links to the data files.
      failures.attempt(() -> KafkaView.publish(log, txn));
    }
    failures.attempt(() -> mark(deleted));
    failures.attempt(() -> log.writeCheckpoint(deleted, txn));
    failures.attempt(() -> DataFolders.deletePlannedBelow(store, topic, deleted.horizon()));
    CommitLogCleaner cleaner = new CommitLogCleaner(log, clock);
    failures.attempt(() -> cleaner.clean(deleted));
    failures.attempt(() -> cleaner.deleteVersions(deleted));
  }

  /** Shows to programs that only list names that the topic does not exist. */
  private void mark(State deleted) throws IOException {
    log.requireDurable(deleted);
    String marker = Names.deletionMarker(deleted.version());
    try {
      store.putIfAbsent(Names.topicFile(topic, marker), Names.topicFile(topic, Names.temporary(txn, marker)), new byte[0],
          PutObserver.NONE);
    } catch (FileAlreadyExistsException somebodyElseDid) {
      return;
    }
  }
}
