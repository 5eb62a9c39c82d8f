package io.sparklog.upkeep;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.admin.Administration;
import io.sparklog.kit.Drivers;
import io.sparklog.kit.Warned;
import io.sparklog.kit.Writes;
import io.sparklog.log.Committed;
import io.sparklog.log.Pace;
import io.sparklog.log.Root;
import io.sparklog.log.Version;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.FaultyStore.When;
import io.sparklog.storage.FaultyStore;
import io.sparklog.storage.Stores;
import io.sparklog.write.Once;
import io.sparklog.write.PendingReroute;
import io.sparklog.write.TopicCommits;
import io.sparklog.write.TopicPlan;
import io.sparklog.write.TopicReport;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A commit does not wait for the upkeep of another commit, by order of events. */
@Timeout(300)
final class OwedUpkeepTest extends Drivers {
  private static final String FIRST_VERSION = "/" + Names.versionFile(0);

  private final AtomicInteger warnings = new AtomicInteger();

  private FaultyStore place() {
    return FaultyStore.of(Stores.open(folder.toString()));
  }

  /** One write with records for the topics a, b and c. */
  private List<Committed> writeThree(FaultyStore place) throws IOException {
    Root root = new Root(place.store(), pace);
    String txn = Names.identity(random);
    TreeMap<String, TopicPlan> plans = new TreeMap<>();
    Map<String, TopicReport> report = new HashMap<>();
    for (String topic : List.of("a", "b", "c")) {
      plans.put(topic, TopicPlan.of(topic, Optional.empty(), Writes.config()));
      report.put(topic, Writes.of("x", 1, 28, 0).reports(place.store(), plans.get(topic), txn).get(0));
    }
    return new TopicCommits(root, txn, topic -> Once.NEVER, clock(), random).commit(plans, Set.of(), List.of(report));
  }

  private static int first(FaultyStore place, String method, String end) {
    List<String> calls = List.copyOf(place.calls());
    for (int i = 0; i < calls.size(); i++) {
      if (calls.get(i).startsWith(method) && calls.get(i).endsWith(end)) {
        return i;
      }
    }
    throw new AssertionError(method + " of " + end + " is not among " + calls);
  }

  @Test
  void aWriteCommitsAllItsTopicsBeforeAnyUpkeep() throws IOException {
    FaultyStore place = place();
    List<Committed> done = writeThree(place);
    assertEquals(List.of("a", "b", "c"), done.stream().map(Committed::topic).toList());
    assertTrue(done.stream().allMatch(each -> each.liveSegments() > 0), "the upkeep is done: " + done);
    assertTrue(first(place, "putIfAbsent", "_partlog/c" + FIRST_VERSION) < first(place, "link", ""), "the view comes later");
  }

  @Test
  void theTopicsBeforeOneThatFailsHaveTheirUpkeep() throws IOException {
    FaultyStore place = place().failAll("putIfAbsent _partlog/c" + FIRST_VERSION, When.BEFORE, new IOException("no"));
    assertThrows(PartlogException.class, () -> writeThree(place));
    for (String topic : List.of("a", "b")) {
      assertTrue(files("", topic + "-\\d/.*\\.log").size() > 0, "the view of " + topic);
    }
    assertEquals(List.of(), files("", "c-\\d/.*"));
  }

  private interface Call {
    void run() throws IOException;
  }

  /** A call on a thread of its own. */
  private final class Caller extends Thread {
    private final Call call;
    private Throwable failure;
    private boolean interrupted;

    Caller(Call call) {
      this.call = call;
      setDaemon(true);
    }

    @Override
    public void run() {
      Warned.listen(warning -> warnings.incrementAndGet());
      try {
        call.run();
      } catch (Throwable e) {
        failure = e;
      }
      interrupted = isInterrupted();
    }

    void untilItWaits() {
      while (getState() != State.WAITING) {
        assertTrue(isAlive(), "it ended, and should wait");
        Thread.onSpinWait();
      }
    }

    void untilItEnds() throws InterruptedException {
      join();
      assertNull(failure);
    }
  }

  private Caller started(Call call) {
    Caller caller = new Caller(call);
    caller.start();
    return caller;
  }

  private Caller writer(Driver driver) {
    return started(() -> {
      TopicPlan plan = driver.plan(Map.of());
      String txn = Names.identity(random);
      assertTrue(driver.commit(plan, txn, Writes.of("x", 1, 28, 0).reports(driver.store, plan, txn)).version().isPresent());
    });
  }

  /** The first writer is held in its upkeep, and then all links fail, or none. @return the writers; all but the first one wait */
  private List<Caller> writers(boolean fails, CountDownLatch end) throws InterruptedException {
    CountDownLatch begun = new CountDownLatch(1);
    AtomicBoolean first = new AtomicBoolean(true);
    Driver driver = new Driver(place().at((method, name, when) -> {
      if (method.equals("link") && when == When.BEFORE) {
        if (first.getAndSet(false)) {
          begun.countDown();
          end.await();
        }
        if (fails) {
          throw new IOException("no");
        }
      }
    }).store());
    List<Caller> writers = new ArrayList<>(List.of(writer(driver)));
    begun.await();
    for (int n = 1; n < 4; n++) {
      Caller writer = writer(driver);
      writer.untilItWaits();
      assertEquals(n, state().version(), "it is committed, and waits for the upkeep alone");
      writers.add(writer);
    }
    return writers;
  }

  private static void join(List<Caller> callers) throws InterruptedException {
    for (Caller caller : callers) {
      caller.untilItEnds();
    }
  }

  @Test
  void writersWhoseCommitsWaitShareOneUpkeep() throws InterruptedException, IOException {
    CountDownLatch end = new CountDownLatch(1);
    List<Caller> writers = writers(true, end);
    assertEquals(0, warnings.get());
    end.countDown();
    join(writers);
    assertEquals(2, warnings.get(), "each run warns that it failed: the run of the first writer, and the run of the three others");
    new Driver().commit();
    assertViewIsRight();
  }

  @Test
  void aWriterThatIsStoppedWhileItWaitsHasTheViewAndStaysInterrupted() throws InterruptedException, IOException {
    CountDownLatch end = new CountDownLatch(1);
    List<Caller> writers = writers(false, end);
    writers.subList(1, 4).forEach(Thread::interrupt);
    end.countDown();
    join(writers);
    assertEquals(List.of(false, true, true, true), writers.stream().map(writer -> writer.interrupted).toList());
    assertEquals(0, warnings.get());
    assertViewIsRight();
  }

  @Test
  void aDeletionOfTheTopicWaitsForTheUpkeepThatIsAtWork() throws InterruptedException, IOException {
    for (int n = 0; n < 3; n++) {
      new Driver().commit();
    }
    CountDownLatch begun = new CountDownLatch(1);
    CountDownLatch end = new CountDownLatch(1);
    AtomicBoolean committed = new AtomicBoolean();
    Driver driver = new Driver(place().at((method, name, when) -> {
      if (method.equals("putIfAbsent") && when == When.AFTER) {
        committed.set(true);
      }
      // The upkeep reads the versions again, for the files that they replaced.
      if (method.equals("read") && name.endsWith(FIRST_VERSION) && when == When.AFTER && committed.getAndSet(false)) {
        begun.countDown();
        end.await();
      }
    }).store());
    Caller writer = writer(driver);
    begun.await();
    Caller deletion = started(() -> new Administration(new TopicWork(driver.log(), clock(), random)).delete(false));
    deletion.untilItWaits();
    end.countDown();
    join(List.of(writer, deletion));
    assertEquals(0, warnings.get());
    assertTrue(driver.log().latest().orElseThrow().isDeleted());
    assertEquals(List.of(), data());
  }

  private List<String> checkpoints() throws IOException {
    return files("_partlog/t", ".*checkpoint.*");
  }

  @Test
  void aWriteDoesNotWaitForTheUpkeepOfTheRerouteBeforeTheWrite() throws IOException {
    pace = new Pace(1, 8, ms -> {});
    Driver driver = new Driver();
    driver.commit();
    new Administration(new TopicWork(driver.log(), clock(), random)).addPartitions(6, Administration.RerouteTime.NEXT_WRITE, false);
    List<String> before = checkpoints();
    assertTrue(PendingReroute.apply(driver.log(), clock(), random).isPresent());
    assertEquals(1, state().routing().epoch());
    assertEquals(before, checkpoints(), "the checkpoint that is due comes with the upkeep of the write");
    driver.commit();
    assertNotEquals(before, checkpoints());
    assertViewIsRight();
  }

  @Test
  void theMergedBytesCountForTheWriteThatMayMerge() throws IOException {
    Driver driver = new Driver();
    for (int n = 0; n < 8; n++) {
      driver.commit();
    }
    new Administration(new TopicWork(driver.log(), clock(), random)).addPartitions(6, Administration.RerouteTime.NEXT_WRITE, false);
    assertTrue(PendingReroute.apply(driver.log(), clock(), random).isPresent());
    TopicPlan plan = driver.plan(Map.of("partitions", "6"));
    String txn = Names.identity(random);
    List<TopicReport> reports = Writes.of("x", 1, 28, 0).reports(driver.store, plan, txn);
    Committed done = new TopicCommits(driver.root, txn, topic -> Once.NEVER, clock(), random).merging(Long.MAX_VALUE).commit(plan, reports);
    Version merge = driver.log().version(done.version().orElseThrow().version() + 1).orElseThrow();
    assertEquals("merge", merge.operation());
    assertEquals(merge.added().stream().mapToLong(Segment::bytes).sum(), done.mergedBytes());
  }
}
