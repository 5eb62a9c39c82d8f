package io.sparklog.serve.net;

import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.handler.codec.DecoderException;
import io.netty.handler.timeout.IdleStateEvent;
import io.netty.util.ReferenceCounted;
import io.sparklog.spec.Warnings;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.Iterator;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

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

  /** While memory is short, a connection ends if its client has left this many bytes of answers, and another answer comes. */
  private static final long UNTAKEN_BYTES = 64 << 10;

  /** While memory is short, a connection ends if its client has left {@link #UNTAKEN_BYTES}, and takes no byte in this time. */
  private static final long TAKE_MS = 5_000;

  /** A request. @param made the bytes of its answer in memory, which count from the moment at which the answer is complete */
  private record PendingReply(CompletableFuture<Reply> reply, CompletableFuture<Long> made) {}

  private final Session session;
  private final Reading reading;
  private final AnswerMemory answers;
  private final ArrayDeque<PendingReply> unanswered = new ArrayDeque<>();
  private long bytes;
  /** The bytes of answers that the client has not taken. */
  private long untaken;
  /** Whether a look at the answers that wait is planned. */
  private boolean looks;
  private boolean drains;
  private boolean ended;

  Connection(Session session, Reading reading, AnswerMemory answers) {
    this.session = session;
    this.reading = reading;
    this.answers = answers;
  }

  @Override
  protected void channelRead0(ChannelHandlerContext context, Frames.Frame frame) {
    int length = frame.bytes().limit();
    Budget.Claim claim = frame.claim();
    if (ended) {
      claim.give();
      return;
    }
    CompletableFuture<Reply> reply;
    try {
      reply = session.answer(frame.bytes());
    } catch (RuntimeException | Error e) {
      claim.give();
      throw e;
    }
    PendingReply request = new PendingReply(reply, reply.thenApply(done -> answers.add(done, context.alloc())));
    unanswered.add(request);
    bytes += length;
    if (!session.takesNext()) {
      reading.hold(Reading.ReadStop.TURN);
    }
    request.made.whenComplete((made, failure) -> {
      claim.give();
      if (context.executor().inEventLoop()) {
        answered(context, length, made);
      } else {
        context.executor().execute(() -> answered(context, length, made));
      }
    });
    pauseOrGoOn(context);
  }

  /** @param made null without an answer */
  private void answered(ChannelHandlerContext context, int length, Long made) {
    bytes -= length;
    if (made != null) {
      if (untaken > UNTAKEN_BYTES && answers.isShort()) {
        endAsMemoryIsShort(context);
      }
      untaken += made;
    }
    write(context);
    look(context);
    pauseOrGoOn(context);
  }

  /** Ends the connection of a client that takes nothing of its answers, if memory is short then. */
  private void look(ChannelHandlerContext context) {
    if (looks || ended || untaken <= UNTAKEN_BYTES) {
      return;
    }
    looks = true;
    long before = context.channel().bytesBeforeWritable();
    context.executor().schedule(() -> {
      looks = false;
      if (untaken > UNTAKEN_BYTES && context.channel().bytesBeforeWritable() >= before && answers.isShort()) {
        endAsMemoryIsShort(context);
      }
      look(context);
    }, TAKE_MS, TimeUnit.MILLISECONDS);
  }

  private void endAsMemoryIsShort(ChannelHandlerContext context) {
    if (!ended) {
      Warnings.inform(Connection.class, "The connection of {} ends: {} bytes of answers are not taken, and memory is short",
          context.channel().remoteAddress(), untaken);
      end();
      context.close();
    }
  }

  /** Writes the answers that are complete, up to the first that is missing. */
  private void write(ChannelHandlerContext context) {
    while (!ended && !unanswered.isEmpty() && unanswered.peek().made.isDone()) {
      PendingReply next = unanswered.remove();
      Reply reply = next.reply.isCompletedExceptionally() ? Reply.CLOSE : next.reply.join();
      for (Iterator<ReferenceCounted> parts = reply.parts().iterator(); parts.hasNext();) {
        ChannelFuture written = context.write(parts.next());
        if (!parts.hasNext()) {
          written.addListener(taken -> taken(next.made.join()));
        }
      }
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

  private void taken(long made) {
    untaken -= made;
    answers.give(made);
  }

  private void pauseOrGoOn(ChannelHandlerContext context) {
    if (unanswered.isEmpty()) {
      reading.goOn(Reading.ReadStop.TURN);
    }
    boolean isFull = unanswered.size() >= REQUESTS_MAX || bytes >= BYTES_MAX || !context.channel().isWritable();
    boolean hasRoom = unanswered.size() <= REQUESTS_MAX / 2 && bytes <= BYTES_MAX / 2 && context.channel().isWritable();
    if (isFull) {
      reading.stop(Reading.ReadStop.UNANSWERED);
    } else if (hasRoom) {
      reading.goOn(Reading.ReadStop.UNANSWERED);
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
      reading.stop(Reading.ReadStop.DRAIN);
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
    for (PendingReply request; (request = unanswered.poll()) != null;) {
      request.reply.cancel(false);
      if (!request.reply.isCompletedExceptionally()) {
        request.reply.join().release();
        request.made.thenAccept(answers::give);
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
