package io.sparklog.write;

import io.sparklog.log.Committer;
import io.sparklog.log.Names;
import io.sparklog.log.Root;
import io.sparklog.log.TopicLog;
import io.sparklog.log.Upkeep;
import io.sparklog.log.Version;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Warnings;
import java.io.IOException;
import java.time.Clock;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.random.RandomGenerator;

/** The driver's side of one write, or of one epoch of a query: one commit a topic, each whole and at most once, topic after topic. */
public final class TopicCommits {
  private final Root root;
  private final String txn;
  private final Once once;
  private final Clock clock;
  private final RandomGenerator random;
  private final Map<String, Committer> committers = new HashMap<>();

  /**
   * @param txn the random identity of the write
   * @param once what makes the write exactly once
   */
  public TopicCommits(Root root, String txn, Once once, Clock clock, RandomGenerator random) {
    this.root = root;
    this.txn = txn;
    this.once = once;
    this.clock = clock;
    this.random = random;
  }

  /**
   * Commits what the tasks wrote, topic after topic. If one fails, those after it are not tried; those before it stay done.
   *
   * @param plans of each topic to commit, by name
   * @param reports what each task wrote, by topic
   * @throws PartlogException see {@link #commit(TopicPlan, List)}
   */
  public void commit(SortedMap<String, TopicPlan> plans, List<Map<String, List<Piece>>> reports) {
    plans.forEach((topic, plan) -> commit(plan, reports.stream().map(report -> report.getOrDefault(topic, List.of())).toList()));
  }

  /**
   * Commits what the tasks wrote to one topic, and creates the topic if it does not exist. Nothing is committed for no records, unless that
   * creates the topic.
   *
   * @param tasks the pieces of each task, by task
   * @return the version that was put; empty if there was nothing to commit, or the topic holds the write already
   * @throws PartlogException if it is not done; COMMIT_UNKNOWN if that cannot be told; EPOCH_DIFFERS
   */
  public Optional<Version> commit(TopicPlan plan, List<List<Piece>> tasks) {
    TopicLog log = root.topic(plan.topic());
    Committer committer = new Committer(log, txn, clock, random);
    committers.put(plan.topic(), committer);
    Optional<Version> version = committer.commit(new Append(log, plan, txn, once, tasks, random));
    Upkeep upkeep = new Upkeep(log, txn);
    version.ifPresentOrElse(upkeep::after, () -> upkeep.afterRepeat(once.query()));
    return version;
  }

  /** Deletes the data files of a write that is not done. Files that a version may name stay: also after a failed commit. */
  public void abort(List<Map<String, List<Piece>>> reports) {
    for (Map<String, List<Piece>> report : reports) {
      report.forEach((topic, pieces) -> {
        Committer committer = committers.get(topic);
        if (committer == null || !committer.putTried()) {
          pieces.forEach(piece -> delete(topic, piece));
        }
      });
    }
  }

  private void delete(String topic, Piece piece) {
    if (piece instanceof Piece.InFile inFile) {
      String file = inFile.segment().file();
      try {
        root.store().delete(Names.topicFile(topic, file));
      } catch (IOException e) {
        Warnings.warn(TopicCommits.class, "left {} of topic {}", file, topic, e);
      }
    }
  }
}
