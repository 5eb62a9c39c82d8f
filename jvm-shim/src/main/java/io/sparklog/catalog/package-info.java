/**
 * Where Spark enters: the format {@code partlog}, its table, and what SQL can call: functions, and the procedures of
 * {@link io.sparklog.procedures}. Nothing here reads or writes records: {@link io.sparklog.source} and {@link io.sparklog.sink} do.
 */
package io.sparklog.catalog;
