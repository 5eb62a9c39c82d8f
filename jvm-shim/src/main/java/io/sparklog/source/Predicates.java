package io.sparklog.source;

import io.sparklog.read.Filter;
import io.sparklog.read.Intervals;
import io.sparklog.spark.Columns;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/**
 * Spark's predicates as filters of the log: those that compare topic, partition, offset or timestamp with constants.
 */
final class Predicates {
  /** Each comparison, and the one that it becomes when its operands change places; others stay as they are. */
  private static final Map<String, String> TURNED = Map.of("<", ">", "<=", ">=", ">", "<", ">=", "<=");

  private Predicates() {}

  /**
   * The part of a predicate that can be checked on a record.
   *
   * @param filter met by each record that meets the predicate
   * @param exact whether no other record meets it
   */
  record Translated(Filter filter, boolean exact) {
    private static final Translated UNKNOWN = new Translated(Filter.ALL_RECORDS, false);
  }

  static Translated translate(Predicate predicate) {
    return translate(predicate, false);
  }

  private static Translated translate(Expression expression, boolean negated) {
    if (!(expression instanceof Predicate predicate)) {
      return Translated.UNKNOWN;
    }
    Expression[] operands = predicate.children();
    return switch (predicate.name()) {
      case "AND" -> several(operands, negated, !negated);
      case "OR" -> several(operands, negated, negated);
      case "NOT" -> translate(operands[0], !negated);
      case "ALWAYS_TRUE" -> new Translated(negated ? Filter.NO_RECORDS : Filter.ALL_RECORDS, true);
      case "ALWAYS_FALSE" -> new Translated(negated ? Filter.ALL_RECORDS : Filter.NO_RECORDS, true);
      case "=", "<=>", "<>", "<", "<=", ">", ">=" -> comparison(predicate.name(), operands, negated);
      case "IN" -> in(operands, negated);
      default -> Translated.UNKNOWN;
    };
  }

  private static Translated several(Expression[] operands, boolean negated, boolean all) {
    List<Translated> translated = Arrays.stream(operands).map(operand -> translate(operand, negated)).toList();
    List<Filter> filters = translated.stream().map(Translated::filter).toList();
    return new Translated(all ? Filter.all(filters) : Filter.any(filters), translated.stream().allMatch(Translated::exact));
  }

  private static Translated comparison(String name, Expression[] operands, boolean negated) {
    if (operands[0] instanceof Literal<?> literal && operands[1] instanceof NamedReference column) {
      return compare(column, TURNED.getOrDefault(name, name), literal, negated);
    }
    return operands[0] instanceof NamedReference column && operands[1] instanceof Literal<?> literal
        ? compare(column, name, literal, negated)
        : Translated.UNKNOWN;
  }

  private static Translated compare(NamedReference column, String name, Literal<?> literal, boolean negated) {
    if (!isOfColumn(literal, column)) {
      return Translated.UNKNOWN;
    }
    if (column(column).equals(Columns.TOPIC)) {
      boolean equal = name.equals("=") || name.equals("<=>");
      return equal || name.equals("<>")
          ? new Translated(Filter.topic(Set.of(literal.value().toString()), equal == negated), true)
          : Translated.UNKNOWN;
    }
    long value = ((Number) literal.value()).longValue();
    Intervals equal = Intervals.of(value, value);
    Intervals less = value == Long.MIN_VALUE ? Intervals.NONE : Intervals.of(Long.MIN_VALUE, value - 1);
    Intervals members = switch (name) {
      case "<" -> less;
      case "<=" -> less.or(equal);
      case ">" -> less.or(equal).not();
      case ">=" -> less.not();
      case "<>" -> equal.not();
      default -> equal;
    };
    return ofColumn(column, negated ? members.not() : members);
  }

  private static Translated in(Expression[] operands, boolean negated) {
    List<Object> values = new ArrayList<>();
    if (!(operands[0] instanceof NamedReference column)) {
      return Translated.UNKNOWN;
    }
    for (int i = 1; i < operands.length; i++) {
      // A null among them would make "not in" true for no record.
      if (!(operands[i] instanceof Literal<?> literal) || !isOfColumn(literal, column)) {
        return Translated.UNKNOWN;
      }
      values.add(literal.value());
    }
    if (column(column).equals(Columns.TOPIC)) {
      return new Translated(Filter.topic(values.stream().map(Object::toString).collect(Collectors.toSet()), negated), true);
    }
    Intervals members = Intervals.of(values.stream().mapToLong(value -> ((Number) value).longValue()).toArray());
    return ofColumn(column, negated ? members.not() : members);
  }

  private static Translated ofColumn(NamedReference column, Intervals members) {
    return switch (column(column)) {
      case Columns.PARTITION -> new Translated(Filter.partition(members), true);
      case Columns.OFFSET -> new Translated(Filter.offset(members), true);
      default -> new Translated(Filter.time(members), true);
    };
  }

  private static String column(NamedReference reference) {
    return reference.fieldNames().length == 1 ? reference.fieldNames()[0] : "";
  }

  /** Whether the column is one of ours, and the literal of its type and not null. */
  private static boolean isOfColumn(Literal<?> literal, NamedReference column) {
    DataType type = switch (column(column)) {
      case Columns.TOPIC -> DataTypes.StringType;
      case Columns.PARTITION -> DataTypes.IntegerType;
      case Columns.OFFSET -> DataTypes.LongType;
      case Columns.TIMESTAMP -> DataTypes.TimestampType;
      default -> null;
    };
    return type != null && literal.value() != null && type.equals(literal.dataType());
  }
}
