package io.sparklog.serve.net;

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
 * Cuts the bytes of a connection into frames: four bytes of length, then as many bytes. A frame gets memory as its bytes come, and waits in
 * the socket until the budget has room for more. While others wait, a frame ends its connection that has memory, and gets few bytes in some
 * time: a client cannot keep room without sending.
 */
final class Frames extends ByteToMessageDecoder {
  private static final long SLOW_MS = 10_000;

  /**
   * The memory of a frame grows by this factor or more, and the last time to its length. So few bytes are copied, and few are kept for
   * bytes that have not come. The budget does not count the bytes of before while they are copied: they are few too.
   */
  private static final int GROWTH = 8;

  /** A frame, and its memory in the budget. */
  record Frame(ByteBuffer bytes, Budget.Claim claim) {}

  private final Supplier<Budget> budgets;
  private final Reading reading;
  private final IntSupplier bytesMax;
  private Budget budget;
  /** The memory of the frame that has begun; null before a frame. */
  private Budget.Claim claim;
  private int length;
  /** The part of the frame for which there is memory. */
  private ByteBuffer frame;
  /** The number of the frame. A timer knows the frame by it, and keeps no bytes. */
  private long number;
  private long watched = -1;
  /** Whether the frame got memory since the last look: it was not read before. */
  private boolean isGiven;
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
    if (claim == null && in.readableBytes() >= Integer.BYTES) {
      begin(in.readInt());
    }
    while (claim != null) {
      int part = Math.min(in.readableBytes(), frame.remaining());
      in.readBytes(frame.array(), frame.position(), part);
      frame.position(frame.position() + part);
      if (frame.position() == length) {
        out.add(new Frame(frame.flip(), claim)); // Its memory is the connection's from here on.
        claim = null;
        frame = null;
      } else if (!in.isReadable()) {
        watch(context);
        return;
      } else if (!take(context)) {
        reading.stop(Reading.ReadStop.MEMORY);
        return;
      }
    }
  }

  private void begin(int bytes) {
    if (bytes < 0 || bytes > bytesMax.getAsInt()) {
      throw new CorruptedFrameException("a frame of " + bytes + " bytes, and at most " + bytesMax.getAsInt() + " are allowed");
    }
    length = bytes;
    budget = budgets.get();
    claim = budget.claim(bytes);
    frame = ByteBuffer.allocate(0);
    number++;
  }

  /** The memory that a frame takes next. @param held the memory that it has, which is full of bytes */
  static int step(int length, int held) {
    if (held == 0) {
      return Math.min(length, Budget.SHORT_BYTES);
    }
    int next = length;
    while (next / GROWTH / GROWTH >= held) {
      next /= GROWTH;
    }
    return next - held;
  }

  /** @return whether there is memory for more bytes now */
  private boolean take(ChannelHandlerContext context) {
    Budget.Claim of = claim;
    boolean isTaken = of.take(step(length, frame.capacity()), () -> context.executor().execute(() -> given(context, of)));
    if (isTaken) {
      grow();
    }
    return isTaken;
  }

  private void given(ChannelHandlerContext context, Budget.Claim of) {
    if (claim != of) { // The connection has ended, and the memory was given back.
      return;
    }
    try {
      grow();
    } catch (Error e) {
      context.fireExceptionCaught(e);
    }
    isGiven = true;
    reading.goOn(Reading.ReadStop.MEMORY);
  }

  private void grow() {
    try {
      frame = ByteBuffer.allocate(frame.capacity() + step(length, frame.capacity())).put(frame.flip());
    } catch (OutOfMemoryError e) {
      giveUp();
      throw e;
    }
  }

  /** Looks at an incomplete frame from time to time. */
  private void watch(ChannelHandlerContext context) {
    if (watched != number) {
      watched = number;
      look(context, number, frame.position());
    }
  }

  private void look(ChannelHandlerContext context, long of, int before) {
    context.executor().schedule(() -> {
      if (claim == null || number != of) {
        return;
      }
      boolean waited = isGiven || reading.isStopped(Reading.ReadStop.MEMORY);
      isGiven = false;
      boolean isSlow = frame.position() - before < Budget.SHORT_BYTES && frame.capacity() > 0 && !waited;
      if (isSlow && budget.isShort()) {
        String what = "a frame of " + length + " bytes has " + frame.position() + ", few came in " + SLOW_MS + " ms, and others wait";
        giveUp(); // Netty ends the connection later. Other slow frames, which are looked at before, need not end if no frame waits now.
        context.fireExceptionCaught(new CorruptedFrameException(what));
      } else {
        look(context, of, frame.position());
      }
    }, SLOW_MS, TimeUnit.MILLISECONDS);
  }

  @Override
  public void channelInactive(ChannelHandlerContext context) throws Exception {
    super.channelInactive(context);
    giveUp();
  }

  private void giveUp() {
    ended = true;
    if (claim != null) {
      claim.give();
      claim = null;
      frame = null;
    }
  }
}
