package io.sparklog.catalog;

import io.sparklog.spark.Columns;
import io.sparklog.spark.Connector;
import io.sparklog.spark.SparkErrors;
import io.sparklog.spec.Options;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.SessionConfigSupport;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** {@code format("partlog")}. Spark makes one for each load and save. */
public final class PartlogProvider implements TableProvider, SessionConfigSupport, DataSourceRegister {
  /** Spark asks for a public constructor without arguments. */
  public PartlogProvider() {}

  @Override
  public String shortName() {
    return "partlog";
  }

  /** {@code spark.datasource.partlog.<option>} holds for all reads and writes of a session. */
  @Override
  public String keyPrefix() {
    return "partlog";
  }

  /** Looks at one option only: it is not known yet whether it is a read or a write, on which the check of the others depends. */
  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    String key = "includeHeaders";
    Map<String, String> given = options.containsKey(key) ? Map.of(key, options.get(key)) : Map.of();
    return SparkErrors.run(() -> {
      Connector.requireOfApplication();
      return Columns.read(Options.of(given, Options.Side.READ).bool(key));
    });
  }

  @Override
  public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
    return SparkErrors.run(() -> new PartlogTable(new CaseInsensitiveStringMap(properties), schema));
  }
}
