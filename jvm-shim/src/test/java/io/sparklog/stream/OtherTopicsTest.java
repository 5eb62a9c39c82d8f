package io.sparklog.stream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.format.BatchDecoder;
import io.sparklog.format.Layout;
import io.sparklog.kit.HeldTopics;
import io.sparklog.kit.StreamRuns;
import io.sparklog.kit.WrittenTopic;
import io.sparklog.log.ReadableTopics;
import io.sparklog.log.State;
import io.sparklog.query.OffsetBounds;
import io.sparklog.query.Subscription;
import io.sparklog.read.Filter;
import io.sparklog.read.Selection;
import io.sparklog.read.Split;
import io.sparklog.read.SplitPlanner;
import io.sparklog.read.SplitReader;
import io.sparklog.read.VisibleRecords;
import io.sparklog.spec.Options;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.CheckpointFolders;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Topics that are not under a root are read and streamed by the same classes: they know {@link ReadableTopics}, and nothing of files. */
final class OtherTopicsTest extends StreamRuns {
  private static final SplitPlanner.SplitSize SMALL = new SplitPlanner.SplitSize(20_000, 1, 1, 1, 70);
  private final HeldTopics topics = new HeldTopics();

  private static List<String> read(ReadableTopics topics, List<Selection.OffsetRange> ranges) throws Exception {
    List<String> read = new ArrayList<>();
    for (Split split : new SplitPlanner(topics, SMALL, true).plan(Selection.of(ranges, Filter.ALL_RECORDS))) {
      read.addAll(read(topics, split));
    }
    return read;
  }

  /** As a task, which has a reference to the topics and what the driver planned. */
  private static List<String> read(ReadableTopics topics, Split split) throws Exception {
    List<String> read = new ArrayList<>();
    try (SplitReader reader = new SplitReader(sent(topics.reference()).open(), sent(split), true, false, Long.MAX_VALUE)) {
      while (reader.next()) {
        VisibleRecords records = reader.records();
        BatchDecoder decoder = records.decoder();
        for (int i = records.first(); i < records.first() + records.rows(); i++) {
          int length = decoder.valueLengths()[i];
          String value = length < 0 ? null : new String(decoder.data(), decoder.valueAt()[i], length, StandardCharsets.UTF_8);
          read.add(split.partition() + " " + (records.base() + decoder.offsetDeltas()[i]) + " " + decoder.timestamps()[i] + " " + value);
        }
      }
    }
    return read;
  }

  @SuppressWarnings("unchecked")
  private static <T> T sent(T value) throws IOException, ClassNotFoundException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
      out.writeObject(value);
    }
    try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
      return (T) in.readObject();
    }
  }

  private static List<String> written(List<WrittenTopic.Row> rows) {
    return rows.stream().map(row -> row.partition() + " " + row.offset() + " " + row.timestampMs() + " " + row.value()).toList();
  }

  private List<Selection.OffsetRange> ranges(String... options) throws IOException {
    Map<String, String> given = new TreeMap<>();
    for (int i = 0; i < options.length; i += 2) {
      given.put(options[i], options[i + 1]);
    }
    Options read = Options.of(given, Options.Side.READ);
    return new OffsetBounds(topics, read).resolve(new Subscription(topics, topics::newest, read).resolve());
  }

  /** Nothing of the root is needed any more. */
  private void forget() throws IOException {
    try (Stream<Path> all = Files.walk(directory)) {
      for (Path path : all.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(path);
      }
    }
  }

  @Test
  void allIsReadOnce() throws Exception {
    topic.segment(0, WrittenTopic.times(40, 50)).segment(1, 30).commit().segment(0, WrittenTopic.times(40, 50)).commit();
    topics.hold(HeldTopics.copy(topic));
    forget();
    assertEquals(written(topic.allRows()), read(topics, ranges()));
    assertTrue(topics.indexes > 0, "large segments are cut where an index says");
    assertEquals(written(topic.rows(0, 2500, 2501)),
        read(topics, ranges("assign", "{\"t\":[0]}", "startingOffsets", "{\"t\":{\"0\":2500}}", "endingOffsets", "{\"t\":{\"0\":2501}}")));
  }

  /** A broker writes the epoch of its leader into headers. The checksum of all headers is a rule of segments under a root alone. */
  @Test
  void headersMayBeOfAnotherWriter() throws Exception {
    topic.segment(0, 10, 10).commit();
    HeldTopics.Held held = HeldTopics.copy(topic);
    byte[] bytes = held.bytes().values().stream().max(Comparator.comparing(file -> file.length)).orElseThrow();
    bytes[Layout.LEADER_EPOCH_AT + 3] = 7;
    Files.write(topic.dataFile(0, 0), bytes);
    topics.hold(held);
    assertEquals(written(topic.allRows()), read(topics, ranges()));
    assertFails("SEGMENT_CORRUPT", () -> read(topic.root, ranges()), "checksum");
  }

  @Test
  void timesAreFound() throws Exception {
    topic.segment(0, WrittenTopic.times(40, 50)).commit();
    topics.hold(HeldTopics.copy(topic));
    forget();
    List<Selection.OffsetRange> ranges = ranges("assign", "{\"t\":[0]}", "startingTimestamp", Long.toString(WrittenTopic.time(1555)));
    assertEquals(written(topic.rows(0, ranges.get(0).start(), 2000)), read(topics, ranges));
    assertEquals(1555, ranges.get(0).start());
  }

  @Test
  void aSegmentThatIsGoneIsFoundInTheNewestState() throws Exception {
    topic.segment(0, WrittenTopic.times(40, 50)).commit();
    HeldTopics.Held first = HeldTopics.copy(topic);
    topic.move(0, 0);
    HeldTopics.Held moved = HeldTopics.copy(topic);
    forget();
    topics.hold(first);
    List<Selection.OffsetRange> ranges = ranges();
    List<Split> splits = new SplitPlanner(topics, SMALL, true).plan(Selection.of(ranges, Filter.ALL_RECORDS));
    topics.hold(moved);
    List<String> read = new ArrayList<>();
    for (Split split : splits) {
      read.addAll(read(topics, split));
    }
    assertEquals(written(topic.allRows()), read);
    topics.hold(new HeldTopics.Held(first.state(), Map.of()));
    PartlogException missing = assertThrows(PartlogException.class, () -> read(topics, splits.get(0)));
    assertEquals("SEGMENT_MISSING", missing.id());
    assertTrue(missing.getMessage().contains(topics.location()), missing.getMessage());
  }

  @Test
  void aStreamGoesOnWithWhatComes() throws Exception {
    topic.segment(0, WrittenTopic.times(10, 50)).segment(1, WrittenTopic.times(5, 50)).commit();
    HeldTopics.Held first = HeldTopics.copy(topic);
    topic.segment(0, WrittenTopic.times(10, 50)).commit();
    HeldTopics.Held second = HeldTopics.copy(topic);
    forget();
    topics.hold(first);
    TopicStream stream = stream(topics, "startingOffsets", "earliest", "subscribePattern", "t|later");
    StreamOffsets from = stream.initial();
    List<String> read = new ArrayList<>();
    for (int batches = 0;; batches++) {
      StreamOffsets to = stream.next(from, TriggerLimits.NONE.bytesMax(3000));
      if (to == from) {
        assertTrue(batches > 10, batches + " micro-batches of a few record batches each");
        break;
      }
      read.addAll(read(topics, stream.ranges(from, to)));
      from = to;
      if (batches == 3) {
        topics.hold(second);
        stream = stream(topics, "subscribePattern", "t|later");
      }
    }
    assertEquals(written(topic.allRows()), read.stream().sorted(Comparator.comparing(OtherTopicsTest::place)).toList());
    assertEquals("0", stream.metrics(from).get("dataLoss"));
    assertSame(from, stream.next(from, TriggerLimits.NONE));
  }

  /** Each look but the last finds a state whose file is gone when the stream opens the file. */
  @Test
  void aStreamLooksAgainAsOftenAsFilesAreGone() throws Exception {
    topic.segment(0, WrittenTopic.times(10, 50)).commit();
    Deque<HeldTopics.Held> later = new ArrayDeque<>();
    topics.hold(HeldTopics.copy(topic));
    for (int move = 0; move < 3; move++) {
      topic.move(0, 0);
      later.add(HeldTopics.copy(topic));
    }
    ReadableTopics overtaken = (ReadableTopics) Proxy.newProxyInstance(getClass().getClassLoader(), new Class<?>[] {ReadableTopics.class},
        (proxy, method, arguments) -> {
          if (method.getName().equals("open") && !later.isEmpty()) {
            topics.hold(later.remove());
          }
          try {
            return method.invoke(topics, arguments);
          } catch (InvocationTargetException e) {
            throw e.getCause();
          }
        });
    TopicStream stream = stream(overtaken, "startingOffsets", "earliest");
    StreamOffsets from = stream.initial();
    StreamOffsets to = stream.next(from, TriggerLimits.NONE.bytesMax(3000));
    assertEquals(0, later.size());
    List<String> read = read(topics, stream.ranges(from, to));
    assertFalse(read.isEmpty());
    assertEquals(written(topic.allRows()).subList(0, read.size()), read);
  }

  private TopicStream stream(ReadableTopics of, String... keysAndValues) throws IOException {
    StreamStart start = new StreamStart(
        CheckpointFolders.open("file:" + folder.resolve("checkpoint/sources/0"), Map.<String, String>of()::entrySet), random);
    return new TopicStream(of, options(keysAndValues), start, clock);
  }

  private static long place(String record) {
    String[] words = record.split(" ", 3);
    return Long.parseLong(words[0]) * 1_000_000 + Long.parseLong(words[1]);
  }

  @Test
  void errorsNameThePlace() throws Exception {
    assertFails("ROOT_NOT_FOUND", this::ranges, topics.location());
    topic.segment(0, 1).commit();
    topics.hold(HeldTopics.copy(topic));
    assertFails("TOPIC_NOT_FOUND", () -> ranges("subscribe", "u"), topics.location());
    State state = topics.newest("t").orElseThrow();
    assertFails("OFFSETS_OUT_OF_RANGE",
        () -> ranges("assign", "{\"t\":[0]}", "startingOffsets", "{\"t\":{\"0\":" + (state.end(0) + 1) + "}}"), topics.location());
  }

  @Test
  void referencesAreEqualIfTheyAreToTheSameTopics() throws Exception {
    topic.segment(0, 1).commit();
    assertEquals(topic.root.reference(), sent(topic.root.reference()));
    assertEquals(topics.reference(), sent(topics.reference()));
    assertNotEquals(topics.reference(), topic.root.reference());
  }
}
