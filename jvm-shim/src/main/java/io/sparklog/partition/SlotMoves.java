package io.sparklog.partition;

/**
 * Slots that a partition takes from others.
 *
 * @param to the partition
 * @param slots at least one, ascending
 */
public record SlotMoves(int to, int[] slots) {}
