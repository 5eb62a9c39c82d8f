package io.sparklog.source;

import io.sparklog.log.ReadableTopics;
import io.sparklog.log.State;
import io.sparklog.spark.Columns;
import io.sparklog.spark.SparkErrors;
import io.sparklog.spec.Option;
import io.sparklog.spec.Options;
import io.sparklog.spec.PartlogException;
import java.time.Clock;
import java.util.Arrays;
import java.util.Optional;
import java.util.Set;
import java.util.random.RandomGenerator;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Collects what Spark pushes down of a query, and builds the scan for it. */
public final class PartlogScanBuilder
    implements
      SupportsPushDownRequiredColumns,
      SupportsPushDownV2Filters,
      SupportsPushDownAggregates,
      SupportsPushDownLimit {
  private final ReadRequest request;
  private final boolean functions;
  private final Clock clock;
  private final RandomGenerator random;
  /** The columns that a query may name. */
  private final StructType named;
  private StructType schema;
  private PushedDown pushed = PushedDown.NOTHING;
  private boolean complete;
  private Scan metadataScan;

  /**
   * @param columns the columns of the table, with which the query was analyzed
   * @param options of a read
   * @param functions whether Spark finds the functions of our catalog: the table must belong to a catalog that has them
   * @param clock tells a stream when its micro-batches were
   * @param random names a stream's temporary files
   * @throws PartlogException OPTION_VALUE if the options ask for other columns
   */
  public PartlogScanBuilder(ReadableTopics root, StructType columns, Options options, boolean functions, Clock clock,
      RandomGenerator random) {
    boolean headers = Arrays.asList(columns.fieldNames()).contains(Columns.HEADERS);
    if (options.bool("includeHeaders") != headers) {
      String found = headers
          ? "the column headers; name the columns you want in place of *"
          : "no column headers; give the table another option: ALTER TABLE … SET TBLPROPERTIES ('includeHeaders' = 'true')";
      String reason = "a table's columns are fixed when it is defined; this one has " + found;
      throw Option.invalidValue("includeHeaders", options.text("includeHeaders"), reason);
    }
    this.request = new ReadRequest(root, options);
    this.schema = columns;
    this.named = new StructType(
        Stream.of(columns, Columns.METADATA).flatMap(each -> Arrays.stream(each.fields())).toArray(StructField[]::new));
    this.functions = functions;
    this.clock = clock;
    this.random = random;
  }

  /**
   * An earlier version is read: the topic must be this one, and not another that has taken its name.
   *
   * @param topicId its identity
   * @param version as an error names it: VERSION AS OF 3
   * @param then the state to read; empty for the newest one
   */
  public PartlogScanBuilder only(String topicId, String version, Optional<State> then) {
    request.only(topicId, version, then);
    return this;
  }

  @Override
  public Predicate[] pushPredicates(Predicate[] predicates) {
    pushed = PushedDown.of(predicates);
    return Arrays.stream(predicates).filter(predicate -> !pushed.predicates().contains(predicate)).toArray(Predicate[]::new);
  }

  @Override
  public Predicate[] pushedPredicates() {
    return pushed.predicates().toArray(Predicate[]::new);
  }

  /** Each task stops there; Spark takes the part that it needs of their results. */
  @Override
  public boolean pushLimit(int limit) {
    pushed = pushed.upTo(limit);
    return true;
  }

  @Override
  public boolean isPartiallyPushed() {
    return true;
  }

  /** If not, Spark adds up what {@link #pushAggregation} gives. */
  @Override
  public boolean supportCompletePushDown(Aggregation aggregation) {
    complete = AggregateScan.isSureOf(aggregation) && AggregateScan.of(aggregation, named, request, pushed, true).isPresent();
    return complete;
  }

  /** Counts and bounds that the state knows need no record. */
  @Override
  public boolean pushAggregation(Aggregation aggregation) {
    metadataScan = AggregateScan.of(aggregation, named, request, pushed, complete).orElse(null);
    return metadataScan != null;
  }

  /** Drops whole columns only: parts of {@code headers} cannot be left out. */
  @Override
  public void pruneColumns(StructType required) {
    Set<String> names = Arrays.stream(required.fieldNames()).collect(Collectors.toSet());
    schema = new StructType(Arrays.stream(named.fields()).filter(field -> names.contains(field.name())).toArray(StructField[]::new));
  }

  @Override
  public Scan build() {
    return metadataScan != null ? metadataScan : SparkErrors.run(() -> new PartlogScan(request, schema, pushed, functions, clock, random));
  }
}
