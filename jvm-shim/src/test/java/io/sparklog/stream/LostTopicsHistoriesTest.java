package io.sparklog.stream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.StreamRuns;
import io.sparklog.kit.WrittenTopic;
import io.sparklog.log.Root;
import io.sparklog.read.Selection;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.Stores;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Random histories of topics, and of a query that reads them, beside a model. */
@Tag("slow")
final class LostTopicsHistoriesTest extends StreamRuns {
  static IntStream seeds() {
    return IntStream.range(7100, 7112);
  }

  /** A topic of some time, in the model. */
  private static final class Made {
    private final WrittenTopic written;
    private final String id;
    private final int[] ends;

    private Made(WrittenTopic written, int[] ends) {
      this.written = written;
      this.id = written.root.state(written.topic).topicId();
      this.ends = ends;
    }
  }

  /** How far the query is with a topic, in the model. */
  private record Progress(Made topic, TreeMap<Integer, Long> offsets) {}

  /** A stream as Spark drives it, and the outcome that it must have. */
  private final class Query {
    private final Random choices;
    private final TreeMap<String, Made> topics = new TreeMap<>();
    private final Set<String> read = new HashSet<>();
    private final List<String> log = new ArrayList<>();
    private TreeMap<String, Progress> from = new TreeMap<>();
    private StreamOffsets logged;
    private TopicStream stream;
    private boolean lenient;
    private int dropped;
    private int failed;
    private int again;

    private Query(int seed) {
      choices = new Random(seed);
    }

    private void begin() throws IOException {
      lenient = choices.nextInt(3) > 0;
      log.add("start failOnDataLoss=" + !lenient);
      stream = run("subscribePattern", "[ab]", "failOnDataLoss", Boolean.toString(!lenient), "startingOffsets", "earliest");
      if (logged == null) {
        logged = stream.initial();
        topics.forEach((name, made) -> {
          if (name.compareTo("c") < 0) {
            from.put(name, new Progress(made, new TreeMap<>()));
            for (int partition = 0; partition < made.ends.length; partition++) {
              from.get(name).offsets.put(partition, 0L);
            }
          }
        });
      }
    }

    private void change() throws IOException {
      String name = List.of("a", "b", "c").get(choices.nextInt(3));
      Made there = topics.get(name);
      if (there == null) {
        int[] records = IntStream.range(0, 1 + choices.nextInt(3)).map(partition -> choices.nextInt(4)).toArray();
        topics.put(name, new Made(create(name, records), records));
        log.add("create " + name + " " + List.of(topics.get(name).id, records.length));
      } else if (choices.nextInt(3) == 0) {
        delete(name);
        topics.remove(name);
        log.add("delete " + name);
      } else {
        int partition = choices.nextInt(there.ends.length);
        int records = 1 + choices.nextInt(5);
        there.written.segment(partition, records).commit();
        there.ends[partition] += records;
        log.add("write " + name + "-" + partition + " " + records);
      }
    }

    private boolean isLost(String name, Made topic) {
      return topics.get(name) != topic;
    }

    /** Where the next micro-batch ends without limits. */
    private TreeMap<String, Progress> next() {
      TreeMap<String, Progress> next = new TreeMap<>();
      topics.headMap("c").forEach((name, made) -> {
        Progress before = from.get(name);
        if (before != null && before.topic != made) {
          return;
        }
        TreeMap<Integer, Long> offsets = new TreeMap<>(before == null ? Map.of() : before.offsets);
        for (int partition = 0; partition < made.ends.length; partition++) {
          if (made.ends[partition] > 0) {
            offsets.put(partition, (long) made.ends[partition]);
          }
        }
        if (!offsets.isEmpty()) {
          next.put(name, new Progress(made, offsets));
        }
      });
      return next;
    }

    private String json(TreeMap<String, Progress> at) {
      StringBuilder json = new StringBuilder();
      at.forEach((name, progress) -> {
        List<String> offsets = new ArrayList<>();
        progress.offsets.forEach((partition, offset) -> offsets.add("\"" + partition + "\":" + offset));
        json.append(json.isEmpty() ? "" : ",").append("\"" + name + "\":{" + String.join(",", offsets) + "}");
      });
      return "{" + json + "}";
    }

    private void trigger() throws IOException {
      boolean lost = from.entrySet().stream().anyMatch(each -> isLost(each.getKey(), each.getValue().topic));
      if (lost && !lenient) {
        PartlogException error = assertThrows(PartlogException.class, () -> stream.next(logged, TriggerLimits.NONE));
        assertTrue(Set.of("STREAM_TOPIC_GONE", "STREAM_TOPIC_REPLACED").contains(error.id()), error.getMessage());
        failed++;
        begin();
        return;
      }
      TreeMap<String, Progress> next = next();
      StreamOffsets to = stream.next(logged, TriggerLimits.NONE);
      assertEquals(json(next), to.json());
      dropped += lost ? 1 : 0;
      again += (int) next.keySet().stream().filter(name -> !from.containsKey(name)).count();
      if (choices.nextInt(8) == 0) {
        log.add("stopped before Spark's log");
        begin();
        return;
      }
      log.add("micro-batch to " + to);
      while (choices.nextInt(3) == 0) {
        // Spark's log has it, and no task has run.
        change();
        if (choices.nextBoolean()) {
          begin();
        }
      }
      plan(to, next);
    }

    private void plan(StreamOffsets to, TreeMap<String, Progress> next) throws IOException {
      while (!lenient && next.entrySet().stream().anyMatch(each -> isLost(each.getKey(), each.getValue().topic))) {
        PartlogException error = assertThrows(PartlogException.class, () -> stream.ranges(logged, to));
        assertTrue(Set.of("STREAM_TOPIC_GONE", "STREAM_TOPIC_REPLACED").contains(error.id()), error.getMessage());
        failed++;
        begin();
      }
      long before = Long.parseLong(stream.metrics(null).get("dataLoss"));
      TreeSet<String> expected = new TreeSet<>();
      long loss = 0;
      for (Map.Entry<String, Progress> each : next.entrySet()) {
        for (Map.Entry<Integer, Long> end : each.getValue().offsets.entrySet()) {
          Progress known = from.get(each.getKey());
          long first = known == null ? 0 : known.offsets.getOrDefault(end.getKey(), 0L);
          loss += isLost(each.getKey(), each.getValue().topic) ? end.getValue() - first : 0;
          for (long offset = first; offset < end.getValue() && !isLost(each.getKey(), each.getValue().topic); offset++) {
            expected.add(each.getValue().topic.id + " " + end.getKey() + " " + offset);
          }
        }
      }
      TreeSet<String> planned = new TreeSet<>();
      for (Selection.OffsetRange range : stream.ranges(logged, to)) {
        for (long offset = range.start(); offset < range.end(); offset++) {
          planned.add(range.state().topicId() + " " + range.partition() + " " + offset);
        }
      }
      assertEquals(expected, planned);
      assertEquals(before + loss, Long.parseLong(stream.metrics(to).get("dataLoss")));
      for (String record : planned) {
        assertTrue(read.add(record), record + " was read before");
      }
      from = next;
      logged = to;
    }

    private void end() throws IOException {
      lenient = true;
      stream = run("subscribePattern", "[ab]", "failOnDataLoss", "false");
      for (int trigger = 0; trigger < 2; trigger++) {
        TreeMap<String, Progress> next = next();
        StreamOffsets to = stream.next(logged, TriggerLimits.NONE);
        assertEquals(json(next), to.json());
        plan(to, next);
      }
      topics.headMap("c").forEach((name, made) -> {
        for (int partition = 0; partition < made.ends.length; partition++) {
          for (int offset = 0; offset < made.ends[partition]; offset++) {
            assertTrue(read.contains(made.id + " " + partition + " " + offset), name + "-" + partition + " " + offset + " was never read");
          }
        }
      });
    }
  }

  /** Every record of a topic that stays is read exactly once, whatever was deleted and created before, and whenever the query stopped. */
  @ParameterizedTest
  @MethodSource("seeds")
  void anyInterleaving(int seed) throws IOException {
    Query query = new Query(seed);
    try {
      new Root(Stores.open(directory.toString())).prepare();
      while (query.choices.nextInt(3) > 0) {
        query.change();
      }
      query.begin();
      for (int step = 0; step < 60; step++) {
        switch (query.choices.nextInt(6)) {
          case 0, 1, 2 -> query.change();
          case 3 -> query.begin();
          default -> query.trigger();
        }
      }
      query.end();
    } catch (AssertionError | RuntimeException e) {
      throw new AssertionError("seed " + seed + ": " + String.join("; ", query.log), e);
    }
    System.out.println("seed " + seed + ": dropped " + query.dropped + ", failed " + query.failed + ", begun " + query.again);
    assertTrue(query.dropped + query.failed > 0 && query.again > 0, "seed " + seed + " shows nothing");
  }
}
