/**
 * The bytes of record batches and of Kafka's index files. {@link io.sparklog.format.BatchDecoder} checks the CRC of a batch and its
 * records. Knows no files, no topics and no Spark. FORMAT.md sections 3 and 8.
 */
package io.sparklog.format;
