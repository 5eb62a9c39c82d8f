package io.sparklog.door.net;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.codec.ByteToMessageDecoder;
import io.netty.handler.codec.CorruptedFrameException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.IntSupplier;
import java.util.function.Supplier;

/**
 * Cuts the bytes of a connection into frames: four bytes of length, then as many bytes. A frame waits in the socket until the budget has
 * room. While others wait, a frame that is not complete after some time ends its connection: a client cannot keep room without sending.
 */
final class Frames extends ByteToMessageDecoder {
  private static final long SLOW_MS = 30_000;

  /** A frame, and the budget that has its bytes. */
  record Frame(ByteBuffer bytes, Budget budget) {}

  private final Supplier<Budget> budgets;
  private final Reading reading;
  private final IntSupplier bytesMax;
  private Budget budget;
  /** The bytes of the budget that the frame has asked for, or has. */
  private int taken = -1;
  private ByteBuffer frame;
  /** The number of the frame. A timer knows the frame by it, and keeps no bytes. */
  private long number;
  private boolean ended;

  /** @param budgets the budget of the next frame @param bytesMax the length of the next frame */
  Frames(Supplier<Budget> budgets, Reading reading, IntSupplier bytesMax) {
    this.budgets = budgets;
    this.reading = reading;
    this.bytesMax = bytesMax;
  }

  @Override
  public void handlerAdded(ChannelHandlerContext context) {
    reading.whenGoesOn(() -> takeRest(context));
  }

  /** The bytes that were read before a stop. */
  private void takeRest(ChannelHandlerContext context) {
    try {
      channelRead(context, Unpooled.EMPTY_BUFFER);
    } catch (Exception | Error e) {
      context.fireExceptionCaught(e);
    }
  }

  /** Netty would ask for more bytes after a read without a frame, also in a stop. */
  @Override
  public void channelReadComplete(ChannelHandlerContext context) throws Exception {
    if (reading.isStopped()) {
      discardSomeReadBytes();
      context.fireChannelReadComplete();
    } else {
      super.channelReadComplete(context);
    }
  }

  /** Takes a frame at most. One read can have thousands of short requests: these wait here while the connection is not read. */
  @Override
  protected void decode(ChannelHandlerContext context, ByteBuf in, List<Object> out) {
    if (ended) {
      in.skipBytes(in.readableBytes());
      return;
    }
    if (reading.isStopped()) {
      reading.pause();
      return;
    }
    if (taken < 0 && in.readableBytes() >= Integer.BYTES) {
      begin(context, in.readInt());
    }
    if (frame != null) {
      int length = Math.min(in.readableBytes(), frame.remaining());
      in.readBytes(frame.array(), frame.position(), length);
      frame.position(frame.position() + length);
      if (!frame.hasRemaining()) {
        out.add(new Frame(frame.flip(), budget)); // Its bytes of the budget are the connection's from here on.
        frame = null;
        taken = -1;
      }
    }
  }

  private void begin(ChannelHandlerContext context, int length) {
    if (length < 0 || length > bytesMax.getAsInt()) {
      throw new CorruptedFrameException("a frame of " + length + " bytes, and at most " + bytesMax.getAsInt() + " are allowed");
    }
    taken = length;
    budget = budgets.get();
    if (budget.take(length, () -> context.executor().execute(() -> given(context)))) {
      read(context);
    } else {
      reading.stop(Reading.Stop.MEMORY);
    }
  }

  private void given(ChannelHandlerContext context) {
    if (ended) {
      budget.give(taken);
      return;
    }
    try {
      read(context);
    } catch (Error e) {
      context.fireExceptionCaught(e);
    }
    reading.goOn(Reading.Stop.MEMORY);
  }

  private void read(ChannelHandlerContext context) {
    try {
      frame = ByteBuffer.allocate(taken);
    } catch (OutOfMemoryError e) {
      ended = true;
      budget.give(taken);
      throw e;
    }
    long begun = ++number;
    context.executor().schedule(() -> endIfSlow(context, begun), SLOW_MS, TimeUnit.MILLISECONDS);
  }

  private void endIfSlow(ChannelHandlerContext context, long begun) {
    boolean isLeft = frame != null && number == begun;
    if (isLeft && budget.isShort()) {
      context.fireExceptionCaught(new CorruptedFrameException("a frame was not complete after " + SLOW_MS + " ms, and others wait"));
    } else if (isLeft) {
      context.executor().schedule(() -> endIfSlow(context, begun), SLOW_MS, TimeUnit.MILLISECONDS);
    }
  }

  @Override
  public void channelInactive(ChannelHandlerContext context) throws Exception {
    super.channelInactive(context);
    ended = true;
    if (frame != null) {
      budget.give(taken);
      frame = null;
    }
  }
}
