package io.sparklog.source;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.HasPartitionKey;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Spark is told of groups and of order for a plan only where it makes right plans with them, by the settings that it plans with. */
final class PlannedGroupsTest extends GroupsOfScans {
  private static boolean areTold(Batch batch) {
    return Arrays.stream(batch.planInputPartitions()).allMatch(HasPartitionKey.class::isInstance);
  }

  /** Spark asks at each plan, with the settings that it has then; and it insists on the groups that it has planned with. */
  @ParameterizedTest
  @ValueSource(strings = {"murmur3_partition_4(key)", "identity(partition)"})
  void groupsAreNotToldWhereSparkWouldRepeatRows(String groups) throws IOException {
    log.write("t", Map.of("partitions", "4"), 100, KeyedLog.routed(200));
    Reads reads = Reads.of(directory.resolve("log"), "includeHeaders", "false", "minPartitions", "12");
    PartlogScan scan = (groups.startsWith("murmur3") ? reads.ofCatalog() : reads).scan();
    assertEquals("[" + groups + "]", groups(scan));
    List<String> harmful = List.of("spark.sql.sources.v2.bucketing.partiallyClusteredDistribution.enabled",
        "spark.sql.adaptive.forceOptimizeSkewedJoin", "spark.sql.adaptive.skewJoin.enabled", "spark.sql.adaptive.enabled");
    try {
      int tasks = scan.toBatch().planInputPartitions().length;
      assertTrue(areTold(scan.toBatch()) && tasks > 4);
      harmful.forEach(setting -> SQLConf.get().setConfString(setting, "true"));
      assertFalse(areTold(scan.toBatch()));
      assertEquals(tasks, scan.toBatch().planInputPartitions().length);
      scan.filter(new Predicate[0]);
      assertTrue(areTold(scan.toBatch()), "a plan that was made with groups would fail");
      for (String setting : harmful) {
        SQLConf.get().setConfString(setting, "false");
        assertTrue(areTold(scan.toBatch()), setting);
        SQLConf.get().setConfString(setting, "true");
      }
    } finally {
      harmful.forEach(SQLConf.get()::unsetConf);
    }
  }

  /** A plan may be made anew after the settings have changed. */
  @Test
  void groupsWithoutAllPartitionsAreNotToldOnceOneSideMayBeShuffled() throws IOException {
    SQLConf.get().setConfString(CORES, "2");
    log.write("few", Map.of("partitions", "40"), 100, KeyedLog.routed(20));
    PartlogScan scan = reads("few").scan();
    assertEquals("[murmur3_partition_40(key)]", groups(scan));
    assertTrue(areTold(scan.toBatch()));
    SQLConf.get().setConfString("spark.sql.sources.v2.bucketing.shuffle.enabled", "true");
    try {
      assertFalse(areTold(scan.toBatch()));
    } finally {
      SQLConf.get().unsetConf("spark.sql.sources.v2.bucketing.shuffle.enabled");
    }
  }

  /** A split is of one partition: whichever of these columns are read, its records are in their order. */
  @Test
  void theOrderIsOfColumnsThatAreRead() throws IOException {
    log.write("t", Map.of("partitions", "4"), 100, KeyedLog.routed(20));
    StructType all = reads("t").scan().readSchema();
    Map<List<String>, String> orders = Map.of(List.of("key", "partition", "offset"), "[partition ASC NULLS FIRST, offset ASC NULLS FIRST]",
        List.of("partition"), "[partition ASC NULLS FIRST]", List.of("key", "offset"), "[offset ASC NULLS FIRST]", List.of("value"), "[]");
    orders.forEach((columns, order) -> {
      PartlogScanBuilder builder = reads("t").builder();
      builder.pruneColumns(
          new StructType(Arrays.stream(all.fields()).filter(field -> columns.contains(field.name())).toArray(StructField[]::new)));
      assertEquals(order, Arrays.toString(((PartlogScan) builder.build()).outputOrdering()));
    });
  }
}
