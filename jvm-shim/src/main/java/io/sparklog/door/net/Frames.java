package io.sparklog.door.net;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.codec.ByteToMessageDecoder;
import io.netty.handler.codec.CorruptedFrameException;
import java.nio.ByteBuffer;
import java.util.List;

/** Cuts the bytes of a connection into frames: four bytes of length, then as many bytes. */
final class Frames extends ByteToMessageDecoder {
  private final int bytesMax;
  private ByteBuffer frame;

  Frames(int bytesMax) {
    this.bytesMax = bytesMax;
  }

  @Override
  protected void decode(ChannelHandlerContext context, ByteBuf in, List<Object> out) {
    if (frame == null) {
      if (in.readableBytes() < Integer.BYTES) {
        return;
      }
      int length = in.readInt();
      if (length < 0 || length > bytesMax) {
        throw new CorruptedFrameException("a frame of " + length + " bytes, and at most " + bytesMax + " are allowed");
      }
      frame = ByteBuffer.allocate(length);
    }
    int length = Math.min(in.readableBytes(), frame.remaining());
    in.readBytes(frame.array(), frame.position(), length);
    frame.position(frame.position() + length);
    if (!frame.hasRemaining()) {
      out.add(frame.flip());
      frame = null;
    }
  }
}
