package io.sparklog.spark;

import java.util.Optional;
import java.util.function.Predicate;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.optimizer.NullPropagation;
import org.apache.spark.sql.catalyst.plans.logical.CreateTable;
import org.apache.spark.sql.catalyst.plans.logical.CreateTableAsSelect;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;

/**
 * The query or command of Spark that this thread plans or runs: facts that the interfaces of a source do not give. If another build of
 * Spark does not have the methods that this class uses, nothing is known.
 */
public final class RunningQuery {
  private RunningQuery() {}

  /** Whether it creates a table, and refuses an existing table: CREATE TABLE, and a save in the default mode; not in mode ignore. */
  public static boolean isOfNewTable() {
    try {
      return execution().map(QueryExecution::logical)
          .filter(plan -> plan instanceof CreateTableAsSelect filled && !filled.ignoreIfExists()
              || plan instanceof CreateTable empty && !empty.ignoreIfExists())
          .isPresent();
    } catch (LinkageError otherSpark) {
      return false;
    }
  }

  /** Whether it deletes from a view, from a DataFrame or from a WITH query, as far as Spark shows this. */
  public static boolean isDeleteThroughView() {
    try {
      return planned().filter(plan -> plan instanceof DeleteFromTable delete && !isTable(delete.table())).isPresent();
    } catch (LinkageError otherSpark) {
      return false;
    }
  }

  private static boolean isTable(LogicalPlan plan) {
    return plan instanceof SubqueryAlias alias ? isTable(alias.child()) : plan instanceof DataSourceV2Relation;
  }

  /** Whether it is known that no COUNT of it has DISTINCT. */
  public static boolean countsWithoutDistinct() {
    try {
      return planned().filter(plan -> !isDistinctCountIn(plan)).isPresent();
    } catch (LinkageError otherSpark) {
      return false;
    }
  }

  private static boolean isDistinctCountIn(LogicalPlan plan) {
    Predicate<Expression> isDistinctCount = expression -> expression instanceof AggregateExpression aggregate && aggregate.isDistinct()
        && aggregate.aggregateFunction() instanceof Count;
    return plan.exists(node -> node.expressions().exists(each -> each.exists(isDistinctCount::test)))
        || plan.subqueriesAll().exists(RunningQuery::isDistinctCountIn);
  }

  /** Whether Spark makes 0 of a COUNT of NULL before a source is asked, as it does unless a setting forbids this. */
  public static boolean countsOfNullAreGone() {
    try {
      Option<String> excluded = SQLConf.get().optimizerExcludedRules();
      return excluded.isEmpty() || !excluded.get().contains(NullPropagation.class.getSimpleName());
    } catch (LinkageError otherSpark) {
      return false;
    }
  }

  /** The plan, analyzed, of the query that this thread plans; empty unless Spark keeps it by the id of its execution. */
  private static Optional<LogicalPlan> planned() {
    // A query that another one plans while it runs, as EXPLAIN does, may be under the id of the other.
    Option<QueryPlanningTracker> planning = QueryPlanningTracker.get();
    return execution().filter(execution -> planning.contains(execution.tracker())).map(QueryExecution::analyzed);
  }

  private static Optional<QueryExecution> execution() {
    Option<SparkSession> session = SparkSession.getActiveSession();
    String id = session.isEmpty() ? null : session.get().sparkContext().getLocalProperty(SQLExecution.EXECUTION_ID_KEY());
    return Optional.ofNullable(id == null ? null : SQLExecution.getQueryExecution(Long.parseLong(id)));
  }
}
