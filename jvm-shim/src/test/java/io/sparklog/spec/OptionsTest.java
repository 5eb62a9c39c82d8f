package io.sparklog.spec;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class OptionsTest {
  @ParameterizedTest
  @CsvSource({"WRITE, compression, Did you mean `compression.type`?", "WRITE, Codec, Did you mean `compression.type`?",
      "WRITE, partitons, Did you mean `partitions`?", "READ, subscrib, Did you mean `subscribe`?", "READ, topics, Did you mean `topic`?",
      "READ, root, Did you mean `path`?", "READ, colour.scheme, `python -m sparklog options` lists the options.",})
  void anUnknownOneIsToldWithWhatMayBeMeant(Options.Side side, String key, String says) {
    PartlogException error = assertThrows(PartlogException.class, () -> Options.of(Map.of(key, "x"), side));
    assertTrue(error.getMessage().startsWith("[PARTLOG_OPTION_UNKNOWN] Option `" + key + "` is unknown. " + says), error.getMessage());
  }

  @Test
  void whatBrokersTakeIsToldOnceWithItsCounterpart() {
    Map<String, String> given = Map.of("kafka.compression.type", "zstd", "Kafka.Acks", "all", "kafka.Other", "x", "kafka.partitioner.class",
        "x.Y", "topic", "t");
    Set<String> told = new HashSet<>();
    assertEquals(Optional.of("partlog has no broker, and ignores options for one: "
        + "`kafka.Other`, `kafka.acks`, `kafka.compression.type` (give `compression.type` instead), "
        + "`kafka.partitioner.class` (give `partitioner` instead)"), Options.of(given, Options.Side.WRITE).warning(told::add));
    assertEquals(Optional.empty(), Options.of(given, Options.Side.WRITE).warning(told::add));
    assertEquals(Optional.empty(), Options.of(Map.of("topic", "t"), Options.Side.WRITE).warning(told::add));
  }

  @Test
  void whatIsGivenComesBeforeWhatTheTableHas() {
    Map<String, String> table = Map.of("Topic", "of-table", "partitions", "4", "compression.type", "zstd", "option.partitions", "4");
    Options write = Options.of(Map.of("TOPIC", "given", "partitions", "8"), table, Options.Side.WRITE);
    assertEquals("given", write.text("topic"));
    assertEquals(Map.of("partitions", "8", "compression.type", "zstd"), write.givenTopicConfig());
    assertTrue(write.isOfTable("compression.type"));
    assertFalse(write.isOfTable("partitions"));
    assertFalse(write.isOfTable("batch.size"));
    assertEquals("other", Options.of(Map.of("subscribe", "other"), table, Options.Side.READ).text("subscribe"),
        "topic is another name of it");
  }

  /** The unit of FORMAT.md: a commit must not find out that readers would refuse it. */
  @Test
  void textIsBoundedInBytes() {
    String fits = "ä".repeat(16_384);
    assertEquals(fits, Options.of(Map.of("txnAppId", fits, "txnVersion", "1"), Options.Side.WRITE).text("txnAppId"));
    PartlogException error = assertThrows(PartlogException.class,
        () -> Options.of(Map.of("txnAppId", fits + "a", "txnVersion", "1"), Options.Side.WRITE));
    assertTrue(error.getMessage().contains("it has 32769 bytes in UTF-8, and at most 32768 fit"), error.getMessage());
  }
}
