package io.sparklog.door.net;

import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.handler.codec.DecoderException;
import io.sparklog.spec.Warnings;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicLong;

/** Hands the frames of one connection to its session, and writes the answers in the order of requests. Its fields are its thread's. */
final class Connection extends SimpleChannelInboundHandler<ByteBuffer> {
  private static final AtomicLong NUMBERS = new AtomicLong();

  /** A client that has this many requests without an answer is not read until half of them are answered. */
  private static final int UNANSWERED_MAX = 200;

  private final Service service;
  private final ArrayDeque<CompletableFuture<Reply>> unanswered = new ArrayDeque<>();
  private Session session;
  private boolean ended;

  Connection(Service service) {
    this.service = service;
  }

  @Override
  public void channelActive(ChannelHandlerContext context) {
    InetSocketAddress from = (InetSocketAddress) context.channel().remoteAddress();
    session = service.open(new Peer(NUMBERS.incrementAndGet(), from.getAddress(), from.getPort(), context.alloc()));
  }

  @Override
  protected void channelRead0(ChannelHandlerContext context, ByteBuffer frame) {
    if (ended) {
      return;
    }
    CompletableFuture<Reply> reply = session.answer(frame);
    unanswered.add(reply);
    if (unanswered.size() >= UNANSWERED_MAX) {
      context.channel().config().setAutoRead(false);
    }
    reply.whenComplete((done, failure) -> {
      if (context.executor().inEventLoop()) {
        write(context);
      } else {
        context.executor().execute(() -> write(context));
      }
    });
  }

  /** Writes the answers that are complete, up to the first that is missing. */
  private void write(ChannelHandlerContext context) {
    boolean wrote = false;
    while (!ended && !unanswered.isEmpty() && unanswered.peek().isDone()) {
      CompletableFuture<Reply> next = unanswered.remove();
      Reply reply = next.isCompletedExceptionally() ? Reply.CLOSE : next.join();
      reply.parts().forEach(context::write);
      wrote = true;
      if (reply.isLast()) {
        end();
        context.writeAndFlush(context.alloc().buffer(0)).addListener(ChannelFutureListener.CLOSE);
      }
    }
    if (wrote) {
      context.flush();
    }
    if (!ended && unanswered.size() <= UNANSWERED_MAX / 2) {
      context.channel().config().setAutoRead(true);
    }
  }

  /** Requests without an answer are given up. An answer that comes nevertheless is released. */
  private void end() {
    ended = true;
    for (CompletableFuture<Reply> reply : unanswered) {
      reply.cancel(false);
      if (!reply.isCompletedExceptionally()) {
        reply.join().release();
      }
    }
    unanswered.clear();
  }

  @Override
  public void channelInactive(ChannelHandlerContext context) {
    end();
  }

  @Override
  public void exceptionCaught(ChannelHandlerContext context, Throwable failure) {
    if (!(failure instanceof IOException)) {
      Throwable cause = failure instanceof DecoderException && failure.getCause() != null ? failure.getCause() : failure;
      Warnings.inform(Connection.class, "Connection of {} ends: {}", context.channel().remoteAddress(), cause.toString());
    }
    end();
    context.close();
  }
}
