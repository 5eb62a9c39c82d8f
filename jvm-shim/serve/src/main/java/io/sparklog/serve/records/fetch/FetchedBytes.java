package io.sparklog.serve.records.fetch;

import io.sparklog.format.BatchHeader;
import io.sparklog.read.PartitionCursor;
import io.sparklog.segment.SegmentFile;
import java.io.IOException;

/** Whole record batches with absolute base offsets, one part of the records of an answer. */
public sealed interface FetchedBytes {
  int bytes();

  /** Gives the file or the memory back. */
  void close() throws IOException;

  /** Batches in memory. */
  final class Copied implements FetchedBytes {
    private final int bytes;
    private final Memory memory;
    private byte[] copy;

    Copied(byte[] copy, Memory memory) {
      this.copy = copy;
      this.bytes = copy.length;
      this.memory = memory;
      memory.use(bytes);
    }

    /**
     * Gives the batches away, once: the network makes a copy of its own, and this one is not kept beside it until the client has taken all.
     */
    public byte[] take() {
      byte[] taken = copy;
      copy = null;
      return taken;
    }

    @Override
    public int bytes() {
      return bytes;
    }

    @Override
    public void close() {
      memory.give(bytes);
    }
  }

  /**
   * Batches in a file on a disk, which can be sent from there. The part keeps the file open: so its bytes are there also after a merge has
   * deleted the file.
   */
  final class FromFile implements FetchedBytes {
    private final SegmentFile file;
    private final PartitionCursor.Batches batches;
    private final Runnable closed;

    FromFile(SegmentFile file, PartitionCursor.Batches batches, Runnable closed) {
      this.file = file;
      this.batches = batches;
      this.closed = closed;
    }

    public SegmentFile file() {
      return file;
    }

    /** The place of the first byte in the file. */
    public long position() {
      return batches.position();
    }

    /** The batches with absolute base offsets. */
    static byte[] copy(SegmentFile file, PartitionCursor.Batches batches) throws IOException {
      byte[] copy = new byte[batches.bytes()];
      file.read(batches.position(), copy, 0, copy.length);
      batches.stamps().forEach(stamp -> BatchHeader.setBaseOffset(copy, stamp.at(), stamp.base()));
      return copy;
    }

    byte[] copy() throws IOException {
      return copy(file, batches);
    }

    /** Takes the bytes that a client gets, in their order. */
    public interface ByteTaker {
      /** Bytes as the file has them. @param from the place of the first byte behind {@link #position} @param isLast whether none follows */
      void ofFile(int from, int bytes, boolean isLast);

      /** The base offset of a batch, in the place of eight bytes of the file. */
      void baseOffset(long base);
    }

    /** Gives the bytes in pieces: the base offset of a batch in the file may be relative, and the client gets absolute ones. */
    public void give(ByteTaker pieces) {
      int from = 0;
      for (PartitionCursor.Cut stamp : batches.stamps()) {
        if (stamp.at() > from) {
          pieces.ofFile(from, stamp.at() - from, false);
        }
        pieces.baseOffset(stamp.base());
        from = stamp.at() + Long.BYTES;
      }
      pieces.ofFile(from, batches.bytes() - from, true);
    }

    @Override
    public int bytes() {
      return batches.bytes();
    }

    @Override
    public void close() throws IOException {
      try {
        file.close();
      } finally {
        closed.run();
      }
    }
  }
}
