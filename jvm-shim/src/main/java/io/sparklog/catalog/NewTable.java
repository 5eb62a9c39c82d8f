package io.sparklog.catalog;

import io.sparklog.spark.SparkErrors;
import io.sparklog.sink.Existence;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A topic that a write is about to create, or the topics of a root. The commit of the write is all that there is to be seen of it. */
final class NewTable extends PartlogTable implements StagedTable {
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
