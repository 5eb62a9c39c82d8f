package io.sparklog.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.sparklog.format.Codec;
import io.sparklog.format.TimestampType;
import io.sparklog.json.Damaged;
import io.sparklog.kit.Writes;
import io.sparklog.routing.Partitioner;
import io.sparklog.routing.Router;
import io.sparklog.spec.Option;
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

  @ParameterizedTest
  @CsvSource({"partitions, 1, 10000", "segment.bytes, 1024, 2147483647", "max.message.bytes, 128, 1073741824",
      "index.interval.bytes, 0, 2147483647"})
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
      "compression.type, Zstd", "message.timestamp.type, createTime", "message.timestamp.type, ''"})
  void aWordHasOneForm(String key, String text) {
    Damaged e = assertThrows(Damaged.class, () -> new TopicConfig(with(key, text)));
    assertEquals("config " + key + " is " + text + ", not one of " + String.join(", ", Option.ofTopic(key).words()), e.getMessage());
  }

  @Test
  void aKnownKeyIsThereAndAnotherIsKept() throws Damaged {
    assertEquals("v", new TopicConfig(with("k", "v")).entries().get("k"));
    for (String key : Writes.config().keySet()) {
      Map<String, String> config = Writes.config();
      config.remove(key);
      assertEquals("config " + key + " is missing", assertThrows(Damaged.class, () -> new TopicConfig(config)).getMessage());
    }
  }

  @Test
  void aTopicNeedNotHaveEveryKey() throws Damaged {
    TopicConfig config = new TopicConfig(Writes.config());
    assertEquals(List.of(604_800_000L, -1L, -1L, 60_000L),
        List.of(config.segmentMs(), config.retentionMs(), config.retentionBytes(), config.fileDeleteDelayMs()));
    assertEquals(Writes.config(), config.entries());
    assertEquals(1, new TopicConfig(with("segment.ms", "1")).segmentMs());
    assertEquals("config segment.ms is 0, not an integer from 1 to " + Long.MAX_VALUE + ", in milliseconds",
        assertThrows(Damaged.class, () -> new TopicConfig(with("segment.ms", "0"))).getMessage());
    assertEquals(-1, new TopicConfig(with("retention.ms", "-1")).retentionMs());
    assertEquals(Long.MAX_VALUE, new TopicConfig(with("retention.bytes", Long.toString(Long.MAX_VALUE))).retentionBytes());
    assertEquals(0, new TopicConfig(with("file.delete.delay.ms", "0")).fileDeleteDelayMs());
    assertEquals("all", config.get("kafka.view"));
    assertEquals("config kafka.view is links, not one of all, merged, none",
        assertThrows(Damaged.class, () -> new TopicConfig(with("kafka.view", "links"))).getMessage());
    assertEquals("config retention.ms is -2, not an integer from -1 to " + Long.MAX_VALUE + ", in milliseconds",
        assertThrows(Damaged.class, () -> new TopicConfig(with("retention.ms", "-2"))).getMessage());
    assertEquals("config file.delete.delay.ms is -1, not an integer from 0 to " + Long.MAX_VALUE + ", in milliseconds",
        assertThrows(Damaged.class, () -> new TopicConfig(with("file.delete.delay.ms", "-1"))).getMessage());
  }

  @Test
  void theWordsOfTheOptionsAreTheNamesThatAreKnown() {
    assertEquals(Arrays.stream(Codec.values()).map(Codec::optionName).toList(), Option.ofTopic(TopicConfig.COMPRESSION).words());
    for (String word : Option.ofTopic(TopicConfig.PARTITIONER).words()) {
      assertNotNull(Partitioner.named(word), word);
    }
    assertEquals(List.of(TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME),
        Option.ofTopic(TopicConfig.TIMESTAMP_TYPE).words().stream().map(TimestampType::named).toList());
    assertEquals("an integer from 1 to " + Router.PARTITIONS_MAX, Option.ofTopic(TopicConfig.PARTITIONS).expected());
  }
}
