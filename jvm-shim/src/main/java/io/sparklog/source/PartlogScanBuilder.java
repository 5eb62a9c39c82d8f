package io.sparklog.source;

import io.sparklog.log.Root;
import io.sparklog.spark.Columns;
import io.sparklog.spec.Options;
import java.util.Arrays;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Takes in what Spark says of a query, and makes the read of it. */
public final class PartlogScanBuilder implements SupportsPushDownRequiredColumns {
  private final Root root;
  private final Options options;
  private StructType schema;

  /** @param options of a read */
  public PartlogScanBuilder(Root root, Options options) {
    this.root = root;
    this.options = options;
    this.schema = Columns.read(options.truth("includeHeaders"));
  }

  /** Drops whole columns only: of {@code headers} there is no part to leave out. */
  @Override
  public void pruneColumns(StructType required) {
    Set<String> names = Arrays.stream(required.fieldNames()).collect(Collectors.toSet());
    schema = new StructType(Arrays.stream(schema.fields()).filter(field -> names.contains(field.name())).toArray(StructField[]::new));
  }

  @Override
  public Scan build() {
    return new PartlogScan(root, options, schema);
  }
}
