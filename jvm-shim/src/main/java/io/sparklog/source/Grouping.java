package io.sparklog.source;

import io.sparklog.log.State;
import io.sparklog.read.Extent;
import io.sparklog.read.Split;
import io.sparklog.spark.Columns;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.read.partitioning.KeyGroupedPartitioning;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.connector.read.partitioning.UnknownPartitioning;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A value that all records of a split share, as Spark is told: it spares a shuffle by that value. A group may have several splits.
 *
 * @param function of the key, whose value is the number of the partition; null if the value is the partition itself
 * @param ofTopics whether the topic is a part of the value
 */
record Grouping(KeyRouting function, boolean ofTopics) {

  /**
   * When groups may be by key.
   *
   * @param allowed whether Spark finds the functions of {@link KeyRouting}, and its settings do no harm
   * @param partitionsMin the least number of them. A query without a shuffle has as many tasks as there are groups; with fewer groups than
   *     the session has cores, a shuffle is faster
   * @param all whether no partition may be empty
   */
  record Terms(boolean allowed, int partitionsMin, boolean all) {

    /**
     * By the settings of a session. If Spark may shuffle one side of a join by the groups of the other, it places keys of no group at
     * random, and a second join loses them (SPARK-59050, in 4.2.0). So each key must have its group, and Spark must drop none.
     *
     * @param functions whether Spark finds the functions
     * @param cores how many tasks run at once
     */
    static Terms of(boolean functions, int cores, SQLConf conf) {
      boolean ofOneSide = conf.v2BucketingShuffleEnabled();
      boolean dropsGroups = (Boolean) conf.getConf(SQLConf.V2_BUCKETING_PARTITION_FILTER_ENABLED());
      return new Terms(functions && !(ofOneSide && dropsGroups), Math.max(1, cores), ofOneSide);
    }

    private boolean areMet(KeyRouting function, List<Split> splits) {
      long partitions = splits.stream().map(Split::partition).distinct().count();
      return allowed && partitions >= (all ? function.partitions() : 1) && partitions >= partitionsMin;
    }
  }

  /**
   * By key, if Spark can make use of it, and else by partition.
   *
   * @param schema the columns that are read
   */
  static Grouping of(ReadRequest request, StructType schema, List<Split> splits, Terms terms) {
    boolean isAsked = terms.allowed && Arrays.asList(schema.fieldNames()).contains(Columns.KEY);
    Optional<KeyRouting> function = isAsked ? routing(request, splits).filter(its -> terms.areMet(its, splits)) : Optional.empty();
    return new Grouping(function.orElse(null), function.isEmpty() && !request.isOfOneTopic());
  }

  /** Where all records of the splits were put by their keys; empty unless each topic did that in one routing epoch, and all alike. */
  private static Optional<KeyRouting> routing(ReadRequest request, List<Split> splits) {
    Map<String, State> states = new HashMap<>();
    request.ranges().forEach(range -> states.put(range.state().topic(), range.state()));
    Map<String, Integer> reroutes = new HashMap<>();
    for (Split split : splits) {
      for (Extent extent : split.extents()) {
        int its = states.get(split.topic()).reroutesBefore(split.partition(), extent.segment().base());
        if (reroutes.merge(split.topic(), its, (one, other) -> one.equals(other) ? one : -1) < 0) {
          return Optional.empty();
        }
      }
    }
    Set<KeyRouting> functions = new HashSet<>();
    for (Map.Entry<String, Integer> topic : reroutes.entrySet()) {
      State state = states.get(topic.getKey());
      if (state.config().partitioner().bindsSlots()) {
        return Optional.empty(); // Its slot table changes with nearly every version.
      }
      Optional<KeyRouting> function = KeyRouting.of(state.config().partitioner(), state.tableAfter(topic.getValue()));
      if (function.isEmpty()) {
        return function;
      }
      functions.add(function.get());
    }
    return functions.size() == 1 && splits.stream().allMatch(Split::isRouted) ? functions.stream().findFirst() : Optional.empty();
  }

  /**
   * Whether Spark gives right rows if it is told of these groups while it plans. Its settings may be others than when the scan was made.
   *
   * <p>With a partially clustered distribution Spark 4.2.0 groups the splits of a join twice, and repeats rows, if it plans a second time
   * over its own plan (SPARK-58996). It does that where it may optimize skewed joins at any price, whether or not one is skewed.
   */
  boolean isSafe(List<Split> splits, SQLConf conf) {
    boolean plansTwice = conf.adaptiveExecutionEnabled() && (Boolean) conf.getConf(SQLConf.SKEW_JOIN_ENABLED())
        && (Boolean) conf.getConf(SQLConf.ADAPTIVE_FORCE_OPTIMIZE_SKEWED_JOIN());
    boolean losesKeys = function != null && !Terms.of(true, 1, conf).areMet(function, splits);
    return !losesKeys && !(plansTwice && conf.v2BucketingPartiallyClusteredDistributionEnabled());
  }

  Partitioning partitioning(List<Split> splits) {
    int groups = (int) splits.stream().map(split -> List.of(ofTopics ? split.topic() : "", split.partition())).distinct().count();
    return groups == 0 ? new UnknownPartitioning(0) : new KeyGroupedPartitioning(expressions(), groups);
  }

  private Expression[] expressions() {
    if (function != null) {
      return new Expression[] {Expressions.apply(function.name(), Expressions.column(Columns.KEY))};
    }
    Expression partition = Expressions.identity(Columns.PARTITION);
    return ofTopics ? new Expression[] {Expressions.identity(Columns.TOPIC), partition} : new Expression[] {partition};
  }

  /** The value of the records of {@code split}. */
  InternalRow of(Split split) {
    return new GenericInternalRow(
        ofTopics ? new Object[] {UTF8String.fromString(split.topic()), split.partition()} : new Object[] {split.partition()});
  }
}
