/**
 * The next reads of a streaming query, without Spark: its topics and where they began, the limits of a trigger, and the shares of
 * partitions and tasks. FORMAT.md section 15.
 */
package io.sparklog.stream;
