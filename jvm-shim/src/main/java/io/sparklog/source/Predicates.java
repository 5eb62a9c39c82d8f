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
import org.apache.spark.sql.connector.expressions.Cast;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Spark's predicates as filters of the log. Some predicates compare topic, partition, offset or timestamp with constants. Others test
 * whether the key is in a set, or null. A key as STRING has the bytes of the key, whether they are text or not, and so is compared like the
 * key itself. Predicates about all keys but some are left to Spark: they spare nothing.
 */
final class Predicates {
  /** Each comparison, and the comparison with its operands exchanged; other comparisons do not change. */
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
      case "IS_NULL", "IS_NOT_NULL" ->
        isKey(operands[0]) ? new Translated(Filter.keyPresence(predicate.name().equals("IS_NULL") == negated), true) : Translated.UNKNOWN;
      default -> Translated.UNKNOWN;
    };
  }

  private static Translated several(Expression[] operands, boolean negated, boolean all) {
    List<Filter> filters = new ArrayList<>();
    boolean exact = true;
    // Not by a stream, which would take the stack of ten calls: a query may have a thousand conditions, each in the one before.
    for (Expression operand : operands) {
      Translated translated = translate(operand, negated);
      filters.add(translated.filter);
      exact &= translated.exact;
    }
    return new Translated(all ? Filter.all(filters) : Filter.any(filters), exact);
  }

  private static Translated comparison(String name, Expression[] operands, boolean negated) {
    if (isKey(operands[0]) || isKey(operands[1])) {
      return keyComparison(name, operands[isKey(operands[0]) ? 1 : 0], negated);
    }
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

  private static Translated keyComparison(String name, Expression operand, boolean negated) {
    boolean equal = name.equals("=") || name.equals("<=>");
    if (!equal || !(operand instanceof Literal<?> literal) || !isWritable(literal)) {
      return Translated.UNKNOWN;
    }
    if (literal.value() == null) {
      return name.equals("<=>") ? new Translated(Filter.keyPresence(negated), true) : new Translated(Filter.NO_RECORDS, true);
    }
    return isOfKey(literal) && !negated ? keys(List.of(bytes(literal))) : Translated.UNKNOWN;
  }

  private static Translated in(Expression[] operands, boolean negated) {
    boolean ofKey = isKey(operands[0]);
    List<Literal<?>> literals = new ArrayList<>();
    for (Expression operand : Arrays.asList(operands).subList(1, operands.length)) {
      // A null among them adds nothing to "in", and makes "not in" true for no record.
      if (!(operand instanceof Literal<?> literal) || literal.value() == null && (negated || !ofKey || !isWritable(literal))) {
        return Translated.UNKNOWN;
      }
      if (literal.value() != null) {
        literals.add(literal);
      }
    }
    if (ofKey) {
      return !negated && literals.stream().allMatch(Predicates::isOfKey)
          ? keys(literals.stream().map(Predicates::bytes).toList())
          : Translated.UNKNOWN;
    }
    if (!(operands[0] instanceof NamedReference column) || !literals.stream().allMatch(literal -> isOfColumn(literal, column))) {
      return Translated.UNKNOWN;
    }
    if (column(column).equals(Columns.TOPIC)) {
      Set<String> topics = literals.stream().map(literal -> literal.value().toString()).collect(Collectors.toSet());
      return new Translated(Filter.topic(topics, negated), true);
    }
    Intervals members = Intervals.of(literals.stream().mapToLong(literal -> ((Number) literal.value()).longValue()).toArray());
    return ofColumn(column, negated ? members.not() : members);
  }

  private static Translated keys(List<byte[]> keys) {
    boolean isWorthwhile = keys.stream().mapToLong(key -> key.length).sum() <= Filter.KEYS_BYTES_MAX;
    return isWorthwhile ? new Translated(Filter.key(keys), true) : Translated.UNKNOWN;
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

  /** Whether the column is a column of ours, and the literal has its type and is not null. */
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

  /** Whether it is the key, or the key as STRING; of another collation, a STRING is not compared by its bytes. */
  private static boolean isKey(Expression expression) {
    Expression column = expression instanceof Cast cast && DataTypes.StringType.equals(cast.dataType()) ? cast.expression() : expression;
    return column instanceof NamedReference reference && column(reference).equals(Columns.KEY);
  }

  /** Spark 4.2 writes each predicate that is taken over to its log, and fails at a null of type BINARY. */
  private static boolean isWritable(Literal<?> literal) {
    return literal.value() != null || !DataTypes.BinaryType.equals(literal.dataType());
  }

  private static boolean isOfKey(Literal<?> literal) {
    return literal.value() instanceof byte[] || literal.value() instanceof UTF8String && DataTypes.StringType.equals(literal.dataType());
  }

  /** The bytes of a literal that {@link #isOfKey}. */
  private static byte[] bytes(Literal<?> literal) {
    return literal.value() instanceof UTF8String text ? text.getBytes() : (byte[]) literal.value();
  }
}
