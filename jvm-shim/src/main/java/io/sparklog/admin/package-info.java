/**
 * Changes that an operator makes to a topic, without Spark: its configuration and partitions, deleted records, its deletion, vacuum.
 * FORMAT.md section 12.
 */
package io.sparklog.admin;
