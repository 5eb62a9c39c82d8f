package io.sparklog.upkeep;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.admin.Administration;
import io.sparklog.admin.Vacuum;
import io.sparklog.kit.Drivers;
import io.sparklog.log.Committers;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.log.Version;
import io.sparklog.merge.Merging;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.FaultyStore;
import io.sparklog.storage.FaultyStore.When;
import io.sparklog.storage.Stores;
import java.io.IOException;
import java.nio.channels.ClosedByInterruptException;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** An operator's call on the thread of a query that is stopped in the middle of it. */
@Tag("slow")
final class InterruptsTest extends Drivers {
  /** A call on a topic of three commits. */
  private interface Body {
    void run(TopicLog log) throws IOException;
  }

  private Administration operator(TopicLog log) {
    return new Administration(new TopicWork(log, clock(), random));
  }

  /** Interrupts the thread before each act on the store in turn: the call is done each time, and the thread is interrupted afterwards. */
  private void assertDone(String operation, Body body) throws IOException {
    boolean[] interrupted = {true};
    for (int call = 1; interrupted[0]; call++) {
      if (new Driver().log().newest().isPresent()) {
        operator(new Driver().log()).delete(false);
      }
      for (int n = 0; n < 3; n++) {
        new Driver().commit();
      }
      interrupted[0] = false;
      int number = call;
      int[] calls = {0};
      FaultyStore place = FaultyStore.of(Stores.open(folder.toString())).at((method, name, when) -> {
        boolean isCall = when == When.BEFORE && !method.equals("root") && !method.equals("location");
        if (isCall && ++calls[0] == number) {
          interrupted[0] = true;
          Thread.currentThread().interrupt();
        }
      });
      long before = state().version();
      Uninterrupted.run(() -> {
        body.run(new Driver(place.store()).log());
        return null;
      });
      assertEquals(interrupted[0], Thread.interrupted(), "call " + call);
      State latest = new Driver().log().latest().orElseThrow();
      Version put = new Driver().log().version(before + 1).orElseThrow();
      assertEquals(operation, put.operation(), "call " + call);
      assertEquals(before + 1, latest.version(), "call " + call + ": it is done once");
    }
  }

  @Test
  void recordsAreDeletedOnce() throws IOException {
    assertDone("delete-records", log -> operator(log).deleteRecords(new TreeMap<>(Map.of(0, -1L, 1, -1L)), new TreeMap<>(), false));
  }

  @Test
  void theTopicIsDeletedOnceAndCleanedUp() throws IOException {
    assertDone("delete", log -> {
      State was = operator(log).delete(false).was();
      assertFalse(was.isDeleted(), "it tells what the topic was");
    });
    assertEquals(List.of(), data());
  }

  @Test
  void theConfigurationIsChangedOnce() throws IOException {
    assertDone("alter", log -> operator(log).configure(Map.of("retention.ms", "1000")));
  }

  @Test
  void allIsMergedOnce() throws IOException {
    assertDone("merge", log -> new Merging(new Committers(log, clock(), random)).all());
  }

  @Test
  void otherFailuresAreToldAtOnce() throws IOException {
    new Driver().commit();
    Vacuum vacuum = new Vacuum(new TopicWork(new Driver(
        FaultyStore.of(Stores.open(folder.toString())).failAll("list _partlog/t/data", When.BEFORE, new IOException("no")).store()).log(),
        clock(), random));
    PartlogException e = assertThrows(PartlogException.class, () -> Uninterrupted.run(() -> vacuum.run(Vacuum.OLDER_THAN_MIN, true)));
    assertTrue(e.getMessage().contains("no"), e.getMessage());
    int[] runs = {0};
    assertThrows(PartlogException.class, () -> Uninterrupted.run(() -> {
      runs[0]++;
      throw PartlogException.caused(new ClosedByInterruptException(), "COMMIT_UNKNOWN", "txn", "x", "version", 1, "topic", "t", "root", "r",
          "file", "f", "cause", "c");
    }));
    assertEquals(1, runs[0], "what is unknown is not tried again");
  }
}
