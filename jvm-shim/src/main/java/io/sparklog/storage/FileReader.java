package io.sparklog.storage;

import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.WritableByteChannel;

/** A file that is open for reading, at any position. For one thread. */
public interface FileReader extends Closeable {
  /** The length of the file, in bytes. */
  long bytes() throws IOException;

  /**
   * Announces that the caller will read these bytes front to back, and nothing else for now. A store that is slow to answer asks for many
   * bytes at once.
   */
  default void expect(long from, long to) throws IOException {}

  /**
   * Reads exactly {@code length} bytes.
   *
   * @throws java.io.EOFException if the file ends before them
   */
  default void read(long position, byte[] to, int at, int length) throws IOException {
    read(position, ByteBuffer.wrap(to, at, length));
  }

  /**
   * Reads exactly as many bytes as {@code to} has room for. A direct buffer saves a copy.
   *
   * @throws java.io.EOFException if the file ends before them
   */
  void read(long position, ByteBuffer to) throws IOException;

  /**
   * Sends bytes of the file on, without a copy in the memory of this process. Only a file on a disk has this way. May be called by another
   * thread than the thread that reads.
   *
   * @return how many bytes were sent: fewer than {@code bytes} if {@code to} takes no more now
   * @throws java.io.EOFException if the file ends at {@code position}
   */
  default long send(long position, long bytes, WritableByteChannel to) throws IOException {
    throw new UnsupportedOperationException("only a file on a disk is sent without a copy");
  }
}
