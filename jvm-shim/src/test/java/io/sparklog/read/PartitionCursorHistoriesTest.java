package io.sparklog.read;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.admin.Administration;
import io.sparklog.format.BadBatch;
import io.sparklog.format.BatchDecoder;
import io.sparklog.format.BatchHeader;
import io.sparklog.kit.Seed;
import io.sparklog.kit.WrittenTopic;
import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.segment.Names;
import io.sparklog.segment.Segment;
import io.sparklog.segment.SegmentFile;
import io.sparklog.segment.SegmentGone;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.FileReader;
import io.sparklog.storage.LogStore;
import io.sparklog.upkeep.TopicWork;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Clock;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A cursor beside writers, merges, deletions, re-routes and other topics of the name, which act between its calls, and before each file
 * that a call opens or reads. The model is a list of records, a log start offset and an end offset.
 */
final class PartitionCursorHistoriesTest {
  private static final int CALLS = 150;

  @TempDir
  Path directory;

  @Test
  void everyAnswerIsTrue() throws Exception {
    long seed = Seed.draw();
    Map<String, Integer> seen = new HashMap<>();
    for (int round = 0; round < Seed.either(4, 200); round++) {
      Path root = Files.createDirectory(directory.resolve("root " + round));
      try {
        new History(root, new Random(seed + round), seen).run();
      } catch (Exception | AssertionError e) {
        throw new AssertionError("SPARKLOG_SEED=" + seed + ", round " + round, e);
      }
    }
    for (String kind : List.of("copy", "file", "whole before position", "end", "OFFSETS_EXPIRED", "TOPIC_REPLACED", "TOPIC_NOT_FOUND",
        "deleted file")) {
      assertTrue(seen.getOrDefault(kind, 0) > 2, kind + " is too rare: " + seen);
    }
  }

  /** A topic of the name, and what is so of its partition 0. Its end offset is the number of its rows. */
  private static final class Model {
    private final WrittenTopic topic;
    private long start;
    private boolean deleted;

    private Model(WrittenTopic topic) {
      this.topic = topic;
    }

    private long end() {
      return topic.rows.get(0).size();
    }
  }

  private static final class History {
    private final Path directory;
    private final Random random;
    private final Map<String, Integer> seen;
    private Model newest;
    private boolean acting;

    private History(Path directory, Random random, Map<String, Integer> seen) {
      this.directory = directory;
      this.random = random;
      this.seen = seen;
    }

    private void see(String kind) {
      seen.merge(kind, 1, Integer::sum);
    }

    private boolean chance(int in) {
      return random.nextInt(in) == 0;
    }

    private void run() throws Exception {
      create();
      Root reading = new Root(watched(newest.topic.store));
      Model read = newest;
      PartitionCursor cursor = PartitionCursor.open(reading, "t", 0, 0);
      for (int call = 0; call < CALLS; call++) {
        act(2);
        long position = cursor.position();
        long asked = position;
        long end = read.end();
        boolean deleted = read.deleted;
        try {
          int bytesMax = chance(3) ? 1 : random.nextInt(20_000);
          List<PartitionCursor.Batches> given = cursor.next(bytesMax);
          assertFalse(deleted, "the topic is gone");
          long after = requireTrue(read, given, position, bytesMax);
          assertEquals(after, cursor.position());
          if (given.isEmpty()) {
            see("end");
            assertEquals(end, position, "nothing is given at the end alone");
          }
          if (chance(10) && !read.deleted) {
            cursor.close();
            asked = Math.max(read.start, after - random.nextInt(15));
            cursor = PartitionCursor.open(reading, "t", 0, asked);
          }
        } catch (PartlogException e) {
          see(e.id());
          switch (e.id()) {
            case "OFFSETS_EXPIRED" -> assertTrue(asked < read.start, e.getMessage());
            case "TOPIC_NOT_FOUND", "TOPIC_REPLACED" -> assertTrue(read.deleted, e.getMessage());
            default -> throw e;
          }
          cursor.close();
          cursor = openAtStart(reading);
          read = newest;
        }
      }
      cursor.close();
    }

    /** A cursor over the newest topic. While it opens, the log start offset may rise, and the topic may go. */
    private PartitionCursor openAtStart(Root reading) throws IOException {
      while (true) {
        if (newest.deleted) {
          create();
        }
        Model tried = newest;
        long start = tried.start;
        try {
          PartitionCursor cursor = PartitionCursor.open(reading, "t", 0, start);
          if (tried == newest) {
            return cursor;
          }
          cursor.close();
        } catch (PartlogException e) {
          assertTrue(tried.deleted || tried.start > start, e.getMessage());
        }
      }
    }

    /**
     * The batches follow one another from the position on, have the records of the model, and are committed.
     *
     * @return the position after them
     */
    private long requireTrue(Model read, List<PartitionCursor.Batches> given, long before, int bytesMax) throws IOException, BadBatch {
      long position = before;
      int bytes = 0;
      int count = 0;
      for (PartitionCursor.Batches batches : given) {
        bytes += batches.bytes();
        see(batches.copy() == null ? "file" : "copy");
        if (batches.base() < position) {
          assertEquals(before, position, "only the first batch begins before the position");
          see("whole before position");
        }
        assertTrue(batches.nextOffset() > position && batches.nextOffset() <= read.end(), () -> batches + " is beyond " + read.end());
        byte[] content = content(read, batches);
        count += content == null ? 1 : requireRecords(read, batches, content);
        position = batches.nextOffset();
      }
      assertTrue(bytes <= bytesMax || count == 1, bytes + " bytes of " + count + " batches for " + bytesMax);
      return position;
    }

    /** The bytes of the batches; null if their file is gone since. */
    private byte[] content(Model read, PartitionCursor.Batches batches) throws IOException {
      if (batches.copy() != null) {
        return batches.copy();
      }
      byte[] content = new byte[batches.bytes()];
      try (SegmentFile file = read.topic.root.open("t", batches.segment())) {
        file.read(batches.position(), content, 0, content.length);
        batches.stamps().forEach(stamp -> BatchHeader.setBaseOffset(content, stamp.at(), stamp.base()));
        return content;
      } catch (SegmentGone gone) {
        see("gone");
        assertTrue(read.deleted || live().noneMatch(segment -> segment.file().equals(batches.segment().file())), gone.getMessage());
        return null;
      }
    }

    /** @return how many batches there are */
    private int requireRecords(Model read, PartitionCursor.Batches batches, byte[] content) throws BadBatch {
      BatchDecoder decoder = new BatchDecoder(1 << 20);
      long next = batches.base();
      int count = 0;
      for (int at = 0; at < content.length; at += BatchHeader.totalBytes(content, at), count++) {
        decoder.decode(content, at, BatchHeader.totalBytes(content, at));
        assertEquals(next, BatchHeader.baseOffset(content, at), "base offsets are absolute");
        for (int i = 0; i < decoder.count(); i++, next++) {
          WrittenTopic.Row row = read.topic.rows.get(0).get((int) next);
          int length = decoder.valueLengths()[i];
          String value = length < 0 ? null : new String(decoder.data(), decoder.valueAt()[i], length, StandardCharsets.UTF_8);
          assertEquals(row.value(), value);
          assertEquals(row.timestampMs(), decoder.timestamps()[i]);
        }
      }
      assertEquals(batches.nextOffset(), next);
      return count;
    }

    private Stream<Segment> live() {
      State state = newest.topic.state();
      return IntStream.range(0, state.partitions()).boxed().flatMap(partition -> state.segments(partition).stream());
    }

    private void create() throws IOException {
      newest = new Model(new WrittenTopic(directory, "t").with(TopicConfig.KAFKA_VIEW, chance(2) ? "none" : "all"));
      append();
    }

    private void append() throws IOException {
      for (int segments = 1 + random.nextInt(3); segments > 0; segments--) {
        int partition = chance(4) ? 1 : 0;
        newest.topic.segment(partition, WrittenTopic.times(1 + random.nextInt(4), 1 + random.nextInt(20)));
      }
      newest.topic.commit();
    }

    /** A few of the things that others do. */
    private void act(int most) throws IOException {
      acting = true;
      for (int acts = random.nextInt(most + 1); acts > 0; acts--) {
        if (newest.deleted) {
          create();
        } else if (chance(40)) {
          newest.topic.operator().delete(false);
          newest.deleted = true;
        } else {
          switch (random.nextInt(6)) {
            case 0, 1 -> append();
            case 2 -> merge(0);
            case 3 -> merge(1 << 8 + random.nextInt(6));
            case 4 -> expire();
            default -> reroute();
          }
        }
      }
      acting = false;
    }

    private void expire() {
      long to = newest.start + random.nextInt((int) Math.min(30, newest.end() - newest.start + 1));
      newest.topic.operator().deleteRecords(new TreeMap<>(Map.of(0, to)), new TreeMap<>(), false);
      newest.start = Math.max(newest.start, to);
    }

    private void reroute() {
      TreeMap<Integer, Long> weights = new TreeMap<>();
      for (int partition = 0; partition < 3; partition++) {
        weights.put(partition, 1L + random.nextInt(9));
      }
      newest.topic.operator().reroute(weights, Administration.RerouteTime.NOW, false);
    }

    /** Makes few segments of many, and deletes all files that no live segment names. */
    private void merge(int batchBytes) throws IOException {
      new TopicWork(newest.topic.root.topic("t"), Clock.systemUTC(), random).merge(batchBytes);
      Set<Path> live = live().map(segment -> directory.resolve(Names.topicFile("t", segment.file()))).collect(Collectors.toSet());
      for (Path file : dataFiles()) {
        if (!live.contains(file)) {
          Files.delete(file);
          see("deleted file");
        }
      }
    }

    private List<Path> dataFiles() throws IOException {
      try (Stream<Path> files = Files.walk(directory.resolve(Names.topicFolder("t")).resolve("data"))) {
        return files.filter(Files::isRegularFile).toList();
      }
    }

    /** Others act before a data file is opened or read, and a file that was opened may be gone, as on an object store. */
    private LogStore watched(LogStore real) {
      boolean remote = chance(3);
      return proxy(LogStore.class, real, (name, arguments, answer) -> switch (name) {
        case "isRemote" -> remote;
        case "open" -> proxy(FileReader.class, (FileReader) answer, (of, given, read) -> {
          if (of.equals("read") && !Files.exists(directory.resolve((String) arguments[0]))) {
            throw new NoSuchFileException((String) arguments[0]);
          }
          return read;
        });
        default -> answer;
      });
    }

    private interface Watch {
      Object answer(String method, Object[] arguments, Object answer) throws IOException;
    }

    private <T> T proxy(Class<T> type, T real, Watch watch) {
      return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (proxy, method, arguments) -> {
        try {
          if (Set.of("open", "read").contains(method.getName()) && !acting && chance(6)) {
            act(1);
          }
          return watch.answer(method.getName(), arguments, method.invoke(real, arguments));
        } catch (InvocationTargetException e) {
          throw e.getCause();
        }
      }));
    }
  }
}
