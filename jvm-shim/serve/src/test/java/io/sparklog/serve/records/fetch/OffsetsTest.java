package io.sparklog.serve.records.fetch;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.sparklog.kit.Seed;
import io.sparklog.kit.WrittenTopic;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import java.nio.file.Path;
import java.time.Clock;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Offsets by time are those that a look at each record gives. */
final class OffsetsTest {
  @TempDir
  Path directory;

  @Test
  void anOffsetOfATimeIsOfTheFirstRecordThatHasIt() throws Exception {
    Random random = new Random(Seed.draw());
    WrittenTopic topic = new WrittenTopic(directory, "t").with(TopicConfig.KAFKA_VIEW, "none");
    topic.times = offset -> 1_000 + 10 * offset + random.nextInt(200);
    for (int i = 0; i < 5; i++) {
      topic.segment(0, 1 + random.nextInt(20), 1 + random.nextInt(20)).commit();
    }
    OffsetLookup offsets = new OffsetLookup(topic.root, new PartitionReads(topic.root, Clock.systemUTC(), Long.MAX_VALUE));
    for (long start = 0; start < topic.rows.get(0).size(); start += 1 + random.nextInt(15)) {
      State before = topic.state();
      topic.operator().deleteRecords(new TreeMap<>(Map.of(0, start)), new TreeMap<>(), false);
      State state = topic.state();
      List<WrittenTopic.Row> rows = topic.rows(0, start, state.end(0));
      for (int i = 0; i < 20; i++) {
        long time = 900 + random.nextInt(1_200);
        OffsetLookup.At first = rows.stream()
            .filter(row -> row.timestampMs() >= time)
            .findFirst()
            .map(row -> new OffsetLookup.At(row.offset(), row.timestampMs()))
            .orElse(OffsetLookup.NONE);
        assertEquals(first, offsets.first(state, 0, time));
        assertEquals(first, offsets.first(before, 0, time), "the records expired while it searched");
      }
      WrittenTopic.Row greatest = rows.stream()
          .max(Comparator.comparingLong(WrittenTopic.Row::timestampMs).thenComparing(row -> -row.offset()))
          .orElseThrow();
      assertEquals(new OffsetLookup.At(greatest.offset(), greatest.timestampMs()), offsets.greatest(state, 0));
      assertEquals(offsets.greatest(state, 0), offsets.greatest(before, 0));
    }
    assertEquals(OffsetLookup.NONE, offsets.greatest(topic.state(), 1));
  }
}
