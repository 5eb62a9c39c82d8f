package io.sparklog.catalog;

import io.sparklog.spark.Connector;
import io.sparklog.spark.SparkErrors;
import io.sparklog.spec.Options;
import io.sparklog.spec.PartlogException;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SessionConfigSupport;
import org.apache.spark.sql.connector.catalog.SupportsCatalogOptions;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Utils;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.sources.StreamSourceProvider;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Option;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;

/**
 * {@code format("partlog")}. Spark makes one for each load and save.
 *
 * <p>It is a StreamSourceProvider only because Spark asks such a provider for a schema when a stream is defined. Wrong options are refused
 * then. A read reads {@link PartlogTable}.
 */
public class PartlogProvider implements SupportsCatalogOptions, SessionConfigSupport, DataSourceRegister, StreamSourceProvider {
  /** Spark asks for a public constructor without arguments. */
  public PartlogProvider() {}

  @Override
  public String shortName() {
    return PartlogTable.FORMAT;
  }

  /** {@code spark.datasource.partlog.<option>} holds for all reads and writes of a session. */
  @Override
  public String keyPrefix() {
    return PartlogTable.FORMAT;
  }

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return SparkErrors.run(() -> {
      Connector.requireOfApplication();
      return PartlogTable.columns(options);
    });
  }

  /** For batches only. A stream asks for a table with these options. */
  @Override
  public Identifier extractIdentifier(CaseInsensitiveStringMap options) {
    return SparkErrors.run(() -> {
      Connector.requireOfApplication();
      return FormatIdentifier.begun(PartlogTable.ofFormat(options).root().store().root(), options);
    });
  }

  /**
   * The catalog of the format's name, which a session that has only the jar gets here. Spark looks for it in the settings of this thread.
   * If no session is active, such as in a thread of the user, these are not the settings of a session.
   */
  @Override
  public String extractCatalog(CaseInsensitiveStringMap options) {
    String setting = "spark.sql.catalog." + PartlogTable.FORMAT;
    String expected = PartlogCatalog.class.getName();
    SQLConf conf = SQLConf.get();
    String found = conf.getConfString(setting, null);
    if (found == null) {
      conf.setConfString(setting, expected);
    } else if (!found.equals(expected)) {
      SparkErrors.act(() -> {
        throw PartlogException.of("CATALOG_TAKEN", "setting", setting, "found", found, "expected", expected);
      });
    }
    return PartlogTable.FORMAT;
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    return SparkErrors.run(() -> {
      PartlogTable table = new PartlogTable(new CaseInsensitiveStringMap(properties), schema, false);
      if (isSinkOfStream(properties.keySet())) {
        table.requireSinkOfStream();
      }
      return table;
    });
  }

  /** By the one option that only {@code writeStream.start} has: Spark does not name the use of a table when it makes the table. */
  private static boolean isSinkOfStream(Set<String> options) {
    return options.stream().anyMatch(PartlogTable.CHECKPOINT::equalsIgnoreCase)
        && options.stream().noneMatch(option -> Options.isOnlyOfReads(option));
  }

  @Override
  public Tuple2<String, StructType> sourceSchema(SQLContext context, Option<StructType> schema, String name,
      scala.collection.immutable.Map<String, String> parameters) {
    return SparkErrors.run(() -> {
      // As the user wrote them, for messages.
      Map<String, String> given = CollectionConverters
          .asJava(parameters instanceof CaseInsensitiveMap<String> any ? any.originalMap() : parameters);
      Map<String, String> options = new HashMap<>(
          CollectionConverters.asJava(DataSourceV2Utils.extractSessionConfigs(this, SQLConf.get())));
      options.keySet().removeIf(option -> given.keySet().stream().anyMatch(option::equalsIgnoreCase));
      options.putAll(given);
      CaseInsensitiveStringMap all = new CaseInsensitiveStringMap(options);
      StructType columns = inferSchema(all);
      new PartlogTable(all, columns, false).requireSourceOfStream();
      return Tuple2.apply(shortName(), columns);
    });
  }

  @Override
  public Source createSource(SQLContext context, String metadataPath, Option<StructType> schema, String name,
      scala.collection.immutable.Map<String, String> parameters) {
    return SparkErrors.run(() -> {
      throw PartlogException.of("STREAM_SOURCE_DISABLED", "class", getClass().getName());
    });
  }
}
