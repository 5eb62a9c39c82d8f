package io.sparklog.serve.net;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.ChannelPromise;
import io.netty.channel.FileRegion;
import io.netty.handler.stream.ChunkedInput;
import java.nio.ByteBuffer;
import java.nio.channels.WritableByteChannel;

/** Makes buffers of a region of a file, piece by piece as the client takes them: TLS cannot encrypt a region where it is. */
final class FileRegions extends ChannelOutboundHandlerAdapter {
  private static final int PIECE_BYTES = 64 << 10;

  @Override
  public void write(ChannelHandlerContext context, Object message, ChannelPromise promise) {
    context.write(message instanceof FileRegion region ? new RegionInput(region) : message, promise);
  }

  private record RegionInput(FileRegion region) implements ChunkedInput<ByteBuf> {
    @Override
    public boolean isEndOfInput() {
      return region.transferred() >= region.count();
    }

    @Override
    public ByteBuf readChunk(ByteBufAllocator allocator) throws Exception {
      ByteBuf piece = allocator.buffer(PIECE_BYTES);
      try {
        region.transferTo(new PieceChannel(piece), region.transferred());
        return piece;
      } catch (Exception e) {
        piece.release();
        throw e;
      }
    }

    @Override
    @Deprecated
    public ByteBuf readChunk(ChannelHandlerContext context) throws Exception {
      return readChunk(context.alloc());
    }

    @Override
    public void close() {
      region.release();
    }

    @Override
    public long length() {
      return region.count();
    }

    @Override
    public long progress() {
      return region.transferred();
    }
  }

  /** Takes as many bytes as a piece has. */
  private record PieceChannel(ByteBuf buffer) implements WritableByteChannel {
    @Override
    public int write(ByteBuffer bytes) {
      int length = Math.min(bytes.remaining(), PIECE_BYTES - buffer.readableBytes());
      buffer.writeBytes(bytes.slice().limit(length));
      bytes.position(bytes.position() + length);
      return length;
    }

    @Override
    public boolean isOpen() {
      return true;
    }

    @Override
    public void close() {}
  }
}
