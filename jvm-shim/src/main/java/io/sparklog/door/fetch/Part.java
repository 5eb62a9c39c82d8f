package io.sparklog.door.fetch;

import io.sparklog.segment.SegmentFile;
import java.io.IOException;

/** Whole record batches with absolute base offsets, one part of the records of an answer. */
public sealed interface Part {
  int bytes();

  /** Gives the file or the memory back. */
  void close() throws IOException;

  /** Batches in memory. */
  final class Copied implements Part {
    private final byte[] copy;
    private final Memory memory;

    Copied(byte[] copy, Memory memory) {
      this.copy = copy;
      this.memory = memory;
      memory.use(copy.length);
    }

    public byte[] copy() {
      return copy;
    }

    @Override
    public int bytes() {
      return copy.length;
    }

    @Override
    public void close() {
      memory.give(copy.length);
    }
  }

  /**
   * Batches in a file on a disk, which can be sent from there. The part keeps the file open: so its bytes are there also after a merge has
   * deleted the file.
   */
  final class InFile implements Part {
    private final SegmentFile file;
    private final long position;
    private final int bytes;
    private final Runnable closed;

    InFile(SegmentFile file, long position, int bytes, Runnable closed) {
      this.file = file;
      this.position = position;
      this.bytes = bytes;
      this.closed = closed;
    }

    public SegmentFile file() {
      return file;
    }

    /** The place of the first byte in the file. */
    public long position() {
      return position;
    }

    @Override
    public int bytes() {
      return bytes;
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
