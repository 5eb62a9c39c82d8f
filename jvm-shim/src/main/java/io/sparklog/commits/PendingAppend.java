package io.sparklog.commits;

import java.util.concurrent.CompletableFuture;

/**
 * Batches of one partition that wait for their commit.
 *
 * @param bytes that they take
 * @param checked is complete when they are checked; {@link AppendRefused} if they may not be added
 * @param done is complete when they are durable; {@link AppendRefused} if they are not added
 * @param sinceMs when they came, in ms since 1970
 */
record PendingAppend(int partition, long bytes, CompletableFuture<PreparedAppend> checked, CompletableFuture<AppendResult> done,
    long sinceMs) {}
