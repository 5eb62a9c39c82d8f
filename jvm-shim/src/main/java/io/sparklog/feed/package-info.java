/**
 * Waiting for commits. The readers of a process share the refreshes of a topic: {@code CommitFeed} has the newest state that any of them
 * has seen. {@code CommitWaits} holds the requests that wait in a server, {@code CommitReader} a thread that reads on and on.
 *
 * <p>The pause between two refreshes is a tenth of the silence, within these limits. A commit that a server makes ends the pauses of its
 * clients at once. Where the topic is watched, each commit ends each pause: on Linux, on a file system whose kernel sees each change.
 *
 * <pre>{@code
 *  reader                       watched disk      other disk      over a network
 *  a fetch that waits           500 to 1,000 ms   20 to 50 ms     500 to 5,000 ms
 *  an idle query of Spark       0 to 100 ms       no pause        0 ms to maxPollDelay
 * }</pre>
 *
 * <p>A refresh takes two stats on a disk, and a LIST or two requests over a network.
 */
package io.sparklog.feed;
