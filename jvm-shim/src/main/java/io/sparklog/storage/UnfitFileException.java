package io.sparklog.storage;

import java.nio.file.FileSystemException;

/**
 * FORMAT.md does not allow the file at this name below a root: it is a symbolic link, not a regular file, or beyond its limit.
 */
public final class UnfitFileException extends FileSystemException {
  private static final long serialVersionUID = 1;

  /** @param reason why, as a clause: {@link #getReason} gives it to the errors that classes above build */
  UnfitFileException(String file, String reason) {
    super(file, null, reason);
  }
}
