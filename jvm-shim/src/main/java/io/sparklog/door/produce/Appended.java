package io.sparklog.door.produce;

/**
 * Batches are in the topic, durable.
 *
 * @param base the offset of the first record; of a batch that was there already, the offset that it has
 * @param end the offset after the last record
 * @param logStart the log start offset of the partition
 */
public record Appended(long base, long end, long logStart) {}
