package io.sparklog.storage;

import java.io.IOException;
import java.util.List;

/**
 * What the log needs of a place that keeps files. Bound to one root; names are relative to it, separated by {@code /}, and built by {@link
 * Names}.
 *
 * <p>Every implementation owes: a name that {@link #putIfAbsent} returned for is there, whole, after a crash and a power loss, and no other
 * caller's put of it ever succeeds.
 */
public interface LogStore {
  /** Where the root is, in full: what {@link Stores#open} takes anywhere, and what messages show. */
  String root();

  /** Where {@code name} is, in full: what messages show. */
  default String location(String name) {
    return root() + "/" + name;
  }

  /** Whether the root itself is there; false also where it is no directory. */
  boolean rootExists();

  /** Whether {@code name} is a file or folder. */
  boolean exists(String name) throws IOException;

  /** Whether {@code name} is beside the root, in the folder that holds it. */
  boolean existsBeside(String name);

  /** The names (last parts) in folder {@code name}, unsorted; none if there is no such folder. */
  List<String> list(String name) throws IOException;

  /**
   * The bytes of a small file.
   *
   * @throws java.nio.file.NoSuchFileException if it is absent
   * @throws UnfitFileException if it is no regular file, or has more than {@code bytesMax} bytes; nothing is allocated for it then
   */
  byte[] read(String name, int bytesMax) throws IOException;

  /**
   * Creates {@code name} with {@code content}, all or nothing and durable; never replaces. {@code temporary} is a name no one else uses, in
   * the same topic; it is gone afterwards.
   *
   * @throws java.nio.file.FileAlreadyExistsException if any writer was first
   * @throws java.io.SyncFailedException if {@code name} is there, but may be lost
   * @throws IOException otherwise; it is then not known whether {@code name} is there
   */
  void putIfAbsent(String name, String temporary, byte[] content) throws IOException;

  /** As {@link #putIfAbsent}, without a step to stop at: for files whose loss costs nothing. */
  void putQuietly(String name, String temporary, byte[] content) throws IOException;

  /**
   * Opens a file for reading.
   *
   * @throws java.nio.file.NoSuchFileException if it is absent
   * @throws UnfitFileException if it is no regular file
   */
  FileReader open(String name) throws IOException;

  /** Creates a data file, and the folders above it. @throws java.nio.file.FileAlreadyExistsException if it is there */
  FileAppender create(String name) throws IOException;

  /** How many files one task may hold open to write. A task that has more must sync and close some, and {@link #append} to them later. */
  default int openFilesMax() {
    return Integer.MAX_VALUE;
  }

  /**
   * Opens a data file that {@link #create} made, to go on behind its end. Never asked of a store that does not limit {@link #openFilesMax}.
   */
  default FileAppender append(String name) throws IOException {
    throw new UnsupportedOperationException(location(name));
  }

  /** Opens a data file to write the stamp of FORMAT.md section 4 into it. */
  FileAppender stamp(String name) throws IOException;

  /**
   * Gives the file {@code existing} the further name {@code name}, durably once its folder is {@link #sync synced}. @throws
   * java.nio.file.FileAlreadyExistsException if that is taken
   */
  void link(String existing, String name) throws IOException;

  /** Whether two names are one file. False where either is absent. */
  boolean sameFile(String one, String other) throws IOException;

  /**
   * Makes a folder and those above it, if they are missing, and all of them durable, whoever made them. @throws IOException also if nothing
   * can be written in it
   */
  void createFolder(String name) throws IOException;

  /**
   * Makes the names in a folder durable. @throws java.io.SyncFailedException if they may be lost: a second sync could succeed without them
   */
  void sync(String folder) throws IOException;

  /** Removes a file, if it is there. */
  void delete(String name) throws IOException;
}
