package io.sparklog.storage;

import java.io.Closeable;
import java.io.IOException;

/** A data file, open for reading at any position. Not for several threads at once. */
public interface DataReader extends Closeable {
  /** The length of the file when it was opened. */
  long bytes() throws IOException;

  /**
   * Reads exactly {@code length} bytes.
   *
   * @throws java.io.EOFException if the file ends before them
   */
  void read(long position, byte[] to, int at, int length) throws IOException;
}
