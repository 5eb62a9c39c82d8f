package io.sparklog.read;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.HandmadeVersion;
import io.sparklog.kit.WrittenTopic;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.query.OffsetBounds;
import io.sparklog.query.Subscription;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.source.Reads;
import io.sparklog.spec.Options;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.FileReader;
import io.sparklog.storage.LogStore;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.LongStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A later version replaces data files while a read of an earlier state is planned: whatever is asked, the answer is the same. */
final class ReplacedFilesTest {
  @TempDir
  Path root;
  private WrittenTopic topic;
  private State before;

  /** Three segments, each large enough to be looked into. */
  @BeforeEach
  void write() throws IOException {
    topic = new WrittenTopic(root, "t");
    for (int segment = 0; segment < 3; segment++) {
      topic.segment(0, WrittenTopic.times(40, 80)).commit();
    }
    before = topic.root.state("t");
  }

  private void replace() throws IOException {
    topic.move(0, 0);
    topic.move(0, 1);
  }

  private Selection.OffsetRange range(String... options) throws IOException {
    TreeMap<String, String> given = new TreeMap<>(Map.of("subscribe", "t"));
    for (int i = 0; i < options.length; i += 2) {
      given.put(options[i], options[i + 1]);
    }
    return new OffsetBounds(topic.root, Options.of(given, Options.Side.READ))
        .resolve(List.of(new Subscription.Subscribed(before, new int[] {0})))
        .get(0);
  }

  private List<Split> plan(Selection.OffsetRange range, Filter filter, int splitsMin, long recordsMax) throws IOException {
    SplitPlanner.SplitSize size = new SplitPlanner.SplitSize(Long.MAX_VALUE, 1, 1, splitsMin, recordsMax);
    return new SplitPlanner(topic.root, size, true).plan(Selection.of(List.of(range), filter));
  }

  private void assertRows(long start, long end, List<Split> splits) throws IOException {
    Reads.assertRows(topic.rows(0, start, end), Reads.rows(root, splits), start + " to " + end);
  }

  @Test
  void allOffsets() throws IOException {
    replace();
    assertRows(0, 9600, plan(range(), Filter.ALL_RECORDS, 1, Long.MAX_VALUE));
  }

  @Test
  void offsetsWithinSegments() throws IOException {
    replace();
    Selection.OffsetRange range = range("startingOffsets", topic.json(1001), "endingOffsets", topic.json(5003));
    List<Split> splits = plan(range, Filter.ALL_RECORDS, 1, Long.MAX_VALUE);
    assertRows(1001, 5003, splits);
  }

  @Test
  void offsetsByTime() throws IOException {
    String from = Long.toString(WrittenTopic.time(1001));
    String to = Long.toString(WrittenTopic.time(5003));
    Selection.OffsetRange right = range("startingTimestamp", from, "endingTimestamp", to);
    assertEquals(List.of(1001L, 5003L), List.of(right.start(), right.end()));
    replace();
    Selection.OffsetRange later = range("startingTimestamp", from, "endingTimestamp", to);
    assertEquals(List.of(1001L, 5003L), List.of(later.start(), later.end()));
    assertRows(1001, 5003, plan(later, Filter.ALL_RECORDS, 1, Long.MAX_VALUE));
  }

  @Test
  void timesOfRecords() throws IOException {
    Intervals micros = Intervals.of(1000 * WrittenTopic.time(1001), 1000 * WrittenTopic.time(1100));
    long bytes = plan(range(), Filter.time(micros), 1, Long.MAX_VALUE).stream().mapToLong(Split::bytesToRead).sum();
    replace();
    List<Split> splits = plan(range(), Filter.time(micros), 1, Long.MAX_VALUE);
    List<WrittenTopic.Row> expected = topic.allRows().stream().filter(row -> micros.contains(1000 * row.timestampMs())).toList();
    assertTrue(expected.size() > 80);
    Reads.assertRows(expected, Reads.rows(root, splits), "by time");
    assertEquals(bytes, splits.stream().mapToLong(Split::bytesToRead).sum(), "as little is read as before");
  }

  @Test
  void manySplits() throws IOException {
    int count = plan(range(), Filter.ALL_RECORDS, 11, Long.MAX_VALUE).size();
    replace();
    List<Split> splits = plan(range(), Filter.ALL_RECORDS, 11, Long.MAX_VALUE);
    assertRows(0, 9600, splits);
    assertEquals(count, splits.size());
  }

  @Test
  void fewRecordsASplit() throws IOException {
    replace();
    List<Split> splits = plan(range(), Filter.ALL_RECORDS, 1, 700);
    assertRows(0, 9600, splits);
    assertTrue(splits.stream().allMatch(split -> split.offsets() <= 700));
    assertEquals(14, splits.size());
  }

  @Test
  void whatExpiresIsAnErrorUnlessToldOtherwise() throws IOException {
    topic.expire(0);
    PartlogException error = assertThrows(PartlogException.class, () -> plan(range(), Filter.ALL_RECORDS, 11, Long.MAX_VALUE));
    assertEquals("OFFSETS_EXPIRED", error.id());
    SplitPlanner lax = new SplitPlanner(topic.root, new SplitPlanner.SplitSize(Long.MAX_VALUE, 1, 1, 11, Long.MAX_VALUE), false);
    assertRows(3200, 9600, lax.plan(Selection.of(List.of(range()), Filter.ALL_RECORDS)));
  }

  /** A version may raise the log start offset over a segment that it leaves live. */
  @Test
  void whatExpiresMayStillBeLive() throws IOException {
    Segment first = before.segments(0).get(0);
    HandmadeVersion next = HandmadeVersion.after(root, before, Names.identity(new Random(1)));
    next.start(0, first.end());
    next.write();
    Files.delete(root.resolve(Names.topicFile("t", first.file())));
    PartlogException error = assertThrows(PartlogException.class, () -> plan(range(), Filter.ALL_RECORDS, 11, Long.MAX_VALUE));
    assertEquals("OFFSETS_EXPIRED", error.id());
    SplitPlanner lax = new SplitPlanner(topic.root, new SplitPlanner.SplitSize(Long.MAX_VALUE, 1, 1, 11, Long.MAX_VALUE), false);
    assertRows(3200, 9600, lax.plan(Selection.of(List.of(range()), Filter.ALL_RECORDS)));
  }

  /** On an object store, a file that is open can vanish: what was opened before the files were replaced fails from then on. */
  @Test
  void whileTheyAreRead() throws IOException {
    Split split = plan(range(), Filter.ALL_RECORDS, 1, Long.MAX_VALUE).get(0);
    int[] reads = {0};
    LogStore store = seen(LogStore.class, topic.store, (name, answer) -> {
      boolean early = reads[0] < 3;
      return !name.equals("open") ? answer : seen(FileReader.class, (FileReader) answer, (method, done) -> {
        if (method.equals("read") && ++reads[0] == 3) {
          replace();
        }
        if (method.equals("read") && early && reads[0] >= 3) {
          throw new NoSuchFileException("gone");
        }
        return done;
      });
    });
    List<Long> offsets = new ArrayList<>();
    try (SplitReader reader = new SplitReader(new Root(store), split, true, false, Long.MAX_VALUE)) {
      while (reader.next()) {
        VisibleRecords records = reader.records();
        for (int row = 0; row < records.rows(); row++) {
          offsets.add(records.base() + records.decoder().offsetDeltas()[records.first() + row]);
        }
      }
    }
    assertTrue(reads[0] > 6);
    assertEquals(LongStream.range(0, 9600).boxed().toList(), offsets);
  }

  private interface Seen {
    Object answer(String method, Object answer) throws IOException;
  }

  /** The answers of {@code real}, as {@code seen} changes them. */
  private static <T> T seen(Class<T> type, T real, Seen seen) {
    return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (proxy, method, arguments) -> {
      try {
        return seen.answer(method.getName(), method.invoke(real, arguments));
      } catch (InvocationTargetException e) {
        throw e.getCause();
      }
    }));
  }
}
