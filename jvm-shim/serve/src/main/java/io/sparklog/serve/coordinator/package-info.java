/**
 * Consumer groups: the requests of groups and their members, the metrics of groups, and Kafka's own coordinator, whose records are in the
 * topic {@code __consumer_offsets} of the root.
 *
 * <pre>
 * a request ──► GroupRequests ──► Groups: refreshes the topic ──► Coordinator, of one topic id
 *               the topics of it                                   │  GroupCoordinatorService of Kafka
 *                                                                  ▼
 *          TopicWriters ◄── append, with the expected end offset ── CoordinatorPartition ◄── CoordinatorTopic
 *          a version, if each partition still ends there            one for each partition
 * </pre>
 *
 * <p>No process owns a group. Each append names the end offset up to which the coordinator knows the records of the partition. If the
 * partition ends elsewhere, nothing is committed, and the coordinator loads the partition again. So two processes may both hold
 * themselves for the coordinator of a group: the first append wins, and the other process starts over.
 *
 * <p>{@code CoordinatorTopic}, {@code CoordinatorPartition}, {@code LiveRecords}, {@code LiveSizes} and {@code RecordMemory} know no group:
 * any coordinator of Kafka can have its records in a topic by them.
 */
package io.sparklog.serve.coordinator;
