package io.sparklog.source;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import io.sparklog.kit.StreamRuns;
import io.sparklog.kit.WrittenTopic;
import io.sparklog.stream.StreamOffsets;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.channels.ClosedByInterruptException;
import java.util.Arrays;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.connector.read.streaming.CompositeReadLimit;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.execution.streaming.runtime.QueryExecutionThread;
import org.junit.jupiter.api.Test;

/** The source as Spark's engine calls it. */
final class PartlogStreamTest extends StreamRuns {
  /** Spark hands some offsets back as it read them from its log. */
  private static Offset logged(String json) {
    return new Offset() {
      @Override
      public String json() {
        return json;
      }
    };
  }

  private PartlogStream start(String... options) {
    return (PartlogStream) Reads.of(directory, options).scan().toMicroBatchStream("file:" + folder.resolve("checkpoint/sources/0"));
  }

  @Test
  void everyLimitThatSparkPassesIsHonoured() throws IOException {
    topic.segment(0, WrittenTopic.times(10, 10)).commit();
    PartlogStream stream = start("startingOffsets", "earliest", "maxOffsetsPerTrigger", "30", "minOffsetsPerTrigger", "5",
        "maxBytesPerTrigger", "100000");
    ReadLimit[] limits = assertInstanceOf(CompositeReadLimit.class, stream.getDefaultReadLimit()).getReadLimits();
    assertEquals(Arrays.asList(ReadLimit.maxBytes(100_000), ReadLimit.maxRows(30), ReadLimit.minRows(5, 900_000)), Arrays.asList(limits));
    Offset from = stream.initialOffset();
    Map<ReadLimit, Long> cases = Map.of(stream.getDefaultReadLimit(), 30L, ReadLimit.allAvailable(), 100L, ReadLimit.maxFiles(3), 100L,
        ReadLimit.maxRows(7), 7L, ReadLimit.maxBytes(1), 10L);
    cases.forEach((limit, read) -> assertEquals(topic.json(read, 0, 0), start().latestOffset(logged(from.json()), limit).json()));
    assertEquals(ReadLimit.allAvailable(), start().getDefaultReadLimit());
    assertThrows(UnsupportedOperationException.class, stream::latestOffset);
  }

  @Test
  void sparksOwnOffsetsAreUnderstood() throws IOException {
    topic.segment(0, 10).commit();
    PartlogStream stream = start("startingOffsets", "earliest");
    Offset from = logged(stream.initialOffset().json());
    Offset to = logged(stream.latestOffset(from, ReadLimit.allAvailable()).json());
    assertEquals(to.json(), stream.deserializeOffset(to.json()).json());
    assertEquals(to, stream.reportLatestOffset());
    assertEquals(1, stream.planInputPartitions(from, to).length);
    assertEquals(0, stream.planInputPartitions(to, to).length);
    assertEquals("10", stream.metrics(Optional.of(from)).get("maxOffsetsBehindLatest"));
    assertEquals("0", stream.metrics(Optional.of(to)).get("maxOffsetsBehindLatest"));
    stream.commit(to);
    stream.stop();
  }

  /** Spark polls up to a hundred times a second. Its allocations tell, on any machine, whether it walks through the partitions. */
  @Test
  void anIdlePollOfManyPartitionsIsCheap() throws IOException {
    topic.with("partitions", "1000").segment(999, 5).commit();
    PartlogStream stream = start("subscribePattern", "t");
    Offset at = stream.latestOffset(stream.initialOffset(), ReadLimit.allAvailable());
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long before = 0;
    for (int poll = -1; poll < 100; poll++) {
      before = poll == 0 ? threads.getCurrentThreadAllocatedBytes() : before;
      Offset next = stream.latestOffset(stream.deserializeOffset(at.json()), ReadLimit.allAvailable());
      stream.reportLatestOffset();
      assertEquals(at, next);
    }
    long bytes = (threads.getCurrentThreadAllocatedBytes() - before) / 100;
    assertTrue(bytes < 100 * 1000, bytes + " bytes a poll");
    topic.segment(0, 3).commit();
    Offset next = stream.latestOffset(at, ReadLimit.allAvailable());
    assertEquals(3, StreamOffsets.parse(next.json(), "").of("t").get(0));
  }

  /** Spark stops a query by interrupting its thread, and takes an exception for an error of the query unless it shows the interrupt. */
  @Test
  void anInterruptIsNoErrorOfTheQuery() throws IOException, InterruptedException {
    topic.segment(0, 10).commit();
    PartlogStream stream = start("startingOffsets", "earliest");
    Offset from = stream.initialOffset();
    topic.segment(0, 10).commit();
    Throwable[] thrown = {null};
    Thread query = new QueryExecutionThread("query") {
      @Override
      public void run() {
        Thread.currentThread().interrupt();
        thrown[0] = assertThrows(RuntimeException.class, () -> stream.latestOffset(from, ReadLimit.allAvailable()));
      }
    };
    query.start();
    query.join();
    assertInstanceOf(UncheckedIOException.class, thrown[0]);
    assertInstanceOf(ClosedByInterruptException.class, thrown[0].getCause());
    assertEquals(topic.json(20, 0, 0), stream.latestOffset(from, ReadLimit.allAvailable()).json());
  }
}
