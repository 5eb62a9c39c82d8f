/**
 * The network of the server, by Netty: connections and their frames, in the order of requests. It knows neither Kafka nor the log: a {@link
 * io.sparklog.serve.net.Service} gives each connection a {@link io.sparklog.serve.net.Session}, which makes the answers.
 */
package io.sparklog.serve.net;
