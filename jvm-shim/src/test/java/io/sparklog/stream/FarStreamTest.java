package io.sparklog.stream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.StreamRuns;
import io.sparklog.log.Root;
import io.sparklog.segment.Names;
import io.sparklog.storage.CheckpointFolders;
import io.sparklog.storage.FarStore;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The requests of a streaming query whose root is in a store behind a network. */
@Timeout(300)
final class FarStreamTest extends StreamRuns {
  private static final int AT_ONCE = 16;

  private FarStore far;

  private TopicStream far(String... options) throws IOException {
    far = new FarStore(directory.toString(), AT_ONCE);
    StreamStart start = new StreamStart(
        CheckpointFolders.open("file:" + folder.resolve("checkpoint/sources/0"), Map.<String, String>of()::entrySet), random);
    return new TopicStream(new Root(far.store()), options(options), start, clock);
  }

  private static String version(String topic, long number) {
    return Names.topicFile(topic, Names.versionFile(number));
  }

  /** The new version, the absent one after it, and whether an earlier one is still there: what is read is planned from the same state. */
  @Test
  void aTriggerAsksForItsTopicOnce() throws IOException {
    topic.segment(0, 10).commit();
    TopicStream stream = far("subscribe", "t", "startingOffsets", "earliest");
    StreamOffsets at = stream.next(stream.initial(), TriggerLimits.NONE);
    assertEquals(3, stream.ranges(new StreamOffsets(new TreeMap<>()), at).size());
    for (int trigger = 1; trigger <= 5; trigger++) {
      topic.segment(1, 10).commit();
      far.take();
      StreamOffsets next = stream.next(at, TriggerLimits.NONE);
      assertEquals(topic.json(10, 10 * trigger, 0), next.json());
      assertEquals(10, stream.ranges(at, next).stream().mapToLong(range -> range.end() - range.start()).sum());
      stream.metrics(next);
      at = next;
      assertEquals(List.of("read " + version("t", trigger), "read " + version("t", trigger + 1), "tag " + version("t", 0)), far.take());
    }
    assertEquals(at, stream.next(at, TriggerLimits.NONE));
    assertEquals(2, far.take().size());
  }

  /** A micro-batch that another run has logged is planned from the newest state. */
  @Test
  void aRepeatedMicroBatchAsksForItsTopic() throws IOException {
    topic.segment(0, 10).commit();
    TopicStream before = far("subscribe", "t", "startingOffsets", "earliest");
    StreamOffsets from = before.initial();
    StreamOffsets to = before.next(from, TriggerLimits.NONE);
    topic.segment(0, 10).commit();
    TopicStream stream = far("subscribe", "t");
    assertEquals(1, stream.ranges(from, to).get(0).state().version());
  }

  @Test
  void aPatternAsksForItsTopicsAtOnce() throws IOException {
    int topics = 40;
    for (int n = 0; n < topics; n++) {
      create("events-" + n, n + 1);
      create("others-" + n, 1);
    }
    TopicStream stream = far("subscribePattern", "events-.*", "startingOffsets", "earliest");
    far.awaitAtOnce(AT_ONCE, "^listing ");
    StreamOffsets from = stream.initial();
    StreamOffsets at = stream.next(from, TriggerLimits.NONE);
    assertEquals(topics, at.topics().size());
    assertEquals(topics, stream.ranges(from, at).size());
    List<String> asked = far.take();
    assertTrue(asked.stream().filter(request -> request.contains("events-")).count() <= 6L * topics, asked::toString);
    nowMs += 2000;
    far.awaitAtOnce(AT_ONCE, "^read ");
    assertEquals(at, stream.next(at, TriggerLimits.NONE));
    asked = far.take();
    assertEquals(2L * topics + 1, asked.stream().filter(request -> !request.contains("others-")).count(), asked::toString);
  }
}
