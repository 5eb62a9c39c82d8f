package io.sparklog.catalog;

import io.sparklog.log.Root;
import io.sparklog.log.Roots;
import io.sparklog.log.TopicLog;
import io.sparklog.spark.SparkErrors;
import io.sparklog.spec.PartlogException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.SimpleProcedure;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * {@code CALL partlog.<name>(root => '…' [, topic => '…'])}: does the same for one topic of a root, or for each of them, and returns a
 * row for each.
 */
abstract class RootProcedure implements SimpleProcedure {
  private final String name;
  private final String description;
  private final String column;

  /** @param column name of the number in each row, beside the topic */
  RootProcedure(String name, String description, String column) {
    this.name = name;
    this.description = description;
    this.column = column;
  }

  /** Does it for one topic, which exists, and returns the number for its row. */
  abstract int call(TopicLog topic);

  @Override
  public String name() {
    return name;
  }

  @Override
  public String description() {
    return name + "(root, topic): " + description;
  }

  @Override
  public ProcedureParameter[] parameters() {
    return new ProcedureParameter[] {ProcedureParameter.in("root", DataTypes.StringType).comment("the root").build(),
        ProcedureParameter.in("topic", DataTypes.StringType)
            .defaultValue("NULL")
            .comment("the topic; all topics of the root without it")
            .build()};
  }

  @Override
  public boolean isDeterministic() {
    return false;
  }

  private record Rows(StructType readSchema, InternalRow[] rows) implements LocalScan {}

  @Override
  public Iterator<Scan> call(InternalRow input) {
    return SparkErrors.run(() -> {
      Root root = Roots.open(input.getString(0));
      root.requireWritable();
      root.requireReadable();
      List<String> topics = input.isNullAt(1) ? root.topics() : List.of(root.state(input.getString(1)).topic());
      List<InternalRow> rows = new ArrayList<>();
      PartlogException failure = null;
      for (String topic : topics) {
        try {
          rows.add(new GenericInternalRow(new Object[] {UTF8String.fromString(topic), call(root.topic(topic))}));
        } catch (PartlogException e) {
          // The other topics are not affected, so they are done before the first failure is reported.
          failure = failure == null ? e : failure;
        }
      }
      if (failure != null) {
        throw failure;
      }
      StructType schema = new StructType().add("topic", DataTypes.StringType, false).add(column, DataTypes.IntegerType, false);
      return List.<Scan>of(new Rows(schema, rows.toArray(InternalRow[]::new))).iterator();
    });
  }
}
