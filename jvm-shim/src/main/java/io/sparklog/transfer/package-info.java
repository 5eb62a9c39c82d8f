/**
 * Topics that move as a whole, without Spark: a copy with another number of partitions ({@link io.sparklog.transfer.Rebuild}), and an
 * export for Kafka's tools ({@link io.sparklog.transfer.KafkaExport}).
 */
package io.sparklog.transfer;
