package io.sparklog.serve.coordinator;

import io.sparklog.log.State;
import io.sparklog.serve.coordinator.groups.Groups;
import io.sparklog.serve.coordinator.groups.KnownTopic;
import io.sparklog.serve.protocol.Work;
import io.sparklog.serve.topics.ServedTopics;
import io.sparklog.spec.Warnings;
import java.util.Collection;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.coordinator.group.GroupCoordinator;

/** The way of requests to the coordinator of their group. It knows the topics of the root as they were at most a second before. */
public final class GroupRequests {
  private static final long FRESH_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final Groups groups;
  private final ServedTopics topics;
  private final Work work;

  /** When the coordinator was given the topics. */
  private volatile long given = System.nanoTime() - FRESH_NANOS;

  /** The last look at all topics. Guarded by this. */
  private CompletableFuture<Void> giving;

  public GroupRequests(Groups groups, ServedTopics topics, Work work) {
    this.groups = groups;
    this.topics = topics;
    this.work = work;
  }

  /** The answer of the coordinator of a group. */
  <T> CompletableFuture<T> ask(String group, Function<GroupCoordinator, CompletableFuture<T>> request) {
    return withTopics(() -> groups.of(group).thenCompose(request));
  }

  /** The answer of the coordinator of all groups; {@code none} if the root never had a group. */
  <T> CompletableFuture<T> askAll(Function<GroupCoordinator, CompletableFuture<T>> request, T none) {
    return withTopics(
        () -> groups.ofAll().thenCompose(found -> found.map(request).orElseGet(() -> CompletableFuture.completedFuture(none))));
  }

  /** The partition of a group: groups with the same partition have the same coordinator. */
  CompletableFuture<Integer> partition(String group) {
    return groups.partition(group);
  }

  ServedTopics topics() {
    return topics;
  }

  Work work() {
    return work;
  }

  private <T> CompletableFuture<T> withTopics(Supplier<CompletableFuture<T>> request) {
    return System.nanoTime() - given < FRESH_NANOS ? request.get() : topicsGiven().thenCompose(done -> request.get());
  }

  /** One look at all topics for all requests that need one now. It is made on another thread, as it may take requests to a store. */
  private synchronized CompletableFuture<Void> topicsGiven() {
    if (giving == null || giving.isDone()) {
      giving = work.run(this::giveTopics).exceptionallyCompose(e -> {
        Warnings.warn(GroupRequests.class, "the topics of {} cannot be listed now", topics.root().location(), e);
        return CompletableFuture.failedFuture(Errors.COORDINATOR_NOT_AVAILABLE.exception()); // Clients repeat the request.
      });
    }
    return giving;
  }

  private Void giveTopics() {
    Collection<State> found = topics.all().values();
    groups.topics(found.stream().map(state -> new KnownTopic(state.topic(), state.topicId(), state.partitions())).toList());
    given = System.nanoTime();
    return null;
  }
}
