/**
 * Where files are kept. {@link io.sparklog.storage.LogStore} is what the log needs of every place; {@link
 * io.sparklog.storage.LinkingStore} adds what only a disk can do, for the Kafka view. Knows no topics, records or versions.
 *
 * <p>To add a store:
 *
 * <ol>
 * <li>Write in FORMAT.md section 7 how the store puts a file if it is absent, and why exactly one of several writers wins.
 * <li>Implement {@code LogStore}, in this package: no other may use Hadoop.
 * <li>Extend {@code LogStoreContract} in a test that runs against the real thing.
 * <li>Choose the store in {@link io.sparklog.storage.Stores}, by the scheme of the root. Add cases to {@code tests/vectors/roots.json}:
 * both
 * languages must understand a root in the same way.
 * <li>If each process needs settings to open it, add them to {@link io.sparklog.storage.StoreRef}, which is sent to tasks.
 * </ol>
 */
package io.sparklog.storage;
