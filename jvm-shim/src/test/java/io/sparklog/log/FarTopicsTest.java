package io.sparklog.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.admin.Administration;
import io.sparklog.admin.Vacuum;
import io.sparklog.kit.CommitsOverFaults;
import io.sparklog.kit.MillisClock;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.FarStore;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Stores;
import io.sparklog.upkeep.DataFolders;
import io.sparklog.upkeep.ReplacedFiles;
import io.sparklog.upkeep.TopicWork;
import java.io.IOException;
import java.nio.file.Files;
import java.time.Clock;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The requests for the state of a topic in a store behind a network: those that are known to be needed are made at once. */
@Timeout(300)
final class FarTopicsTest extends CommitsOverFaults {
  private static final int AT_ONCE = 16;
  private static final int VERSIONS = 60;

  private final Pace pace = Pace.PRODUCTION;

  private void commits(int count) throws IOException {
    LogStore near = Stores.open(root.toString());
    for (int n = 0; n < count; n++) {
      commit(near, 1, null);
    }
  }

  private FarStore far() {
    return new FarStore(root.toString(), AT_ONCE);
  }

  private static List<String> reads(List<String> requests) {
    return requests.stream().filter(request -> request.startsWith("read ")).sorted().toList();
  }

  private static List<String> readsOf(long first, long last) {
    return LongStream.rangeClosed(first, last).mapToObj(number -> "read " + version(number)).toList();
  }

  /** A listing names all versions. Each is read once, and another listing shows that they are all. */
  @Test
  void aTopicIsOpenedByReadsAtOnce() throws IOException {
    commits(VERSIONS);
    FarStore far = far();
    far.awaitAtOnce(AT_ONCE, "read ");
    assertEquals(VERSIONS - 1, new TopicLog(far.store(), "t", pace).newest().orElseThrow().version());
    List<String> requests = far.take();
    assertEquals(readsOf(0, VERSIONS - 1), reads(requests));
    assertEquals(VERSIONS + 2, requests.size(), requests::toString);
  }

  /** Many versions were committed since the last look: after a few, more are guessed to follow. A few are read one after another. */
  @Test
  void manyNewVersionsAreReadAtOnce() throws IOException {
    commits(1);
    FarStore far = far();
    TopicLog log = new TopicLog(far.store(), "t", pace);
    log.newest();
    commits(3);
    far.take();
    assertEquals(3, log.newest().orElseThrow().version());
    assertEquals(readsOf(1, 4), reads(far.take()));
    commits(VERSIONS);
    far.awaitAtOnce(AT_ONCE / 2, "read .*000[345][0-9].json");
    assertEquals(VERSIONS + 3, log.newest().orElseThrow().version());
    List<String> reads = reads(far.take());
    assertEquals(readsOf(4, VERSIONS + 4), reads.subList(0, VERSIONS + 1));
    assertTrue(reads.size() <= VERSIONS + 1 + AT_ONCE, reads::toString);
  }

  /** A state that was seen within five seconds is not asked for again. */
  @Test
  void aRecentStateCostsNoRequest() throws IOException {
    commits(2);
    FarStore far = far();
    AtomicLong nowMs = new AtomicLong(1_800_000_000_000L);
    TopicLog log = new TopicLog(far.store(), "t", new Pace(100, 8, Thread::sleep, new MillisClock(nowMs::get)));
    assertEquals(1, log.recent().orElseThrow().version());
    commits(1);
    far.take();
    nowMs.addAndGet(4_999);
    assertEquals(1, log.recent().orElseThrow().version());
    assertEquals(List.of(), far.take());
    nowMs.addAndGet(1);
    assertEquals(2, log.recent().orElseThrow().version());
  }

  /** A deleted topic is asked for each time, as another one may have its name. */
  @Test
  void aDeletedTopicIsNoRecentState() throws IOException {
    commits(1);
    TopicLog log = new TopicLog(far().store(), "t", pace);
    new Administration(new TopicWork(log, Clock.systemUTC(), random)).delete(false);
    assertTrue(log.recent().isEmpty());
    commits(1);
    assertTrue(log.recent().isPresent());
  }

  @Test
  void aVacuumListsTheDataFoldersAtOnce() throws IOException {
    commits(AT_ONCE + 4);
    FarStore far = far();
    far.awaitAtOnce(AT_ONCE, "^listing .*/data/.");
    Clock later = Clock.offset(Clock.systemUTC(), Duration.ofDays(8));
    Vacuum vacuum = new Vacuum(new TopicWork(new TopicLog(far.store(), "t", pace), later, random));
    vacuum.run(Duration.ofDays(7), true);
    List<String> listed = far.take().stream().filter(request -> request.matches("listing .*/data/.*")).toList();
    assertTrue(listed.size() >= AT_ONCE, listed::toString);
    assertEquals(listed.stream().distinct().toList(), listed, "each once");
  }

  /** A topic that is dropped has its data folders emptied at once. */
  @Test
  void aDeletedTopicsDataFoldersAreEmptiedAtOnce() throws IOException {
    commits(AT_ONCE + 4);
    FarStore far = far();
    far.awaitAtOnce(AT_ONCE, "^list .*/data/.");
    assertTrue(DataFolders.deletePlannedBelow(far.store(), "t", AT_ONCE + 4) >= AT_ONCE);
  }

  @Test
  void theVersionsThatRemovedFilesAreReadAtOnce() throws IOException {
    commits(VERSIONS);
    FarStore far = far();
    TopicLog log = new TopicLog(far.store(), "t", pace);
    State newest = log.newest().orElseThrow();
    far.take();
    far.awaitAtOnce(AT_ONCE, "^read ");
    assertEquals(VERSIONS, new ReplacedFiles(log, newest, Clock.systemUTC()).removals().readTo());
    assertEquals(readsOf(0, VERSIONS - 1), far.take().stream().sorted().toList());
  }

  /** The bytes of the next segments are asked for while a merge writes the segments before them. */
  @Test
  void aMergeAsksForSegmentsAtOnce() throws IOException {
    commits(AT_ONCE);
    FarStore far = far();
    TopicLog log = new TopicLog(far.store(), "t", pace);
    far.awaitAtOnce(4, "^open ");
    assertTrue(new TopicWork(log, Clock.systemUTC(), random).merge(0).replaced() >= AT_ONCE);
    assertEquals(2 * AT_ONCE, LongStream.of(log.newest().orElseThrow().ends()).sum());
  }

  @Test
  void theDamagedVersionIsNamed() throws IOException {
    commits(VERSIONS);
    Files.writeString(root.resolve(version(37)), "{");
    Files.writeString(root.resolve(version(41)), "{");
    PartlogException e = assertThrows(PartlogException.class, () -> new TopicLog(far().store(), "t", pace).newest());
    assertEquals("VERSION_CORRUPT", e.id());
    assertTrue(e.getMessage().contains(version(37)), e.getMessage());
  }
}
