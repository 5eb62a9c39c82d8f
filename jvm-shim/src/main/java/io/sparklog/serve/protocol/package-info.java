/**
 * Kafka's protocol: each API has a {@link io.sparklog.door.api.Handler}, which {@link io.sparklog.door.api.Handlers} lists. Kafka's message
 * classes read requests and write answers. They may change with a minor version of Kafka, so this package, {@code group} and {@code
 * security} alone use them.
 */
package io.sparklog.door.api;
