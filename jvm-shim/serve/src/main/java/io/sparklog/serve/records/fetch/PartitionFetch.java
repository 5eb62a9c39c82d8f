package io.sparklog.serve.records.fetch;

/**
 * A partition that a request wants to read.
 *
 * @param topicId of the topic that is meant; null if any topic of the name is
 * @param offset of the first record
 * @param bytesMax of its batches, but for the first batch, which may be larger
 */
public record PartitionFetch(String topic, String topicId, int partition, long offset, int bytesMax) {}
