/** Checks of the batches that clients send, and their commits. It knows no class of Kafka. */
package io.sparklog.door.produce;
