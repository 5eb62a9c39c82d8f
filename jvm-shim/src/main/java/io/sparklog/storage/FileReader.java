package io.sparklog.storage;

import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;

/** A data file, open for reading at any position. Not for several threads at once. */
public interface FileReader extends Closeable {
  /** Where the file is, in full: what messages show. */
  String location();

  /** The length of the file when it was opened. */
  long bytes() throws IOException;

  /**
   * Reads exactly {@code length} bytes.
   *
   * @throws java.io.EOFException if the file ends before them
   */
  default void read(long position, byte[] to, int at, int length) throws IOException {
    read(position, ByteBuffer.wrap(to, at, length));
  }

  /**
   * Reads what {@code to} has room for, and exactly that. A direct buffer saves a copy.
   *
   * @throws java.io.EOFException if the file ends before
   */
  void read(long position, ByteBuffer to) throws IOException;
}
