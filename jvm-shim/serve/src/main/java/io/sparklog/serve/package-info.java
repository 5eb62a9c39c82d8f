/**
 * A root for Kafka's clients: {@link io.sparklog.serve.Serve} is the main program, and {@code RootServer} puts the packages together.
 *
 * <p>The way of a request. An arrow with a star waits for another thread:
 *
 * <pre>{@code
 *  produce        net, protocol -*> Intake (check) -*> TopicWriter (commit): data file, version -*> answer
 *  offset commit  net, protocol -*> topics of the request -*> Kafka's coordinator -*> TopicWriter (commit): the same -*> answer
 *  fetch          net, protocol -*> cursors of the partitions -> bytes of files; no records -*> CommitWaits: the next commit -> cursors
 * }</pre>
 *
 * <p>The threads, each with its work:
 *
 * <pre>{@code
 *  Netty's            num.network.threads   sockets, frames, TLS; the parse of a request, and requests that read no file
 *  server-work-n      num.io.threads        requests that read or change files
 *  server-check-n     as many, by memory    the checks of batches, which decompress them
 *  server-commit-n    one a topic at work   the commits of a topic, one after another: of clients and of the coordinator
 *  server-upkeep-n    one a topic at work   merges, the Kafka view, deletions after these commits
 *  server-timer-1     1                     begins commits and upkeeps that wait
 *  server-waits       1                     begins the polls of topics for which fetches wait; work makes the polls
 *  servers           1                     the heartbeat of this server, and the refresh of the list of servers
 *  Kafka's            Kafka's               the state of groups, one partition after another
 *  group-topics       1                     tells the coordinator which topics there are
 *  group-looks        1                     the read of the topic of groups before a request of a group
 *  coordinator-loads-n 2                    the records of a partition of groups, when this server begins to coordinate it
 *  partlog-folders    1                     tells that a file has appeared in a folder of a topic, on a disk
 *  server-metrics-n   2                     the page of metrics
 * }</pre>
 *
 * <p>No thread of the network waits for a file, and no check of batches waits on a thread of {@code server-work}.
 */
package io.sparklog.serve;
