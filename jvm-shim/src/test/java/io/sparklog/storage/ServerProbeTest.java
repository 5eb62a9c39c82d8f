package io.sparklog.storage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The processes that try whether a server is safe, and those that need not. A disk is in the place of the server, which keeps its promises
 * or lies.
 */
final class ServerProbeTest {
  private static final String ENDPOINT = "http://server:9000";
  private static final String BUCKET = "bucket";
  private static final Clock NOW = Clock.systemUTC();

  @TempDir
  private Path folder;

  private FaultyStore store;

  @BeforeEach
  void anEmptyPlace() {
    store = honest();
  }

  private FaultyStore honest() {
    return FaultyStore.of(new LocalStore(folder));
  }

  /** Each put wins. */
  private FaultyStore lying() {
    return honest().answer("putIfAbsent", (real, with) -> {
      synchronized (real) {
        real.delete((String) with[0]);
        real.putIfAbsent((String) with[0], (String) with[1], (byte[]) with[2], PutObserver.NONE);
        return null;
      }
    });
  }

  /** A process that has just begun. */
  private static ServerProbe process() {
    return new ServerProbe(ENDPOINT, BUCKET);
  }

  private static void require(ServerProbe process, FaultyStore store) throws IOException {
    process.require(store.store(), "_probe", NOW);
  }

  private void assertRefused(ServerProbe process) {
    PartlogException refused = assertThrows(PartlogException.class, () -> require(process, lying()));
    assertEquals("STORE_UNSAFE", refused.id());
  }

  private long puts() {
    return store.calls().stream().filter(call -> call.startsWith("putIfAbsent")).count();
  }

  private Path note() {
    return folder.resolve("_probe/passed.json");
  }

  private List<String> left() throws IOException {
    while (true) {
      try (var all = Files.walk(folder)) {
        return all.filter(Files::isRegularFile).map(path -> folder.relativize(path).toString()).sorted().toList();
      } catch (UncheckedIOException gone) {
        // Threads of a trial that has failed may still put files.
      }
    }
  }

  @Test
  void aProcessTriesOnceAndLeavesANote() throws IOException {
    ServerProbe process = process();
    require(process, store);
    assertEquals(4 * 8, puts());
    assertEquals(List.of("_probe/passed.json"), left());
    int calls = store.calls().size();
    require(process, store);
    assertEquals(calls, store.calls().size());
  }

  @Test
  void aProcessThatFindsTheNoteDoesNotTry() throws IOException {
    require(process(), honest());
    require(process(), store);
    assertEquals(List.of("read _probe/passed.json", "modifiedMs _probe/passed.json"), store.calls());
  }

  @Test
  void aServerThatLiesIsRefusedWhateverIsThereAndHoweverOften() throws IOException {
    Files.createDirectories(folder.resolve("_partlog/t"));
    Files.writeString(folder.resolve("_partlog/t/00000000000000000000.json"), "{}");
    Files.createDirectories(folder.resolve("_probe/5e0c5c0e-0000-0000-0000-000000000000"));
    Files.writeString(folder.resolve("_probe/5e0c5c0e-0000-0000-0000-000000000000/0"), "probe 3");
    ServerProbe process = process();
    assertRefused(process);
    assertRefused(process);
    assertRefused(process());
    assertFalse(Files.exists(note()));
  }

  @Test
  void aRefusalCountsForAMinute() throws IOException {
    FaultyStore lies = lying();
    ServerProbe process = process();
    assertThrows(PartlogException.class, () -> require(process, lies));
    int calls = lies.calls().size();
    for (int seconds : new int[] {0, 59}) {
      Clock then = Clock.offset(Clock.fixed(NOW.instant(), NOW.getZone()), Duration.ofSeconds(seconds - 1));
      assertEquals("STORE_UNSAFE", assertThrows(PartlogException.class, () -> process.require(lies.store(), "_probe", then)).id());
    }
    assertEquals(Set.of("root "), Set.copyOf(lies.calls().subList(calls, lies.calls().size())), "the error names it");
    process.require(store.store(), "_probe", Clock.offset(NOW, Duration.ofSeconds(61)));
    assertTrue(Files.exists(note()));
  }

  @Test
  void aNoteOfAnotherServerOrBucketDoesNotCount() throws IOException {
    for (ServerProbe other : List.of(new ServerProbe("http://other:9000", BUCKET), new ServerProbe(ENDPOINT, "other"))) {
      Files.deleteIfExists(note());
      require(other, honest());
      assertTrue(Files.exists(note()));
      assertRefused(process());
    }
  }

  /** The server gives a copy another time: {@code http://localhost:9000} may be another server by now. */
  @Test
  void aCopyOfANoteDoesNotCount() throws IOException {
    require(process(), honest());
    FileTime at = Files.getLastModifiedTime(note());
    for (int seconds : new int[] {-61, 62, 86_000}) {
      Files.setLastModifiedTime(note(), FileTime.fromMillis(at.toMillis() + seconds * 1000L));
      assertRefused(process());
    }
    Files.setLastModifiedTime(note(), at);
    require(process(), lying());
  }

  @Test
  void aNoteCountsForADay() throws IOException {
    require(process(), honest());
    for (int hours : new int[] {-25, 25}) {
      Clock then = Clock.offset(NOW, Duration.ofHours(hours));
      assertThrows(PartlogException.class, () -> process().require(lying().store(), "_probe", then));
    }
    process().require(lying().store(), "_probe", Clock.offset(NOW, Duration.ofHours(23)));
  }

  @Test
  void aNoteThatIsNoneDoesNotCountAndIsReplaced() throws IOException {
    Files.createDirectories(folder.resolve("_probe"));
    for (String content : List.of("", "{", "[]", "null", "7", "{\"endpoint\": \"" + ENDPOINT + "\", \"bucket\": \"" + BUCKET + "\"}",
        "{\"at\": " + NOW.millis() + "}", " ".repeat(5000))) {
      Files.writeString(note(), content);
      assertRefused(process());
    }
    require(process(), store);
    assertEquals(4 * 8, puts());
    require(process(), lying()); // By the note that is in its place.
  }

  @Test
  void theNoteOfAProcessThatDiesInItsTrialIsNotThere() throws IOException {
    FaultyStore dies = honest().fail("putIfAbsent", 20, FaultyStore.When.BEFORE, new IOException("the process dies"))
        .failAll("delete", FaultyStore.When.BEFORE, new IOException("it is dead"));
    assertThrows(IOException.class, () -> require(process(), dies));
    assertFalse(left().isEmpty());
    assertFalse(Files.exists(note()));
    assertRefused(process());
  }

  @Test
  void withoutTheRightToDeleteATrialCounts() throws IOException {
    require(process(), store.failAll("delete", FaultyStore.When.BEFORE, new AccessDeniedException("no")));
    assertEquals(4 + 1, left().size());
    require(process(), lying()); // By the note.
  }

  @Test
  void withoutTheRightToPutANoteEachProcessTries() throws IOException {
    FaultyStore unnoted = store.failAll("create", FaultyStore.When.BEFORE, new AccessDeniedException("no"))
        .failAll("read _probe/passed.json", FaultyStore.When.BEFORE, new AccessDeniedException("no"));
    require(process(), unnoted);
    require(process(), unnoted);
    assertEquals(2 * 4 * 8, puts());
  }

  @Test
  void withoutTheRightToPutItIsNotTold() {
    FaultyStore denied = store.failAll("putIfAbsent", FaultyStore.When.BEFORE, new AccessDeniedException("no"));
    ServerProbe process = process();
    for (int time = 0; time < 2; time++) {
      assertThrows(AccessDeniedException.class, () -> require(process, denied));
    }
  }

  /** One put in so many has an answer. */
  private FaultyStore losing(int everyNth) {
    AtomicInteger count = new AtomicInteger();
    return honest().answer("putIfAbsent", (real, with) -> {
      if (count.incrementAndGet() % everyNth != 0) {
        throw new NoAnswerException((String) with[0], new IOException("the answer is lost"));
      }
      real.putIfAbsent((String) with[0], (String) with[1], (byte[]) with[2], PutObserver.NONE);
      return null;
    });
  }

  @Test
  void aTrialCountsIfHalfOfItsPutsAreAnswered() throws IOException {
    require(process(), losing(2));
    Files.deleteIfExists(note());
    IOException untold = assertThrows(IOException.class, () -> require(process(), losing(3)));
    assertEquals("the answer is lost", untold.getMessage());
  }

  @Test
  void ofThreadsThatBeginTogetherOneTries() throws Exception {
    ServerProbe process = process();
    ExecutorService threads = Executors.newFixedThreadPool(4);
    try {
      List<Future<?>> ends = new ArrayList<>();
      for (int thread = 0; thread < 4; thread++) {
        ends.add(threads.submit(() -> {
          require(process, store);
          assertEquals(4 * 8, puts());
          return null;
        }));
      }
      for (Future<?> end : ends) {
        end.get();
      }
    } finally {
      threads.shutdownNow();
    }
  }
}
