package io.sparklog.source;

import io.sparklog.read.Filter;
import io.sparklog.read.RecordFilter;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.spark.sql.connector.expressions.filter.Predicate;

/**
 * The parts of a query that the source evaluates itself.
 *
 * <p>Tasks carry the predicates that Spark no longer evaluates. Together these take at most {@link RecordFilter#BYTES_MAX}. From a longer
 * list of keys, offsets or times, the source makes a wider filter, and leaves the test to Spark.
 *
 * @param filter met by all records that are asked for; if all predicates were taken over, by no others
 * @param offered the predicates that the filter was made of
 * @param predicates the predicates that Spark no longer evaluates
 * @param limit the most records that a task has to return
 */
record PushedDown(Filter filter, List<Predicate> offered, List<Predicate> predicates, long limit) {
  static final PushedDown NOTHING = new PushedDown(Filter.ALL_RECORDS, List.of(), List.of(), Long.MAX_VALUE);

  /**
   * Takes over the predicates that the reader can evaluate. It uses the others to read less if it can, and leaves their evaluation to
   * Spark.
   */
  static PushedDown of(Predicate[] offered) {
    List<Filter> filters = new ArrayList<>();
    List<Predicate> taken = new ArrayList<>();
    long room = RecordFilter.BYTES_MAX - RecordFilter.OBJECT_BYTES;
    for (Predicate predicate : offered) {
      Predicates.Translated translated = Predicates.translate(predicate);
      if (translated.exact() && translated.filter().bytes() <= room) {
        room -= translated.filter().bytes();
        filters.add(translated.filter());
        taken.add(predicate);
      } else {
        filters.add(translated.filter().asHint());
      }
    }
    return new PushedDown(Filter.all(filters), List.of(offered), taken, Long.MAX_VALUE);
  }

  PushedDown upTo(long rows) {
    return new PushedDown(filter, offered, predicates, rows);
  }

  /** Whether it selects the same records. */
  boolean isSame(PushedDown other) {
    return offered.equals(other.offered) && limit == other.limit;
  }

  /** Begins with a comma, or is empty. */
  @Override
  public String toString() {
    String filters = predicates.stream().map(Predicate::toString).collect(Collectors.joining(" AND "));
    return (filters.isEmpty() ? "" : ", filters: " + filters) + (limit == Long.MAX_VALUE ? "" : ", limit: " + limit);
  }
}
