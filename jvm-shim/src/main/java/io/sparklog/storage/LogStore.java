package io.sparklog.storage;

import java.io.IOException;
import java.time.Duration;
import java.util.List;

/**
 * A place that keeps the files of one root, for reading and for writing: all that the log asks of every such place.
 *
 * <p>Every store promises, and {@code LogStoreContract} (in the tests) checks:
 *
 * <ul>
 * <li>A put is atomic and exclusive. At most one put of a name takes effect, by all callers in all processes. A reader finds either nothing
 * or the whole content. That holds for a put that takes effect late, too.
 * <li>A put that returned is durable: the name and its content survive a crash of the process and a power loss.
 * <li>A call that ended has no later effect, but for a put that ended with {@link NoAnswerException}.
 * <li>As soon as the call returned, every process can list, read and open a file that was put or created. The file has a tag.
 * </ul>
 */
public interface LogStore extends ReadStore {
  /** The reference that the store is made from: {@link Stores#open} makes an equal store from it, in any process. */
  default StoreRef ref() {
    return new StoreRef(root());
  }

  /** Equal to the reference of another store of this process if either store can replace the other. */
  default Object identity() {
    return ref();
  }

  /** The server or the place that keeps the root, for messages. */
  default String endpoint() {
    return root();
  }

  /**
   * Makes sure that puts are exclusive, before the first put that counts in this process. A store whose puts are known to be exclusive
   * tries nothing, and other stores try once.
   *
   * @param folder in which files may be put; some of these files may stay
   * @throws io.sparklog.spec.PartlogException STORE_UNSAFE
   * @throws IOException if that cannot be told
   */
  default void probe(String folder) throws IOException {}

  /**
   * Creates the file {@code name} with {@code content}, all or nothing, durable, and never in place of another. Its folder must exist:
   * {@link #createFolder}. If it returns, the name was taken by this call.
   *
   * <p>A store that does not know that its put is over throws {@link NoAnswerException}, in place of any exception or {@link Error} of its
   * client.
   *
   * @param temporary a name in the same topic that no other caller uses. Some stores must write the content before they can give the
   *     content its name. Such a store writes at this name, or in the same folder at a name that begins with this name. It replaces a file
   *     that an earlier put has left. Afterwards the temporary file is absent, unless the store could not delete it.
   * @param observer is called at each stage of the put that the store has
   * @throws java.nio.file.FileAlreadyExistsException if it was refused: {@code name} existed, and keeps its content. If the store repeats a
   *     put by itself, the put itself may have created this file.
   * @throws NoAnswerException if it may have taken effect, and may still do so after the call
   * @throws java.io.SyncFailedException if {@code name} may have been created and may be lost: a second attempt to make it durable could
   *     succeed without it
   * @throws IOException otherwise; the put is over, and the caller must read {@code name} to learn whether it was created
   */
  void putIfAbsent(String name, String temporary, byte[] content, PutObserver observer) throws IOException;

  /**
   * How long after a put without an answer its caller should look whether it takes effect, if it can wait. After that it is unlikely to,
   * and no store promises more. Zero if each put has an answer.
   */
  default Duration lateLimit() {
    return Duration.ZERO;
  }

  /**
   * Creates an empty file for appending, and the folders above it. Its content is durable after {@link FileAppender#sync}, its name after
   * {@link #flush} of its folder, and its folder, if that is new, after {@link #flush} of the folder above. Folders further up are durable
   * at once where this call makes them. No two callers use a name.
   *
   * @throws java.nio.file.FileAlreadyExistsException if {@code name} exists: it keeps its content. A store that would have to look first
   *     does not, and replaces it
   */
  FileAppender create(String name) throws IOException;

  /**
   * How many files one task may keep open for writing. A task that writes more syncs and closes some, and {@link #append}s to them later.
   */
  default int openFilesMax() {
    return Integer.MAX_VALUE;
  }

  /**
   * Opens a file that {@link #create} made, to append behind its end. Only a store that limits {@link #openFilesMax} needs it.
   *
   * @throws java.nio.file.NoSuchFileException if it is absent
   * @throws UnfitFileException if it is not a regular file
   */
  default FileAppender append(String name) throws IOException {
    throw new UnsupportedOperationException(location(name));
  }

  /**
   * Creates a folder and the folders above it, if they are missing, and makes all of them durable, also folders that others created. A
   * store without folders has nothing to create.
   *
   * @throws IOException also if files cannot be created in it; {@link java.nio.file.AccessDeniedException} if a permission is missing
   */
  void createFolder(String name) throws IOException;

  /**
   * Makes the names in a folder durable, also names that others created. A store whose names are durable at once has nothing to do.
   *
   * @throws java.io.SyncFailedException if names may be lost: a second call could succeed without them
   */
  void flush(String folder) throws IOException;

  /** Deletes a file; does nothing if it is absent. */
  void delete(String name) throws IOException;

  /**
   * Deletes files, in any order.
   *
   * @param before is called before each request to the store
   */
  default void deleteAll(List<String> names, Runnable before) throws IOException {
    for (String name : names) {
      before.run();
      delete(name);
    }
  }

  /** Deletes a folder that is empty; does nothing if something is in it, or if it is absent. A store without folders has nothing to do. */
  void deleteFolderIfEmpty(String name) throws IOException;
}
