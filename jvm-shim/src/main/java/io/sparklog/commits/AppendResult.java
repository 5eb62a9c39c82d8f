package io.sparklog.commits;

/**
 * Batches are in the topic, durable.
 *
 * @param base the offset of the first record; of a batch that was there already, the offset that it has
 * @param end the offset after the last record
 * @param logStart the log start offset of the partition
 * @param time that the log gave to the records, in ms since 1970; −1 if it gave none, or if the batch was there already
 */
public record AppendResult(long base, long end, long logStart, long time) {}
