package io.sparklog.source;

import io.sparklog.read.Selection;
import io.sparklog.spark.Columns;
import java.util.ArrayList;
import java.util.Arrays;
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
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Counts, and least and greatest topics, partitions and offsets, where the state says them: not a segment is opened, and no task is run.
 */
final class Counted implements LocalScan {
  private final StructType schema;
  private final InternalRow[] rows;
  private final String description;

  private Counted(StructType schema, InternalRow[] rows, String description) {
    this.schema = schema;
    this.rows = rows;
    this.description = description;
  }

  /** What one group, or one partition of it, has: a count, or a bound. */
  private record Aggregate(String name, org.apache.spark.sql.types.DataType type, Function<Selection, Comparable<?>> ofPartition,
      int order) {
    @SuppressWarnings({"unchecked", "rawtypes"})
    private Object of(List<Selection> group) {
      if (order == 0) {
        return group.stream().mapToLong(Counted::records).sum();
      }
      Comparable best = null;
      for (Selection selection : group) {
        Comparable value = ofPartition.apply(selection);
        best = best == null || order * value.compareTo(best) > 0 ? value : best;
      }
      return best;
    }
  }

  /** The result of an aggregation; empty if it is of another kind, or cannot be known without reading. */
  static Optional<Counted> of(Aggregation aggregation, StructType columns, Snapshot snapshot, Pushed pushed) {
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
      schema = schema.add(aggregate.get().name, aggregate.get().type);
    }
    List<Selection> selections = Selection.of(snapshot.ranges(), pushed.condition());
    if (!selections.stream().allMatch(Selection::isExact)) {
      return Optional.empty();
    }
    String description = snapshot + pushed.toString() + ", aggregates: " + Arrays.toString(aggregation.aggregateExpressions());
    return Optional.of(new Counted(schema, rows(groups, aggregates, selections), description));
  }

  private static Optional<Aggregate> aggregate(AggregateFunc function, StructType columns) {
    if (function instanceof CountStar) {
      return Optional.of(new Aggregate("count(*)", DataTypes.LongType, null, 0));
    }
    if (function instanceof Count count) {
      String column = column(count.column());
      boolean neverNull = !column.isEmpty() && !columns.apply(column).nullable();
      return neverNull && !count.isDistinct()
          ? Optional.of(new Aggregate("count(" + column + ")", DataTypes.LongType, null, 0))
          : Optional.empty();
    }
    if (function instanceof Min min) {
      return bound("min", column(min.column()), columns, -1);
    }
    if (function instanceof Max max) {
      return bound("max", column(max.column()), columns, 1);
    }
    return Optional.empty();
  }

  private static Optional<Aggregate> bound(String name, String column, StructType columns, int order) {
    Function<Selection, Comparable<?>> value = switch (column) {
      case Columns.TOPIC -> selection -> UTF8String.fromString(selection.state().topic());
      case Columns.PARTITION -> Selection::partition;
      case Columns.OFFSET ->
        selection -> order < 0 ? selection.offsets().first(0) : selection.offsets().last(selection.offsets().count() - 1);
      default -> null;
    };
    return value == null
        ? Optional.empty()
        : Optional.of(new Aggregate(name + "(" + column + ")", columns.apply(column).dataType(), value, order));
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
      groups.forEach(column -> key
          .add(column.equals(Columns.TOPIC) ? UTF8String.fromString(selection.state().topic()) : (Object) selection.partition()));
      grouped.computeIfAbsent(key, absent -> new ArrayList<>()).add(selection);
    }
    List<InternalRow> rows = new ArrayList<>();
    grouped.forEach((key, group) -> {
      List<Object> row = new ArrayList<>(key);
      aggregates.forEach(aggregate -> row.add(aggregate.of(group)));
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
