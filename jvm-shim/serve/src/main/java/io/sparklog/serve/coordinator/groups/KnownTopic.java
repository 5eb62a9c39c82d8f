package io.sparklog.serve.coordinator.groups;

/**
 * A topic of the root, whose partitions members share.
 *
 * @param id as the format writes it, which is Kafka's form too
 */
public record KnownTopic(String name, String id, int partitions) {}
