/**
 * Kafka's protocol: {@link io.sparklog.serve.protocol.Handlers} has the handler of each API. Kafka's message classes read requests and
 * write answers. They may change with a minor version of Kafka, so this package, {@code security} and the packages of handlers alone use
 * them: {@code records}, {@code topics} and {@code coordinator}.
 */
package io.sparklog.serve.protocol;
