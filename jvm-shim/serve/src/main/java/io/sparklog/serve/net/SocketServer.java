package io.sparklog.serve.net;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.PooledByteBufAllocator;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.group.ChannelGroup;
import io.netty.channel.group.DefaultChannelGroup;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.stream.ChunkedWriteHandler;
import io.netty.handler.timeout.IdleStateHandler;
import io.netty.util.concurrent.GlobalEventExecutor;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** Listens. An address is taken first, and served later, so that a service can know all addresses of its server. */
public final class SocketServer {
  /** The bytes of requests of clients that have not proved their names. */
  private static final long STRANGERS_BYTES = 8 << 20;

  /** The end of connections and threads that wait for nothing may take so long. */
  private static final long LAST_MS = 1000;

  private final Limits limits;
  private final Budget budget;
  private final Budget strangers;
  private final AnswerMemory answers;
  private final EventLoopGroup threads;
  private final List<Channel> listening = new ArrayList<>();
  private final ChannelGroup connections = new DefaultChannelGroup(GlobalEventExecutor.INSTANCE);
  private final AtomicLong begun = new AtomicLong();
  private final AtomicLong refused = new AtomicLong();

  public SocketServer(Limits limits) {
    this.limits = limits;
    this.budget = new Budget(limits.requestBytesMax(), limits.frameBytesMax());
    long strangersBytes = Math.min(STRANGERS_BYTES, limits.requestBytesMax());
    this.strangers = new Budget(strangersBytes, strangersBytes);
    this.answers = new AnswerMemory(limits.answerBytesMax());
    this.threads = new MultiThreadIoEventLoopGroup(limits.threads(), NioIoHandler.newFactory());
  }

  /** An address that is taken. */
  public final class Listening {
    private final Channel channel;
    private Service service;

    private Listening(InetSocketAddress address, SslContext tls) throws IOException {
      ChannelFuture bound = new ServerBootstrap().group(threads)
          .channel(NioServerSocketChannel.class)
          .option(ChannelOption.AUTO_READ, false)
          .option(ChannelOption.SO_REUSEADDR, true)
          .option(ChannelOption.SO_BACKLOG, 1024)
          // Netty's usual allocator keeps a whole chunk of memory while a client that takes nothing has a part of the chunk.
          .childOption(ChannelOption.ALLOCATOR, PooledByteBufAllocator.DEFAULT)
          .childOption(ChannelOption.TCP_NODELAY, true)
          .childOption(ChannelOption.SO_KEEPALIVE, true)
          .childHandler(new ChannelInitializer<SocketChannel>() {
            @Override
            protected void initChannel(SocketChannel connection) {
              begin(connection, service, tls);
            }
          })
          .bind(address)
          .awaitUninterruptibly();
      if (!bound.isSuccess()) {
        throw new IOException(bound.cause().getMessage(), bound.cause());
      }
      channel = bound.channel();
    }

    /** The address, with the port that was free if 0 was asked for. */
    public InetSocketAddress address() {
      return (InetSocketAddress) channel.localAddress();
    }

    /** Accepts connections from now on, and the connections that came since the address was taken. */
    public void serve(Service of) {
      service = of;
      channel.config().setAutoRead(true);
    }
  }

  private void begin(SocketChannel connection, Service service, SslContext tls) {
    if (connections.size() >= limits.connectionsMax()) {
      connection.close();
      refused.incrementAndGet();
      return;
    }
    connections.add(connection);
    InetSocketAddress from = connection.remoteAddress();
    Session session = service.open(new Peer(begun.incrementAndGet(), from.getAddress(), from.getPort(), connection.alloc()));
    connection.closeFuture().addListener(closed -> session.ended());
    if (tls != null) {
      connection.pipeline().addLast(tls.newHandler(connection.alloc()), new ChunkedWriteHandler(), new FileRegions());
    }
    if (limits.idleMs() >= 0) {
      connection.pipeline().addLast(new IdleStateHandler(0, 0, limits.idleMs(), TimeUnit.MILLISECONDS));
    }
    Reading reading = new Reading(connection);
    Frames frames = new Frames(() -> session.isTrusted() ? budget : strangers, reading,
        () -> Math.min(session.frameBytesMax(), limits.frameBytesMax()));
    connection.pipeline().addLast(frames, new Connection(session, reading, answers));
  }

  /**
   * Takes an address.
   *
   * @param tls encrypts the connections; null if they are plain
   * @throws IOException such as "Address already in use"
   */
  public Listening listen(InetSocketAddress address, SslContext tls) throws IOException {
    Listening taken = new Listening(address, tls);
    listening.add(taken.channel);
    return taken;
  }

  /** How many connections there are now. */
  public int connections() {
    return connections.size();
  }

  /** How many connections there have been. */
  public long connectionsBegun() {
    return begun.get();
  }

  /** How many connections were ended at once, because there were as many as may be. */
  public long connectionsRefused() {
    return refused.get();
  }

  /** The bytes of requests that the server reads, or has not answered. */
  public long requestBytes() {
    return limits.requestBytesMax() - budget.free();
  }

  /** The bytes of answers that clients have not taken, without records. */
  public long answerBytes() {
    return answers.bytes();
  }

  /** How many requests wait for memory before they are read. */
  public int requestsWaiting() {
    return budget.waiting();
  }

  /** Accepts no further connection. */
  public void closeListening() {
    listening.forEach(channel -> channel.close().awaitUninterruptibly());
  }

  /** Answers the requests that were taken, then ends. @param patienceMs after that connections are ended as they are */
  public void drain(long patienceMs) {
    closeListening();
    connections.forEach(connection -> connection.pipeline().fireUserEventTriggered(Connection.DRAIN));
    connections.newCloseFuture().awaitUninterruptibly(patienceMs);
    connections.close().awaitUninterruptibly(LAST_MS);
    threads.shutdownGracefully(0, LAST_MS, TimeUnit.MILLISECONDS).awaitUninterruptibly(LAST_MS);
  }
}
