package io.sparklog.log;

import java.io.Serializable;

/**
 * What makes a write exactly once: a streaming query and its epoch, or a user's {@code txnAppId} and {@code txnVersion}. An epoch is
 * applied to a topic at most once, and none after a later one.
 *
 * @param epoch at least 0
 */
public record Query(String id, long epoch) implements Serializable {}
