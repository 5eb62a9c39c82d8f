package io.sparklog.read;

import io.sparklog.log.State;

/** The offsets [{@code start}, {@code end}) of a partition, all of them in the state. */
public record OffsetRange(State state, int partition, long start, long end) {}
