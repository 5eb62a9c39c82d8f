/**
 * Reading with Spark: its interfaces over {@link io.sparklog.read}. It answers Spark's questions to a table, a scan and a task, in Spark's
 * own types; records are shown to it without copying ({@link io.sparklog.source.RecordVectors}).
 */
package io.sparklog.source;
