package io.sparklog.log;

import static io.sparklog.storage.FaultyStore.When.AFTER;
import static io.sparklog.storage.FaultyStore.When.BEFORE;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.CommitsOverFaults;
import io.sparklog.segment.Names;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.Stores;
import io.sparklog.view.KafkaView;
import java.io.IOException;
import java.nio.channels.ClosedByInterruptException;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Commits of any change, lost races, and what follows a commit. FORMAT.md section 7. */
final class ChangeTest extends CommitsOverFaults {
  /** A version without records, query and settings. */
  private static final Change NOTHING_BUT_A_VERSION = newest -> Optional.of(new NextVersion(newest.orElseThrow(), "alter"));

  /** Losing to other writers is not a standstill, however often it happens. */
  @Test
  @Timeout(300)
  void lostRacesAreRunAgain() throws IOException {
    commit(5, null);
    int races = 6;
    int[] lost = {0};
    store.at((call, name, when) -> {
      if (call.equals("putIfAbsent") && when == BEFORE && name.endsWith(".json") && lost[0] < races) {
        lost[0]++;
        committer(Stores.open(root.toString())).commit(NOTHING_BUT_A_VERSION);
      }
    });
    assertEquals(1 + races, commit(5, null).orElseThrow().version());
    assertEquals(races, lost[0]);
    assertEquals(1 + races, state().version());
    assertEquals(20, state().end(0) + state().end(1) + state().end(2) + state().end(3));
  }

  @Test
  void aChangeNeedNotAddRecords() throws IOException {
    commit(5, 3L);
    State before = state();
    Committer committer = committer(store.store());
    Version version = committer.commit(NOTHING_BUT_A_VERSION).orElseThrow();
    assertTrue(committer.putTried());
    assertEquals("alter", version.operation());
    assertEquals(1, state().version());
    assertTrue(state().isOf(version.txn()));
    assertArrayEquals(before.ends(), state().ends());
    assertEquals(3, state().query("q").orElseThrow().epoch());
  }

  @Test
  void aChangeThatDeclinesPutsNothing() throws IOException {
    for (boolean exists : new boolean[] {false, true}) {
      if (exists) {
        commit(5, null);
      }
      Committer declined = committer(store.store());
      store.calls().clear();
      assertEquals(Optional.empty(), declined.commit(newest -> Optional.empty()));
      assertFalse(declined.putTried());
      PartlogException error = PartlogException.of("TOPIC_NULL");
      Committer refused = committer(store.store());
      assertSame(error, assertThrows(PartlogException.class, () -> refused.commit(newest -> {
        throw error;
      })));
      assertFalse(refused.putTried());
      assertTrue(store.calls().stream().allMatch(call -> call.matches("(read|list|tag|location|probe) .*")), store.calls().toString());
    }
  }

  /** A change whose preparation fails is reported as a failed commit, and nothing is put. */
  @Test
  void aChangeThatCannotBePreparedIsNotDone() {
    Committer committer = committer(store.store());
    PartlogException e = assertThrows(PartlogException.class, () -> committer.commit(new Change() {
      @Override
      public void prepare() throws IOException {
        throw new IOException("no space left on device");
      }

      @Override
      public Optional<NextVersion> next(Optional<State> newest) {
        throw new AssertionError("asked without preparation");
      }
    }));
    assertEquals("COMMIT_FAILED", e.id());
    assertEquals("java.io.IOException: no space left on device", e.parameters().get("cause"));
    assertFalse(committer.putTried());
  }

  @Test
  void whatFollowsACommitMayFail() throws IOException {
    store.failAll("link", BEFORE, new OutOfMemoryError("thrown by the test"));
    assertEquals(0, commit(5, null).orElseThrow().version());
    assertEquals(0, viewed());
    int segments = state().segments(0).size() + state().segments(1).size() + state().segments(2).size() + state().segments(3).size();
    openStore();
    assertEquals(segments, KafkaView.publish(new TopicLog(store.store(), "t"), Names.identity(random)));
    assertEquals(segments, viewed());
  }

  /** It would close the channels of whatever is written next. */
  @Test
  void anInterruptWaitsForTheCommitAndWhatFollows() throws IOException {
    commit(5, null);
    long before = viewed();
    store.fail("putIfAbsent", 1, BEFORE, new ClosedByInterruptException());
    store.at((call, name, when) -> {
      if (call.equals("putIfAbsent") && when == AFTER) {
        Thread.currentThread().interrupt();
      }
    });
    assertEquals(1, commit(5, null).orElseThrow().version());
    assertTrue(Thread.interrupted());
    assertEquals(2 * before, viewed());
  }
}
