package io.sparklog.serve.coordinator;

import io.sparklog.admin.Administration;
import io.sparklog.commits.TopicWriters;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.serve.coordinator.TopicsImage.KnownTopic;
import io.sparklog.serve.protocol.Workers;
import io.sparklog.serve.security.Rights;
import io.sparklog.serve.topics.ServedTopics;
import io.sparklog.spec.Options;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.ServerSettings;
import io.sparklog.spec.Warnings;
import io.sparklog.upkeep.TopicWork;
import java.time.Clock;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.function.IntPredicate;
import java.util.random.RandomGenerator;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.errors.CoordinatorNotAvailableException;
import org.apache.kafka.common.errors.GroupAuthorizationException;
import org.apache.kafka.common.errors.NotCoordinatorException;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;

/**
 * The groups of a root: Kafka's own coordinator, whose records are in the topic {@code __consumer_offsets}. The coordinator that answers a
 * request has all records that any process committed before the request came. To be sure, the topic of the records is looked at; requests
 * that come together share a look.
 */
public final class Groups implements AutoCloseable {
  /** The topic that has the records of groups. It is made for the first group. */
  static final String TOPIC = Rights.OFFSETS_TOPIC;

  /** The number of records from which on a partition is compacted, if less than half of the records are live. */
  private static final int RECORDS_MIN = 10_000;

  /** The number of its partitions, which counts when it is made. */
  static final String PARTITIONS = "offsets.topic.num.partitions";

  /** The most memory of the live records of all groups. It does not depend on the heap: servers with other heaps load the records. */
  static final String BYTES_MAX = "group.records.max.bytes";

  private final Root root;
  private final TopicWriters writers;
  private final TopicWork work;
  private final int nodeId;
  private final IntPredicate isOurs;
  private final Map<String, Object> settings;
  private final int partitions;
  private final long bytesMax;
  private final int compactionRecordsMin;
  private final Workers looks = new Workers("group-looks", 1);

  // Guarded by this.
  private CompletableFuture<Optional<State>> nextLook;
  private Coordinator coordinator;
  private RecordMemory memory;
  private Collection<KnownTopic> topics = List.of();
  private boolean isClosed;

  /**
   * @param writers commit the records of groups
   * @param nodeId of this process among the servers of the root
   * @param settings of groups by Kafka's names, such as {@code group.initial.rebalance.delay.ms}; others are ignored
   * @param isOurs whether this process coordinates the groups of a partition now
   */
  public Groups(Root root, TopicWriters writers, int nodeId, Map<String, ?> settings, IntPredicate isOurs, Clock clock,
      RandomGenerator random) {
    this(root, writers, nodeId, settings, isOurs, clock, random, RECORDS_MIN);
  }

  Groups(Root root, TopicWriters writers, int nodeId, Map<String, ?> settings, IntPredicate isOurs, Clock clock, RandomGenerator random,
      int compactionRecordsMin) {
    this.root = root;
    this.isOurs = isOurs;
    this.writers = writers;
    this.work = new TopicWork(root.topic(TOPIC), clock, random);
    this.nodeId = nodeId;
    Map<String, Object> all = new HashMap<>(ServerSettings.defaults());
    all.putAll(settings);
    // Each request is appended alone, so that a request that is refused for its memory fails no other request. A commit has many of them.
    all.put(GroupCoordinatorConfig.GROUP_COORDINATOR_APPEND_LINGER_MS_CONFIG, "0");
    this.settings = Map.copyOf(all);
    GroupCoordinatorConfig.fromProps(this.settings); // A wrong value is an error now, and not of the first request.
    this.partitions = Integer.parseInt(this.settings.get(PARTITIONS).toString());
    this.bytesMax = Long.parseLong(this.settings.get(BYTES_MAX).toString());
    this.memory = new RecordMemory(bytesMax, partitions, isOurs);
    this.compactionRecordsMin = compactionRecordsMin;
  }

  /** All topics of the root, as they are now. Call it whenever they change. */
  void topics(Collection<KnownTopic> now) {
    Coordinator told;
    synchronized (this) {
      topics = List.copyOf(now);
      told = coordinator;
    }
    if (told != null) {
      told.topics(now);
    }
  }

  /**
   * The coordinator, when it has all records of a group that are committed now. Clients repeat a request that fails by this future: it has
   * {@link CoordinatorNotAvailableException} if the records cannot be read, which the log tells more of, and
   * {@link NotCoordinatorException} if another process coordinates the group.
   */
  CompletableFuture<GroupCoordinator> of(String group) {
    return retriable(look().thenApplyAsync(found -> found.orElseGet(this::create), looks).thenCompose(state -> {
      Coordinator found = coordinator(state);
      int of = found.service().partitionFor(group);
      if (!isOurs.test(of)) {
        return CompletableFuture.failedFuture(new NotCoordinatorException("another server coordinates the group " + group));
      }
      return found.topic().current(state, partition -> partition == of).thenApply(done -> found.service());
    }));
  }

  /** The partition of a group: groups with the same partition have the same coordinator. */
  CompletableFuture<Integer> partition(String group) {
    return retriable(look().thenApplyAsync(found -> coordinator(found.orElseGet(this::create)).service().partitionFor(group), looks));
  }

  /** The coordinator, when it has all records of all groups of this process that are committed now; empty if the root never had a group. */
  CompletableFuture<Optional<GroupCoordinator>> ofAll() {
    return retriable(look().thenCompose(found -> {
      if (found.isEmpty()) {
        return CompletableFuture.completedFuture(Optional.empty());
      }
      Coordinator all = coordinator(found.get());
      return all.topic().current(found.get(), isOurs).thenApply(done -> Optional.of(all.service()));
    }));
  }

  /**
   * Gives up the groups that another process coordinates now. Otherwise their members, who ask the other process, would be taken for dead
   * here, and a member that waits here for the other members would wait on. Call it when that may have changed.
   */
  public void release() {
    Coordinator told;
    synchronized (this) {
      told = coordinator;
    }
    if (told != null) {
      told.topic().release(isOurs.negate());
    }
  }

  private static <T> CompletableFuture<T> retriable(CompletableFuture<T> answer) {
    return answer.exceptionallyCompose(failed -> {
      Throwable why = failed instanceof CompletionException && failed.getCause() != null ? failed.getCause() : failed;
      if (why instanceof ApiException) {
        return CompletableFuture.failedFuture(why);
      }
      if (why instanceof PartlogException refused && refused.id().equals("ROOT_NOT_WRITABLE")) {
        // It will not be writable soon, so a client must not ask again and again.
        return CompletableFuture.failedFuture(new GroupAuthorizationException("The server may not write the positions of groups."));
      }
      Warnings.warn(Groups.class, "the groups of {} cannot be served now", TOPIC, why);
      String told = "The records of groups cannot be read now. The log of the server has the cause.";
      return CompletableFuture.failedFuture(new CoordinatorNotAvailableException(told, why));
    });
  }

  /** The newest state of the topic, from a look that begins after this call. */
  private synchronized CompletableFuture<Optional<State>> look() {
    if (isClosed) {
      return CompletableFuture.failedFuture(ended());
    }
    if (nextLook == null) {
      nextLook = new CompletableFuture<>();
      looks.execute(this::lookNow);
    }
    return nextLook;
  }

  private void lookNow() {
    CompletableFuture<Optional<State>> look;
    synchronized (this) {
      look = nextLook;
      nextLook = null;
    }
    try {
      look.complete(root.topic(TOPIC).newest());
    } catch (RuntimeException | Error e) {
      look.completeExceptionally(e);
    }
  }

  /** Makes the topic, unless another process was first. Its records never expire: only a coordinator knows the records that it needs. */
  private State create() {
    Map<String, String> given = Map.of(TopicConfig.PARTITIONS, Integer.toString(partitions), TopicConfig.PARTITIONER, "murmur2",
        TopicConfig.KAFKA_VIEW, "none");
    Map<String, String> config = new HashMap<>(Options.of(given, Options.Side.WRITE).topicConfig());
    config.put(TopicConfig.CLEANUP_POLICY, ServedTopics.GROUPS_POLICY); // Retention then deletes nothing, also if somebody sets it.
    try {
      root.prepare();
      new Administration(work).create(TopicConfig.of(config), work.identity());
    } catch (PartlogException e) {
      if (root.topic(TOPIC).newest().isEmpty()) {
        throw e;
      }
    }
    root.listAgain();
    return root.state(TOPIC);
  }

  /** The memory that the live records of the groups of this process take, about. */
  public synchronized long bytes() {
    return memory.bytes();
  }

  /** The most of these bytes. Beyond it, records that take more are refused. */
  public synchronized long bytesMax() {
    return memory.limit();
  }

  private static NotCoordinatorException ended() {
    return new NotCoordinatorException("this server ends");
  }

  private synchronized Coordinator coordinator(State state) {
    if (isClosed) {
      throw ended();
    }
    if (coordinator == null || !coordinator.topic().isOf(state)) {
      if (coordinator != null) {
        coordinator.close();
      }
      memory = new RecordMemory(bytesMax, state.partitions(), isOurs);
      coordinator = new Coordinator(root, state, writers, nodeId, settings, compactionRecordsMin, memory);
      coordinator.topics(topics);
    }
    return coordinator;
  }

  /** Refuses the requests that wait, and all later ones, with {@link NotCoordinatorException}. */
  @Override
  public void close() {
    Coordinator last;
    synchronized (this) {
      isClosed = true;
      last = coordinator;
      coordinator = null;
    }
    looks.close(); // After the looks that were asked for.
    if (last != null) {
      last.close();
    }
  }
}
