/**
 * What keeps a topic tidy, without Spark: the Kafka view, merging, deletion and clean-up, after a commit and on an operator's demand.
 * FORMAT.md sections 8 and 14.
 */
package io.sparklog.upkeep;
