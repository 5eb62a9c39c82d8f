/**
 * Reading a root with Spark: which offsets are asked for ({@link io.sparklog.source.Subscription}, {@link
 * io.sparklog.source.OffsetBounds}), how they are shared out to tasks
 * ({@link io.sparklog.source.SplitPlanner}), and how a task reads its share ({@link io.sparklog.source.SplitReader}) and shows it to Spark
 * without copying
 * ({@link io.sparklog.source.RecordVectors}).
 */
package io.sparklog.source;
