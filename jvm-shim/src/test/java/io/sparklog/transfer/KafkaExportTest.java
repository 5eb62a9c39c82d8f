package io.sparklog.transfer;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.admin.Administration;
import io.sparklog.kit.MergedTopics;
import io.sparklog.log.State;
import io.sparklog.log.TopicLog;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.FaultyStore.When;
import io.sparklog.storage.LogStore;
import io.sparklog.storage.Stores;
import io.sparklog.upkeep.TopicWork;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** An export beside merges and deletions, and one that fails. */
final class KafkaExportTest extends MergedTopics {
  @TempDir
  private Path folder;

  private List<KafkaExport.Exported> export() {
    TopicLog log = new TopicLog(store.withoutLinks(), "t");
    return KafkaExport.export(log, log.newest().orElseThrow(), folder.resolve("to").toString(), Names.identity(random));
  }

  private List<String> names() throws IOException {
    try (Stream<Path> files = Files.walk(folder)) {
      return files.filter(Files::isRegularFile).map(file -> folder.relativize(file).toString()).sorted().toList();
    }
  }

  private void assertIsExported(List<KafkaExport.Exported> rows) throws IOException {
    State state = state();
    TreeSet<String> expected = new TreeSet<>(List.of("to/log-start-offset-checkpoint"));
    for (KafkaExport.Exported row : rows) {
      String of = "to/t-" + row.partition() + "/";
      expected.add(of + "leader-epoch-checkpoint");
      for (Segment segment : state.segments(row.partition())) {
        List.of("log", "index", "timeindex").forEach(kind -> expected.add(of + Names.viewFile(segment.base(), kind)));
        assertEquals(segment.bytes(), Files.size(folder.resolve(of + Names.viewFile(segment.base(), "log"))));
      }
      assertEquals(state.end(row.partition()), row.end());
      long bytes = 0;
      int files = 0;
      for (String name : names()) {
        bytes += name.startsWith(of) ? Files.size(folder.resolve(name)) : 0;
        files += name.startsWith(of) ? 1 : 0;
      }
      assertEquals(List.of((long) files, bytes), List.of((long) row.files(), row.bytes()));
    }
    assertEquals(new ArrayList<>(expected), names());
  }

  /** A segment that is written already goes too, where it was merged. */
  @Test
  void segmentsThatAreMergedMeanwhileAreFollowed() throws IOException {
    write(6, 40);
    List<Segment> before = live();
    List<String> files = before.stream().map(Segment::file).distinct().toList();
    boolean[] merged = {false};
    store.at((method, name, when) -> {
      if (when == When.BEFORE && method.equals("open") && name.endsWith(before.get(4).file()) && !merged[0]) {
        merged[0] = true;
        merging().all();
        write(1, 5);
        LogStore place = Stores.open(root.toString());
        for (String file : files) {
          place.delete(Names.topicFile("t", file));
        }
      }
    });
    List<KafkaExport.Exported> rows = export();
    assertTrue(merged[0]);
    assertTrue(live().size() < before.size());
    assertIsExported(rows);
  }

  @Test
  void aFileThatIsMissingIsSaid() throws IOException {
    write(3, 40);
    Stores.open(root.toString()).delete(Names.topicFile("t", live().get(5).file()));
    assertEquals("SEGMENT_MISSING", assertThrows(PartlogException.class, this::export).id());
    assertEquals(List.of(), names());
    assertFalse(Files.exists(folder.resolve("to")));
  }

  @Test
  void theTopicMayNotBeAnotherOne() throws IOException {
    write(3, 40);
    store.at((method, name, when) -> {
      if (when == When.BEFORE && method.equals("open") && name.endsWith(".log")) {
        LogStore place = Stores.open(root.toString());
        List<String> files = new ArrayList<>(live().stream().map(Segment::file).distinct().toList());
        new Administration(new TopicWork(new TopicLog(place, "t"), Clock.systemUTC(), random)).delete(false);
        for (String file : files) {
          place.delete(Names.topicFile("t", file));
        }
        commit(place, 5, null);
      }
    });
    assertEquals("TOPIC_REPLACED", assertThrows(PartlogException.class, this::export).id());
    assertEquals(List.of(), names());
  }

  /** Another program has filled the folder while this one was at work. */
  @Test
  void aFolderThatIsFilledMeanwhileStays() throws IOException {
    write(1, 40);
    store.at((method, name, when) -> {
      if (method.equals("open")) {
        Files.createDirectories(folder.resolve("to"));
        Files.write(folder.resolve("to/theirs"), new byte[] {1});
      }
    });
    assertEquals("EXPORT_TARGET", assertThrows(PartlogException.class, this::export).id());
    assertEquals(List.of("to/theirs"), names());
    assertArrayEquals(new byte[] {1}, Files.readAllBytes(folder.resolve("to/theirs")));
  }
}
