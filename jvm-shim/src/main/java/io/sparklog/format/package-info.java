/** The bytes of record batches and of Kafka's index files. Knows no files, no topics and no Spark. FORMAT.md sections 3 and 8. */
package io.sparklog.format;
