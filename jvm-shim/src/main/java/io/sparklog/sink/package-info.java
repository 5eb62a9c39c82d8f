/**
 * Writing with Spark: its interfaces over {@link io.sparklog.write}. Checks columns and options, and copies rows into record batches
 * ({@link io.sparklog.sink.RowWriter}).
 */
package io.sparklog.sink;
