package io.sparklog.door.net;

/**
 * The limits of the network.
 *
 * @param threads that read and write
 * @param frameBytesMax the length of a request
 */
public record Limits(int threads, int frameBytesMax) {}
