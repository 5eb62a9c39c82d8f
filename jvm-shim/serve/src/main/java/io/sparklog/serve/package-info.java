/**
 * A root for Kafka's clients: {@link io.sparklog.serve.Serve} is the main program, and {@code RootServer} puts the packages together.
 *
 * <p>The way of a request. An arrow with a star is to another thread:
 *
 * <pre>{@code
 *  produce        network: queue of the topic -*> server-commit: waits for the check; data file, version -*> network: answer
 *                                             -*> server-check: the batches
 *  offset commit  network -*> server-work: topics -*> group-looks -*> Kafka's coordinator -*> server-commit -*> Kafka's -*> network
 *  fetch          network -*> server-work: enough records by feed? else CommitWaits, and again; then cursors -*> network: bytes of files
 * }</pre>
 *
 * <p>The threads, each with its work:
 *
 * <pre>{@code
 *  Netty's             num.network.threads  sockets, frames, TLS; the parse of a request, and requests that read no file; answers, with
 *                                           the bytes of files
 *  server-work-n       num.io.threads       requests that read or change files, with the upkeep of changed topics; refreshes of topics
 *  server-check-n      as many, by memory   the newest state of a topic, and the checks of batches, which decompress them
 *  server-commit-n     one a topic at work  the commits of a topic, one after another: of clients and of the coordinator; their answers
 *  server-upkeep-n     one a topic at work  merges, the Kafka view, deletions after these commits
 *  server-timer-1      1                    begins commits and upkeeps that wait
 *  server-waits        1                    begins the refreshes of topics for which fetches wait; server-work makes them
 *  servers             1                    the heartbeat of this server, and the refresh of the list of servers
 *  group-looks-1       1                    the refresh of the topic of groups before a request of a group; creates it, and the coordinator
 *  group-topics-1      1                    tells the coordinator which topics there are
 *  Kafka's             4, 2, 1, 1           the state of groups, a partition at a time; patterns and assignments; timers
 *  coordinator-loads-n 2                    the records of a partition of groups, when this server begins to coordinate it
 *  partlog-folders     1                    tells that a file has appeared in a folder of a topic, on a disk
 *  partlog-…           by setting           requests, syncs and closes of stores
 *  server-metrics      2                    the page of metrics
 *  main, server-end    1 each               the start; the end in order. server-input waits for the end of the standard input
 * }</pre>
 *
 * <p>No thread of the network waits for the store or for another thread; it sends bytes of files. No check of batches waits on a thread of
 * {@code server-work}.
 */
package io.sparklog.serve;
