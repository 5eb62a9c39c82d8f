package io.sparklog.storage;

import java.io.IOException;

/**
 * A store that can give a file a second name and change bytes of it: a disk. Only the Kafka view (FORMAT.md section 8) needs that; a store
 * without it can have everything else.
 */
public interface LinkingStore extends LogStore {
  /**
   * Gives the file {@code existing} the further name {@code name}, and creates the folders above that, also while another process deletes
   * them because they are empty. The name is durable after {@link #flush} of its folder.
   *
   * @throws java.nio.file.FileAlreadyExistsException if {@code name} exists: it keeps its content
   * @throws java.nio.file.NoSuchFileException if {@code existing} is absent
   */
  void link(String existing, String name) throws IOException;

  /** Whether two names are names of one file; false if either is absent. */
  boolean isSameFile(String one, String other) throws IOException;

  /**
   * Opens a file to replace bytes in it: the stamp of FORMAT.md section 4.
   *
   * @throws java.nio.file.NoSuchFileException if it is absent
   * @throws UnfitFileException if it is not a regular file
   */
  FileStamper stamp(String name) throws IOException;
}
