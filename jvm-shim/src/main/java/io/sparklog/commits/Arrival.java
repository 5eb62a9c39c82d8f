package io.sparklog.commits;

import java.util.concurrent.CompletableFuture;

/**
 * Batches of one partition that wait for their commit.
 *
 * @param bytes that they take
 * @param checked is complete when they are checked; {@link Refused} if they may not be added
 * @param done is complete when they are durable; {@link Refused} if they are not added
 * @param sinceMs when they came, in ms since 1970
 */
record Arrival(int partition, long bytes, CompletableFuture<Checked> checked, CompletableFuture<Appended> done, long sinceMs) {}
