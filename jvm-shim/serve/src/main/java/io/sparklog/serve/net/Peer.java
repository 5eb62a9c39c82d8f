package io.sparklog.serve.net;

import io.netty.buffer.ByteBufAllocator;
import java.net.InetAddress;

/**
 * The other end of a connection.
 *
 * @param connection the number of the connection in this process
 * @param allocator gives the buffers of answers
 */
public record Peer(long connection, InetAddress address, int port, ByteBufAllocator allocator) {}
