package io.sparklog.storage;

import java.io.Closeable;
import java.io.IOException;

/**
 * A file that is being written, from its beginning or from its end on. For one thread.
 *
 * <p>After a failed {@link #sync} the file must be given up: a second sync could succeed without the data.
 */
public interface FileAppender extends Closeable {
  /** Appends {@code length} bytes of {@code from}, from {@code at} on. */
  void write(byte[] from, int at, int length) throws IOException;

  /** The length of the file, in bytes. */
  long position();

  /** Whether its folder was made for it: then the name of the folder is durable after {@link LogStore#flush} of the folder above. */
  default boolean inNewFolder() {
    return false;
  }

  /**
   * Makes the content durable. Nothing is appended afterwards: a store may end the file.
   *
   * @throws IOException if it may be lost, and then at every further call
   */
  void sync() throws IOException;
}
