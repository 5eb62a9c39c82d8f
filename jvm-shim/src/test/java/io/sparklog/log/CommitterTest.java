package io.sparklog.log;

import static io.sparklog.storage.FaultyStore.When.AFTER;
import static io.sparklog.storage.FaultyStore.When.BEFORE;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.json.Json;
import io.sparklog.kit.CommitsOverFaults;
import io.sparklog.segment.Names;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.FaultyStore;
import io.sparklog.storage.Stores;
import io.sparklog.write.Once;
import java.io.IOException;
import java.io.SyncFailedException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.zip.CRC32C;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.ErrorHandler;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.Logger;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.appender.AppenderLoggingException;
import org.apache.logging.log4j.core.config.Property;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The driver's part of a commit over a store that fails, call by call. FORMAT.md section 7. */
final class CommitterTest extends CommitsOverFaults {
  private static final class Silent implements ErrorHandler {
    @Override
    public void error(String text) {}

    @Override
    public void error(String text, Throwable cause) {}

    @Override
    public void error(String text, LogEvent event, Throwable cause) {}
  }

  @Test
  void aRepeatedEpochIsDurableBeforeItIsDone() throws IOException {
    Once epoch = Once.epoch("q", 0, "0123456789abcdef");
    commitOnce(5, epoch);
    for (int records : new int[] {0, 5}) {
      assertEquals(Optional.empty(), commitOnce(records, epoch));
      assertFalse(store.calls().stream().anyMatch(call -> call.startsWith("putIfAbsent")), store.calls().toString());
      assertTrue(store.calls().contains("flush " + TOPIC_FOLDER), "the process that put that version may have died before its sync");
    }
  }

  @Test
  void aRepeatedEpochThatMayBeLostIsNotDone() throws IOException {
    commit(5, 0L);
    store.failAll("flush " + TOPIC_FOLDER, BEFORE, new SyncFailedException("EIO"));
    PartlogException e = assertThrows(PartlogException.class, () -> commit(5, 0L));
    assertEquals("COMMIT_FAILED", e.id());
    assertTrue(e.getMessage().contains("epoch 0 of q is already committed, but the topic's folder cannot be synced"), e.getMessage());
    assertEquals(1, store.calls().stream().filter(("flush " + TOPIC_FOLDER)::equals).count());
  }

  @Test
  void aRepeatedEpochIsSyncedAgainAfterAnInterrupt() throws IOException {
    commit(5, 0L);
    store.fail("flush " + TOPIC_FOLDER, 1, BEFORE, new ClosedByInterruptException());
    assertEquals(Optional.empty(), commit(5, 0L));
  }

  /** Nothing is there yet, and what the sync lost may be a folder above: the next put would not tell. */
  @Test
  void afterAFailedSyncBeforeThePutThereIsNoOther() throws IOException {
    commit(5, null);
    store.fail("putIfAbsent", 1, BEFORE, new SyncFailedException("EIO"));
    assertEquals("COMMIT_FAILED", assertThrows(PartlogException.class, () -> commit(5, null)).id());
    assertEquals(0, state().version());
  }

  @Test
  void theFolderOfAllDataIsDurableBeforeThePut() throws IOException {
    for (int commit = 0; commit < 2; commit++) {
      commit(5, null);
      int put = store.calls().indexOf("putIfAbsent " + TOPIC_FOLDER + "/" + Names.versionFile(commit));
      int sync = store.calls().indexOf("flush " + TOPIC_FOLDER + "/data");
      assertTrue(0 <= sync && sync < put, store.calls().toString());
    }
  }

  /** A power loss could take a version whose writer sleeps before its sync, and leave the one that follows. */
  @Test
  void whatIsExtendedIsDurableBeforeThePut() throws IOException {
    Root driver = new Root(store.store());
    for (int version = 0; version < 4; version++) {
      if (version == 2) {
        assertEquals(2, commit(Stores.open(root.toString()), 5, null).orElseThrow().version());
        continue;
      }
      store.calls().clear();
      commit(driver, 5, Once.NEVER);
      int put = store.calls().indexOf("putIfAbsent " + version(version));
      boolean isSynced = store.calls().subList(0, put).contains("flush " + TOPIC_FOLDER);
      assertEquals(version == 3, isSynced, "only what another program put is synced again: " + store.calls());
    }
  }

  @Test
  void whatCannotBeMadeDurableIsNotExtended() throws IOException {
    commit(5, null);
    store.failAll("flush " + TOPIC_FOLDER, BEFORE, new SyncFailedException("EIO"));
    PartlogException e = assertThrows(PartlogException.class, () -> commit(5, null));
    assertEquals("COMMIT_FAILED", e.id());
    assertTrue(e.getMessage().contains("version 0, which it would extend, cannot be made durable"), e.getMessage());
    assertEquals(0, state().version());
    assertFalse(store.calls().stream().anyMatch(call -> call.startsWith("putIfAbsent")), store.calls().toString());
  }

  @Test
  void aCheckpointIsOfADurableVersion() throws IOException {
    commit(5, null);
    store.calls().clear();
    new TopicLog(store.store(), "t").writeCheckpoint(state(), Names.identity(random));
    assertEquals("flush " + TOPIC_FOLDER,
        store.calls().stream().filter(call -> call.matches("(flush|putIfAbsent).*")).findFirst().orElseThrow());
  }

  @Test
  void afterAFailedSyncOfTheFolderNoOtherCounts() throws IOException {
    commit(5, null);
    store.failAll("putIfAbsent", AFTER, new SyncFailedException("EIO"));
    assertEquals("COMMIT_UNKNOWN", assertThrows(PartlogException.class, () -> commit(5, null)).id());
    int put = store.calls().indexOf("putIfAbsent " + TOPIC_FOLDER + "/" + Names.versionFile(1));
    assertFalse(store.calls().subList(put, store.calls().size()).contains("flush " + TOPIC_FOLDER), store.calls().toString());
  }

  /** The put fails in another way, and only the sync that would settle it fails for good. */
  @Test
  void aFailedSyncWhileReadingBackIsUnknown() throws IOException {
    commit(5, null);
    store.failAll("putIfAbsent", AFTER, new IOException("the answer is lost"));
    store.fail("flush " + TOPIC_FOLDER, 2, BEFORE, new SyncFailedException("EIO"));
    assertEquals("COMMIT_UNKNOWN", assertThrows(PartlogException.class, () -> commit(5, null)).id());
    assertEquals(2, store.calls().stream().filter(("flush " + TOPIC_FOLDER)::equals).count());
  }

  @ParameterizedTest
  @EnumSource
  void anErrorInThePutIsSettledByReadingBack(FaultyStore.When when) throws IOException {
    commit(5, null);
    store.fail("putIfAbsent", 1, when, new OutOfMemoryError("thrown by the test"));
    assertEquals(1, commit(5, null).orElseThrow().version());
    assertEquals(1, state().version());
    assertEquals(20, state().end(0) + state().end(1) + state().end(2) + state().end(3));
  }

  @Test
  @Timeout(300)
  void aReadBackThatFailsIsUnknown() throws IOException {
    commit(5, null);
    String version = TOPIC_FOLDER + "/" + Names.versionFile(1);
    store.failAll("putIfAbsent", AFTER, new IOException("the answer is lost"));
    int[] reads = {0};
    store.at((call, name, when) -> {
      if (call.equals("read") && when == BEFORE && name.equals(version) && Files.exists(root.resolve(version))) {
        reads[0]++;
        throw new IOException("EIO");
      }
    });
    PartlogException e = assertThrows(PartlogException.class, () -> commit(5, null));
    assertEquals("COMMIT_UNKNOWN", e.id());
    assertEquals("1", e.parameters().get("version"));
    assertEquals("java.io.IOException: EIO", e.parameters().get("cause"));
    assertEquals(5, reads[0]);
    assertEquals(1, state().version());
  }

  @Test
  void aVersionOfALaterFormatIsNotOurs() throws IOException {
    commit(5, null);
    Path file = root.resolve(TOPIC_FOLDER + "/" + Names.versionFile(1));
    store.at((call, name, when) -> {
      if (call.equals("putIfAbsent") && when == BEFORE && Files.notExists(file)) {
        byte[] line = "{\"format\":2}".getBytes(StandardCharsets.UTF_8);
        CRC32C crc = new CRC32C();
        crc.update(line);
        Files.writeString(file, new String(line, StandardCharsets.UTF_8) + "\ncrc32c:" + Json.crc(crc) + "\n");
      }
    });
    assertEquals("FORMAT_TOO_NEW", assertThrows(PartlogException.class, () -> commit(5, null)).id());
  }

  @Test
  @Timeout(300)
  void aVersionThatIsTakenAndNeverFoundEndsTheCommit() throws IOException {
    commit(5, null);
    // The log finds the topic's folder empty, so the commit believes that it creates the topic, and loses each time.
    store.answer("list", (real, arguments) -> List.of());
    PartlogException e = assertThrows(PartlogException.class, () -> commit(5, null));
    assertEquals("COMMIT_FAILED", e.id());
    assertTrue(e.getMessage().contains("version 0 already exists"), e.getMessage());
  }

  @Test
  void aStoreWithoutLinksHasAllButTheView() throws IOException {
    assertEquals(0, commit(store.withoutLinks(), 5, null).orElseThrow().version());
    assertEquals(10, state().end(0) + state().end(1) + state().end(2) + state().end(3));
    assertFalse(store.store().list("").stream().anyMatch(name -> name.startsWith("t-")));
    commit(5, null);
    assertTrue(store.store().list("").stream().anyMatch(name -> name.startsWith("t-")));
  }

  @Test
  void aLoggerThatThrowsDoesNotFailACommitThatIsDone() throws IOException {
    commit(5, 0L);
    store.at((call, name, when) -> {
      if (call.equals("create") && !name.startsWith(TOPIC_FOLDER + "/data")) {
        throw new IOException("what follows a commit fails, and is logged");
      }
    });
    AbstractAppender broken = new AbstractAppender("broken", null, null, false, Property.EMPTY_ARRAY) {
      @Override
      public void append(LogEvent event) {
        throw new AppenderLoggingException("no space left for logs");
      }
    };
    broken.setHandler(new Silent()); // Log4j's own would tell of it on the console
    broken.start();
    Logger logger = (Logger) LogManager.getLogger("io.sparklog");
    Level before = logger.getLevel();
    logger.addAppender(broken);
    logger.setAdditive(false);
    logger.setLevel(Level.WARN); // after it: an appender gives the logger a configuration of its own
    try {
      assertThrows(AppenderLoggingException.class, () -> logger.warn("the test's own logger must throw"));
      assertEquals(1, commit(5, 1L).orElseThrow().version());
      assertEquals(Optional.empty(), commit(5, 1L), "that an epoch is repeated is logged, too");
    } finally {
      logger.removeAppender(broken);
      logger.setAdditive(true);
      logger.setLevel(before);
    }
    assertEquals(1, state().version());
  }
}
