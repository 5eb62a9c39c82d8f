package io.sparklog.log;

import static io.sparklog.storage.FaultyStore.When.BEFORE;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.CommitsOverFaults;
import io.sparklog.merge.Merging;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.NoAnswerException;
import io.sparklog.storage.Stores;
import java.io.IOException;
import java.io.SyncFailedException;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.time.Clock;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A put without an answer, which takes effect later or never: FORMAT.md section 7, and the cases of decision 10. */
@Timeout(300)
final class LatePutTest extends CommitsOverFaults {
  private static final int PUTS = 5;

  private long records() {
    State state = state();
    return IntStream.range(0, state.partitions()).mapToLong(state::end).sum();
  }

  /** How often the version was put, with the call that is being made. */
  private long puts(long version) {
    return store.calls().stream().filter(("putIfAbsent " + version(version))::equals).count();
  }

  private PartlogException unknown(int records, Long epoch) {
    PartlogException e = assertThrows(PartlogException.class, () -> commit(records, epoch));
    assertEquals("COMMIT_UNKNOWN", e.id());
    assertInstanceOf(NoAnswerException.class, e.getCause());
    return e;
  }

  @Test
  void anAbsentVersionIsUnknownAndMayCome() throws IOException {
    commit(1, null);
    store.holdBack(PUTS);
    PartlogException e = unknown(5, null);
    assertEquals("1", e.parameters().get("version"));
    assertEquals(0, state().version());
    store.land();
    assertEquals(1, state().version());
    assertEquals(2 + 10, records());
  }

  @Test
  void theFirstVersionOfATopicIsUnknownAndMayCome() throws IOException {
    store.holdBack(PUTS);
    assertEquals("0", unknown(5, null).parameters().get("version"));
    store.land();
    assertEquals(10, records());
  }

  @Test
  void aLaterPutOfTheSameBytesSettlesIt() throws IOException {
    commit(1, null);
    store.holdBack(PUTS - 1);
    assertEquals(Optional.of(1L), commit(5, null).map(Version::version));
    store.land();
    assertEquals(1, state().version());
    assertEquals(2 + 10, records());
  }

  /** The late one comes between two puts: the next is refused, and reads its own txn. */
  @Test
  void itsOwnLatePutRefusesTheNext() throws IOException {
    commit(1, null);
    store.holdBack(1);
    before("putIfAbsent " + version(1), 2, store::land);
    assertEquals(Optional.of(1L), commit(5, null).map(Version::version));
    assertEquals(2 + 10, records());
  }

  @Test
  void anotherWriterThatTakesTheNumberSettlesIt() throws IOException {
    commit(1, null);
    store.holdBack(1);
    before("putIfAbsent " + version(1), 2, () -> commit(Stores.open(root.toString()), 3, null));
    assertEquals(Optional.of(2L), commit(5, null).map(Version::version));
    store.land();
    assertEquals(2, state().version());
    assertEquals(2 + 6 + 10, records());
  }

  /** That a later put fails with an answer says nothing of the first. */
  @Test
  void aPutThatIsOverDoesNotCloseTheOneBefore() throws IOException {
    commit(1, null);
    store.holdBack(1);
    store.at((call, name, when) -> {
      if (when == BEFORE && call.equals("putIfAbsent") && puts(1) > 1) {
        throw new AccessDeniedException("denied");
      }
    });
    unknown(5, null);
    store.land();
    assertEquals(2 + 10, records());
  }

  @Test
  void aSyncThatFailsDoesNotCloseThePutBefore() throws IOException {
    commit(1, null);
    store.holdBack(1);
    store.fail("putIfAbsent " + version(1), 2, BEFORE, new SyncFailedException("EIO"));
    unknown(5, null);
  }

  @Test
  void putsThatAreOverAreNotDone() throws IOException {
    commit(1, null);
    store.failAll("putIfAbsent " + version(1), BEFORE, new IOException("no space left on device"));
    assertEquals("COMMIT_FAILED", assertThrows(PartlogException.class, () -> commit(5, null)).id());
  }

  private void lateLimit(Duration limit) {
    store.answer("lateLimit", (real, arguments) -> limit);
  }

  /** Every put of version 1 has been read back once, and then it is looked for again. */
  private void atTheSecondLook(Action action) {
    before("read " + version(1), PUTS + 2, action);
  }

  @Test
  void aLatePutIsWaitedFor() throws IOException {
    commit(1, null);
    lateLimit(Duration.ofSeconds(1));
    store.holdBack(PUTS);
    atTheSecondLook(store::land);
    assertEquals(Optional.of(1L), commit(5, null).map(Version::version));
    assertEquals(PUTS, puts(1));
    assertEquals(2 + 10, records());
  }

  @Test
  void anotherVersionThatComesWhileItIsWaitedForSettlesIt() throws IOException {
    commit(1, null);
    lateLimit(Duration.ofSeconds(1));
    store.holdBack(PUTS);
    atTheSecondLook(() -> commit(Stores.open(root.toString()), 3, null));
    assertEquals(Optional.of(2L), commit(5, null).map(Version::version));
    assertEquals(2 + 6 + 10, records());
  }

  @Test
  void anAbsentVersionIsUnknownAlsoAfterTheLimit() throws IOException {
    commit(1, null);
    lateLimit(Duration.ofMillis(200));
    store.holdBack(PUTS);
    unknown(5, null);
    assertEquals(PUTS + 20, store.calls().stream().filter(("read " + version(1))::equals).count());
    store.land();
    assertEquals(2 + 10, records());
  }

  @Test
  void aCallerThatIsInterruptedDoesNotWait() throws IOException {
    commit(1, null);
    lateLimit(Duration.ofDays(1));
    store.holdBack(PUTS);
    before("putIfAbsent " + version(1), PUTS, () -> Thread.currentThread().interrupt());
    unknown(5, null);
    assertTrue(Thread.interrupted());
  }

  @Test
  void anInterruptEndsTheWait() throws IOException {
    commit(1, null);
    lateLimit(Duration.ofDays(1));
    store.holdBack(PUTS);
    Thread caller = Thread.currentThread();
    before("read " + version(1), PUTS, () -> new Thread(() -> { // The wait follows.
      LockSupport.parkNanos(300_000_000L);
      caller.interrupt();
    }).start());
    unknown(5, null);
    assertTrue(Thread.interrupted());
  }

  @Test
  void aPutThatIsOverIsNotWaitedFor() throws IOException {
    commit(1, null);
    lateLimit(Duration.ofDays(1));
    store.failAll("putIfAbsent " + version(1), BEFORE, new AccessDeniedException("denied"));
    PartlogException e = assertThrows(PartlogException.class, () -> commit(5, null));
    assertEquals("COMMIT_FAILED", e.id());
    assertTrue(e.getMessage().contains("denied"), e.getMessage());
  }

  @Test
  void aDiskAnswersEachPut() {
    assertEquals(Duration.ZERO, Stores.open(root.toString()).lateLimit());
  }

  @Test
  void anEpochIsRunAgainAndThereOnce() throws IOException {
    commit(1, null);
    store.holdBack(PUTS);
    unknown(5, 3L);
    assertEquals(Optional.of(1L), commit(5, 3L).map(Version::version), "before the late one comes");
    store.land();
    assertEquals(2 + 10, records());
    store.holdBack(PUTS);
    unknown(5, 4L);
    store.land();
    assertEquals(Optional.empty(), commit(5, 4L), "after it has come");
    assertEquals(2 + 10 + 10, records());
  }

  /** The version that it extends was deleted, so another version has taken its number: the newest state tells. */
  @Test
  void aLatePutBelowTheBoundaryDoesNotCount() throws IOException {
    commit(1, null);
    commit(1, null);
    store.holdBack(PUTS);
    boolean[] over = {false};
    store.at((call, name, when) -> {
      if (when == BEFORE && call.equals("tag") && puts(2) == PUTS && !over[0]) {
        over[0] = true;
        overtakeAndCleanUp(null);
      }
    });
    PartlogException e = assertThrows(PartlogException.class, () -> commit(100, null));
    assertEquals("COMMIT_UNKNOWN", e.id());
    store.land();
    assertTrue(Files.exists(root.resolve(version(2))), "where no reader looks");
    assertEquals(6, state().version());
    assertEquals(2 * 7, records());
    commit(1, null);
    assertEquals(7, state().version());
  }

  @Test
  void theFilesOfAnOpenMergeStay() throws IOException {
    for (int n = 0; n < 12; n++) {
      commit(Stores.open(root.toString()), 1, null);
    }
    long before = state().version();
    store.holdBack(PUTS);
    TopicLog log = new TopicLog(store.store(), "t");
    PartlogException e = assertThrows(PartlogException.class, () -> new Merging(new Committers(log, Clock.systemUTC(), random)).all());
    assertEquals("COMMIT_UNKNOWN", e.id());
    store.land();
    State merged = state();
    assertEquals(before + 1, merged.version());
    for (int p = 0; p < merged.partitions(); p++) {
      for (Segment segment : merged.segments(p)) {
        assertTrue(Files.exists(root.resolve(TOPIC_FOLDER).resolve(segment.file())), segment.file());
      }
    }
  }

  /** The upkeep after a commit cannot fail it. */
  @Test
  void aCheckpointThatComesLateIsRight() throws IOException {
    commit(1, null);
    store.holdBack(1);
    assertThrows(NoAnswerException.class, () -> new TopicLog(store.store(), "t").writeCheckpoint(state(), Names.identity(random)));
    assertFalse(store.store().list(TOPIC_FOLDER).stream().anyMatch(name -> Names.checkpointVersion(name).isPresent()));
    commit(1, null);
    store.land();
    assertTrue(store.store().list(TOPIC_FOLDER).stream().anyMatch(name -> Names.checkpointVersion(name).isPresent()));
    assertEquals(1, state().version());
    assertEquals(4, records());
  }
}
