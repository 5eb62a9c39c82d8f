package io.sparklog.catalog;

import io.sparklog.log.Root;
import io.sparklog.sink.PartlogWrite;
import io.sparklog.source.PartlogScanBuilder;
import io.sparklog.spark.SparkErrors;
import io.sparklog.spec.Options;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.Stores;
import java.security.SecureRandom;
import java.time.Clock;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.slf4j.LoggerFactory;

/** A root, with the options of a load, a save or a table of Spark's own catalog. Nothing is read before somebody scans or writes. */
final class PartlogTable implements SupportsRead, SupportsWrite {

  private final CaseInsensitiveStringMap properties;
  private final StructType schema;
  private final Root root;

  PartlogTable(CaseInsensitiveStringMap properties, StructType schema) {
    String path = properties.getOrDefault("path", properties.get("location"));
    if (path == null && properties.containsKey("paths")) {
      throw Options.bad("paths", properties.get("paths"), "a read is of one root; load each by itself and unite them with union()");
    }
    if (path == null) {
      throw PartlogException.of("ROOT_REQUIRED");
    }
    this.properties = properties;
    this.schema = schema;
    this.root = new Root(Stores.open(path));
  }

  /** The root of a table that names one. One that does not has a place of Spark's, and a log there would be deleted when the table is dropped or replaced. */
  private Root root() {
    if (properties.containsKey(TableCatalog.PROP_PROVIDER) && !properties.containsKey(TableCatalog.PROP_LOCATION)) {
      throw PartlogException.of("ROOT_REQUIRED");
    }
    return root;
  }

  @Override
  public String name() {
    return "partlog " + root.store().root();
  }

  @Override
  public Column[] columns() {
    return Arrays.stream(schema.fields()).map(field -> Column.create(field.name(), field.dataType(), field.nullable())).toArray(Column[]::new);
  }

  /**
   * ACCEPT_ANY_SCHEMA: a write need not have all columns of a read, and may have STRING for BINARY; the sink checks. TRUNCATE: see {@link PartlogWrite}.
   */
  @Override
  public Set<TableCapability> capabilities() {
    return EnumSet.of(TableCapability.BATCH_READ, TableCapability.BATCH_WRITE, TableCapability.TRUNCATE, TableCapability.ACCEPT_ANY_SCHEMA);
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return SparkErrors.run(() -> new PartlogScanBuilder(root(), options(options, Options.Side.READ)));
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return SparkErrors.run(() -> new PartlogWrite(root(), options(info.options(), Options.Side.WRITE), info, Clock.systemUTC(), new SecureRandom()));
  }

  /** The options of one read or write over those that the table was made with, which Spark does not merge. */
  private Options options(CaseInsensitiveStringMap given, Options.Side side) {
    Map<String, String> all = new HashMap<>();
    properties.asCaseSensitiveMap().forEach(all::put);
    given.asCaseSensitiveMap().forEach((key, value) -> {
      all.keySet().removeIf(key::equalsIgnoreCase);
      all.put(key, value);
    });
    return Options.of(all, side, LoggerFactory.getLogger(PartlogTable.class)::warn);
  }

  @Override
  public String toString() {
    return name();
  }
}
