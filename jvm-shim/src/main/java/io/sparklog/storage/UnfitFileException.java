package io.sparklog.storage;

import java.nio.file.FileSystemException;

/** What stands at a name below a root is not a file that FORMAT.md allows there: a link, no regular file, or one beyond its limit. */
public final class UnfitFileException extends FileSystemException {
  private static final long serialVersionUID = 1;

  UnfitFileException(String file, String reason) {
    super(file, null, reason);
  }
}
