package io.sparklog.source;

import java.util.Arrays;
import java.util.stream.Collectors;
import org.apache.spark.sql.connector.expressions.filter.Predicate;

/**
 * What of a query the source takes over.
 *
 * @param condition met by all records that are asked for, and where Spark does not test any more by no others
 * @param predicates those that Spark does not test any more
 * @param limit no task has to give more records
 */
record Pushed(Condition condition, Predicate[] predicates, long limit) {
  static final Pushed NOTHING = new Pushed(Condition.TRUE, new Predicate[0], Long.MAX_VALUE);

  Pushed with(Condition more, Predicate[] taken) {
    return new Pushed(more, taken, limit);
  }

  Pushed upTo(long rows) {
    return new Pushed(condition, predicates, rows);
  }

  /** Begins with a comma, or is empty. */
  @Override
  public String toString() {
    String filters = Arrays.stream(predicates).map(Predicate::toString).collect(Collectors.joining(" AND "));
    return (filters.isEmpty() ? "" : ", filters: " + filters) + (limit == Long.MAX_VALUE ? "" : ", limit: " + limit);
  }
}
