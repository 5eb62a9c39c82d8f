package io.sparklog.catalog;

import io.sparklog.spark.SparkErrors;
import io.sparklog.spec.PartlogException;
import org.apache.spark.sql.connector.catalog.SupportsDeleteV2;
import org.apache.spark.sql.connector.expressions.filter.Predicate;

/** A table that deletes nothing, and gives the reason: Spark would say only that the table does not support it. */
interface KeepsRecords extends SupportsDeleteV2 {
  /** The refusal of a statement. */
  PartlogException keepsRecords(String statement);

  @Override
  default boolean canDeleteWhere(Predicate[] predicates) {
    return SparkErrors.run(() -> {
      throw keepsRecords("DELETE");
    });
  }

  @Override
  default void deleteWhere(Predicate[] predicates) {
    canDeleteWhere(predicates);
  }

  @Override
  default boolean truncateTable() {
    return SparkErrors.run(() -> {
      throw keepsRecords("TRUNCATE TABLE");
    });
  }
}
