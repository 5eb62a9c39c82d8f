/** The bytes of a fetch, the offsets of a time, and waiting for more records. It knows no class of Kafka. */
package io.sparklog.serve.records.fetch;
