package io.sparklog.source;

import io.sparklog.read.Intervals;
import io.sparklog.read.RecordFilter;
import io.sparklog.spark.Columns;
import java.util.Arrays;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import org.apache.spark.sql.connector.expressions.filter.Predicate;

/** Predicates that all offsets of a partition below one meet, and no others: the records of a log that can be deleted. */
public final class PrefixPredicate {
  /** The columns of a record's place. Predicates on other columns need its contents. */
  private static final Set<String> PLACES = Set.of(Columns.TOPIC, Columns.PARTITION, Columns.OFFSET);

  private PrefixPredicate() {}

  /**
   * The first offset that does not meet all of {@code predicates}, by partition, without those where it is 0; {@link Long#MAX_VALUE} if all
   * do. Empty if there is a partition whose offsets do not meet them in this way.
   */
  public static Optional<SortedMap<Integer, Long>> of(Predicate[] predicates, String topic, int partitions) {
    PushedDown pushed = PushedDown.of(predicates);
    boolean known = pushed.predicates().size() == predicates.length && Arrays.stream(predicates)
        .flatMap(predicate -> Arrays.stream(predicate.references()))
        .allMatch(column -> column.fieldNames().length == 1 && PLACES.contains(column.fieldNames()[0]));
    SortedMap<Integer, Long> prefixes = new TreeMap<>();
    for (int partition = 0; known && partition < partitions; partition++) {
      RecordFilter filter = pushed.filter().at(topic, partition);
      Intervals offsets = filter.offsets().and(Intervals.of(0, Long.MAX_VALUE));
      known = offsets.count() == 0 || offsets.count() == 1 && offsets.first(0) == 0;
      if (known && offsets.count() == 1) {
        prefixes.put(partition, offsets.last(0) == Long.MAX_VALUE ? Long.MAX_VALUE : offsets.last(0) + 1);
      }
    }
    return known ? Optional.of(prefixes) : Optional.empty();
  }
}
