package io.sparklog.spark;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.CreateTableAsSelect;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import scala.Option;

/** The command of Spark that this thread runs. Where another build of Spark does not have what this uses, nothing is known. */
public final class RunningCommand {
  private RunningCommand() {}

  /** Whether it creates a table with rows, and refuses one that is there: a save in the default mode, and not in mode ignore. */
  public static boolean isOfNewTable() {
    try {
      Option<SparkSession> session = SparkSession.getActiveSession();
      String id = session.isEmpty() ? null : session.get().sparkContext().getLocalProperty(SQLExecution.EXECUTION_ID_KEY());
      QueryExecution execution = id == null ? null : SQLExecution.getQueryExecution(Long.parseLong(id));
      return execution != null && execution.logical() instanceof CreateTableAsSelect create && !create.ignoreIfExists();
    } catch (LinkageError otherSpark) {
      return false;
    }
  }
}
