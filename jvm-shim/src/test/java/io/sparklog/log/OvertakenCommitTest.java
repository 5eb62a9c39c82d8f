package io.sparklog.log;

import static io.sparklog.storage.FaultyStore.When.AFTER;
import static io.sparklog.storage.FaultyStore.When.BEFORE;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.CommitsOverFaults;
import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.io.SyncFailedException;
import java.nio.file.Files;
import java.util.Optional;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The look after a put: while the writer slept, others committed and cleaned up. FORMAT.md section 7, step 4. */
final class OvertakenCommitTest extends CommitsOverFaults {
  /** How a put comes to stand where no reader looks: while the writer slept, before its put or after it, others cleaned up. */
  enum Unseen {
    LATE, FIRST_OF_THE_TOPIC, PUT_TWICE
  }

  private void sleepInThePut(Unseen how, Long epochOfOthers) throws IOException {
    if (how != Unseen.FIRST_OF_THE_TOPIC) {
      commit(1, null);
      commit(1, null);
    }
    if (how == Unseen.PUT_TWICE) {
      boolean[] done = {false};
      store.at((call, name, when) -> {
        if (call.equals("putIfAbsent") && when == AFTER && !done[0]) {
          done[0] = true;
          overtakeAndCleanUp(epochOfOthers);
          throw new IOException("the answer is lost");
        }
      });
    } else {
      before("putIfAbsent " + version(how == Unseen.LATE ? 2 : 0), 1, () -> overtakeAndCleanUp(epochOfOthers));
    }
  }

  @ParameterizedTest
  @EnumSource
  void aPutWhereNobodyLooksIsUnknownWithoutAQuery(Unseen how) throws IOException {
    sleepInThePut(how, null);
    PartlogException e = assertThrows(PartlogException.class, () -> commit(100, null));
    assertEquals("COMMIT_UNKNOWN", e.id());
    assertEquals(how == Unseen.FIRST_OF_THE_TOPIC ? "0" : "2", e.parameters().get("version"));
    assertTrue(Files.exists(root.resolve(version(how == Unseen.FIRST_OF_THE_TOPIC ? 0 : 2))));
    assertEquals(6, state().version());
  }

  @ParameterizedTest
  @EnumSource
  void aPutWhereNobodyLooksIsDoneAgainForAQuery(Unseen how) throws IOException {
    sleepInThePut(how, null);
    Optional<Version> put = commit(100, 3L);
    // Put twice: the first one counted before its version file was deleted.
    assertEquals(how == Unseen.PUT_TWICE ? Optional.empty() : Optional.of(7L), put.map(Version::version));
    assertEquals(3, state().query("q").orElseThrow().epoch());
    assertEquals(how == Unseen.PUT_TWICE ? 200 + 4 + 2 * 4 : 200 + 2 * 7, records());
  }

  /** Others extend the version that began the topic, and clean up, before its writer learns that a sync failed. */
  @Test
  void aFirstVersionThatWasDeletedSinceIsDone() throws IOException {
    store.at((call, name, when) -> {
      if (call.equals("putIfAbsent") && when == AFTER) {
        overtakeAndCleanUp(null);
        throw new SyncFailedException("EIO");
      }
    });
    assertEquals(Optional.of(0L), commit(100, null).map(Version::version));
    assertFalse(Files.exists(root.resolve(version(0))));
    assertEquals(200 + 2 * 6, records());
  }

  @Test
  void aFirstVersionThatCannotBePutIsNotDone() throws IOException {
    store.failAll("putIfAbsent", BEFORE, new IOException("no space left on device"));
    assertEquals("COMMIT_FAILED", assertThrows(PartlogException.class, () -> commit(1, null)).id());
    assertFalse(Files.exists(root.resolve(version(0))));
  }

  /** The same query has another driver, and the newest state holds its epoch. */
  @Test
  void aPutWhereNobodyLooksIsDoneIfTheEpochIsThere() throws IOException {
    sleepInThePut(Unseen.LATE, 3L);
    assertEquals(Optional.empty(), commit(1, 3L));
    assertEquals(2 * 7, records());
  }

  private long records() {
    State state = state();
    return IntStream.range(0, state.partitions()).mapToLong(state::end).sum();
  }

  @Test
  @Timeout(300)
  void aLookThatFailsIsUnknown() throws IOException {
    commit(5, null);
    int[] looks = {0};
    store.at((call, name, when) -> {
      if (call.equals("tag") && name.equals(version(0)) && when == BEFORE && Files.exists(root.resolve(version(1))) && ++looks[0] > 0) {
        throw new IOException("EIO");
      }
    });
    PartlogException e = assertThrows(PartlogException.class, () -> commit(5, null));
    assertEquals("COMMIT_UNKNOWN", e.id());
    assertEquals(5, looks[0]);
    assertEquals(1, state().version());
  }

  /** The newest state would tell of a put where no reader looks, and cannot be read. */
  @Test
  void aPutWhereNobodyLooksIsUnknownIfTheTopicCannotBeRead() throws IOException {
    sleepInThePut(Unseen.LATE, null);
    store.at((call, name, when) -> {
      if (call.equals("list") && name.equals(TOPIC_FOLDER) && Files.notExists(root.resolve(version(1)))) {
        throw new IOException("EIO");
      }
    });
    assertEquals("COMMIT_UNKNOWN", assertThrows(PartlogException.class, () -> commit(5, 3L)).id());
  }
}
