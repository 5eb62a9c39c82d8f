package io.sparklog.serve.coordinator;

import io.sparklog.log.State;
import io.sparklog.serve.coordinator.TopicsImage.KnownTopic;
import io.sparklog.serve.protocol.Workers;
import io.sparklog.serve.topics.ServedTopics;
import io.sparklog.spec.Warnings;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.LongSupplier;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.coordinator.group.GroupCoordinator;

/**
 * The way of requests to the coordinator of their group. The coordinator knows the topics of the root: it shares their partitions out, and
 * drops offsets of deleted topics. No request of a busy server waits until all topics are read.
 */
public final class GroupRequests implements AutoCloseable {
  /** A request that finds the topics older than this begins a refresh of all topics, and does not wait for the refresh. */
  private static final long FRESH_NANOS = TimeUnit.SECONDS.toNanos(1);

  /** A request that finds the topics older than this waits for the refresh: members of new topics would lose partitions. */
  private static final long STALE_NANOS = TimeUnit.SECONDS.toNanos(30);

  private final Groups groups;
  private final ServedTopics topics;
  private final Workers work;
  private final LongSupplier nanos;

  /** A topic, and when the read of the topic began. @param topic null if the topic does not exist */
  private record KnownAt(KnownTopic topic, long readAt) {}

  /** The topics that the coordinator knows, by name. The map guards itself, and the order in which the coordinator learns of changes. */
  private final Map<String, KnownAt> seen = new HashMap<>();

  /** Tells the coordinator. If a topic was deleted, Kafka's coordinator waits until the positions there are deleted. */
  private final Workers telling = new Workers("group-topics", 1);

  /** When the last refresh of all topics that has ended began. */
  private volatile long refreshedAt;

  /** The last refresh of all topics. Guarded by this. */
  private CompletableFuture<Void> refresh;

  public GroupRequests(Groups groups, ServedTopics topics, Workers work) {
    this(groups, topics, work, System::nanoTime);
  }

  GroupRequests(Groups groups, ServedTopics topics, Workers work, LongSupplier nanos) {
    this.groups = groups;
    this.topics = topics;
    this.work = work;
    this.nanos = nanos;
    this.refreshedAt = nanos.getAsLong() - STALE_NANOS;
  }

  /** The answer of the coordinator of a group. */
  <T> CompletableFuture<T> ask(String group, Function<GroupCoordinator, CompletableFuture<T>> request) {
    return topicsKnown(STALE_NANOS).thenCompose(done -> groups.of(group).thenCompose(request));
  }

  /** As {@link #ask(String, Function)}, for a member that subscribes to topics. The coordinator knows these topics as they are now. */
  <T> CompletableFuture<T> ask(String group, Collection<String> names, Function<GroupCoordinator, CompletableFuture<T>> request) {
    return work.run(() -> read(names, nanos.getAsLong())).thenCompose(told -> told).thenCompose(done -> ask(group, request));
  }

  /** As {@link #ask(String, Function)}, for a member that subscribes to a pattern. The coordinator knows all topics of a second ago. */
  <T> CompletableFuture<T> askWithAllTopics(String group, Function<GroupCoordinator, CompletableFuture<T>> request) {
    return topicsKnown(FRESH_NANOS).thenCompose(done -> groups.of(group).thenCompose(request));
  }

  /** The answer of the coordinator of all groups; {@code none} if the root never had a group. */
  <T> CompletableFuture<T> askAll(Function<GroupCoordinator, CompletableFuture<T>> request, T none) {
    return topicsKnown(STALE_NANOS).thenCompose(
        done -> groups.ofAll().thenCompose(found -> found.map(request).orElseGet(() -> CompletableFuture.completedFuture(none))));
  }

  /** The partition of a group: groups with the same partition have the same coordinator. */
  CompletableFuture<Integer> partition(String group) {
    return groups.partition(group);
  }

  ServedTopics topics() {
    return topics;
  }

  Workers work() {
    return work;
  }

  /** Begins a refresh of all topics if that is due. @return the refresh, if the last one is as old as this; else nothing to wait for */
  private CompletableFuture<Void> topicsKnown(long waitNanos) {
    long age = nanos.getAsLong() - refreshedAt;
    if (age < FRESH_NANOS) {
      return CompletableFuture.completedFuture(null);
    }
    CompletableFuture<Void> begun = refreshAll();
    return age < waitNanos ? CompletableFuture.completedFuture(null) : begun;
  }

  /** One refresh for all requests that need a refresh now. Another thread makes the refresh, which takes requests to a store. */
  private synchronized CompletableFuture<Void> refreshAll() {
    if (refresh == null || refresh.isDone()) {
      refresh = work.run(this::refreshNow).thenCompose(told -> told).exceptionallyCompose(e -> {
        Warnings.warn(GroupRequests.class, "the topics of {} cannot be listed now", topics.root().location(), e);
        return CompletableFuture.failedFuture(Errors.COORDINATOR_NOT_AVAILABLE.exception()); // Clients repeat the request.
      });
    }
    return refresh;
  }

  private CompletableFuture<Void> refreshNow() {
    long began = nanos.getAsLong();
    Set<String> names = new TreeSet<>(topics.names());
    synchronized (seen) {
      seen.values().removeIf(known -> known.topic == null && known.readAt < refreshedAt); // All topics were read since.
      names.addAll(seen.keySet());
    }
    return read(names, began).thenRun(() -> refreshedAt = began);
  }

  /**
   * Reads topics, and tells the coordinator. A topic that cannot be read now stays as it was known: the coordinator takes a topic that is
   * missing for deleted, and drops the positions of all groups there.
   *
   * @param began when this read began: the read changes nothing that a later read found
   * @return is complete when the coordinator knows
   */
  private CompletableFuture<Void> read(Collection<String> names, long began) {
    Map<String, Optional<State>> found = new HashMap<>();
    topics.read(names, found::put);
    synchronized (seen) {
      found.forEach((name, state) -> {
        KnownAt before = seen.get(name);
        if (before == null || before.readAt <= began) {
          seen.put(name, new KnownAt(state.map(now -> new KnownTopic(name, now.topicId(), now.partitions())).orElse(null), began));
        }
      });
      List<KnownTopic> known = seen.values().stream().map(KnownAt::topic).filter(Objects::nonNull).toList();
      return telling.run(() -> {
        groups.topics(known);
        return null;
      });
    }
  }

  @Override
  public void close() {
    telling.close();
  }
}
