package io.sparklog.source;

import io.sparklog.log.State;
import io.sparklog.read.Split;
import io.sparklog.spark.Columns;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
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
 * A value that all records of a split share. Spark learns it, and saves a shuffle by that value. A group may have several splits.
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
     * By the settings of a session. Spark may shuffle one side of a join by the groups of the other side. Then it places keys without a
     * group at random, and a second join loses them (SPARK-59050, in 4.2.0). So each key must have its group, and Spark must drop none.
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
    Optional<KeyRouting> function = isAsked ? routing(request, splits).filter(routing -> terms.areMet(routing, splits)) : Optional.empty();
    return new Grouping(function.orElse(null), function.isEmpty() && !request.isOfOneTopic());
  }

  /** Where all records of the splits were put by their keys; empty if a topic has slots, or the topics put keys in different ways. */
  private static Optional<KeyRouting> routing(ReadRequest request, List<Split> splits) {
    Set<String> topics = splits.stream().map(Split::topic).collect(Collectors.toSet());
    List<State> states = request.ranges().stream().map(range -> range.state()).filter(state -> topics.contains(state.topic())).toList();
    Set<KeyRouting> functions = states.stream()
        .map(state -> KeyRouting.of(state.config().partitioner(), state.partitions()))
        .collect(Collectors.toSet());
    boolean isAlike = functions.size() == 1 && states.stream().allMatch(state -> state.isRoutingKnown() && state.routing().isModulo());
    return isAlike && splits.stream().allMatch(Split::isRouted) ? functions.stream().findFirst() : Optional.empty();
  }

  /**
   * Whether Spark gives right rows if it plans with these groups. Its settings may be others than when the scan was made.
   *
   * <p>With a partially clustered distribution, Spark 4.2.0 may plan a second time over its own plan. Then it groups the splits of a join
   * twice, and repeats rows (SPARK-58996). It does that where it may optimize skewed joins at any price, whether or not one is skewed.
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
