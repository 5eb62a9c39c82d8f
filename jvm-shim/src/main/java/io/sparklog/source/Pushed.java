package io.sparklog.source;

import io.sparklog.read.Condition;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.spark.sql.connector.expressions.filter.Predicate;

/**
 * What of a query the source takes over.
 *
 * @param condition met by all records that are asked for, and where Spark does not test any more by no others
 * @param offered the predicates that the condition was made of
 * @param predicates those that Spark does not test any more
 * @param limit no task has to give more records
 */
record Pushed(Condition condition, List<Predicate> offered, List<Predicate> predicates, long limit) {
  static final Pushed NOTHING = new Pushed(Condition.TRUE, List.of(), List.of(), Long.MAX_VALUE);

  /** Takes over what the reader tests itself; of the rest it uses what it can to read less, and leaves the test to Spark. */
  static Pushed of(Predicate[] offered) {
    List<Condition> conditions = new ArrayList<>();
    List<Predicate> taken = new ArrayList<>();
    for (Predicate predicate : offered) {
      Predicates.Translated translated = Predicates.translate(predicate);
      conditions.add(translated.condition());
      if (translated.exact()) {
        taken.add(predicate);
      }
    }
    return new Pushed(Condition.all(conditions), List.of(offered), taken, Long.MAX_VALUE);
  }

  Pushed upTo(long rows) {
    return new Pushed(condition, offered, predicates, rows);
  }

  /** Whether it gives the same records of the same log. */
  boolean isSame(Pushed other) {
    return offered.equals(other.offered) && limit == other.limit;
  }

  /** Begins with a comma, or is empty. */
  @Override
  public String toString() {
    String filters = predicates.stream().map(Predicate::toString).collect(Collectors.joining(" AND "));
    return (filters.isEmpty() ? "" : ", filters: " + filters) + (limit == Long.MAX_VALUE ? "" : ", limit: " + limit);
  }
}
