package io.sparklog.door.net;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;

/** Listens. An address is taken first, and served later, so that a service can know all addresses of its server. */
public final class Server implements AutoCloseable {
  private final Limits limits;
  private final EventLoopGroup threads;
  private final List<Channel> listening = new ArrayList<>();

  public Server(Limits limits) {
    this.limits = limits;
    this.threads = new MultiThreadIoEventLoopGroup(limits.threads(), NioIoHandler.newFactory());
  }

  /** An address that is taken. */
  public final class Listening {
    private final ServerBootstrap bootstrap = new ServerBootstrap();
    private final Channel channel;
    private Service service;

    private Listening(InetSocketAddress address) throws IOException {
      ChannelFuture bound = bootstrap.group(threads)
          .channel(NioServerSocketChannel.class)
          .option(ChannelOption.AUTO_READ, false)
          .option(ChannelOption.SO_REUSEADDR, true)
          .childOption(ChannelOption.TCP_NODELAY, true)
          .childOption(ChannelOption.SO_KEEPALIVE, true)
          .childHandler(new ChannelInitializer<SocketChannel>() {
            @Override
            protected void initChannel(SocketChannel connection) {
              connection.pipeline().addLast(new Frames(limits.frameBytesMax()), new Connection(service));
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

  /** Takes an address. @throws IOException such as "Address already in use" */
  public Listening listen(InetSocketAddress address) throws IOException {
    Listening taken = new Listening(address);
    listening.add(taken.channel);
    return taken;
  }

  @Override
  public void close() {
    listening.forEach(channel -> channel.close().awaitUninterruptibly());
    threads.shutdownGracefully();
  }
}
