package io.sparklog.storage;

import java.io.Closeable;
import java.io.IOException;

/** A file whose bytes are replaced. Its length does not change. For one thread. */
public interface FileStamper extends Closeable {
  /** Replaces the bytes from {@code position} on; they must exist. */
  void replace(long position, byte[] from, int at, int length) throws IOException;

  /** Makes the replaced bytes durable. */
  void sync() throws IOException;
}
