package io.sparklog.storage;

import java.nio.file.FileSystemException;

/**
 * A name below a root is something that FORMAT.md does not allow there: a symbolic link, not a regular file, or a file beyond its limit.
 */
public final class UnfitFileException extends FileSystemException {
  private static final long serialVersionUID = 1;

  /** @param reason why, as a clause: {@link #getReason} gives it to the errors that classes above build */
  UnfitFileException(String file, String reason) {
    super(file, null, reason);
  }
}
