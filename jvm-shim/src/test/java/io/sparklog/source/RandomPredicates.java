package io.sparklog.source;

import io.sparklog.read.Intervals;
import io.sparklog.read.RecordFilter;
import io.sparklog.read.Times;
import io.sparklog.routing.Partitioner;
import io.sparklog.routing.Router;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Random;
import org.apache.spark.sql.connector.expressions.Cast;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.LiteralValue;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Random predicates, NOT, nulls and the ends of ranges among them, evaluated record by record in three-valued logic, beside what {@link
 * Predicates} makes of them. {@code <seed> <predicates>}: prints
 * how many were compared, and fails at the first that differs.
 */
public final class RandomPredicates {
  static final List<String> COLUMNS = List.of("topic", "partition", "offset", "timestamp", "key", "value");
  private static final DataType[] TYPES = {DataTypes.StringType, DataTypes.IntegerType, DataTypes.LongType, DataTypes.TimestampType,
      DataTypes.BinaryType, DataTypes.BinaryType};
  private static final int KEY = COLUMNS.indexOf("key");
  private static final int VALUE = COLUMNS.indexOf("value");
  static final String[] TOPICS = {"a", "b", "B"};
  static final int PARTITIONS = 4;

  /** Keys, their bytes as Latin-1: also an empty one, and such that are no UTF-8, or that replacing what is no UTF-8 would make of them. */
  static final String[] KEYS = {"", "a", "b", "ab", "\u00ff", "\u00c3(", "\u00ef\u00bf\u00bd", "\u00ef\u00bf\u00bd(", "k1", "k2", "k3",
      "a\0"};
  private static final int OFFSETS = 8;
  private static final long[] MILLIS = {-1, 0, 1, 2, 3, Long.MAX_VALUE};

  /** Values at which a comparison can go wrong: the ends of types, and the edges between milliseconds. */
  private static final long[] EDGES = {Long.MIN_VALUE, Long.MIN_VALUE + 1, -2000, -1001, -1000, -999, -1, 0, 1, 2, 3, 999, 1000, 1001, 2000,
      3000, 3001, Long.MAX_VALUE - 1, Long.MAX_VALUE};

  private final Random random;
  private long records;
  private long routed;
  private int exact;

  RandomPredicates(long seed) {
    random = new Random(seed);
  }

  public static void main(String[] args) {
    System.out.println(compared(Long.parseLong(args[0]), Integer.parseInt(args[1])));
  }

  /** Compares this many predicates. @return what they were, in a line @throws AssertionError that names the one that differs */
  static String compared(long seed, int predicates) {
    RandomPredicates all = new RandomPredicates(seed);
    for (int i = 0; i < predicates; i++) {
      all.compare(all.predicate(4));
    }
    return String.format("%d predicates, %d of them taken over exactly, %d records, %d of them routed", predicates, all.exact, all.records,
        all.routed);
  }

  private boolean oneIn(int n) {
    return random.nextInt(n) == 0;
  }

  Predicate predicate(int depth) {
    int kind = random.nextInt(10);
    if (depth > 0 && kind < 5) {
      Predicate left = predicate(depth - 1);
      return kind == 4 ? of("NOT", left) : of(kind < 2 ? "AND" : "OR", left, predicate(depth - 1));
    }
    int column = oneIn(12) ? VALUE : oneIn(3) ? KEY : random.nextInt(VALUE);
    Expression reference = Expressions.column(COLUMNS.get(column));
    boolean asText = column == KEY && oneIn(2);
    if (asText) {
      reference = new Cast(reference, DataTypes.BinaryType, DataTypes.StringType);
    }
    if (kind == 9) {
      Expression[] operands = new Expression[1 + random.nextInt(5)];
      operands[0] = reference;
      for (int i = 1; i < operands.length; i++) {
        operands[i] = literal(column, asText);
      }
      return of("IN", operands);
    }
    if (oneIn(column == KEY ? 4 : 20)) {
      return oneIn(column == KEY ? 20 : 2)
          ? of(oneIn(2) ? "ALWAYS_TRUE" : "ALWAYS_FALSE")
          : of(oneIn(2) ? "IS_NULL" : "IS_NOT_NULL", reference);
    }
    String name = List.of("=", "<=>", "<>", "<", "<=", ">", ">=").get(random.nextInt(7));
    Expression other = oneIn(20) ? reference : literal(column, asText);
    return oneIn(3) ? of(name, other, reference) : of(name, reference, other);
  }

  private static Predicate of(String name, Expression... operands) {
    return new Predicate(name, operands);
  }

  private static byte[] bytes(String key) {
    return key.getBytes(StandardCharsets.ISO_8859_1);
  }

  private Expression literal(int column, boolean asText) {
    if (oneIn(9)) {
      return new LiteralValue<>(null, asText ? DataTypes.StringType : TYPES[column]);
    }
    return switch (column) {
      case 0 -> new LiteralValue<>(UTF8String.fromString(TOPICS[random.nextInt(TOPICS.length)]), TYPES[column]);
      // A long beside an int column is what Spark does not do; it must be left alone.
      case 1 -> oneIn(8)
          ? new LiteralValue<>((long) random.nextInt(4), DataTypes.LongType)
          : new LiteralValue<>(random.nextInt(6) - 1, TYPES[column]);
      case 2 -> new LiteralValue<>(oneIn(2) ? EDGES[random.nextInt(EDGES.length)] : random.nextInt(OFFSETS), TYPES[column]);
      case 3 -> new LiteralValue<>(EDGES[random.nextInt(EDGES.length)], TYPES[column]);
      case 4 -> {
        byte[] key = bytes(KEYS[random.nextInt(KEYS.length)]);
        yield asText ? new LiteralValue<>(UTF8String.fromBytes(key), DataTypes.StringType) : new LiteralValue<>(key, TYPES[column]);
      }
      default -> new LiteralValue<>(bytes("x"), TYPES[column]);
    };
  }

  private void compare(Predicate predicate) {
    Predicates.Translated translated = Predicates.translate(predicate);
    exact += translated.exact() ? 1 : 0;
    for (String topic : TOPICS) {
      for (int partition = 0; partition < PARTITIONS; partition++) {
        int at = partition;
        RecordFilter filter = translated.filter().at(topic, partition);
        Router router = new Router(Partitioner.values()[random.nextInt(2)], PARTITIONS);
        RecordFilter whereRouted = filter.whereRouted(keys -> keys.where(key -> router.ofKey(key, 0, key.length) == at));
        long bytes = random.nextInt(400);
        RecordFilter wider = filter.within(bytes);
        require(wider.bytes() <= bytes && (filter.bytes() > bytes || wider.equals(filter)), predicate, "it is not as wide as it has to be",
            topic, partition);
        Intervals offsets = filter.offsets().and(Intervals.of(0, OFFSETS - 1));
        for (int range = 0; range < 6; range++) {
          long first = random.nextInt(OFFSETS);
          long last = Math.min(OFFSETS - 1, first + random.nextInt(3));
          int earliest = random.nextInt(MILLIS.length);
          int latest = earliest + random.nextInt(MILLIS.length - earliest);
          boolean any = false;
          boolean all = true;
          for (long offset = first; offset <= last; offset++) {
            for (int time = earliest; time <= latest; time++) {
              long micros = Times.micros(MILLIS[time]);
              String key = oneIn(4) ? null : KEYS[random.nextInt(KEYS.length)];
              Boolean right = met(predicate, topic, (long) partition, offset, micros, key, oneIn(2) ? null : "x");
              byte[] data = bytes("before" + key + "after");
              boolean met = filter.isMet(offset, micros, data, 6, key == null ? -1 : key.length());
              records++;
              any |= met;
              all &= met;
              require(met || right != Boolean.TRUE, predicate, "a record is lost", topic, partition, offset, micros);
              boolean inWider = wider.isMet(offset, micros, data, 6, key == null ? -1 : key.length());
              require(!met || inWider, predicate, "a wider filter loses a record", topic, partition, offset, micros);
              require(!translated.exact() || met == (right == Boolean.TRUE), predicate, "a record is too many", topic, partition, offset,
                  micros);
              if (key != null && router.ofKey(data, 6, key.length()) == partition) {
                routed++;
                boolean same = whereRouted.isMet(offset, micros, data, 6, key.length()) == met;
                require(same, predicate, "in a routed segment the answer is another", topic, partition, offset, micros);
                require(!met || whereRouted.canMeet(offset, offset, micros, micros), predicate, "a routed record is left out", topic,
                    partition, offset, micros);
                require(met || !whereRouted.mustMeet(offset, offset, micros, micros), predicate, "a routed record is taken untested", topic,
                    partition, offset, micros);
              }
              require(!met || offsets.contains(offset), predicate, "an offset is missing", topic, partition, offset, micros);
              require(!filter.isAboutOffsetsOnly() || offsets.contains(offset) == met, predicate, "an offset is too many", topic, partition,
                  offset, micros);
            }
          }
          long from = Times.micros(MILLIS[earliest]);
          long to = Times.micros(MILLIS[latest]);
          require(!any || filter.canMeet(first, last, from, to), predicate, "a range that has some is left out", topic, partition, first,
              last, from, to);
          require(all || !filter.mustMeet(first, last, from, to), predicate, "a range that lacks some is taken as a whole", topic,
              partition, first, last, from, to);
        }
      }
    }
  }

  private static void require(boolean holds, Predicate predicate, String otherwise, Object... where) {
    if (!holds) {
      throw new AssertionError(otherwise + " at " + List.of(where) + ": " + predicate);
    }
  }

  /** The answer of SQL for a predicate and a record: true, false, or null. */
  static Boolean met(Predicate predicate, Object... row) {
    Expression[] operands = predicate.children();
    switch (predicate.name()) {
      case "AND", "OR" -> {
        boolean decides = predicate.name().equals("OR");
        Boolean left = met((Predicate) operands[0], row);
        Boolean right = met((Predicate) operands[1], row);
        if (left != null && left == decides || right != null && right == decides) {
          return decides;
        }
        return left == null || right == null ? null : (Boolean) !decides;
      }
      case "NOT" -> {
        Boolean inner = met((Predicate) operands[0], row);
        return inner == null ? null : (Boolean) !inner;
      }
      case "ALWAYS_TRUE", "ALWAYS_FALSE" -> {
        return predicate.name().equals("ALWAYS_TRUE");
      }
      case "IS_NULL", "IS_NOT_NULL" -> {
        return (value(operands[0], row) == null) == predicate.name().equals("IS_NULL");
      }
      case "IN" -> {
        Boolean found = false;
        for (int i = 1; i < operands.length; i++) {
          Boolean same = compared("=", value(operands[0], row), value(operands[i], row));
          if (same == null) {
            found = null;
          } else if (same) {
            return true;
          }
        }
        return found;
      }
      default -> {
        return compared(predicate.name(), value(operands[0], row), value(operands[1], row));
      }
    }
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  private static Boolean compared(String name, Object left, Object right) {
    if (name.equals("<=>")) {
      return left == null ? right == null : left.equals(right);
    }
    if (left == null || right == null) {
      return null;
    }
    int sign = ((Comparable) left).compareTo(right);
    return switch (name) {
      case "=" -> sign == 0;
      case "<>" -> sign != 0;
      case "<" -> sign < 0;
      case "<=" -> sign <= 0;
      case ">" -> sign > 0;
      default -> sign >= 0;
    };
  }

  /** Integers as longs, and texts and keys as strings of their bytes. */
  private static Object value(Expression expression, Object[] row) {
    Expression inner = expression instanceof Cast cast ? cast.expression() : expression;
    Object value = inner instanceof Literal<?> literal ? literal.value() : row[COLUMNS.indexOf(((NamedReference) inner).fieldNames()[0])];
    if (value instanceof byte[] || value instanceof UTF8String) {
      byte[] bytes = value instanceof UTF8String text ? text.getBytes() : (byte[]) value;
      return new String(bytes, StandardCharsets.ISO_8859_1);
    }
    return value instanceof Integer number ? number.longValue() : value;
  }
}
