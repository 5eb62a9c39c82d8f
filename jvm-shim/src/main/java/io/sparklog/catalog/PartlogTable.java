package io.sparklog.catalog;

import io.sparklog.log.QueryStart;
import io.sparklog.log.Root;
import io.sparklog.sink.Existence;
import io.sparklog.sink.PartlogWrite;
import io.sparklog.sink.SinkMetrics;
import io.sparklog.source.PartlogScanBuilder;
import io.sparklog.source.ReadRequest;
import io.sparklog.spark.Columns;
import io.sparklog.spark.RunningQuery;
import io.sparklog.spark.SessionSettings;
import io.sparklog.spark.SparkErrors;
import io.sparklog.spec.Option;
import io.sparklog.spec.Options;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Warnings;
import io.sparklog.storage.CheckpointFolders;
import java.io.IOException;
import java.security.SecureRandom;
import java.time.Clock;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.read.streaming.ReportsSinkMetrics;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A root, with the options of a load, a save or a table of Spark's own catalog. Nothing is read before a scan or a write. */
class PartlogTable implements SupportsRead, SupportsWrite, SupportsMetadataColumns, ReportsSinkMetrics, KeepsRecords {
  /** The name of the format, of its catalog and of its settings. */
  static final String FORMAT = "partlog";

  /** By session, the options without effect that it was warned about. */
  private static final Map<Object, Set<String>> WARNED = Collections.synchronizedMap(new WeakHashMap<>());

  /** The option of a query that writes: the folder of its checkpoint. */
  static final String CHECKPOINT = "checkpointLocation";

  private final CaseInsensitiveStringMap properties;
  private final StructType schema;
  private final boolean functions;
  private final String path;
  private final Root root;
  private final SinkMetrics metrics = new SinkMetrics();

  /** The table of a load or save in the format, as a catalog gives it, with the columns that the options ask for. */
  static PartlogTable ofFormat(CaseInsensitiveStringMap options) {
    return new PartlogTable(options, columns(options), true);
  }

  /**
   * Looks at few options only. The check of the others depends on whether it is a read or a write, which is not known yet.
   *
   * @throws PartlogException OPTION_VALUE
   */
  static StructType columns(CaseInsensitiveStringMap options) {
    TimeTravel.requireNow(options);
    String key = "includeHeaders";
    Map<String, String> given = options.containsKey(key) ? Map.of(key, options.get(key)) : Map.of();
    return Columns.read(Options.of(given, Options.Side.READ).bool(key));
  }

  /** @param functions whether a {@link PartlogCatalog} gives it to Spark, which then finds the functions of that catalog */
  PartlogTable(CaseInsensitiveStringMap properties, StructType schema, boolean functions) {
    String path = properties.getOrDefault("path", properties.get("location"));
    if (path == null && properties.containsKey("paths")) {
      throw Option.invalidValue("paths", properties.get("paths"),
          "a read takes one root; load each separately and combine them with union()");
    }
    if (path == null) {
      throw PartlogException.of("ROOT_REQUIRED");
    }
    this.properties = properties;
    this.schema = schema;
    this.functions = functions;
    this.path = path;
    this.root = root(CaseInsensitiveStringMap.empty());
  }

  /** The root. */
  final Root root() {
    return root;
  }

  /** Whether it is a table of Spark's own catalog, not of one load or save. */
  private boolean isOfCatalog() {
    return properties.containsKey(TableCatalog.PROP_PROVIDER);
  }

  /**
   * Refuses a table of Spark's catalog without a root: Spark would keep it at a place of its choice, and delete a log there when the table
   * is dropped or replaced.
   *
   * @throws PartlogException ROOT_REQUIRED
   */
  private Root requireRoot(CaseInsensitiveStringMap options) {
    if (isOfCatalog() && !properties.containsKey(TableCatalog.PROP_LOCATION)) {
      throw PartlogException.of("ROOT_REQUIRED");
    }
    return root(options);
  }

  /** The root, opened with the settings of the session, the table, and one read or write. */
  private Root root(CaseInsensitiveStringMap options) {
    return Root.of(path, () -> {
      Map<String, String> settings = new HashMap<>(properties.asCaseSensitiveMap());
      settings.putAll(options.asCaseSensitiveMap());
      return SessionSettings.with(settings);
    });
  }

  @Override
  public String name() {
    return "partlog " + root.store().root();
  }

  @Override
  public Column[] columns() {
    return Arrays.stream(schema.fields())
        .map(field -> Column.create(field.name(), field.dataType(), field.nullable()))
        .toArray(Column[]::new);
  }

  @Override
  public MetadataColumn[] metadataColumns() {
    return Arrays.stream(Columns.METADATA.fields()).map(HiddenColumn::new).toArray(MetadataColumn[]::new);
  }

  /** For DESCRIBE EXTENDED and SHOW TBLPROPERTIES: the options it was made with, and that its log stays when it is dropped. */
  @Override
  public Map<String, String> properties() {
    Map<String, String> shown = new HashMap<>(properties.asCaseSensitiveMap());
    // Spark passes the options of CREATE TABLE on twice. ALTER TABLE changes only the copy that counts.
    shown.keySet().removeIf(key -> key.startsWith(TableCatalog.OPTION_PREFIX));
    shown.replaceAll((key, value) -> SessionSettings.isOfHadoop(key) ? "(not shown)" : value);
    if (isOfCatalog() && shown.containsKey(TableCatalog.PROP_LOCATION)) {
      shown.put(TableCatalog.PROP_EXTERNAL, "true");
    }
    return shown;
  }

  /**
   * ACCEPT_ANY_SCHEMA: a write need not have all columns of a read, and may have STRING for BINARY; the sink checks. TRUNCATE: see {@link
   * PartlogWrite}.
   */
  @Override
  public Set<TableCapability> capabilities() {
    return EnumSet.of(TableCapability.BATCH_READ, TableCapability.MICRO_BATCH_READ, TableCapability.BATCH_WRITE,
        TableCapability.STREAMING_WRITE, TableCapability.TRUNCATE, TableCapability.ACCEPT_ANY_SCHEMA);
  }

  @Override
  public PartlogScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    if (RunningQuery.isDeleteThroughView()) {
      // Spark itself would say INTERNAL_ERROR of most views.
      SparkErrors.act(() -> {
        throw notTheTarget();
      });
    }
    return SparkErrors.run(() -> new PartlogScanBuilder(requireRoot(options), schema, options(options, Options.Side.READ), functions,
        Clock.systemUTC(), new SecureRandom()));
  }

  /** The refusal of a DELETE that does not name the table itself. */
  final PartlogException notTheTarget() {
    return Definition.refused("DELETE through a view or a WITH query", name(), "the table has records that these do not show",
        "DELETE FROM a topic by its name in a catalog, for example WHERE partition = 0 AND offset < 100");
  }

  @Override
  public PartlogException keepsRecords(String statement) {
    return Definition.refused(statement, name(), "records are deleted from a topic by its name in a catalog alone",
        "Name it so, for example DELETE FROM log.orders WHERE partition = 0 AND offset < 100, or CALL partlog.delete_records");
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return write(info, Existence.ANY);
  }

  /** @param asked whether the topics must exist */
  final PartlogWrite write(LogicalWriteInfo info, Existence asked) {
    return SparkErrors.run(() -> new PartlogWrite(requireRoot(info.options()), options(info.options(), Options.Side.WRITE), info, metrics,
        Clock.systemUTC(), new SecureRandom()).to(asked));
  }

  /** @throws PartlogException the errors of {@link ReadRequest#requireStream}, OPTION_UNKNOWN, OPTION_VALUE, OPTION_CONFLICT */
  void requireSourceOfStream() {
    ReadRequest.requireStream(requireRoot(CaseInsensitiveStringMap.empty()), parsed(CaseInsensitiveStringMap.empty(), Options.Side.READ));
  }

  /**
   * @throws PartlogException what {@link PartlogWrite#requireStream} throws, OPTION_UNKNOWN, OPTION_VALUE, OPTION_CONFLICT,
   *     CHECKPOINT_IN_ROOT
   */
  void requireSinkOfStream() throws IOException {
    PartlogWrite.requireStream(requireRoot(CaseInsensitiveStringMap.empty()), parsed(CaseInsensitiveStringMap.empty(), Options.Side.WRITE));
    QueryStart.requireOutsideOfRootsIfNew(CheckpointFolders.open(properties.get(CHECKPOINT), () -> SessionSettings.with(Map.of())));
  }

  /** Spark asks at the end of each trigger of a stream that writes to this table. */
  @Override
  public Map<String, String> metrics() {
    return metrics.take();
  }

  /** The options of one read or write, put over the options of the table or view: Spark does not merge them. */
  private Options parsed(CaseInsensitiveStringMap given, Options.Side side) {
    return Options.of(given.asCaseSensitiveMap(), properties.asCaseSensitiveMap(), side);
  }

  /** Like {@link #parsed}, with a warning of options without effect. A stream's query, which has a session of its own, gives it. */
  private Options options(CaseInsensitiveStringMap given, Options.Side side) {
    Options options = parsed(given, side);
    options.warning(key -> warnedInThisSession().add(key)).ifPresent(text -> Warnings.warn(PartlogTable.class, text));
    return options;
  }

  /** A job has many reads, all with the same options, so it is warned once. */
  private static Set<String> warnedInThisSession() {
    Object session = SparkSession.getActiveSession().getOrElse(() -> PartlogTable.class);
    return WARNED.computeIfAbsent(session, another -> ConcurrentHashMap.newKeySet());
  }

  @Override
  public String toString() {
    return name();
  }

  /** A column that a query gets only where it names the column. */
  private record HiddenColumn(StructField field) implements MetadataColumn {
    @Override
    public String name() {
      return field.name();
    }

    @Override
    public DataType dataType() {
      return field.dataType();
    }

    @Override
    public boolean isNullable() {
      return field.nullable();
    }

    @Override
    public String comment() {
      return field.getComment().getOrElse(() -> null);
    }
  }
}
