package io.sparklog.write;

import java.io.Serializable;

/**
 * A closed record batch of one partition that is not in a data file yet. FORMAT.md section 3.
 *
 * @param bytes the batch; its base offset is not set yet
 * @param minTimestamp the least time of its records, ms since 1970
 * @param routed whether the partitioner chose the partition for each of its records
 * @param ordered whether no record has a lower time than a record before it
 */
record Batch(byte[] bytes, long minTimestamp, boolean routed, boolean ordered) implements Serializable {}
