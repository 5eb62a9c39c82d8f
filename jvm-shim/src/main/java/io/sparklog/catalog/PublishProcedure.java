package io.sparklog.catalog;

import io.sparklog.log.Names;
import io.sparklog.log.Publisher;
import io.sparklog.log.Root;
import io.sparklog.spark.SparkErrors;
import io.sparklog.spec.PartlogException;
import io.sparklog.storage.Stores;
import java.security.SecureRandom;
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
 * {@code CALL partlog.publish(root => '…' [, topic => '…'])}: makes the Kafka view of a topic, or of all topics, right. FORMAT.md section
 * 8.
 */
final class PublishProcedure implements SimpleProcedure {
  static final String NAME = "publish";

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public String description() {
    return "publish(root, topic): makes the Kafka view of a topic, or of all topics of the root, right;"
        + " gives the number of segments brought in or mended";
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

  private record Rows(InternalRow[] rows) implements LocalScan {
    @Override
    public StructType readSchema() {
      return new StructType().add("topic", DataTypes.StringType, false).add("segments", DataTypes.IntegerType, false);
    }
  }

  @Override
  public Iterator<Scan> call(InternalRow input) {
    return SparkErrors.run(() -> {
      Root root = new Root(Stores.open(input.getString(0)));
      root.requireWritable();
      root.requireReadable();
      List<String> topics = input.isNullAt(1) ? root.topics() : List.of(root.state(input.getString(1)).topic());
      SecureRandom random = new SecureRandom();
      List<InternalRow> rows = new ArrayList<>();
      PartlogException failure = null;
      for (String topic : topics) {
        try {
          int segments = Publisher.publish(root.topic(topic), Names.identity(random));
          rows.add(new GenericInternalRow(new Object[] {UTF8String.fromString(topic), segments}));
        } catch (PartlogException e) {
          // The other topics have nothing to do with it, and come first.
          failure = failure == null ? e : failure;
        }
      }
      if (failure != null) {
        throw failure;
      }
      return List.<Scan>of(new Rows(rows.toArray(InternalRow[]::new))).iterator();
    });
  }
}
