package io.sparklog.source;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.admin.Administration;
import io.sparklog.kit.BrokenRule;
import io.sparklog.log.State;
import io.sparklog.routing.Partitioner;
import io.sparklog.routing.Router;
import io.sparklog.source.KeyedLog.Given;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.IntPredicate;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.functions.Reducer;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.LiteralValue;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/** Scans say that they are grouped by key where that is so, and only there; and the function that they name is the one that groups them. */
final class GroupingTest extends GroupsOfScans {
  private static final long SEEDS = Long.getLong("grouping.seeds", 10);

  @Test
  void groupsAreByKeyOnlyIfThereAreAsManyAsCores() throws IOException {
    log.write("t", Map.of("partitions", "4"), 100, KeyedLog.routed(200));
    assertEquals("[murmur3_partition_4(key)]", groups(reads("t").scan()));
    SQLConf.get().setConfString(CORES, "5");
    assertEquals("[identity(partition)]", groups(reads("t").scan()));
  }

  /** Each key must have a group where Spark may shuffle the other side of a join by the groups. */
  @Test
  void groupsForOneSideOfAShuffleAreAllPartitions() throws IOException {
    SQLConf.get().setConfString(CORES, "2");
    log.write("all", Map.of("partitions", "4"), 100, KeyedLog.routed(200));
    log.write("few", Map.of("partitions", "40"), 100, KeyedLog.routed(20));
    try {
      for (boolean ofOneSide : List.of(false, true)) {
        SQLConf.get().setConfString("spark.sql.sources.v2.bucketing.shuffle.enabled", Boolean.toString(ofOneSide));
        assertEquals("[murmur3_partition_4(key)]", groups(reads("all").scan()));
        assertEquals(ofOneSide ? "[identity(partition)]" : "[murmur3_partition_40(key)]", groups(reads("few").scan()));
        SQLConf.get().setConfString("spark.sql.sources.v2.bucketing.partition.filter.enabled", "true");
        assertEquals(ofOneSide ? "[identity(partition)]" : "[murmur3_partition_4(key)]", groups(reads("all").scan()));
        SQLConf.get().unsetConf("spark.sql.sources.v2.bucketing.partition.filter.enabled");
        KeyRouting eight = function("murmur3_partition_8", DataTypes.BinaryType);
        assertEquals(ofOneSide, eight.reducer(function("murmur3_partition_4", DataTypes.BinaryType)) == null);
      }
    } finally {
      SQLConf.get().unsetConf("spark.sql.sources.v2.bucketing.shuffle.enabled");
    }
  }

  @Test
  void groupsAreByKeyOnlyIfTheTopicsAgree() throws IOException {
    log.write("t", Map.of("partitions", "4"), 100, KeyedLog.routed(200));
    log.write("same", Map.of("partitions", "4"), 100, KeyedLog.routed(200));
    log.write("other", Map.of("partitions", "4", "partitioner", "murmur2"), 100, KeyedLog.routed(200));
    log.write("more", Map.of("partitions", "5"), 100, KeyedLog.routed(200));
    assertEquals("[murmur3_partition_4(key)]", groups(reads("t,same").scan()));
    assertEquals("[murmur2_partition_4(key)]", groups(reads("other").scan()));
    assertEquals("[identity(topic), identity(partition)]", groups(reads("same,other").scan()));
    assertEquals("[identity(topic), identity(partition)]", groups(reads("same,more").scan()));
    assertEquals("[identity(partition)]", groups(Reads.of(directory.resolve("log"), "subscribe", "t").scan()));
    PartlogScanBuilder without = reads("t").builder();
    without.pruneColumns(new StructType().add("value", DataTypes.BinaryType));
    assertEquals("[identity(partition)]", groups((PartlogScan) without.build()));
  }

  /** Spark has planned with the groups: a filter that it knows later leaves some of them. */
  @Test
  void aFilterAtRunTimeLeavesGroupsAsTheyWere() throws IOException {
    log.write("t", Map.of("partitions", "4"), 100, KeyedLog.routed(200));
    log.write("same", Map.of("partitions", "4"), 100, KeyedLog.routed(200));
    PartlogScan scan = reads("t,same").scan();
    assertEquals("[murmur3_partition_4(key)]", groups(scan));
    LiteralValue<byte[]> key = new LiteralValue<>("k7".getBytes(StandardCharsets.UTF_8), DataTypes.BinaryType);
    scan.filter(new Predicate[] {new Predicate("=", new Expression[] {Expressions.column("key"), key})});
    InputPartition[] left = scan.toBatch().planInputPartitions();
    assertEquals(2, left.length, "one in each topic");
    for (InputPartition one : left) {
      InternalRow value = ((PartlogReaderFactory.PartlogInputPartition.Grouped) one).partitionKey();
      assertEquals(1, value.numFields());
      assertEquals(KeyedLog.home(log.state("t"), "k7"), value.getInt(0));
    }
  }

  @Test
  void groupsAreByKeyOnlyIfAllThatIsReadIsRouted() throws IOException {
    for (String topic : List.of("given", "null")) {
      log.write(topic, Map.of("partitions", "4"), 100, KeyedLog.routed(200));
      assertEquals("[murmur3_partition_4(key)]", groups(reads(topic).scan()));
    }
    log.write("given", Map.of(), 100, List.of(new Given("k1", (KeyedLog.home(log.state("given"), "k1") + 1) % 4)));
    log.write("null", Map.of(), 100, List.of(new Given(null, null)));
    for (String topic : List.of("given", "null")) {
      assertEquals("[identity(partition)]", groups(reads(topic).scan()), topic);
      State state = log.state(topic);
      String routed = IntStream.range(0, state.partitions())
          .mapToObj(p -> "\"" + p + "\":" + unrouted(state, p))
          .collect(Collectors.joining(",", "{\"" + topic + "\":{", "}}"));
      PartlogScan without = reads(topic).with("endingOffsets", routed).scan();
      assertEquals("[murmur3_partition_" + state.partitions() + "(key)]", groups(without), topic);
    }
    log.merge("given");
    assertEquals("[identity(partition)]", groups(reads("given").scan()), "what is merged from both");
  }

  /** Slots of one partition may be anywhere in another topic, and in another routing epoch of the same one. */
  @Test
  void aTopicThatWasReroutedIsGroupedByPartition() throws IOException {
    for (String topic : List.of("t", "same")) {
      log.write(topic, Map.of("partitions", "4"), 100, KeyedLog.routed(200));
    }
    log.of("t").addPartitions(8, Administration.RerouteTime.NOW, false);
    assertEquals("[identity(partition)]", groups(reads("t").scan()));
    assertEquals("[murmur3_partition_4(key)]", groups(reads("same").scan()));
    assertEquals("[identity(topic), identity(partition)]", groups(reads("t,same").scan()));
  }

  /** The offset where the segments that are not routed begin. */
  private static long unrouted(State state, int partition) {
    return state.segments(partition)
        .stream()
        .filter(segment -> !segment.routed())
        .mapToLong(segment -> segment.base())
        .min()
        .orElse(state.end(partition));
  }

  @Test
  void randomGroupsHoldWhatTheySay() throws IOException {
    int byKey = 0;
    int otherwise = 0;
    for (long seed = 0; seed < SEEDS; seed++) {
      String found = GroupedReads.run(seed, directory.resolve("seed" + seed));
      assertFalse(found.startsWith("wrong"), "seed " + seed + ": " + found);
      byKey += Integer.parseInt(found.replaceAll(" by key.*", ""));
      otherwise += Integer.parseInt(found.replaceAll(".* by key, | otherwise", ""));
    }
    assertTrue(byKey > SEEDS && otherwise > SEEDS, byKey + " scans are grouped by key, " + otherwise + " otherwise");
  }

  static final List<BrokenRule> BROKEN = List.of(
      new BrokenRule(20, "a scan need not be routed", "source/Grouping.routing", "&& splits.stream().allMatch(Split::isRouted) ", ""),
      new BrokenRule(50, "one routed segment is enough", "read/Split.isRouted",
          "extents.stream().allMatch(extent -> extent.segment().routed())",
          "extents.stream().anyMatch(extent -> extent.segment().routed())"),
      new BrokenRule(0, "topics need not agree", "source/Grouping.routing", "functions.size() == 1", "!functions.isEmpty()"),
      new BrokenRule(1, "a topic with slots is grouped by key", "source/Grouping.routing",
          " && states.stream().allMatch(state -> state.isRoutingKnown() && state.routing().isModulo())", ""));

  @ParameterizedTest
  @FieldSource("BROKEN")
  @Tag("slow")
  void aBrokenRuleIsFound(BrokenRule broken) throws Throwable {
    broken.requireFound(GroupedReads.class, directory.resolve("mutated"));
  }

  private static KeyRouting function(String name, DataType type) {
    UnboundFunction function = KeyRouting.named(name).orElseThrow();
    return (KeyRouting) function.bind(new StructType().add("key", type));
  }

  @Test
  void theFunctionGivesThePartitionOfAKey() {
    Random random = new Random(1);
    for (int i = 0; i < 200; i++) {
      Router router = new Router(Partitioner.values()[i % 2], 1 + random.nextInt(64));
      String name = router.partitioner().optionName() + "_partition_" + router.partitions();
      String key = RandomPredicates.KEYS[random.nextInt(RandomPredicates.KEYS.length)] + (random.nextBoolean() ? i : "");
      byte[] bytes = key.getBytes(StandardCharsets.UTF_8);
      int expected = router.ofKey(bytes, 0, bytes.length);
      assertEquals(expected, function(name, DataTypes.BinaryType).produceResult(row(bytes)));
      assertEquals(expected, function(name, DataTypes.StringType).produceResult(row(UTF8String.fromBytes(bytes))));
    }
    assertNull(function("murmur3_partition_8", DataTypes.BinaryType).produceResult(row((Object) null)));
  }

  private static InternalRow row(Object key) {
    return new GenericInternalRow(new Object[] {key});
  }

  @Test
  void otherNamesAreNoFunctions() {
    for (String name : List.of("murmur3_partition", "murmur3_partition_0", "murmur3_partition_08", "murmur3_partition_10001",
        "murmur4_partition_8", "murmur3_partition_8x", "murmur3_partition_-8", "murmur3_partition_4096_slots_226e01d1")) {
      assertTrue(KeyRouting.named(name).isEmpty(), name);
    }
    assertTrue(KeyRouting.named("murmur2_partition_10000").isPresent());
  }

  /** Two numbers of partitions become the same, smaller one, or Spark is told that it must shuffle. */
  @Test
  void numbersOfPartitionsBecomeTheirGreatestCommonDivisor() {
    for (int left = 1; left <= 64; left++) {
      for (int right = 1; right <= 64; right++) {
        KeyRouting its = function("murmur3_partition_" + left, DataTypes.BinaryType);
        KeyRouting others = function("murmur3_partition_" + right, DataTypes.StringType);
        int common = IntStream.rangeClosed(1, Math.min(left, right)).filter(divides(left, right)).max().orElseThrow();
        Reducer<Integer, Integer> reducer = its.reducer(others);
        Reducer<Integer, Integer> reverse = others.reducer(its);
        if (common == 1 || left == right) {
          assertNull(reducer);
          assertNull(reverse);
          continue;
        }
        for (int key = 0; key < 50; key++) {
          byte[] bytes = ("k" + key).getBytes(StandardCharsets.UTF_8);
          Integer here = its.produceResult(row(bytes));
          Integer there = others.produceResult(row(UTF8String.fromBytes(bytes)));
          assertEquals(reducer == null ? here : reducer.reduce(here), reverse == null ? there : reverse.reduce(there));
        }
        assertTrue(left == common ? reducer == null : reducer.resultType().equals(its.resultType()));
        assertNull(its.reducer(function("murmur2_partition_" + right, DataTypes.BinaryType)));
      }
    }
  }

  /** Spark asks the functions of two sides, and goes on with either after the join: see {@link KeyRouting}. */
  @Test
  void groupsOfEarlierJoinsAreRemembered() {
    Random random = new Random(1);
    int[] numbers = {2, 3, 4, 6, 8, 12, 16, 24};
    for (int round = 0; round < 500; round++) {
      KeyRouting first = function("murmur3_partition_" + numbers[random.nextInt(numbers.length)], DataTypes.BinaryType);
      UnaryOperator<Integer> groupOf = UnaryOperator.identity();
      for (int join = 0; join < 3; join++) {
        KeyRouting next = function("murmur3_partition_" + numbers[random.nextInt(numbers.length)], DataTypes.BinaryType);
        Reducer<Integer, Integer> here = first.reducer(next);
        Reducer<Integer, Integer> there = next.reducer(first);
        if (here == null && there == null && !first.equals(next)) {
          break; // Spark shuffles.
        }
        UnaryOperator<Integer> before = groupOf;
        groupOf = here == null ? before : partition -> here.reduce(before.apply(partition));
        for (int key = 0; key < 50; key++) {
          InternalRow row = row(("k" + key).getBytes(StandardCharsets.UTF_8));
          Integer other = next.produceResult(row);
          assertEquals(groupOf.apply(first.produceResult(row)), there == null ? other : there.reduce(other));
        }
      }
    }
  }

  private static IntPredicate divides(int left, int right) {
    return number -> left % number == 0 && right % number == 0;
  }
}
