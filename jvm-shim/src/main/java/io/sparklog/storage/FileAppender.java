package io.sparklog.storage;

import java.io.Closeable;
import java.io.IOException;

/** A data file that is being written. After a failed {@link #sync} it must be given up: a second one could succeed without the data. */
public interface FileAppender extends Closeable {
  /** Appends. */
  void write(byte[] from, int at, int length) throws IOException;

  /** Overwrites bytes that are there. */
  void write(long position, byte[] from, int at, int length) throws IOException;

  /** Bytes appended so far. */
  long position();

  /** Makes the bytes durable. */
  void sync() throws IOException;
}
