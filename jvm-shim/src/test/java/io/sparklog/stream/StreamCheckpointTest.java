package io.sparklog.stream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.StreamRuns;
import io.sparklog.kit.WrittenTopic;
import io.sparklog.log.QueryStart;
import io.sparklog.log.Root;
import io.sparklog.segment.Segment;
import io.sparklog.storage.CheckpointFolder;
import io.sparklog.storage.CheckpointFolders;
import io.sparklog.storage.LogStore;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A query's checkpoint against the root as it is by then. */
final class StreamCheckpointTest extends StreamRuns {
  private Path file(int number) {
    return folder.resolve("checkpoint/sources/0/" + number);
  }

  private void write(int number, String line) throws IOException {
    CRC32C crc = new CRC32C();
    crc.update(line.getBytes(StandardCharsets.UTF_8));
    Files.createDirectories(file(number).getParent());
    Files.writeString(file(number), line + "\ncrc32c:" + String.format("%08x", crc.getValue()) + "\n");
  }

  private String id() {
    return topic.root.state("t").topicId();
  }

  @Test
  void theFileIsAsFormatMdSays() throws IOException {
    topic.segment(0, 10).commit();
    run().initial();
    String written = Files.readString(file(0));
    String line = "{\"format\":1,\"topics\":{\"t\":{\"id\":\"" + id() + "\",\"offsets\":{\"0\":10,\"1\":0,\"2\":0}}}}";
    write(1, line);
    assertEquals(Files.readString(file(1)), written);
  }

  @ParameterizedTest
  @ValueSource(strings = {"{}", "[]", "1", "{\"format\":1}", "{\"format\":1,\"topics\":[]}", "{\"format\":0,\"topics\":{}}",
      "{\"format\":1,\"topics\":{\"t\":{\"offsets\":{}}}}", "{\"format\":1,\"topics\":{\"t\":{\"id\":\"x\",\"offsets\":{}}}}",
      "{\"format\":1,\"topics\":{\"t\":{\"id\":\"_MwsNfC4Rgml8SxV3YWrqA\"}}}",
      "{\"format\":1,\"topics\":{\"t\":{\"id\":\"_MwsNfC4Rgml8SxV3YWrqA\",\"offsets\":{\"0\":-1}}}}",
      "{\"format\":1,\"topics\":{\"t\":{\"id\":\"_MwsNfC4Rgml8SxV3YWrqA\",\"offsets\":{\"10000\":1}}}}",
      "{\"format\":1,\"topics\":{\"..\":{\"id\":\"_MwsNfC4Rgml8SxV3YWrqA\",\"offsets\":{}}}}"})
  void aFileOfAnotherFormIsDamaged(String line) throws IOException {
    write(0, line);
    assertFails("QUERY_CHECKPOINT_CORRUPT", this::run, file(0).toString());
  }

  @Test
  void filesThatCannotBe() throws IOException {
    topic.segment(0, 10).commit();
    run().initial();
    Files.copy(file(0), file(1));
    assertFails("QUERY_CHECKPOINT_CORRUPT", this::run, "topic t, which an earlier file names");
    write(1, "{\"format\":2,\"anything\":true}");
    assertFails("FORMAT_TOO_NEW", this::run, file(1).toString());
    Files.delete(file(1));
    Files.createDirectory(file(1));
    assertFails("QUERY_CHECKPOINT_CORRUPT", this::run, "not a regular file");
    Files.delete(file(1));
    Files.delete(file(0));
    // Spark's log of offsets is there, and what it refers to is not.
    StreamOffsets from = at(topic.json(1, 0, 0));
    assertFails("QUERY_CHECKPOINT_CORRUPT", () -> run("subscribe", "u").ranges(from, from), "no file there does");
    assertFails("QUERY_CHECKPOINT_CORRUPT", () -> run().next(from, TriggerLimits.NONE), "no file there does");
    assertFalse(Files.exists(file(0)), "a topic of that name today may be another one");
  }

  @Test
  void partitionsThatTheTopicDoesNotHave() throws IOException {
    topic.segment(0, 10).commit();
    TopicStream stream = run();
    stream.initial();
    StreamOffsets at = at("{\"t\":{\"99\":0}}");
    assertFails("QUERY_CHECKPOINT_CORRUPT", () -> stream.next(at, TriggerLimits.NONE), "partition 99 of topic t");
    assertFails("QUERY_CHECKPOINT_CORRUPT", () -> stream.ranges(at, at), "partition 99 of topic t");
  }

  @Test
  void aRepeatedMicroBatchDoesNotSayHowMuchIsLeft() throws IOException {
    topic.segment(0, 10).commit();
    run().initial();
    TopicStream again = run();
    again.ranges(at(topic.json(0, 0, 0)), at(topic.json(1, 0, 0)));
    assertEquals(Map.of("dataLoss", "0", "topicIds", "{\"t\":\"" + id() + "\"}"), again.metrics(at(topic.json(1, 0, 0))));
  }

  @Test
  void anotherDriverOfTheQueryWasFirst() throws IOException {
    topic.segment(0, 10).commit();
    TopicStream slow = run();
    run("startingOffsets", topic.json(3, 0, 0)).initial();
    assertEquals(topic.json(3, 0, 0), slow.initial().json());

    WrittenTopic later = new WrittenTopic(directory, "u").segment(1, 5).commit();
    StreamOffsets from = slow.initial();
    TopicStream other = run();
    nowMs += 2000;
    String next = "{\"t\":{\"0\":10,\"1\":0,\"2\":0},\"u\":{\"1\":5}}";
    assertEquals(next, other.next(from, TriggerLimits.NONE).json());
    assertEquals(next, slow.next(from, TriggerLimits.NONE).json());
    assertTrue(Files.exists(file(1)));
    assertFalse(Files.exists(file(2)));

    // The other driver has read another topic of that name.
    WrittenTopic last = new WrittenTopic(directory, "v").segment(1, 5).commit();
    write(2, "{\"format\":1,\"topics\":{\"v\":{\"id\":\"" + later.root.state("u").topicId() + "\",\"offsets\":{}}}}");
    nowMs += 2000;
    assertFails("STREAM_TOPIC_REPLACED", () -> slow.next(from, TriggerLimits.NONE), later.root.state("u").topicId(),
        last.root.state("v").topicId());
  }

  @Test
  void aTopicThatIsGoneOrAnotherIsNotRead() throws IOException {
    topic.segment(0, 10).commit();
    String before = id();
    TopicStream stream = run("subscribe", "t");
    StreamOffsets from = stream.initial();
    delete();
    String remedy = "failOnDataLoss=false";
    for (TopicStream run : List.of(stream, run("subscribe", "t"), run())) {
      assertFails("STREAM_TOPIC_GONE", () -> run.next(from, TriggerLimits.NONE), before, "checkpoint/sources/0", remedy);
      assertFails("STREAM_TOPIC_GONE", () -> run.ranges(from, from), before, "checkpoint/sources/0", remedy);
    }
    topic = new WrittenTopic(directory, "t").segment(0, 100).commit();
    for (TopicStream run : List.of(stream, run("subscribe", "t"), run())) {
      assertFails("STREAM_TOPIC_REPLACED", () -> run.next(from, TriggerLimits.NONE), before, id(), directory.toString(), remedy);
      assertFails("STREAM_TOPIC_REPLACED", () -> run.ranges(from, from), before, id(), "checkpoint/sources/0", remedy);
    }
  }

  /** As with rm -r. */
  private void delete() throws IOException {
    try (var paths = Files.walk(directory)) {
      for (Path path : paths.sorted(Comparator.reverseOrder()).toList()) {
        if (!path.equals(directory) && !path.endsWith("_partlog")) {
          Files.delete(path);
        }
      }
    }
  }

  @Test
  void whatIsNoLongerSubscribedTo() throws IOException {
    topic.segment(0, 10).segment(1, 5).commit();
    new WrittenTopic(directory, "u").segment(0, 7).commit();
    StreamOffsets from = run("subscribe", "t,u", "startingOffsets", "earliest").initial();
    assertFails("STREAM_UNSUBSCRIBED", () -> run("subscribe", "t").next(from, TriggerLimits.NONE), "topic u", "subscribe=t",
        "checkpoint/sources/0");
    assertEquals(topic.json(10, 5, 0), run("subscribe", "t", "failOnDataLoss", "false").next(from, TriggerLimits.NONE).json());
    assertFails("STREAM_UNSUBSCRIBED", () -> run("assign", "{\"t\":[0,1,2],\"u\":[0,2]}").next(from, TriggerLimits.NONE),
        "topic u, partition 1");
    // A micro-batch that was planned is read as it was planned.
    assertEquals(2, run("subscribe", "t").ranges(from, at("{\"t\":{\"0\":4},\"u\":{\"0\":7}}")).size());
  }

  @Test
  void offsetsBeyondTheEndAreNeverClipped() throws IOException {
    topic.segment(0, 10).commit();
    for (String failOnDataLoss : List.of("true", "false")) {
      TopicStream stream = run("failOnDataLoss", failOnDataLoss);
      stream.initial();
      for (String json : List.of(topic.json(11, 0, 0), topic.json(10, 0, 0, 1))) {
        assertFails("OFFSETS_OUT_OF_RANGE", () -> stream.next(at(json), TriggerLimits.NONE), "checkpoint/sources/0", "topic t");
        assertFails("OFFSETS_OUT_OF_RANGE", () -> stream.ranges(at(topic.json(0, 0, 0)), at(json)), "checkpoint/sources/0");
      }
      assertFails("QUERY_CHECKPOINT_CORRUPT", () -> stream.ranges(at(topic.json(5, 0, 0)), at(topic.json(4, 0, 0))), "from offset 5 to 4");
    }
  }

  @Test
  void offsetsThatExpired() throws IOException {
    topic.segment(0, 10).commit().segment(0, 10).commit();
    TopicStream strict = run("startingOffsets", "earliest");
    TopicStream lenient = run("failOnDataLoss", "false");
    StreamOffsets from = strict.initial();
    topic.expire(0);
    StreamOffsets to = strict.next(from, TriggerLimits.NONE.offsetsMax(4));
    assertEquals(topic.json(4, 0, 0), to.json());
    assertFails("OFFSETS_EXPIRED", () -> strict.ranges(from, to), "Offsets 0 to 4 (exclusive)", "4 in all", "log starts at 10");
    // Offsets that have expired are skipped at once, and count for no limit.
    StreamOffsets next = lenient.next(from, TriggerLimits.NONE.offsetsMax(4));
    assertEquals(topic.json(14, 0, 0), next.json());
    for (int again = 0; again < 2; again++) {
      assertEquals(10, lenient.ranges(from, next).get(0).start());
      assertEquals("10", lenient.metrics(next).get("dataLoss"));
    }
    lenient.ranges(next, lenient.next(next, TriggerLimits.NONE));
    assertEquals("10", lenient.metrics(next).get("dataLoss"));
  }

  @Test
  void aStreamThatStopsReadsWhatWasThere() throws IOException {
    topic.segment(0, 10).commit();
    TopicStream stream = run("startingOffsets", "latest", "subscribePattern", ".*");
    stream.stopAtNewest();
    topic.segment(0, 10).segment(2, 4).commit();
    new WrittenTopic(directory, "u").segment(0, 7).commit();
    nowMs += 5000;
    StreamOffsets from = stream.initial();
    assertEquals(topic.json(10, 0, 0), from.json());
    assertEquals(from, stream.next(from, TriggerLimits.NONE.offsetsMin(1000, 1000)));

    TopicStream again = run("subscribePattern", ".*");
    again.stopAtNewest();
    topic.segment(0, 10).commit();
    topic.move(0, 1);
    StreamOffsets to = again.next(from, TriggerLimits.NONE);
    // Also where it looks into files that took the place of those that were there.
    StreamOffsets batchwise = from;
    for (int trigger = 0; trigger < 4; trigger++) {
      batchwise = again.next(batchwise, TriggerLimits.NONE.bytesMax(1));
    }
    assertEquals(to, batchwise);
    assertEquals("{\"t\":{\"0\":20,\"1\":0,\"2\":4},\"u\":{\"0\":7}}", to.json());
    assertEquals(to, again.next(to, TriggerLimits.NONE));
    // From the newest state, not the one it stops at.
    assertEquals(topic.root.state("t").version(), again.ranges(from, to).get(0).state().version());
    assertEquals("{\"t\":{\"0\":30,\"1\":0,\"2\":4},\"u\":{\"0\":7,\"1\":0,\"2\":0}}", again.newest().json());
  }

  /** One that began there goes on: its query need not be moved. */
  @Test
  void aNewQueryHasNoCheckpointInARoot() throws IOException {
    topic.segment(0, 10).commit();
    run().initial();
    Path within = Path.of(topic.root.location()).resolve("t-0/checkpoint");
    CheckpointFolder whole = CheckpointFolders.open(within.toString(), Map.<String, String>of()::entrySet);
    CheckpointFolder source = CheckpointFolders.open("file:" + within + "/sources/0", Map.<String, String>of()::entrySet);
    String said = "is inside the root " + topic.root.location() + ". A root holds only topics. Give a checkpointLocation outside";
    assertFails("CHECKPOINT_IN_ROOT", () -> new StreamStart(source, random),
        "The checkpoint " + within + "/sources/0 of a new query " + said);
    assertFails("CHECKPOINT_IN_ROOT", () -> QueryStart.requireOutsideOfRootsIfNew(whole),
        "The checkpoint " + within + " of a new query " + said);
    assertFalse(Files.exists(within));
    Files.createDirectories(within.resolve("sources/0"));
    Files.copy(file(0), within.resolve("sources/0/0"));
    assertTrue(new StreamStart(source, random).first().isPresent());
    Files.writeString(within.resolve("metadata"), "{}");
    QueryStart.requireOutsideOfRootsIfNew(whole);
  }

  @Test
  void aMicroBatchIsCutInFilesThatTookOthersPlaces() throws IOException {
    topic.segment(0, WrittenTopic.times(200, 20)).commit().segment(0, WrittenTopic.times(200, 20)).commit();
    Root root = new Root(topic.store);
    StreamStart start = new StreamStart(CheckpointFolders.open(file(0).getParent().toString(), Map.<String, String>of()::entrySet), random);
    // Between the look and the cut, the file is replaced.
    int[] opened = {0};
    Map<String, Integer> calls = new TreeMap<>();
    LogStore store = watched(topic.store, calls, name -> {
      if (name.endsWith(".log") && opened[0]++ == 0) {
        topic.move(0, 0);
      }
    });
    TopicStream stream = new TopicStream(new Root(store), options("subscribe", "t", "startingOffsets", "earliest"), start, clock);
    StreamOffsets from = stream.initial();
    calls.clear();
    StreamOffsets to = stream.next(from, TriggerLimits.NONE.bytesMax(100_000));
    assertFalse(calls.containsKey("list"), "the topic is not loaded again: " + calls);
    Segment moved = root.state("t").segments(0).get(0);
    assertEquals(2, opened[0]);
    assertTrue(to.of("t").get(0) > 0 && to.of("t").get(0) < moved.end(), to.json());
    Files.delete(topic.dataFile(0, 0));
    assertFails("SEGMENT_MISSING", () -> stream.next(from, TriggerLimits.NONE.bytesMax(100_000)), "partition 0");
  }

  @FunctionalInterface
  private interface Opened {
    void file(String name) throws IOException;
  }

  /** A store that counts the calls of each method, and says which file is about to be opened. */
  private static LogStore watched(LogStore store, Map<String, Integer> calls, Opened opened) {
    return (LogStore) Proxy.newProxyInstance(LogStore.class.getClassLoader(), new Class<?>[] {LogStore.class},
        (proxy, method, arguments) -> {
          calls.merge(method.getName(), 1, Integer::sum);
          if (method.getName().equals("open")) {
            opened.file((String) arguments[0]);
          }
          try {
            return method.invoke(store, arguments);
          } catch (InvocationTargetException e) {
            throw e.getCause();
          }
        });
  }

  @Test
  void anIdlePollReadsAndListsNothing() throws IOException {
    topic.segment(0, 10).commit();
    Map<String, Integer> calls = new TreeMap<>();
    StreamStart start = new StreamStart(CheckpointFolders.open(file(0).getParent().toString(), Map.<String, String>of()::entrySet), random);
    TopicStream stream = new TopicStream(new Root(watched(topic.store, calls, name -> {})), options(), start, clock);
    StreamOffsets from = stream.initial();
    stream.next(from, TriggerLimits.NONE);
    calls.clear();
    for (int poll = 0; poll < 100; poll++) {
      assertEquals(from, stream.next(from, TriggerLimits.NONE));
    }
    calls.remove("root");
    // All topics are read, so a listing a second is allowed; here no second passes.
    assertEquals(Map.of("tag", 200), calls);
    calls.clear();
    stream.metrics(from);
    stream.newest();
    assertEquals(Map.of(), calls);
  }

  @Test
  void howFarBehind() throws IOException {
    topic.segment(0, 10).commit().segment(0, 10).segment(1, 8).commit();
    TopicStream stream = run("startingOffsets", "earliest");
    assertEquals(Map.of("dataLoss", "0", "topicIds", "{}"), stream.metrics(null));
    StreamOffsets from = stream.initial();
    stream.next(from, TriggerLimits.NONE);
    List<Segment> first = topic.root.state("t").segments(0);
    long bytes = first.get(0).bytes() + first.get(1).bytes() + topic.root.state("t").segments(1).get(0).bytes();
    Map<String, String> metrics = stream.metrics(from);
    assertEquals("0", metrics.get("minOffsetsBehindLatest"));
    assertEquals("20", metrics.get("maxOffsetsBehindLatest"));
    assertEquals(Double.toString(28 / 3.0), metrics.get("avgOffsetsBehindLatest"));
    assertEquals(Long.toString(bytes), metrics.get("bytesBehindLatest"));
    // The newest of partition 0 is at offset 18; a record 9 is half a second older than its neighbours.
    assertEquals(WrittenTopic.time(18) - WrittenTopic.time(9), 590);
    assertEquals("0.590", metrics.get("secondsBehindLatest"));
    assertEquals("{\"t\":\"" + id() + "\"}", metrics.get("topicIds"));
    metrics = stream.metrics(at(topic.json(20, 8, 0)));
    assertEquals(List.of("0", "0.000", "0"),
        List.of(metrics.get("bytesBehindLatest"), metrics.get("secondsBehindLatest"), metrics.get("maxOffsetsBehindLatest")));
  }
}
