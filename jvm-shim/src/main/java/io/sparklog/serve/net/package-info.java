/**
 * The network of the door, by Netty: connections and their frames, in the order of requests. It knows neither Kafka nor the log: a {@link
 * io.sparklog.door.net.Service} gives each connection a {@link io.sparklog.door.net.Session}, which makes the answers.
 */
package io.sparklog.door.net;
