package io.sparklog.stream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import io.sparklog.kit.StreamRuns;
import io.sparklog.kit.WrittenTopic;
import io.sparklog.read.Selection;
import java.io.IOException;
import java.nio.file.Files;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Topics that are deleted under a query that reads them, and created again. */
final class LostTopicsTest extends StreamRuns {
  private static final String[] LENIENT = {"subscribePattern", "[a-z]", "failOnDataLoss", "false", "startingOffsets", "earliest"};

  private static List<String> read(List<Selection.OffsetRange> ranges) {
    return ranges.stream()
        .filter(range -> range.end() > range.start())
        .map(range -> range.state().topic() + "-" + range.partition() + ": " + range.start() + " to " + range.end())
        .toList();
  }

  @Test
  void aTopicThatIsCreatedAgainIsReadFromItsBeginning() throws IOException {
    create("a", 10, 5);
    create("b", 7);
    TopicStream stream = run(LENIENT);
    stream.initial();
    StreamOffsets all = at("{\"a\":{\"0\":10,\"1\":5},\"b\":{\"0\":7}}");
    assertEquals(all, stream.next(stream.initial(), TriggerLimits.NONE));
    delete("a");
    create("a", 3);
    for (TopicStream run : List.of(stream, run(LENIENT))) {
      StreamOffsets without = run.next(all, TriggerLimits.NONE.offsetsMin(100, 60_000));
      assertEquals(at("{\"b\":{\"0\":7}}"), without, "it is dropped at once, whatever a micro-batch waits for");
      assertEquals(List.of(), read(run.ranges(all, without)));
      assertEquals("0", run.metrics(without).get("dataLoss"));
    }
    assertFalse(Files.exists(folder.resolve("checkpoint/sources/0/1")), "an offset that names the topic may still be in Spark's log");
    StreamOffsets without = at("{\"b\":{\"0\":7}}");
    StreamOffsets again = stream.next(without, TriggerLimits.NONE);
    assertEquals(at("{\"a\":{\"0\":3},\"b\":{\"0\":7}}"), again);
    for (TopicStream run : List.of(stream, run(), run(LENIENT))) {
      assertEquals(List.of("a-0: 0 to 3"), read(run.ranges(without, again)));
      assertEquals(again, run.next(again, TriggerLimits.NONE));
      assertEquals(List.of("a-0: 0 to 3", "b-0: 0 to 7"), read(run.ranges(run.initial(), again)),
          "where it began is of the topic that is gone");
    }
  }

  /** A planned micro-batch is repeated after a restart, and has lost its topic by then. */
  @Test
  void aPlannedMicroBatchOfALostTopicHasNoRecordsOfIt() throws IOException {
    create("a", 10, 5);
    create("b", 7);
    TopicStream stream = run(LENIENT);
    StreamOffsets from = stream.initial();
    StreamOffsets to = stream.next(from, TriggerLimits.NONE);
    delete("a");
    for (int created = 0; created < 2; created++) {
      assertFails(created == 0 ? "STREAM_TOPIC_GONE" : "STREAM_TOPIC_REPLACED", () -> run().ranges(from, to), "Topic a ");
      TopicStream again = run(LENIENT);
      assertEquals(List.of("b-0: 0 to 7"), read(again.ranges(from, to)));
      assertEquals("15", again.metrics(to).get("dataLoss"));
      assertEquals(at("{\"b\":{\"0\":7}}"), again.next(to, TriggerLimits.NONE));
      create("a", 30);
    }
  }

  @Test
  void aQueryWaitsForATopicIfTheLastOneIsGone() throws IOException {
    create("a", 10);
    for (String[] options : List.of(LENIENT, new String[] {"subscribe", "a", "failOnDataLoss", "false"},
        new String[] {"assign", "{\"a\":[0]}", "failOnDataLoss", "false"})) {
      TopicStream stream = run(options);
      StreamOffsets from = stream.initial();
      StreamOffsets all = stream.next(from, TriggerLimits.NONE);
      delete("a");
      StreamOffsets nothing = stream.next(all, TriggerLimits.NONE);
      assertEquals("{}", nothing.json());
      assertEquals(nothing, stream.next(nothing, TriggerLimits.NONE));
      TopicStream restarted = run(options);
      restarted.stopAtNewest();
      assertEquals(nothing, restarted.next(nothing, TriggerLimits.NONE));
      create("a", 4, 2);
      assertEquals(nothing, restarted.next(nothing, TriggerLimits.NONE), "a run that stops leaves a later topic to the next");
      String read = options[0].equals("assign") ? "{\"a\":{\"0\":4}}" : "{\"a\":{\"0\":4,\"1\":2}}";
      assertEquals(read, stream.next(nothing, TriggerLimits.NONE).json());
      assertEquals(read, run(options).next(nothing, TriggerLimits.NONE).json());
      folder = Files.createDirectory(folder.resolve("next"));
      directory = folder.resolve("root");
      topic = new WrittenTopic(directory, "t");
      create("a", 10);
    }
  }

  @Test
  void aTopicThatIsLostOnceIsNoErrorAfterIt() throws IOException {
    create("a", 10);
    create("b", 7);
    StreamOffsets all = run("startingOffsets", "earliest").initial();
    delete("a");
    delete("b");
    assertFails("STREAM_TOPIC_GONE", () -> run().next(all, TriggerLimits.NONE), "failOnDataLoss=false");
    StreamOffsets nothing = run(LENIENT).next(all, TriggerLimits.NONE);
    assertEquals("{}", nothing.json());
    create("a", 3);
    assertEquals("{\"a\":{\"0\":3}}", run().next(nothing, TriggerLimits.NONE).json());
  }

  @Test
  void aTopicThatIsNoLongerNamedMayBeGone() throws IOException {
    create("a", 10);
    create("b", 7);
    StreamOffsets all = run("subscribe", "a,b").initial();
    delete("b");
    assertFails("STREAM_UNSUBSCRIBED", () -> run("subscribe", "a").next(all, TriggerLimits.NONE), "failOnDataLoss=false");
    assertEquals("{\"a\":{\"0\":10}}", run("subscribe", "a", "failOnDataLoss", "false").next(all, TriggerLimits.NONE).json());
    assertFails("TOPIC_NOT_FOUND", () -> run("subscribe", "a,c", "failOnDataLoss", "false").next(all, TriggerLimits.NONE), "Topic c");
  }

  /** A file system that is not mounted has no topics, and has lost none. */
  @Test
  void aRootThatIsNotThereHasLostNothing() throws IOException {
    create("a", 10);
    TopicStream stream = run(LENIENT);
    StreamOffsets all = stream.next(stream.initial(), TriggerLimits.NONE);
    Files.move(directory, folder.resolve("elsewhere"));
    assertFails("ROOT_NOT_FOUND", () -> stream.next(all, TriggerLimits.NONE));
    assertFails("ROOT_NOT_FOUND", () -> run(LENIENT).next(all, TriggerLimits.NONE));
    assertFails("ROOT_NOT_FOUND", () -> run(LENIENT).ranges(all, all));
    Files.createDirectory(directory);
    assertFails("ROOT_WITHOUT_LOG", () -> stream.next(all, TriggerLimits.NONE));
    Files.delete(directory);
    Files.move(folder.resolve("elsewhere"), directory);
    assertEquals(all, stream.next(all, TriggerLimits.NONE));
  }
}
