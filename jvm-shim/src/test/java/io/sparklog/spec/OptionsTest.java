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
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class OptionsTest {
  @ParameterizedTest
  @CsvSource({"WRITE, compression, Did you mean `compression.type`?", "WRITE, Codec, Did you mean `compression.type`?",
      "WRITE, partitons, Did you mean `partitions`?", "READ, subscrib, Did you mean `subscribe`?", "READ, topics, Did you mean `topic`?",
      "READ, root, Did you mean `path`?", "READ, colour.scheme, Run `python -m sparklog options` to list the options.",})
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

  /** Its name begins as those of Kafka's clients do. A table may have it, and a read of the table says nothing of it. */
  @Test
  void theKafkaViewIsNoOptionOfABroker() {
    Options write = Options.of(Map.of("Kafka.View", "merged"), Options.Side.WRITE);
    assertEquals(Map.of("kafka.view", "merged"), write.givenTopicConfig());
    for (Options.Side side : Set.of(Options.Side.WRITE, Options.Side.READ, Options.Side.STREAM)) {
      assertEquals(Optional.empty(), Options.of(Map.of("kafka.view", "none"), side).warning(told -> true), side.name());
    }
    assertThrows(PartlogException.class, () -> Options.of(Map.of("kafka.view", "links"), Options.Side.WRITE));
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

  /** A refusal says what is valid where the option was given: the unit of a number, and the words of a batch read and of a stream. */
  @ParameterizedTest
  @CsvSource(delimiter = '|', value = {"retention.ms     | 7d    | it must be an integer from -1 to 9223372036854775807, in milliseconds.",
      "batch.size       | 1m    | it must be an integer from 1 to 1073741824, in bytes.",
      "partitions       | 0     | it must be an integer from 1 to 10000.",
      "compression.type | lzo   | it must be one of none, gzip, snappy, lz4, zstd."})
  void aRefusalOfAWriteSaysWhatIsValid(String key, String value, String said) {
    PartlogException error = assertThrows(PartlogException.class, () -> Options.of(Map.of(key, value), Options.Side.WRITE));
    assertEquals("[PARTLOG_OPTION_VALUE] Option `" + key + "` has the value " + value + ": " + said, error.getMessage());
  }

  @ParameterizedTest
  @CsvSource(delimiter = '|', value = {
      "startingOffsets    | 0          | it must be earliest, or JSON that names topics and partitions; in a stream it may also be latest.",
      "endingOffsets      | 0          | it must be latest, or JSON that names topics and partitions.",
      "assign             | t          | it must be JSON that names topics and partitions.",
      "subscribe          | ,          | it must have one name or more, separated by commas.",
      "maxBytesPerTrigger | 10m        | it must be an integer from 1 to 9223372036854775807, in bytes.",
      "maxTriggerDelay    | soon       | it must be a number with a unit, such as 30s, 15m or 2h.",
      "maxTriggerDelay    | 15         | it must be a number with a unit, such as 30s, 15m or 2h.",
      "includeHeaders     | yes        | it must be one of true, false."})
  void aRefusalOfAReadSaysWhatIsValid(String key, String value, String said) {
    PartlogException error = assertThrows(PartlogException.class, () -> Options.of(Map.of(key, value), Options.Side.READ));
    assertEquals("[PARTLOG_OPTION_VALUE] Option `" + key + "` has the value " + value + ": " + said, error.getMessage());
  }

  /** The unit of FORMAT.md: a commit must not find out that readers would refuse it. */
  @Test
  void textIsBoundedInBytes() {
    String fits = "ä".repeat(16_384);
    assertEquals(fits, Options.of(Map.of("txnAppId", fits, "txnVersion", "1"), Options.Side.WRITE).text("txnAppId"));
    PartlogException error = assertThrows(PartlogException.class,
        () -> Options.of(Map.of("txnAppId", fits + "a", "txnVersion", "1"), Options.Side.WRITE));
    assertTrue(error.getMessage().contains("it must have at most 32768 bytes in UTF-8, and has 32769."), error.getMessage());
  }
}
