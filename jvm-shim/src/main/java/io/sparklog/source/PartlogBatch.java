package io.sparklog.source;

import io.sparklog.log.State;
import io.sparklog.read.Filter;
import io.sparklog.read.Selection;
import io.sparklog.read.Split;
import io.sparklog.read.SplitPlanner;
import io.sparklog.spark.SparkErrors;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;

/** The tasks of a batch read, which are planned when Spark first needs them. */
final class PartlogBatch implements Batch {
  private final ReadRequest request;
  private final StructType schema;
  private final PushedDown pushed;
  private final SplitPlanner.SplitSize splitSize;
  private final Grouping.Terms terms;
  private List<Split> splits;
  private Grouping grouping;

  /** Whether a filter of one execution has narrowed it: Spark has planned by then, and insists on the groups if it did so with them. */
  private boolean isNarrowed;

  /**
   * @param schema the columns to return
   * @param terms of groups by key
   */
  PartlogBatch(ReadRequest request, StructType schema, PushedDown pushed, SplitPlanner.SplitSize splitSize, Grouping.Terms terms) {
    this.request = request;
    this.schema = schema;
    this.pushed = pushed;
    this.splitSize = splitSize;
    this.terms = terms;
  }

  /**
   * The same read without records that {@code predicates} rule out. Its splits are the splits of this batch, as they were cut, with the
   * same grouping: Spark has planned with them, and accepts no others.
   */
  PartlogBatch narrowed(Predicate[] predicates) {
    Filter filter = PushedDown.of(predicates).filter();
    Map<String, State> states = new HashMap<>();
    request.ranges().forEach(range -> states.put(range.state().topic(), range.state()));
    PartlogBatch narrowed = new PartlogBatch(request, schema, pushed, splitSize, terms);
    narrowed.isNarrowed = true;
    narrowed.grouping = grouping();
    narrowed.splits = Split.narrowed(splits(), filter, states);
    return narrowed;
  }

  /** The splits that the tasks read; the same at every call. */
  synchronized List<Split> splits() {
    if (splits == null) {
      SplitPlanner planner = new SplitPlanner(request.root(), splitSize, failOnDataLoss()).withEpochs(RecordVectors.needEpochs(schema));
      splits = SparkErrors.run(() -> planner.plan(Selection.of(request.ranges(), pushed.filter())));
    }
    return splits;
  }

  synchronized Grouping grouping() {
    if (grouping == null) {
      grouping = SparkErrors.run(() -> Grouping.of(request, schema, splits(), terms));
    }
    return grouping;
  }

  private boolean failOnDataLoss() {
    return request.options().bool("failOnDataLoss");
  }

  /** Spark asks again for each plan, and plans with the groups only if it gets them here. */
  @Override
  public InputPartition[] planInputPartitions() {
    Grouping grouped = grouping();
    boolean isGrouped = isNarrowed || grouped.isSafe(splits(), SQLConf.get());
    return splits().stream()
        .map(split -> isGrouped
            ? new PartlogReaderFactory.PartlogInputPartition.Grouped(List.of(split), grouped.of(split))
            : new PartlogReaderFactory.PartlogInputPartition.Plain(List.of(split)))
        .toArray(InputPartition[]::new);
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new PartlogReaderFactory(request.root().reference(), schema, failOnDataLoss(), pushed.limit());
  }

  /** If a query has the same read twice, Spark reads once: so equal reads are equal. */
  @Override
  public boolean equals(Object other) {
    return other instanceof PartlogBatch batch && schema.equals(batch.schema) && pushed.isSame(batch.pushed)
        && splitSize.equals(batch.splitSize) && terms.equals(batch.terms) && request.isSame(batch.request);
  }

  @Override
  public int hashCode() {
    return Objects.hash(request.root().location(), schema);
  }
}
