package io.sparklog.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.format.Codec;
import io.sparklog.json.Damaged;
import io.sparklog.kit.Writes;
import io.sparklog.routing.Partitioner;
import io.sparklog.routing.Router;
import io.sparklog.spec.Option;
import io.sparklog.spec.PartlogException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** A version file holds each setting in one form, which options need not keep to. FORMAT.md sections 5 and 10. */
final class TopicConfigTest {
  private static Map<String, String> with(String key, String value) {
    Map<String, String> config = new TreeMap<>(Writes.config());
    config.put(key, value);
    return config;
  }

  /** Why programs refuse a topic with this value; programs that the key does not bind do not refuse it. */
  private static String refusal(String key, String value) throws Damaged {
    TopicConfig config = new TopicConfig(with(key, value));
    boolean bindsKeyReaders = List.of("partitioner", "placement", "placement.slots").contains(key);
    assertTrue(config.areKnownTo(Feature.Binds.KEY_READERS) != bindsKeyReaders, key);
    assertFalse(config.areKnownTo(Feature.Binds.WRITERS), key);
    Feature.Binds programs = bindsKeyReaders ? Feature.Binds.KEY_READERS : Feature.Binds.WRITERS;
    PartlogException e = assertThrows(PartlogException.class, () -> config.requireKnownTo(programs, "a file"));
    assertEquals("FORMAT_TOO_NEW", e.id());
    return e.parameters().get("reason");
  }

  @ParameterizedTest
  @CsvSource({"partitions, 1, 10000", "max.message.bytes, 128, 1073741824"})
  void aNumberIsInItsRange(String key, long least, long most) throws Damaged {
    for (long allowed : new long[] {least, least + 1, most - 1, most}) {
      assertEquals(Long.toString(allowed), new TopicConfig(with(key, Long.toString(allowed))).entries().get(key));
    }
    for (long refused : new long[] {least - 1, most + 1, -1, Long.MAX_VALUE}) {
      Damaged e = assertThrows(Damaged.class, () -> new TopicConfig(with(key, Long.toString(refused))));
      String unit = key.endsWith(".bytes") ? ", in bytes" : "";
      assertEquals("config " + key + " is " + refused + ", not an integer from " + least + " to " + most + unit, e.getMessage());
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"", " 8", "8 ", "+8", "08", "-0", "8.0", "8e0", "0x8", "٨", "99999999999999999999"})
  void aNumberHasOneForm(String text) {
    Damaged e = assertThrows(Damaged.class, () -> new TopicConfig(with("partitions", text)));
    assertEquals("config partitions is " + text + ", not an integer from 1 to 10000", e.getMessage());
  }

  @ParameterizedTest
  @CsvSource({"partitioner, MURMUR3", "partitioner, murmur4", "placement, never", "compression.type, uncompressed",
      "compression.type, Zstd", "message.timestamp.type, createTime", "message.timestamp.type, ''", "kafka.view, links", "key.type, avro",
      "value.type, avro", "segment.bytes, 1023", "index.interval.bytes, -1", "segment.ms, 0", "retention.ms, P7D",
      "retention.bytes, 9223372036854775808", "file.delete.delay.ms, -1", "placement.slots, 4095", "placement.shares, soon",
      "routing.pending.weights, 1"})
  void aValueOfALaterReleaseBindsTheProgramsOfItsKey(String key, String value) throws Damaged {
    assertEquals("its setting " + key + " is " + value + ", not " + Option.ofTopic(key).expected(), refusal(key, value));
    assertEquals(value, new TopicConfig(with(key, value)).entries().get(key));
  }

  @Test
  void aLongValueIsCut() throws Damaged {
    assertEquals("its setting kafka.view is " + "x".repeat(100) + "…, not one of all, merged, none",
        refusal("kafka.view", "x".repeat(32_768)));
  }

  @Test
  void aKnownKeyIsThereAndAnotherIsKept() throws Damaged {
    assertEquals("v", new TopicConfig(with("k", "v")).entries().get("k"));
    for (String key : Writes.config().keySet()) {
      Map<String, String> config = Writes.config();
      config.remove(key);
      if (key.equals("partitions") || key.equals("max.message.bytes")) {
        assertEquals("config " + key + " is missing", assertThrows(Damaged.class, () -> new TopicConfig(config)).getMessage());
      } else {
        assertFalse(new TopicConfig(config).areKnownTo(Feature.Binds.WRITERS), key);
      }
    }
  }

  @Test
  void aTopicNeedNotHaveEveryKey() throws Damaged {
    TopicConfig config = new TopicConfig(Writes.config());
    assertEquals(List.of(604_800_000L, -1L, -1L, 60_000L),
        List.of(config.segmentMs(), config.retentionMs(), config.retentionBytes(), config.fileDeleteDelayMs()));
    assertEquals(Writes.config(), config.entries());
    assertEquals(1, new TopicConfig(with("segment.ms", "1")).segmentMs());
    assertEquals(-1, new TopicConfig(with("retention.ms", "-1")).retentionMs());
    assertEquals(Long.MAX_VALUE, new TopicConfig(with("retention.bytes", Long.toString(Long.MAX_VALUE))).retentionBytes());
    assertEquals(0, new TopicConfig(with("file.delete.delay.ms", "0")).fileDeleteDelayMs());
    assertEquals("all", config.get("kafka.view"));
  }

  @Test
  void theWordsOfTheOptionsAreTheNamesThatAreKnown() {
    assertEquals(Arrays.stream(Codec.values()).map(Codec::optionName).toList(), Option.ofTopic(TopicConfig.COMPRESSION).words());
    for (String word : Option.ofTopic(TopicConfig.PARTITIONER).words()) {
      assertNotNull(Partitioner.named(word), word);
    }
    assertEquals(List.of("CreateTime", "LogAppendTime"), Option.ofTopic(TopicConfig.TIMESTAMP_TYPE).words());
    assertEquals("an integer from 1 to " + Router.PARTITIONS_MAX, Option.ofTopic(TopicConfig.PARTITIONS).expected());
  }
}
