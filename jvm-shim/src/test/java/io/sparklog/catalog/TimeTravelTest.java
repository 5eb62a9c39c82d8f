package io.sparklog.catalog;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.admin.Administration;
import io.sparklog.admin.Vacuum;
import io.sparklog.kit.HandmadeVersion;
import io.sparklog.kit.WrittenTopic.Row;
import io.sparklog.kit.WrittenTopic;
import io.sparklog.log.Committers;
import io.sparklog.log.Pace;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.Version;
import io.sparklog.merge.Merging;
import io.sparklog.segment.Names;
import io.sparklog.source.Reads;
import io.sparklog.spec.PartlogException;
import io.sparklog.upkeep.TopicWork;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** VERSION AS OF and TIMESTAMP AS OF: the same rows whatever became of the files, or an error that says why. */
final class TimeTravelTest {
  private static final int VERSIONS = 6;

  @TempDir
  Path directory;
  private final Random random = new Random(1);
  private WrittenTopic topic;
  private Root root;

  /** By version, the rows that it had. */
  private final List<List<Row>> then = new ArrayList<>();

  @BeforeEach
  void write() throws IOException {
    topic = new WrittenTopic(directory, "t").with("file.delete.delay.ms", "0");
    root = topic.root;
    for (int version = 0; version < VERSIONS; version++) {
      topic.segment(version % 2, 3, 1 + version).segment(2, 2).commit();
      then.add(topic.allRows());
    }
  }

  private List<Row> rows(Map<String, String> options) throws IOException {
    String[] given = options.entrySet().stream().flatMap(each -> List.of(each.getKey(), each.getValue()).stream()).toArray(String[]::new);
    return Reads.of(directory, given).rows();
  }

  private List<Row> rows(long version) throws IOException {
    return rows(TimeTravel.bounds(TimeTravel.version(root, "t", Long.toString(version))));
  }

  private Administration administration() {
    return new Administration(new TopicWork(root.topic("t"), Clock.systemUTC(), random));
  }

  private void assertAsThen(String after) throws IOException {
    for (int version = 0; version < VERSIONS; version++) {
      Reads.assertRows(then.get(version), rows(version), "version " + version + " after " + after);
    }
  }

  @Test
  void theRowsAreTheSameAfterMergesAndRebatchingAndMorePartitions() throws IOException {
    assertAsThen("the writes");
    Merging merging = new Merging(new Committers(root.topic("t"), Clock.systemUTC(), random));
    assertTrue(merging.all().replaced() > 0);
    assertAsThen("a merge");
    administration().addPartitions(5, Administration.RerouteTime.NOW, false);
    topic.segment(4, 7).commit();
    assertAsThen("more partitions");
    assertTrue(merging.rebatch(1 << 20).replaced() > 0);
    assertAsThen("rebatching");
    assertEquals(List.of(), rows(0).stream().filter(row -> row.partition() > 2).toList());
  }

  @Test
  void whatWasDeletedIsRefusedWithTheRangeThatIsLeft() throws IOException {
    administration().deleteRecords(new TreeMap<>(Map.of(0, 5L)), new TreeMap<>(), false);
    for (int version = 0; version < VERSIONS; version++) {
      long number = version;
      PartlogException e = assertThrows(PartlogException.class, () -> rows(number));
      assertEquals("OFFSETS_OUT_OF_RANGE", e.id());
      assertEquals(List.of("0", "5", Long.toString(root.state("t").end(0))),
          List.of(e.parameters().get("partition"), e.parameters().get("start"), e.parameters().get("end")));
    }
    List<Row> left = topic.allRows().stream().filter(row -> row.partition() > 0 || row.offset() >= 5).toList();
    Reads.assertRows(left, rows(VERSIONS), "the version of the deletion");
  }

  @Test
  void aTopicThatKeepsVersionsHasTheDeletedRecordsToo() throws IOException {
    administration().configure(Map.of("versions.keep.ms", "86400000"));
    administration().deleteRecords(new TreeMap<>(Map.of(0, 5L)), new TreeMap<>(), false);
    new Merging(new Committers(root.topic("t"), Clock.systemUTC(), random)).all();
    new Vacuum(new TopicWork(root.topic("t"), Clock.systemUTC(), random)).run(Vacuum.OLDER_THAN, false);
    for (int version = 0; version < VERSIONS; version++) {
      State state = TimeTravel.version(root, "t", Integer.toString(version));
      assertEquals(version, state.version());
      String[] bounds = TimeTravel.bounds(state)
          .entrySet()
          .stream()
          .flatMap(each -> Stream.of(each.getKey(), each.getValue()))
          .toArray(String[]::new);
      Reads.assertRows(then.get(version), Reads.of(directory, bounds).at(state).rows(), "version " + version);
    }
  }

  @Test
  void aTimeIsTheNewestVersionUntilThen() throws IOException {
    List<Version> versions = new ArrayList<>();
    root.topic("t").newest(root.state("t"), version -> !versions.add(version));
    for (Version each : versions) {
      long next = versions.stream()
          .mapToLong(version -> version.head().time())
          .filter(time -> time > each.head().time())
          .min()
          .orElse(each.head().time() + 1);
      int newest = (int) versions.stream()
          .filter(version -> version.head().time() == each.head().time())
          .mapToLong(Version::version)
          .max()
          .getAsLong();
      for (long millis : new long[] {each.head().time(), next - 1}) {
        Reads.assertRows(then.get(newest),
            rows(TimeTravel.bounds(TimeTravel.time(root, "t", TimeUnit.MILLISECONDS.toMicros(millis) + 999))), "at " + millis);
      }
    }
    long before = TimeUnit.MILLISECONDS.toMicros(versions.get(versions.size() - 1).head().time()) - 1;
    assertUnreadable("version 0, is younger", () -> TimeTravel.time(root, "t", before));
  }

  private interface Travel {
    Object go() throws IOException;
  }

  private static void assertUnreadable(String text, Travel travel) {
    PartlogException e = assertThrows(PartlogException.class, travel::go);
    assertEquals("VERSION_UNREADABLE", e.id());
    assertTrue(e.getMessage().contains(text), e.getMessage());
  }

  /** Changes the configuration until the first version files are gone. @return the lowest version that is there */
  private long cleanUp() {
    root = new Root(topic.store, new Pace(4, 8, Thread::sleep));
    for (int change = 0; root.state("t").boundary() <= VERSIONS; change++) {
      assertTrue(change < 40);
      administration().configure(Map.of("retention.bytes", Integer.toString(1_000_000_000 + change)));
    }
    long boundary = root.state("t").boundary();
    assertFalse(Files.exists(version(boundary - 1)));
    assertTrue(Files.exists(version(boundary)));
    return boundary;
  }

  private Path version(long number) {
    return directory.resolve(Names.topicFile("t", Names.versionFile(number)));
  }

  @Test
  void aVersionWhoseFileWasCleanedUpIsRefusedByName() throws IOException {
    long oldest = cleanUp();
    for (long version = 0; version < oldest; version++) {
      long number = version;
      assertUnreadable("as of version " + version + ":", () -> TimeTravel.version(root, "t", Long.toString(number)));
      assertUnreadable("cleaned up", () -> TimeTravel.version(root, "t", Long.toString(number)));
    }
    long[] time = new long[1];
    root.topic("t").newest(root.state("t"), version -> {
      time[0] = version.head().time();
      return false;
    });
    assertUnreadable("version " + oldest + ", is younger", () -> TimeTravel.time(root, "t", TimeUnit.MILLISECONDS.toMicros(time[0]) - 1));
    for (long version = oldest; version <= root.state("t").version(); version++) {
      Reads.assertRows(topic.allRows(), rows(version), "version " + version);
    }
  }

  /** It put a file of its own under a number that had been deleted. No reader counts it. FORMAT.md section 5, boundary. */
  @Test
  void theFileOfAWriterThatSleptCountsForNothing() throws IOException {
    State early = root.state("t");
    long earlyMs = root.topic("t").version(early.version()).orElseThrow().head().time();
    HandmadeVersion slept = HandmadeVersion.after(directory, early, Names.identity(random)).end(0, 1).end(1, 1);
    long oldest = cleanUp();
    long number = early.version() + 1;
    slept.write();
    assertUnreadable("cleaned up", () -> TimeTravel.version(root, "t", Long.toString(number)));
    Files.move(version(number), version(oldest - 1));
    List<Long> seen = new ArrayList<>();
    root.topic("t").newest(root.state("t"), version -> !seen.add(version.version()));
    assertEquals(oldest, seen.get(seen.size() - 1));
    assertUnreadable("version " + oldest + ", is younger", () -> TimeTravel.time(root, "t", TimeUnit.MILLISECONDS.toMicros(earlyMs)));
  }

  @Test
  void whatIsNotAVersionOfThisTopicIsRefused() throws IOException {
    administration().delete(false);
    WrittenTopic another = new WrittenTopic(directory, "t");
    another.segment(0, 9).commit();
    long newest = root.state("t").version();
    assertUnreadable("earlier topic of this name", () -> TimeTravel.version(root, "t", Long.toString(newest - 1)));
    assertUnreadable("cleaned up", () -> TimeTravel.version(root, "t", "0"));
    assertUnreadable("the newest version is " + newest, () -> TimeTravel.version(root, "t", Long.toString(newest + 1)));
    assertUnreadable("a version is a number", () -> TimeTravel.version(root, "t", "-1"));
    Reads.assertRows(another.allRows(), rows(newest), "the newest");
  }
}
