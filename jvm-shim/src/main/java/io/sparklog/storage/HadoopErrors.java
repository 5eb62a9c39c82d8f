package io.sparklog.storage;

import java.io.EOFException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.NoSuchFileException;
import org.apache.hadoop.security.AccessControlException;

/** Hadoop's exceptions as exceptions of {@code java.nio}. {@link LogStore} promises these, and the classes above decide by them. */
final class HadoopErrors {
  /** S3A's, known by its name, as it is there only when a program runs. It is an EOFException for a connection that ended. */
  private static final String CONNECTION_ENDED = "HttpChannelEOFException";

  private HadoopErrors() {}

  /** A call of Hadoop's. */
  @FunctionalInterface
  interface Access<T> {
    T run() throws IOException;
  }

  /** Returns the result of {@code call}. @param location of the file or folder that it is about, for messages */
  static <T> T translate(String location, Access<T> call) throws IOException {
    try {
      return call.run();
    } catch (IOException e) {
      throw translated(location, e);
    }
  }

  /** The error of content that ended before the file did. */
  static IOException cut(String location, EOFException end) {
    return new IOException("the connection was cut while " + location + " was read", end);
  }

  /** An exception as {@code java.nio} has it; the same one if it has none for it. */
  static IOException translated(String location, IOException e) {
    IOException translated = e instanceof org.apache.hadoop.fs.FileAlreadyExistsException
        ? new FileAlreadyExistsException(location)
        : e instanceof FileNotFoundException
            ? new NoSuchFileException(location)
            : e instanceof AccessControlException
                ? new AccessDeniedException(location, null, e.getMessage())
                : e.getClass().getSimpleName().equals(CONNECTION_ENDED)
                    ? new IOException("the connection ended: " + location + ": " + e.getMessage())
                    : null;
    return translated == null ? e : (IOException) translated.initCause(e);
  }
}
