/**
 * Where files are kept. {@link io.sparklog.storage.LogStore} has the operations that the log needs of every place, and {@link
 * io.sparklog.storage.ReadStore} is its reading half; {@link io.sparklog.storage.LinkingStore} adds the calls of a disk, for the Kafka
 * view. Knows no topics, records or versions.
 *
 * <p>How to add a store: CONTRIBUTING.md.
 */
package io.sparklog.storage;
