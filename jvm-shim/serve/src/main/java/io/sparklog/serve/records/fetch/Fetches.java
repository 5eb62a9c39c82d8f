package io.sparklog.serve.records.fetch;

import io.sparklog.feed.CommitWaits;
import io.sparklog.log.ReadableTopics;
import io.sparklog.log.State;
import io.sparklog.segment.Segment;
import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.stream.Collectors;

/** Answers requests for the records of many partitions. */
public final class Fetches {
  private static final long TIDY_MS = 10_000;

  private final ReadableTopics topics;
  private final PartitionReads reads;
  private final CommitWaits commits;
  private final Executor work;

  /** @param work runs reads, which block */
  public Fetches(ReadableTopics topics, PartitionReads reads, CommitWaits commits, Executor work) {
    this.topics = topics;
    this.reads = reads;
    this.commits = commits;
    this.work = work;
    commits.repeat(reads::tidy, TIDY_MS);
  }

  /**
   * A request for records.
   *
   * @param wanted in the order in which they are read while {@code bytesMax} lasts
   * @param bytesMin it waits for so many bytes
   * @param bytesMax it is given no further partition from so many bytes on
   * @param waitMs it waits so long at most
   */
  public record Fetch(List<PartitionFetch> wanted, int bytesMin, int bytesMax, long waitMs) {}

  /**
   * Waits until there are enough bytes or something is wrong, and then reads. Files are read once, after the wait: states have
   * the number of bytes. If there are enough, the records are read on the calling thread, which blocks. While answers fill the memory for
   * copies, an answer has fewer bytes, but at least one batch.
   *
   * @return the answers, in the order of {@code wanted}. If it was cancelled, nothing is left open
   */
  public CompletableFuture<List<FetchedPartition>> fetch(Fetch request) {
    CompletableFuture<List<FetchedPartition>> answer = new CompletableFuture<>();
    WaitingFetch pending = new WaitingFetch(request);
    Set<String> names = request.wanted.stream().map(PartitionFetch::topic).collect(Collectors.toSet());
    CompletableFuture<Boolean> wait = commits.await(names, pending::isEnough, request.waitMs);
    answer.whenComplete((found, failure) -> wait.cancel(false)); // The connection ended, or the wait is over.
    wait.whenCompleteAsync((enough, failure) -> {
      if (answer.isDone()) {
        return;
      }
      try {
        if (failure != null) {
          throw failure;
        }
        List<FetchedPartition> found = readWithin(reads.memory(), pending);
        if (!answer.complete(found)) {
          close(found);
        }
      } catch (Throwable e) { // The future is the only place for it.
        answer.completeExceptionally(e);
      }
    }, wait.isDone() ? Runnable::run : work); // Each thread that a request goes through takes time.
    return answer;
  }

  /** The parts take their bytes from the memory while they are made. So bytes are kept for them meanwhile. */
  private static List<FetchedPartition> readWithin(Memory memory, WaitingFetch pending) {
    long bytes = pending.bytes();
    long kept = memory.take(bytes);
    try {
      return pending.read(kept < bytes ? kept : Long.MAX_VALUE);
    } finally {
      memory.give(kept);
    }
  }

  /** Closes the parts of answers that are not sent. */
  public static void close(List<FetchedPartition> found) {
    found.forEach(each -> PartitionReads.close(each.parts()));
  }

  /** A request, and the newest states that it has seen. For one thread at a time. */
  private final class WaitingFetch {
    private final Fetch request;
    private final Map<String, Optional<State>> states = new HashMap<>();
    private final Map<String, PartlogException> faults = new HashMap<>();

    WaitingFetch(Fetch request) {
      this.request = request;
    }

    private synchronized void look(PartitionFetch wanted, boolean isNow) {
      faults.remove(wanted.topic());
      try {
        states.put(wanted.topic(), isNow ? commits.newest(wanted.topic()) : commits.recent(wanted.topic()));
      } catch (PartlogException e) {
        states.put(wanted.topic(), Optional.empty());
        faults.put(wanted.topic(), e);
      }
    }

    /** Whether to wait no longer: there are enough bytes, or a partition has an error. */
    synchronized boolean isEnough() {
      request.wanted.stream()
          .collect(Collectors.toMap(PartitionFetch::topic, wanted -> wanted, (one, other) -> one))
          .values()
          .forEach(wanted -> look(wanted, false));
      long bytes = 0;
      for (PartitionFetch wanted : request.wanted) {
        if (state(wanted).isEmpty()) {
          return true;
        }
        State state = state(wanted).get();
        if (!has(state, wanted) || wanted.offset() < state.start(wanted.partition())) {
          return true;
        }
        bytes += Fetches.bytes(state, wanted);
      }
      return bytes >= request.bytesMin;
    }

    /** The topic that is meant. A state that does not have the offset may be old: then there is another look. */
    private Optional<State> state(PartitionFetch wanted) {
      Optional<State> known = states.get(wanted.topic());
      if (topics.isRemote() && (known.isEmpty() || !isMeant(known.get(), wanted) || !has(known.get(), wanted))) {
        look(wanted, true);
        known = states.get(wanted.topic());
      }
      return known.filter(state -> isMeant(state, wanted));
    }

    private static boolean isMeant(State state, PartitionFetch wanted) {
      return wanted.topicId() == null || wanted.topicId().equals(state.topicId());
    }

    private static boolean has(State state, PartitionFetch wanted) {
      return wanted.partition() >= 0 && wanted.partition() < state.partitions() && wanted.offset() <= state.end(wanted.partition());
    }

    /** About how many bytes a read gives, by the states that were seen last. */
    synchronized long bytes() {
      long bytes = 0;
      for (PartitionFetch wanted : request.wanted) {
        Optional<State> state = states.getOrDefault(wanted.topic(), Optional.empty()).filter(known -> has(known, wanted));
        bytes += state.map(known -> Fetches.bytes(known, wanted)).orElse(0L);
      }
      return Math.min(bytes, request.bytesMax);
    }

    /**
     * Reads partition after partition, by the states that were seen last.
     *
     * @param most bytes to give, but for the first batch
     */
    synchronized List<FetchedPartition> read(long most) {
      List<FetchedPartition> found = new ArrayList<>();
      try {
        long left = Math.max(1, Math.min(request.bytesMax, most));
        for (PartitionFetch wanted : request.wanted) {
          FetchedPartition one = read(wanted, left);
          left -= one.bytes();
          found.add(one);
        }
        return found;
      } catch (Error e) {
        close(found);
        throw e;
      }
    }

    private FetchedPartition read(PartitionFetch wanted, long left) {
      State state = null;
      try {
        if (faults.containsKey(wanted.topic())) {
          throw faults.get(wanted.topic());
        }
        State known = state(wanted).orElseThrow(() -> topics.notFound(wanted.topic()));
        state = known;
        known.requirePartition("partition", topics.location(), wanted.partition());
        long start = state.start(wanted.partition());
        long end = state.end(wanted.partition());
        boolean isFull = wanted.offset() >= start && wanted.offset() < end && left <= 0;
        // An offset that is out of range is met by the read, which reports it.
        List<FetchedBytes> parts = isFull || wanted.offset() == end
            ? List.of()
            : reads.read(state, wanted.partition(), wanted.offset(), (int) Math.min(wanted.bytesMax(), left));
        return new FetchedPartition(state, parts, null);
      } catch (IOException e) {
        return new FetchedPartition(state, List.of(), PartlogException.io(e, topics.location() + ", topic " + wanted.topic()));
      } catch (RuntimeException e) {
        return new FetchedPartition(state, List.of(), e);
      }
    }
  }

  /** About how many bytes there are to read, up to the limit of the partition: as if the records of a segment were of one size. */
  private static long bytes(State state, PartitionFetch wanted) {
    long bytes = 0;
    for (Segment segment : state.segments(wanted.partition(), wanted.offset(), state.end(wanted.partition()))) {
      double share = (double) (segment.end() - Math.max(wanted.offset(), segment.base())) / (segment.end() - segment.base());
      bytes += Math.max(1, (long) (share * segment.bytes()));
      if (bytes >= wanted.bytesMax()) {
        return wanted.bytesMax();
      }
    }
    return bytes;
  }
}
