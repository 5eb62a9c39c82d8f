/**
 * Consumer groups of Kafka's clients: Kafka's own coordinator, whose records are in the topic {@code __consumer_offsets} of the root.
 *
 * <pre>
 * a request ──► Groups ──► a look at the topic: did another process add records? ──► Coordinator (one for each topic id)
 *                                                                                     │  GroupCoordinatorService of Kafka
 *                            OffsetsTopic ◄── append, with the expected end offset ── │  GroupPartition: one for each partition
 *                            a version, if each partition still ends there            ▼
 * </pre>
 *
 * <p>No process owns a group. Each append names the end offset up to which the coordinator knows the records of the partition. If the
 * partition ends elsewhere, nothing is committed, and the coordinator loads the partition again. So two processes may both hold
 * themselves for the coordinator of a group: the first append wins, and the other process starts over.
 */
package io.sparklog.serve.coordinator.groups;
