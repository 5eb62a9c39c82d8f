package io.sparklog.write;

import io.sparklog.log.Committed;
import io.sparklog.log.Rebuilt;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.segment.Names;
import io.sparklog.spec.PartlogException;
import io.sparklog.upkeep.TopicWork;
import java.io.IOException;
import java.time.Clock;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.function.Function;
import java.util.random.RandomGenerator;

/**
 * The driver's side of one write, or of one epoch of a query. It makes one commit a topic, each whole and at most once, topic after topic.
 */
public final class TopicCommits {
  private final Root root;
  private final String txn;
  private final Function<String, Once> once;
  private final Clock clock;
  private final RandomGenerator random;
  private long mergeBytes;
  private boolean creates;
  private Rebuilt rebuilt;
  /** The topics whose commit has begun. */
  private final Set<String> begun = new HashSet<>();

  /**
   * @param txn the random identity of the write
   * @param once by topic, the facts that make the write exactly once. They do not change until the topic is committed: they are asked for
   *     more than once
   */
  public TopicCommits(Root root, String txn, Function<String, Once> once, Clock clock, RandomGenerator random) {
    this.root = root;
    this.txn = txn;
    this.once = once;
    this.clock = clock;
    this.random = random;
  }

  /** Merges small segments after each commit. @param bytes at most, of each topic; 0: none */
  public TopicCommits merging(long bytes) {
    mergeBytes = bytes;
    return this;
  }

  /** Commits to no topic that exists. @param creates whether it is so */
  public TopicCommits creating(boolean creates) {
    this.creates = creates;
    return this;
  }

  /** Commits to no topic that exists, and says whose records these are. */
  public TopicCommits rebuilding(Rebuilt origin) {
    rebuilt = origin;
    return creating(true);
  }

  /**
   * Commits the files of the tasks, topic after topic, and then does the upkeep of these commits. If a commit fails, those after it are not
   * tried, and those before it stay done.
   *
   * @param plans of each topic to commit, by name
   * @param existing topics that may hold this epoch although this attempt has no records for them
   * @param reports the report of each task, by topic
   * @throws PartlogException EPOCH_DIFFERS in any of these topics, before anything is committed; see {@link #commit(TopicPlan, List)}
   */
  public List<Committed> commit(SortedMap<String, TopicPlan> plans, Set<String> existing, List<Map<String, TopicReport>> reports) {
    // The commit of a lone topic finds this out itself, and asks for the newest state once.
    if (plans.size() != 1 || !plans.keySet().containsAll(existing)) {
      // The n-th write of an epoch counts its own topics only.
      List<String> asked = existing.stream()
          .filter(topic -> plans.containsKey(topic) || once.apply(topic).rule() == Once.Rule.EPOCH)
          .sorted()
          .toList();
      Map<String, State> newest = root.newest(asked);
      asked.stream().filter(newest::containsKey).forEach(topic -> {
        long records = reports.stream().mapToLong(report -> report.getOrDefault(topic, TopicReport.NONE).records()).sum();
        requireSame(newest.get(topic), records);
      });
    }
    List<TopicWork.Begun> owed = new ArrayList<>();
    List<Committed> done = new ArrayList<>();
    try {
      plans.forEach(
          (topic, plan) -> owed.add(begin(plan, reports.stream().map(report -> report.getOrDefault(topic, TopicReport.NONE)).toList())));
    } finally {
      owed.forEach(each -> done.add(each.followed()));
    }
    return done;
  }

  /** EPOCH_DIFFERS if a topic holds another write under the name of this one. */
  private void requireSame(State newest, long records) {
    TopicLog log = root.topic(newest.topic());
    try {
      once.apply(newest.topic()).isIn(log, newest, records);
    } catch (IOException e) {
      throw PartlogException.io(e, log.store().location(Names.topicFolder(newest.topic())));
    }
  }

  /**
   * Commits the files that the tasks wrote for one topic, and creates the topic if it does not exist. Nothing is committed for no records,
   * unless that creates the topic.
   *
   * @param tasks the report of each task, by task
   * @throws PartlogException if it is not done; COMMIT_UNKNOWN if that cannot be told; EPOCH_DIFFERS
   */
  public Committed commit(TopicPlan plan, List<TopicReport> tasks) {
    return begin(plan, tasks).followed();
  }

  private TopicWork.Begun begin(TopicPlan plan, List<TopicReport> tasks) {
    TopicWork work = new TopicWork(root.topic(plan.topic()), clock, random);
    begun.add(plan.topic());
    return work.begin(new Append(root, plan, txn, once.apply(plan.topic()), tasks, creates, rebuilt, random), txn, mergeBytes);
  }

  /** Deletes the files that the tasks wrote for topics whose commit has not begun. A commit that has begun sees to its files itself. */
  public void abort(List<Map<String, TopicReport>> reports) {
    for (Map<String, TopicReport> task : reports) {
      task.forEach((topic, report) -> {
        if (!begun.contains(topic)) {
          Append.delete(root.store(), topic, report);
        }
      });
    }
  }
}
