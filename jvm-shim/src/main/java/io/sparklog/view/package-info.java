/**
 * The Kafka view of a topic, without Spark: names and indexes that Kafka's tools understand. FORMAT.md section 8.
 */
package io.sparklog.view;
