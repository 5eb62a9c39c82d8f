package io.sparklog.catalog;

import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.sink.Existence;
import io.sparklog.source.PartlogScanBuilder;
import io.sparklog.source.PrefixPredicate;
import io.sparklog.spark.Columns;
import io.sparklog.spark.QueryMemory;
import io.sparklog.spark.SparkErrors;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.Stores;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A topic as a table of a catalog; perhaps as it was at an earlier version. */
final class TopicTable extends PartlogTable {
  /** Options that would make it another table. */
  private static final List<String> OF_TOPICS = List.of("topic", "subscribe");
  private static final List<String> OF_ROOTS = List.of("path", TableCatalog.PROP_LOCATION);

  private final String name;
  private final CatalogTarget place;
  private final Map<String, String> config;
  private final String topicId;
  private final String asked;
  private final State past;
  private final boolean keepsVersions;
  private boolean isTargetOfDelete;

  /**
   * @param config of the topic, when it was looked up, created or altered
   * @param topicId its identity
   * @param asked the earlier version that is asked for, as an error names it; null for the table as it is
   * @param past the state at that version; null for the table as it is
   */
  TopicTable(String name, CatalogTarget place, TopicConfig config, String topicId, String asked, State past) {
    super(properties(place, past), Columns.typed(isText(config, TopicConfig.KEY_TYPE), isText(config, TopicConfig.VALUE_TYPE)), true);
    this.name = name;
    this.place = place;
    this.config = config.entries();
    this.topicId = topicId;
    this.asked = asked;
    this.past = past;
    this.keepsVersions = config.versionsKeepMs() > 0;
  }

  private static boolean isText(TopicConfig config, String key) {
    return config.get(key).equals("string");
  }

  private static CaseInsensitiveStringMap properties(CatalogTarget place, State past) {
    Map<String, String> properties = new HashMap<>(place.settings());
    properties.put("path", place.path());
    properties.putAll(past == null ? Map.of("topic", place.topic()) : TimeTravel.bounds(past));
    return new CaseInsensitiveStringMap(properties);
  }

  @Override
  public String name() {
    return name;
  }

  /** The topic's configuration, and nothing that CREATE TABLE would not take. */
  @Override
  public Map<String, String> properties() {
    Map<String, String> shown = new TreeMap<>(config);
    shown.put(TableCatalog.PROP_PROVIDER, FORMAT);
    shown.put(TableCatalog.PROP_LOCATION, root().store().root());
    return shown;
  }

  @Override
  public PartlogScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    SparkErrors.act(() -> requireOwn(place, options));
    if (past == null) {
      return super.newScanBuilder(options);
    }
    SparkErrors.act(() -> TimeTravel.requireNoBounds(options));
    // Spark looks a table up again when a query runs, but not an earlier version of one.
    return super.newScanBuilder(options).only(topicId, asked, keepsVersions ? Optional.of(past) : Optional.empty());
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    SparkErrors.act(() -> requireOwn(place, info.options()));
    return write(info, Existence.THERE);
  }

  /** Refuses options that name another topic or root than the table. @throws PartlogException OPTION_CONFLICT */
  static void requireOwn(CatalogTarget place, CaseInsensitiveStringMap options) {
    OF_TOPICS.forEach(key -> require(options, key, place.topic().equals(options.get(key)), "topic " + place.topic()));
    String root = place.root().store().root();
    OF_ROOTS.forEach(
        key -> require(options, key, !options.containsKey(key) || Stores.isAt(place.root().store(), options.get(key)), "the root " + root));
  }

  private static void require(CaseInsensitiveStringMap options, String key, boolean same, String own) {
    if (options.containsKey(key) && !same) {
      throw PartlogException.of("OPTION_CONFLICT", "options", "`" + key + "` = " + options.get(key) + " and the name of the table",
          "reason", "the table is of " + own);
    }
  }

  /** For the table that a DELETE names itself: of a table that was not looked up for this, no record is deleted. */
  TopicTable asTargetOfDelete() {
    isTargetOfDelete = true;
    return this;
  }

  /**
   * Refuses here what cannot be deleted: Spark would not say why.
   *
   * <p>Spark asks the table below a view too. The condition is only the condition of the DELETE then: the scan has taken over the view's
   * own condition.
   */
  @Override
  public boolean canDeleteWhere(Predicate[] predicates) {
    return SparkErrors.run(() -> {
      if (!isTargetOfDelete) {
        throw notTheTarget();
      }
      if (PrefixPredicate.of(predicates, place.topic(), partitions()).isEmpty()) {
        throw Definition.refused("This DELETE", name, "only what lies before an offset of a partition can be deleted",
            "Write, for example, WHERE partition = 0 AND offset < 100;"
                + " records go by age with SET TBLPROPERTIES ('retention.ms' = '604800000')");
      }
      return true;
    });
  }

  @Override
  public void deleteWhere(Predicate[] predicates) {
    SparkErrors.act(() -> new TopicStatements(root(), place.topic()).deleteBelow(topicId,
        PrefixPredicate.of(predicates, place.topic(), partitions()).orElseThrow()));
    QueryMemory.forget();
  }

  @Override
  public boolean truncateTable() {
    deleteWhere(new Predicate[0]);
    return true;
  }

  private int partitions() {
    return root().state(place.topic()).partitions();
  }
}
