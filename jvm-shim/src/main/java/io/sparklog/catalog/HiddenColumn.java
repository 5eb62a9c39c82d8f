package io.sparklog.catalog;

import io.sparklog.spark.Columns;
import java.util.Arrays;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;

/** A column that a query gets only where it names the column. */
record HiddenColumn(StructField field) implements MetadataColumn {
  static MetadataColumn[] all() {
    return Arrays.stream(Columns.METADATA.fields()).map(HiddenColumn::new).toArray(MetadataColumn[]::new);
  }

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
