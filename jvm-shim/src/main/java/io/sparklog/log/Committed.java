package io.sparklog.log;

import java.util.Optional;

/**
 * The outcome of a commit for one topic.
 *
 * @param version the version that it put; empty if there was nothing to commit, or the topic held the change already
 * @param liveSegments of the topic afterwards; 0 if nothing was put
 * @param mergedBytes of the segments that merging made afterwards
 * @param commitMs how long the commit took, including the writing of the pool
 * @param tidyMs how long the upkeep after the commit took, such as the Kafka view
 */
public record Committed(String topic, Optional<Version> version, long liveSegments, long mergedBytes, long commitMs, long tidyMs) {}
