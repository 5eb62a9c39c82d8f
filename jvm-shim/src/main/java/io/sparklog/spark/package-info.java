/**
 * Shared by {@link io.sparklog.source}, {@link io.sparklog.sink} and {@link io.sparklog.catalog}: the names and types of the columns, and
 * how errors of the layers below become Spark's.
 */
package io.sparklog.spark;
