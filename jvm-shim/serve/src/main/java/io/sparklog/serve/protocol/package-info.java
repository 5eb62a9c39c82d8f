/**
 * Kafka's protocol: each API has a {@link io.sparklog.serve.protocol.Handler}, which {@link io.sparklog.serve.protocol.Handlers} lists.
 * Kafka's message classes read requests and write answers. They may change with a minor version of Kafka, so this package, {@code
 * security} and the packages of handlers alone use them: {@code records}, {@code topics} and {@code coordinator}.
 */
package io.sparklog.serve.protocol;
