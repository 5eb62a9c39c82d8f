package io.sparklog.kit;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.log.Root;
import io.sparklog.log.TopicLog;
import io.sparklog.stream.StreamOffsets;
import io.sparklog.stream.StreamStart;
import io.sparklog.stream.TopicStream;
import io.sparklog.spec.Options;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.CheckpointFolders;
import io.sparklog.storage.Stores;
import io.sparklog.admin.Administration;
import io.sparklog.upkeep.TopicWork;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Clock;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** A topic, and runs of a streaming query that reads it, without Spark. */
public abstract class StreamRuns {
  @TempDir
  public Path folder;
  public Path directory;
  public WrittenTopic topic;
  public long nowMs = 1_000_000;
  public final long seed = Seed.draw();
  public final Random random = new Random(seed);

  @BeforeEach
  public void root() {
    directory = folder.resolve("root");
    topic = new WrittenTopic(directory, "t");
  }

  public final Clock clock = new MillisClock(() -> nowMs);

  public Options options(String... keysAndValues) {
    Map<String, String> given = new TreeMap<>();
    for (int i = 0; i < keysAndValues.length; i += 2) {
      given.put(keysAndValues[i], keysAndValues[i + 1]);
    }
    return Options.of(given, Options.Side.READ).ofStream();
  }

  /** A run of the query, which may have been run before. */
  public TopicStream run(String... keysAndValues) throws IOException {
    StreamStart start = new StreamStart(
        CheckpointFolders.open("file:" + folder.resolve("checkpoint/sources/0"), Map.<String, String>of()::entrySet), random);
    return new TopicStream(new Root(Stores.open(directory.toString())), options(keysAndValues), start, clock);
  }

  /** Deletes a topic, as the procedure does. */
  public void delete(String name) {
    new Administration(new TopicWork(new TopicLog(topic.store, name), clock, random)).delete(false);
    nowMs += 2000;
  }

  /** A topic of some partitions, with the given number of records in each. */
  public WrittenTopic create(String name, int... records) throws IOException {
    WrittenTopic created = new WrittenTopic(directory, name).with("partitions", Integer.toString(records.length));
    for (int partition = 0; partition < records.length; partition++) {
      if (records[partition] > 0) {
        created.segment(partition, records[partition]);
      }
    }
    nowMs += 2000;
    return created.commit();
  }

  public static StreamOffsets at(String json) {
    return StreamOffsets.parse(json, "test");
  }

  public static void assertFails(String id, Executable call, String... parts) {
    PartlogException error = assertThrows(PartlogException.class, call);
    assertEquals(id, error.id(), error.getMessage());
    for (String part : parts) {
      assertTrue(error.getMessage().contains(part), error.getMessage());
    }
  }
}
