/**
 * Where Spark enters: the format {@code partlog}, its table, and what SQL can call: functions and procedures. A procedure checks its
 * arguments, and calls {@link io.sparklog.admin}, {@link io.sparklog.merge} or {@link io.sparklog.upkeep}. Nothing here reads or writes
 * records: {@link io.sparklog.source} and {@link io.sparklog.sink} do.
 *
 * <p>The classes of a statement, each row beside the name of its package:
 *
 * <pre>{@code
 *  catalog      PartlogCatalog --> TableNames --> CatalogTarget (the target of a name)
 *                 +- TopicTable (a topic), TopicInfo (a table about it), PartlogTable (a root; a load or save: FormatIdentifier)
 *                 +- Definition (the clauses of CREATE and ALTER), TimeTravel (the offsets of a version)
 *                 +- NewTable (CREATE TABLE … AS SELECT: a write that must create its topic)
 *                 +- TopicStatements (CREATE, ALTER, TRUNCATE, DELETE, DROP) beside TopicProcedure (CALL)
 *  source       PrefixPredicate (the records that DELETE may name)
 *  admin        Administration: CreateTopic, AlterTopic, DeleteRecords, DeleteTopic
 * }</pre>
 */
package io.sparklog.catalog;
