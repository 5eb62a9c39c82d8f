package io.sparklog.source;

import io.sparklog.read.Selection;
import io.sparklog.spark.Columns;
import io.sparklog.spark.RunningQuery;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Counts, and least and greatest topics, partitions and offsets, taken from the state: no segment is opened.
 *
 * <p>Spark 4.2 says {@code count(*)} for {@code count(DISTINCT 1)} too, which is 1. If the planned query is known not to count with
 * DISTINCT, a group is one row, which is the answer, and no task runs. Otherwise a group is several rows, and Spark makes the answer from
 * them: it adds up counts, and for DISTINCT only different counts.
 */
final class AggregateScan implements LocalScan {
  /** The number of rows of a group from which Spark makes the answer. */
  private static final int PARTS = 3;

  private final StructType schema;
  private final InternalRow[] rows;
  private final String description;

  private AggregateScan(StructType schema, InternalRow[] rows, String description) {
    this.schema = schema;
    this.rows = rows;
    this.description = description;
  }

  /** A column of the result. */
  private interface Aggregate {
    String name();

    DataType type();

    /** Its value for some partitions. */
    Object of(List<Selection> group);

    /** The values that Spark makes {@link #of} of, if it may not say all that the query asks for. */
    default List<Object> parts(List<Selection> group) {
      return Collections.nCopies(PARTS, of(group));
    }
  }

  /** How many records there are. */
  private record Counting(String name) implements Aggregate {
    @Override
    public DataType type() {
      return DataTypes.LongType;
    }

    @Override
    public Object of(List<Selection> group) {
      return group.stream().mapToLong(AggregateScan::records).sum();
    }

    /** Their sum is the number n of records. The sum of the different counts is 1, or 0 without records: (n - 1) + (2 - n). */
    @Override
    public List<Object> parts(List<Selection> group) {
      long records = (long) of(group);
      return records == 0 ? Collections.nCopies(PARTS, 0L) : List.of(records - 1, records - 1, 2 - records);
    }
  }

  /** The greatest or the least of a value that is known of each partition; null without partitions. */
  private record Extreme<T extends Comparable<T>>(String name, DataType type, Function<Selection, T> ofPartition,
      boolean greatest) implements Aggregate {
    @Override
    public Object of(List<Selection> group) {
      Comparator<T> order = greatest ? Comparator.reverseOrder() : Comparator.naturalOrder();
      return group.stream().map(ofPartition).min(order).orElse(null);
    }
  }

  /** Whether one row for each group is sure to be the answer, so that Spark has nothing to add up. */
  static boolean isSureOf(Aggregation aggregation) {
    return Arrays.stream(aggregation.aggregateExpressions()).noneMatch(CountStar.class::isInstance) || RunningQuery.countsWithoutDistinct();
  }

  /**
   * The result of an aggregation; empty if it is of another kind, or cannot be known without reading records.
   *
   * @param complete whether a group is one row; otherwise Spark has to add up the rows of a group
   */
  static Optional<AggregateScan> of(Aggregation aggregation, StructType columns, ReadRequest request, PushedDown pushed, boolean complete) {
    StructType schema = new StructType();
    List<String> groups = new ArrayList<>();
    for (Expression group : aggregation.groupByExpressions()) {
      String column = column(group);
      if (!column.equals(Columns.TOPIC) && !column.equals(Columns.PARTITION)) {
        return Optional.empty();
      }
      groups.add(column);
      schema = schema.add(columns.apply(column));
    }
    List<Aggregate> aggregates = new ArrayList<>();
    for (AggregateFunc function : aggregation.aggregateExpressions()) {
      Optional<Aggregate> aggregate = aggregate(function, columns);
      if (aggregate.isEmpty()) {
        return Optional.empty();
      }
      aggregates.add(aggregate.get());
      schema = schema.add(aggregate.get().name(), aggregate.get().type());
    }
    List<Selection> selections = Selection.of(request.ranges(), pushed.filter());
    if (!selections.stream().allMatch(Selection::isExact)) {
      return Optional.empty();
    }
    String description = request + pushed.toString() + ", aggregates: " + Arrays.toString(aggregation.aggregateExpressions());
    return Optional.of(new AggregateScan(schema, rows(groups, aggregates, selections, complete), description));
  }

  private static Optional<Aggregate> aggregate(AggregateFunc function, StructType columns) {
    if (function instanceof CountStar) {
      // For COUNT of any literal, so of NULL too.
      return !RunningQuery.countsOfNullAreGone() ? Optional.empty() : Optional.of(new Counting("count(*)"));
    }
    if (function instanceof Count count) {
      String column = column(count.column());
      boolean neverNull = !column.isEmpty() && !columns.apply(column).nullable();
      return neverNull && !count.isDistinct() ? Optional.of(new Counting("count(" + column + ")")) : Optional.empty();
    }
    if (function instanceof Min min) {
      return extreme("min", column(min.column()), columns, false);
    }
    if (function instanceof Max max) {
      return extreme("max", column(max.column()), columns, true);
    }
    return Optional.empty();
  }

  private static Optional<Aggregate> extreme(String function, String column, StructType columns, boolean greatest) {
    String name = function + "(" + column + ")";
    return switch (column) {
      case Columns.TOPIC -> Optional.of(new Extreme<>(name, columns.apply(column).dataType(), AggregateScan::topic, greatest));
      case Columns.PARTITION -> Optional.of(new Extreme<>(name, columns.apply(column).dataType(), Selection::partition, greatest));
      case Columns.OFFSET -> Optional.of(new Extreme<>(name, columns.apply(column).dataType(),
          greatest ? AggregateScan::lastOffset : AggregateScan::firstOffset, greatest));
      default -> Optional.empty();
    };
  }

  private static UTF8String topic(Selection selection) {
    return UTF8String.fromString(selection.state().topic());
  }

  private static Long firstOffset(Selection selection) {
    return selection.offsets().first(0);
  }

  private static Long lastOffset(Selection selection) {
    return selection.offsets().last(selection.offsets().count() - 1);
  }

  private static String column(Expression expression) {
    return expression instanceof NamedReference reference && reference.fieldNames().length == 1 ? reference.fieldNames()[0] : "";
  }

  private static InternalRow[] rows(List<String> groups, List<Aggregate> aggregates, List<Selection> selections, boolean complete) {
    Map<List<Object>, List<Selection>> grouped = new LinkedHashMap<>();
    if (groups.isEmpty()) {
      grouped.put(List.of(), new ArrayList<>());
    }
    for (Selection selection : selections) {
      List<Object> key = new ArrayList<>();
      groups.forEach(column -> key.add(column.equals(Columns.TOPIC) ? topic(selection) : (Object) selection.partition()));
      grouped.computeIfAbsent(key, absent -> new ArrayList<>()).add(selection);
    }
    List<InternalRow> rows = new ArrayList<>();
    grouped.forEach((key, group) -> {
      List<List<Object>> values = aggregates.stream()
          .map(aggregate -> complete ? Collections.singletonList(aggregate.of(group)) : aggregate.parts(group))
          .toList();
      for (int part = 0; part < (complete ? 1 : PARTS); part++) {
        List<Object> row = new ArrayList<>(key);
        for (List<Object> each : values) {
          row.add(each.get(part));
        }
        rows.add(new GenericInternalRow(row.toArray()));
      }
    });
    return rows.toArray(InternalRow[]::new);
  }

  private static long records(Selection selection) {
    long records = 0;
    for (int run = 0; run < selection.offsets().count(); run++) {
      records += selection.offsets().last(run) - selection.offsets().first(run) + 1;
    }
    return records;
  }

  @Override
  public InternalRow[] rows() {
    return rows;
  }

  @Override
  public StructType readSchema() {
    return schema;
  }

  @Override
  public String description() {
    return description;
  }
}
