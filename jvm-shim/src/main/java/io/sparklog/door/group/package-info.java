/** Consumer groups by the coordinator of Kafka, whose records are in the topic {@code __consumer_offsets}. */
package io.sparklog.door.group;
