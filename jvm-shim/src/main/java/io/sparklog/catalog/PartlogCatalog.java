package io.sparklog.catalog;

import io.sparklog.log.Root;
import io.sparklog.log.State;
import io.sparklog.log.TopicConfig;
import io.sparklog.sink.Existence;
import io.sparklog.source.KeyRouting;
import io.sparklog.spark.Connector;
import io.sparklog.spark.RunningQuery;
import io.sparklog.spark.SparkErrors;
import io.sparklog.spec.PartlogException;
import java.io.IOException;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.catalog.TableWritePrivilege;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * {@code spark.sql.catalog.<name>}: topics as tables, and with them functions and procedures. With a root
 * ({@code spark.sql.catalog.<name>.root}) it has that root's topics; any other root is named by its path.
 */
public final class PartlogCatalog implements StagingTableCatalog, SupportsNamespaces, FunctionCatalog, ProcedureCatalog {
  private String name;
  private TableNames names;

  /** The last topic that a thread looked up. */
  private final ThreadLocal<LoadedTopic> found = new ThreadLocal<>();

  /** @param name the object by which it was looked up */
  private record LoadedTopic(Identifier name, String topicId) {}

  /** Spark asks for a public constructor without arguments. */
  public PartlogCatalog() {}

  @Override
  public void initialize(String catalogName, CaseInsensitiveStringMap options) {
    name = catalogName;
    names = SparkErrors.run(() -> new TableNames(catalogName, options));
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public String[] defaultNamespace() {
    return TableNames.defaultNamespace();
  }

  private String shown(Identifier identifier) {
    return name + "." + identifier;
  }

  /** Its cost does not depend on the other topics of the root. */
  @Override
  public boolean tableExists(Identifier identifier) {
    return SparkErrors.run(() -> {
      Optional<CatalogTarget> place = names.table(identifier);
      boolean exists = place.isPresent() && place.get().exists();
      if (exists) {
        boolean isSave = FormatIdentifier.isBegun(identifier);
        FormatIdentifier.ended(identifier);
        if ((isSave || place.get().isTopic()) && RunningQuery.isOfNewTable()) {
          throw place.get().isThere();
        }
      }
      return exists;
    });
  }

  @Override
  public Table loadTable(Identifier identifier) throws NoSuchTableException {
    if (identifier instanceof FormatIdentifier format) {
      FormatIdentifier.ended(identifier);
      return SparkErrors.run(() -> PartlogTable.ofFormat(format.options()));
    }
    CatalogTarget place = SparkErrors.run(() -> names.table(identifier)).orElseThrow(() -> new NoSuchTableException(identifier));
    if (place.topic() == null) {
      return SparkErrors.run(() -> {
        place.root().requireReadable();
        return PartlogTable.ofFormat(place.options(Map.of()));
      });
    }
    State state = SparkErrors.run(place::state).orElseThrow(() -> new NoSuchTableException(identifier));
    found.set(new LoadedTopic(identifier, state.topicId()));
    return SparkErrors
        .run(() -> place.isTopic() ? table(identifier, place, state.config(), state.topicId()) : new TopicInfo(shown(identifier), place));
  }

  private TopicTable table(Identifier identifier, CatalogTarget place, TopicConfig config, String topicId) {
    return SparkErrors.run(() -> new TopicTable(shown(identifier), place, config, topicId, null, null));
  }

  /** Spark names the next action of a statement by these. It has no words of its own for a MERGE into a table that takes any columns. */
  @Override
  public Table loadTable(Identifier identifier, Set<TableWritePrivilege> privileges) throws NoSuchTableException {
    Table table = loadTable(identifier);
    if (privileges.contains(TableWritePrivilege.UPDATE)) {
      SparkErrors.act(() -> {
        throw Definition.refused("UPDATE or MERGE", shown(identifier), "the records of a log do not change", "Append other records");
      });
    }
    return privileges.contains(TableWritePrivilege.DELETE) && table instanceof TopicTable topic ? topic.asTargetOfDelete() : table;
  }

  @Override
  public Table loadTable(Identifier identifier, String version) throws NoSuchTableException {
    return earlier(identifier, "VERSION AS OF " + version, place -> TimeTravel.version(place.root(), place.topic(), version));
  }

  @Override
  public Table loadTable(Identifier identifier, long micros) throws NoSuchTableException {
    String asked = "TIMESTAMP AS OF " + Instant.ofEpochMilli(Math.floorDiv(micros, 1000L));
    return earlier(identifier, asked, place -> TimeTravel.time(place.root(), place.topic(), micros));
  }

  /** Finds an earlier state of a topic. */
  @FunctionalInterface
  private interface Past {
    State of(CatalogTarget place) throws IOException;
  }

  private Table earlier(Identifier identifier, String asked, Past past) throws NoSuchTableException {
    SparkErrors.act(() -> TimeTravel.requireBatch(shown(identifier)));
    CatalogTarget place = requireTopic("VERSION AS OF or TIMESTAMP AS OF", identifier);
    State state = SparkErrors.run(place::state).orElseThrow(() -> new NoSuchTableException(identifier));
    return SparkErrors.run(() -> new TopicTable(shown(identifier), place, state.config(), state.topicId(), asked, past.of(place)));
  }

  /** @throws NoSuchTableException if the name cannot be one; STATEMENT_UNSUPPORTED if the statement is of another kind */
  private CatalogTarget requireTopic(String statement, Identifier identifier) throws NoSuchTableException {
    CatalogTarget place = SparkErrors.run(() -> names.table(identifier)).orElseThrow(() -> new NoSuchTableException(identifier));
    if (!place.isTopic()) {
      SparkErrors.act(() -> {
        boolean isRoot = place.topic() == null;
        String kind = isRoot ? "a name with a slash is that of a root, and of all its topics" : "it shows what the log says of a topic";
        String way = isRoot ? "Name a topic of it, whose name has no slash: " + shown(identifier) + ".orders" : "Name a topic";
        throw Definition.refused(statement, shown(identifier), kind, way);
      });
    }
    return place;
  }

  @Override
  public Table createTable(Identifier identifier, TableInfo info) throws TableAlreadyExistsException, NoSuchNamespaceException {
    try {
      CatalogTarget place = requireTopic("CREATE TABLE", identifier);
      return SparkErrors.run(() -> {
        Connector.requireOfApplication();
        TopicConfig config = TopicConfig.of(Definition.create(shown(identifier), place, info));
        // The topic is not looked up: another session may have dropped it.
        return table(identifier, place, config, new TopicStatements(place.root(), place.topic()).create(config));
      });
    } catch (NoSuchTableException e) {
      throw new NoSuchNamespaceException(identifier.namespace());
    } catch (PartlogException e) {
      if (e.id().equals("TOPIC_EXISTS") && !RunningQuery.isOfNewTable()) {
        throw new TableAlreadyExistsException(identifier); // which Spark takes for the end of CREATE TABLE IF NOT EXISTS
      }
      throw e;
    }
  }

  /** Nothing is staged: the write puts version 0 with the configuration and the records, or nothing. */
  @Override
  public StagedTable stageCreate(Identifier identifier, TableInfo info) throws TableAlreadyExistsException, NoSuchNamespaceException {
    CatalogTarget place = SparkErrors.run(() -> names.table(identifier))
        .filter(each -> each.about() == null)
        .orElseThrow(() -> new NoSuchNamespaceException(identifier.namespace()));
    if (tableExists(identifier)) {
      throw new TableAlreadyExistsException(identifier);
    }
    boolean isSave = FormatIdentifier.isBegun(identifier);
    FormatIdentifier.ended(identifier);
    return SparkErrors.run(() -> {
      Connector.requireOfApplication();
      Map<String, String> given = Definition.createAs(shown(identifier), place, info, isSave);
      if (place.topic() != null) {
        TopicTable.requireOwn(place, new CaseInsensitiveStringMap(given));
      }
      return new NewTable(shown(identifier), place, place.options(given));
    });
  }

  @Override
  public StagedTable stageReplace(Identifier identifier, TableInfo info) {
    return replace(identifier);
  }

  @Override
  public StagedTable stageCreateOrReplace(Identifier identifier, TableInfo info) {
    return replace(identifier);
  }

  private StagedTable replace(Identifier identifier) {
    return SparkErrors.run(() -> {
      throw Definition.refused("REPLACE TABLE or mode overwrite", shown(identifier), "a log is only appended to",
          "Append to it, or DROP TABLE first");
    });
  }

  @Override
  public Table alterTable(Identifier identifier, TableChange... changes) throws NoSuchTableException {
    CatalogTarget place = requireTopic("ALTER TABLE", identifier);
    // Spark has looked the table up by this very object, on this thread. So the statement alters the topic that this look-up found.
    LoadedTopic last = found.get();
    String topicId = last != null && last.name() == identifier
        ? last.topicId()
        : SparkErrors.run(place::state).orElseThrow(() -> new NoSuchTableException(identifier)).topicId();
    return SparkErrors.run(() -> {
      State altered = new TopicStatements(place.root(), place.topic()).alter(topicId,
          Definition.alter(shown(identifier), place, List.of(changes)));
      return table(identifier, place, altered.config(), altered.topicId());
    });
  }

  @Override
  public boolean dropTable(Identifier identifier) {
    CatalogTarget place;
    try {
      place = requireTopic("DROP TABLE", identifier);
    } catch (NoSuchTableException e) {
      return false;
    }
    return SparkErrors.run(() -> {
      if (place.state().isEmpty()) {
        return false;
      }
      new TopicStatements(place.root(), place.topic()).drop();
      return true;
    });
  }

  @Override
  public boolean purgeTable(Identifier identifier) {
    return dropTable(identifier);
  }

  @Override
  public void renameTable(Identifier from, Identifier to) {
    SparkErrors.act(() -> {
      throw Definition.refused("ALTER TABLE … RENAME", shown(from), "a topic keeps its name",
          "Create another with CREATE TABLE … AS SELECT");
    });
  }

  @Override
  public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
    CatalogTarget place = SparkErrors.run(() -> names.namespace(namespace)).orElseThrow(() -> new NoSuchNamespaceException(namespace));
    if (place.topic() != null) {
      if (SparkErrors.run(place::state).isEmpty()) {
        throw new NoSuchNamespaceException(namespace);
      }
      return TopicInfo.NAMES.stream().map(table -> Identifier.of(namespace, table)).toArray(Identifier[]::new);
    }
    boolean isOfCatalog = namespace.length == 0 || Arrays.equals(namespace, defaultNamespace());
    String[] own = isOfCatalog ? defaultNamespace() : namespace;
    return SparkErrors.run(() -> {
      Root root = place.root();
      try {
        root.requireReadable();
      } catch (PartlogException e) {
        // The first topic of a catalog makes the catalog's own root. A root that the statement names must exist.
        if (isOfCatalog && e.id().equals("ROOT_NOT_FOUND")) {
          return new Identifier[0];
        }
        throw e;
      }
      return root.topics().stream().map(topic -> Identifier.of(own, topic)).toArray(Identifier[]::new);
    });
  }

  @Override
  public String[][] listNamespaces() {
    return names.hasRoot() ? new String[][] {defaultNamespace()} : new String[0][];
  }

  @Override
  public String[][] listNamespaces(String[] namespace) {
    return namespace.length == 0 ? listNamespaces() : new String[0][];
  }

  @Override
  public boolean namespaceExists(String[] namespace) {
    return namespace.length == 0 || Arrays.equals(namespace, defaultNamespace())
        || SparkErrors.run(() -> names.namespace(namespace).filter(CatalogTarget::exists).isPresent());
  }

  @Override
  public Map<String, String> loadNamespaceMetadata(String[] namespace) throws NoSuchNamespaceException {
    if (!namespaceExists(namespace)) {
      throw new NoSuchNamespaceException(namespace);
    }
    return SparkErrors.run(() -> Map.of(SupportsNamespaces.PROP_LOCATION, names.namespace(namespace).orElseThrow().root().location()));
  }

  @Override
  public void createNamespace(String[] namespace, Map<String, String> metadata) {
    refuseNamespace("CREATE NAMESPACE", namespace, "a root is made by its first topic", "CREATE TABLE a topic");
  }

  @Override
  public void alterNamespace(String[] namespace, NamespaceChange... changes) {
    refuseNamespace("ALTER NAMESPACE", namespace, "a root does not have properties", "ALTER TABLE a topic");
  }

  @Override
  public boolean dropNamespace(String[] namespace, boolean cascade) {
    refuseNamespace("DROP NAMESPACE", namespace, "a root is kept", "DROP TABLE its topics");
    return false;
  }

  private void refuseNamespace(String statement, String[] namespace, String reason, String way) {
    SparkErrors.act(() -> {
      throw Definition.refused(statement, name + "." + String.join(".", namespace), reason, way);
    });
  }

  /** Functions and procedures are in the empty namespace, and in each that USE leads to: Spark looks for a bare name there. */
  private boolean isOwn(String[] namespace) {
    return namespace.length == 0 || Arrays.equals(namespace, defaultNamespace()) || names.isOfRoot(namespace) && namespaceExists(namespace);
  }

  @Override
  public Identifier[] listFunctions(String[] namespace) {
    return !isOwn(namespace)
        ? new Identifier[0]
        : PartitionFunction.all().stream().map(function -> Identifier.of(namespace, function.name())).toArray(Identifier[]::new);
  }

  @Override
  public UnboundFunction loadFunction(Identifier function) throws NoSuchFunctionException {
    if (!isOwn(function.namespace())) {
      throw new NoSuchFunctionException(function);
    }
    return PartitionFunction.named(function.name())
        .map(UnboundFunction.class::cast)
        .or(() -> KeyRouting.named(function.name()))
        .orElseThrow(() -> new NoSuchFunctionException(function));
  }

  @Override
  public Identifier[] listProcedures(String[] namespace) {
    return !isOwn(namespace)
        ? new Identifier[0]
        : Procedures.ALL.stream().map(procedure -> Identifier.of(namespace, procedure.name())).toArray(Identifier[]::new);
  }

  /** Throws errors of Spark's kind only: Spark reports any other as FAILED_TO_LOAD_ROUTINE, without its text. */
  @Override
  public UnboundProcedure loadProcedure(Identifier procedure) {
    SparkErrors.act(Connector::requireOfApplication);
    Optional<TopicProcedure> known = !isOwn(procedure.namespace()) ? Optional.empty() : Procedures.named(procedure.name());
    if (known.isPresent()) {
      return known.get();
    }
    return SparkErrors.run(() -> {
      String asked = String.join(".", procedure.namespace()) + (procedure.namespace().length == 0 ? "" : ".") + procedure.name();
      throw PartlogException.of("PROCEDURE_NOT_FOUND", "catalog", name, "procedure", asked, "procedures",
          Procedures.ALL.stream().map(TopicProcedure::name).collect(Collectors.joining(", ")));
    });
  }

  /** A topic that a write is about to create, or the topics of a root. The commit of the write is all that there is to be seen of it. */
  private static final class NewTable extends PartlogTable implements StagedTable {
    private final String name;
    private final CatalogTarget place;

    NewTable(String name, CatalogTarget place, CaseInsensitiveStringMap options) {
      super(options, PartlogTable.columns(options), true);
      this.name = name;
      this.place = place;
    }

    @Override
    public String name() {
      return name;
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
      if (place.topic() != null) {
        SparkErrors.act(() -> TopicTable.requireOwn(place, info.options()));
      }
      return write(info, Existence.NEW);
    }

    /** Two interfaces have a default of it. */
    @Override
    public CustomTaskMetric[] reportDriverMetrics() {
      return StagedTable.super.reportDriverMetrics();
    }

    @Override
    public void commitStagedChanges() {}

    @Override
    public void abortStagedChanges() {}
  }
}
