package io.sparklog.source;

import io.sparklog.read.Selection;
import io.sparklog.spark.Columns;
import io.sparklog.spark.RunningQuery;
import java.util.ArrayList;
import java.util.Arrays;
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
 * <p>Spark 4.2 says {@code count(*)} for {@code count(DISTINCT 1)} too, which is 1. So {@code count(*)} is taken from the state only if the
 * planned query is known not to count with DISTINCT.
 */
final class AggregateScan implements LocalScan {
  private final StructType schema;
  private final InternalRow[] rows;
  private final String description;

  private AggregateScan(StructType schema, InternalRow[] rows, String description) {
    this.schema = schema;
    this.rows = rows;
    this.description = description;
  }

  /** A column of the result. @param value of some partitions: a group */
  private record Aggregate(String name, DataType type, Function<List<Selection>, Object> value) {
    private static Aggregate count(String name) {
      return new Aggregate(name, DataTypes.LongType, group -> group.stream().mapToLong(AggregateScan::records).sum());
    }

    /** The greatest or the least of a value that is known of each partition; null without partitions. */
    private static <T extends Comparable<T>> Aggregate extreme(String name, DataType type, Function<Selection, T> ofPartition,
        boolean greatest) {
      Comparator<T> order = greatest ? Comparator.reverseOrder() : Comparator.naturalOrder();
      return new Aggregate(name, type, group -> group.stream().map(ofPartition).min(order).orElse(null));
    }
  }

  /** The result of an aggregation; empty if it is of another kind, or cannot be known without reading records. */
  static Optional<AggregateScan> of(Aggregation aggregation, StructType columns, ReadRequest request, PushedDown pushed) {
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
    return Optional.of(new AggregateScan(schema, rows(groups, aggregates, selections), description));
  }

  private static Optional<Aggregate> aggregate(AggregateFunc function, StructType columns) {
    if (function instanceof CountStar) {
      // For COUNT of any literal, so of NULL too.
      boolean isCount = RunningQuery.countsWithoutDistinct() && RunningQuery.countsOfNullAreGone();
      return isCount ? Optional.of(Aggregate.count("count(*)")) : Optional.empty();
    }
    if (function instanceof Count count) {
      String column = column(count.column());
      boolean neverNull = !column.isEmpty() && !columns.apply(column).nullable();
      return neverNull && !count.isDistinct() ? Optional.of(Aggregate.count("count(" + column + ")")) : Optional.empty();
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
      case Columns.TOPIC -> Optional.of(Aggregate.extreme(name, columns.apply(column).dataType(), AggregateScan::topic, greatest));
      case Columns.PARTITION -> Optional.of(Aggregate.extreme(name, columns.apply(column).dataType(), Selection::partition, greatest));
      case Columns.OFFSET -> Optional.of(Aggregate.extreme(name, columns.apply(column).dataType(),
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

  private static InternalRow[] rows(List<String> groups, List<Aggregate> aggregates, List<Selection> selections) {
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
      List<Object> row = new ArrayList<>(key);
      aggregates.forEach(aggregate -> row.add(aggregate.value.apply(group)));
      rows.add(new GenericInternalRow(row.toArray()));
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
