package io.sparklog.commits;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.Drivers;
import io.sparklog.storage.FaultyStore;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Stores;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The commits of a coordinator: each behind the end offset that it knows. */
final class CoordinatorCommitsTest extends Drivers {
  private Driver driver;
  private TopicWriters writers;

  @BeforeEach
  void create() throws Exception {
    new Driver().commit(Map.of("kafka.view", "none"), 0);
  }

  private void open(LogStore store, CommitThreads threads) {
    driver = new Driver(store);
    writers = new TopicWriters(driver.root, CommitSettings.USUAL, threads, topic -> {}, clock(), random);
  }

  @AfterEach
  void close() {
    writers.close();
  }

  private CompletableFuture<AppendResult> append(int partition, long end, boolean replaces) {
    byte[] batch = ClientBatch.of(1, "v").bytes().array();
    List<PreparedAppend.PreparedBatch> batches = List.of(PreparedAppend.PreparedBatch.unordered(batch, -1));
    return writers.append("t", partition,
        PreparedAppend.of(driver.root.state("t").topicId(), batches, new PreparedAppend.Fence(end, replaces)));
  }

  private static AppendResult done(CompletableFuture<AppendResult> future) throws Exception {
    return future.get(60, TimeUnit.SECONDS);
  }

  private static AppendRefused.Reason refusal(CompletableFuture<?> future) {
    ExecutionException failed = assertThrows(ExecutionException.class, () -> future.get(60, TimeUnit.SECONDS));
    return ((AppendRefused) failed.getCause()).refusal();
  }

  /** The records of a coordinator take as many syncs as the batches of clients. */
  @Test
  void recordsBehindAFenceShareTheDataFolderToo() throws Exception {
    FaultyStore store = FaultyStore.of(Stores.open(folder.toString()));
    open(store.store(), new CommitThreads());
    append(0, state().end(0), false).get(60, TimeUnit.SECONDS);
    store.calls().clear();
    long first = state().end(0);
    long end = first;
    for (int i = 0; i < 20; i++) {
      end = done(append(0, end, false)).end();
    }
    List<String> calls = List.copyOf(store.calls());
    assertEquals(20, calls.stream().filter(call -> call.startsWith("flush ")).count(), calls::toString);
    assertEquals(20, calls.stream().filter(call -> call.startsWith("putIfAbsent ")).count());
    assertEquals(first + 20, state().end(0));
    assertEquals(AppendRefused.Reason.FENCED, refusal(append(0, end - 1, false)));
    assertEquals(AppendRefused.Reason.FENCED, refusal(append(0, end + 1, true)));
    assertEquals(end, state().end(0));
    assertEquals(end + 1, done(append(0, end, true)).end());
    assertEquals(end, state().start(0));
    assertEquals(state().end(1), done(append(1, state().end(1), false)).base(), "each partition has a fence of its own");
  }

  /** Merges and checkpoints may be slower than commits, such as in a store over a network. */
  @Test
  void commitsWaitForAnUpkeepThatIsBehind() throws Exception {
    Queue<Runnable> upkeeps = new ConcurrentLinkedQueue<>();
    open(Stores.open(folder.toString()), new CommitThreads() {
      @Override
      void keepUpLater(long ms, Runnable task) {
        upkeeps.add(task);
      }
    });
    long[] ends = state().ends();
    for (int i = 0; i < TopicUpkeep.BEHIND_MAX; i++) {
      done(append(i % 4, ends[i % 4]++, false));
    }
    CompletableFuture<AppendResult> braked = append(0, ends[0], false);
    assertThrows(TimeoutException.class, () -> braked.get(100, TimeUnit.MILLISECONDS));
    long before = state().liveSegments();
    while (!upkeeps.isEmpty()) {
      upkeeps.remove().run();
    }
    done(braked);
    assertTrue(state().liveSegments() < before / 10, () -> before + " segments became " + state().liveSegments());
  }

  /** The records of a group that was deleted are all dead. */
  @Test
  void aCompactionMayLeaveNothing() throws Exception {
    open(Stores.open(folder.toString()), new CommitThreads());
    long end = done(append(0, state().end(0), false)).end();
    PreparedAppend nothing = PreparedAppend.of(driver.root.state("t").topicId(), List.of(), new PreparedAppend.Fence(end, true));
    assertEquals(end, done(writers.append("t", 0, nothing)).end());
    assertEquals(List.of(end, end), List.of(state().start(0), state().end(0)));
    assertEquals(List.of(), state().segments(0));
    assertEquals(end + 1, done(append(0, end, false)).end());
    assertEquals(1, state().segments(0).size());
  }

  /** A refused append has no upkeep. The upkeep of the commits before it is owed all the same. */
  @Test
  void anAppendThatIsRefusedTakesNoUpkeepAway() throws Exception {
    Queue<Runnable> upkeeps = new ConcurrentLinkedQueue<>();
    open(Stores.open(folder.toString()), new CommitThreads() {
      @Override
      void keepUpLater(long ms, Runnable task) {
        upkeeps.add(task);
      }
    });
    long end = state().end(0);
    for (int i = 0; i < 40; i++) {
      end = done(append(0, end, false)).end();
    }
    assertEquals(AppendRefused.Reason.FENCED, refusal(append(0, end - 1, false)));
    long before = state().liveSegments();
    assertEquals(1, upkeeps.size());
    upkeeps.remove().run();
    assertTrue(state().liveSegments() < before / 2, () -> before + " segments became " + state().liveSegments());
  }

  /** The server ends while an upkeep hangs. */
  @Test
  void whatWaitsForAnUpkeepIsRefusedInTheEnd() throws Exception {
    open(Stores.open(folder.toString()), new CommitThreads() {
      @Override
      void keepUpLater(long ms, Runnable task) {
        // It never begins.
      }
    });
    long end = state().end(0);
    for (int i = 0; i < TopicUpkeep.BEHIND_MAX; i++) {
      end = done(append(0, end, false)).end();
    }
    CompletableFuture<AppendResult> braked = append(0, end, false);
    Thread.currentThread().interrupt(); // It ends the wait for the answers.
    writers.close();
    assertTrue(Thread.interrupted());
    assertEquals(AppendRefused.Reason.STORAGE, refusal(braked));
    assertEquals(AppendRefused.Reason.STORAGE, refusal(append(0, end, false)));
  }
}
