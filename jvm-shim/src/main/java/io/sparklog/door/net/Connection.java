package io.sparklog.door.net;

import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.handler.codec.DecoderException;
import io.netty.handler.timeout.IdleStateEvent;
import io.sparklog.spec.Warnings;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.concurrent.CompletableFuture;

/**
 * Hands the frames of one connection to its session, and writes the answers in the order of requests. Its fields belong to the thread of
 * the connection.
 */
final class Connection extends SimpleChannelInboundHandler<Frames.Frame> {
  /** Is told to a connection that should answer its requests, and end. */
  static final Object DRAIN = new Object();

  /** A connection with this many requests or bytes of requests without an answer is not read until half of them are answered. */
  private static final int REQUESTS_MAX = 32;
  private static final long BYTES_MAX = 64 << 20;

  private final Session session;
  private final Reading reading;
  private final ArrayDeque<CompletableFuture<Reply>> unanswered = new ArrayDeque<>();
  private long bytes;
  private boolean drains;
  private boolean ended;

  Connection(Session session, Reading reading) {
    this.session = session;
    this.reading = reading;
  }

  @Override
  protected void channelRead0(ChannelHandlerContext context, Frames.Frame frame) {
    int length = frame.bytes().limit();
    Budget budget = frame.budget();
    if (ended) {
      budget.give(length);
      return;
    }
    CompletableFuture<Reply> reply;
    try {
      reply = session.answer(frame.bytes());
    } catch (RuntimeException | Error e) {
      budget.give(length);
      throw e;
    }
    unanswered.add(reply);
    bytes += length;
    reply.whenComplete((done, failure) -> {
      budget.give(length);
      if (context.executor().inEventLoop()) {
        answered(context, length);
      } else {
        context.executor().execute(() -> answered(context, length));
      }
    });
    pauseOrGoOn(context);
  }

  private void answered(ChannelHandlerContext context, int length) {
    bytes -= length;
    write(context);
    pauseOrGoOn(context);
  }

  /** Writes the answers that are complete, up to the first that is missing. */
  private void write(ChannelHandlerContext context) {
    while (!ended && !unanswered.isEmpty() && unanswered.peek().isDone()) {
      CompletableFuture<Reply> next = unanswered.remove();
      Reply reply = next.isCompletedExceptionally() ? Reply.CLOSE : next.join();
      reply.parts().forEach(context::write);
      if (reply.isLast()) {
        endAfterWrites(context);
      }
    }
    if (!ended) {
      context.flush();
      if (drains && unanswered.isEmpty()) {
        endAfterWrites(context);
      }
    }
  }

  private void pauseOrGoOn(ChannelHandlerContext context) {
    boolean isFull = unanswered.size() >= REQUESTS_MAX || bytes >= BYTES_MAX || !context.channel().isWritable();
    boolean hasRoom = unanswered.size() <= REQUESTS_MAX / 2 && bytes <= BYTES_MAX / 2 && context.channel().isWritable();
    if (isFull) {
      reading.stop(Reading.Stop.UNANSWERED);
    } else if (hasRoom) {
      reading.goOn(Reading.Stop.UNANSWERED);
    }
  }

  /** A client that does not take its answers may ask no more. */
  @Override
  public void channelWritabilityChanged(ChannelHandlerContext context) {
    pauseOrGoOn(context);
  }

  @Override
  public void userEventTriggered(ChannelHandlerContext context, Object event) {
    if (event == DRAIN) {
      drains = true;
      reading.stop(Reading.Stop.DRAIN);
      write(context);
    } else if (event instanceof IdleStateEvent && unanswered.isEmpty()) {
      endAfterWrites(context);
      context.close();
    }
  }

  private void endAfterWrites(ChannelHandlerContext context) {
    end();
    context.writeAndFlush(Unpooled.EMPTY_BUFFER).addListener(ChannelFutureListener.CLOSE);
  }

  /** Requests without an answer are given up. An answer that comes nevertheless is released. */
  private void end() {
    ended = true;
    for (CompletableFuture<Reply> reply; (reply = unanswered.poll()) != null;) {
      reply.cancel(false);
      if (!reply.isCompletedExceptionally()) {
        reply.join().release();
      }
    }
  }

  @Override
  public void channelInactive(ChannelHandlerContext context) {
    end();
  }

  @Override
  public void exceptionCaught(ChannelHandlerContext context, Throwable failure) {
    if (!(failure instanceof IOException)) {
      Throwable cause = failure instanceof DecoderException && failure.getCause() != null ? failure.getCause() : failure;
      Warnings.inform(Connection.class, "The connection of {} ends: {}", context.channel().remoteAddress(), cause.toString());
    }
    end();
    context.close();
  }
}
