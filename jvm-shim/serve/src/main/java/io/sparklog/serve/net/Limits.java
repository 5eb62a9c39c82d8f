package io.sparklog.serve.net;

/**
 * The limits of the network.
 *
 * @param threads that read and write
 * @param frameBytesMax the length of a request
 * @param requestBytesMax the bytes of all requests that are read or have no answer: a frame beyond waits in its socket
 * @param answerBytesMax the bytes of all answers that clients have not taken, without records: beyond it, connections end that have many
 * @param connectionsMax a further connection is ended at once
 * @param idleMs a connection ends that has asked and taken nothing for so long; −1: never
 */
public record Limits(int threads, int frameBytesMax, long requestBytesMax, long answerBytesMax, int connectionsMax, long idleMs) {}
