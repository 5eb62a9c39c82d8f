package io.sparklog.serve.records;

import io.netty.buffer.Unpooled;
import io.netty.util.ReferenceCounted;
import io.sparklog.serve.protocol.Wire.AfterSend;
import io.sparklog.serve.records.fetch.FetchedBytes;
import io.sparklog.serve.records.fetch.PartitionReads;
import java.io.IOException;
import java.nio.channels.WritableByteChannel;
import java.util.ArrayList;
import java.util.List;

/** Bytes of batches that go from their file to the connection, with no copy in memory. */
final class FileBatches extends AfterSend {
  private final FetchedBytes.FromFile part;
  private final int from;
  private final int bytes;
  private long sent;

  /** @param whenSent runs when these bytes are sent, or the answer is given up */
  private FileBatches(FetchedBytes.FromFile part, int from, int bytes, Runnable whenSent) {
    super(whenSent);
    this.part = part;
    this.from = from;
    this.bytes = bytes;
  }

  /** The batches, with absolute base offsets. The last piece closes the file. */
  static List<ReferenceCounted> pieces(FetchedBytes.FromFile part) {
    List<ReferenceCounted> pieces = new ArrayList<>();
    part.give(new FetchedBytes.FromFile.ByteTaker() {
      @Override
      public void ofFile(int from, int bytes, boolean isLast) {
        pieces.add(new FileBatches(part, from, bytes, isLast ? () -> PartitionReads.close(List.of(part)) : () -> {}));
      }

      @Override
      public void baseOffset(long base) {
        pieces.add(Unpooled.copyLong(base));
      }
    });
    return pieces;
  }

  @Override
  public long transferTo(WritableByteChannel target, long at) throws IOException {
    long left = bytes - at;
    long more = left == 0 ? 0 : part.file().send(part.position() + from + at, left, target);
    sent += more;
    return more;
  }

  @Override
  public long position() {
    return part.position() + from;
  }

  @Override
  public long count() {
    return bytes;
  }

  @Override
  public long transferred() {
    return sent;
  }
}
