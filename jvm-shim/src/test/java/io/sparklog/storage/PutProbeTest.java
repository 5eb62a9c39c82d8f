package io.sparklog.storage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The probe on a disk that keeps its promises, and on one that lies. */
final class PutProbeTest {
  @TempDir
  private Path folder;

  private FaultyStore store() {
    return FaultyStore.of(new LocalStore(folder.resolve("a/b/log")));
  }

  @Test
  void aCheckLeavesNoFolderThatWasNotThere() throws IOException {
    LogStore deep = Stores.open(folder.resolve("a/b/log").toString());
    assertEquals(new StoreCheck.PutCounts(3, 21, 0), StoreCheck.run(deep, "_probe", 3));
    assertEquals(0, folder.toFile().list().length);
    Files.createDirectories(folder.resolve("a/b/log/_probe"));
    StoreCheck.run(deep, "_probe", 3);
    assertEquals(List.of(folder.resolve("a/b/log/_probe")), left());
  }

  /** Files and folders, but for those above the root. */
  private List<Path> left() throws IOException {
    try (Stream<Path> all = Files.walk(folder)) {
      return all.filter(path -> !List.of("", "a", "a/b", "a/b/log").contains(folder.relativize(path).toString())).toList();
    }
  }

  @Test
  void ofEachFileOnePutWins() throws IOException {
    PutProbe.Result result = new PutProbe(store().store(), "_probe").run(30);
    result.requireSafe();
    assertEquals(List.of(30L, 210L, 0L), List.of(result.won(), result.refused(), result.unanswered()));
    assertNull(result.failure());
    assertEquals(List.of(), left());
  }

  private PartlogException refused(FaultyStore.Answer put) throws IOException {
    PutProbe.Result result = new PutProbe(store().answer("putIfAbsent", put).store(), "_probe").run(5);
    assertEquals(List.of(), left());
    return assertThrows(PartlogException.class, result::requireSafe);
  }

  @Test
  void aPutThatReplacesIsFound() throws IOException {
    PartlogException refused = refused((real, with) -> {
      synchronized (real) {
        real.delete((String) with[0]);
        real.putIfAbsent((String) with[0], (String) with[1], (byte[]) with[2], PutObserver.NONE);
        return null;
      }
    });
    assertEquals("STORE_UNSAFE", refused.id());
    assertEquals(folder.resolve("a/b/log").toString(), refused.parameters().get("endpoint"));
    assertEquals("of 5 files that 8 threads put at once, 5 were put by more than one of them, and 0 do not hold what was put",
        refused.parameters().get("reason"));
  }

  /** One put wins, and another's content is there. */
  @Test
  void aPutThatIsLostIsFound() throws IOException {
    PartlogException refused = refused((real, with) -> {
      real.putIfAbsent((String) with[0], (String) with[1], "another".getBytes(), PutObserver.NONE);
      return null;
    });
    assertEquals("of 5 files that 8 threads put at once, 0 were put by more than one of them, and 5 do not hold what was put",
        refused.parameters().get("reason"));
  }

  /** They are counted, and what they leave behind after all is deleted. */
  @Test
  void putsWithoutAnAnswerAreCounted() throws IOException {
    FaultyStore lossy = store().answer("putIfAbsent", (real, with) -> {
      real.putIfAbsent((String) with[0], (String) with[1], (byte[]) with[2], PutObserver.NONE);
      throw new NoAnswerException((String) with[0], new IOException("the answer is lost"));
    });
    PutProbe.Result result = new PutProbe(lossy.store(), "_probe").run(5);
    result.requireSafe();
    assertEquals(List.of(0L, 35L, 5L), List.of(result.won(), result.refused(), result.unanswered()));
    assertEquals("the answer is lost", result.failure().getMessage());
    assertEquals(List.of(), left());
  }

  @Test
  void aPutThatIsDeniedEndsIt() throws IOException {
    FaultyStore denied = store().answer("putIfAbsent", (real, with) -> {
      throw new AccessDeniedException("denied");
    });
    assertThrows(AccessDeniedException.class, () -> new PutProbe(denied.store(), "_probe").run(5));
    assertEquals(List.of(), left());
  }
}
