package io.sparklog.storage;

import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * A place that keeps the files of one root: what the log needs of every such place.
 *
 * <p>Names are relative to the root and separated by {@code /}; {@code io.sparklog.segment.Names} builds them. A name that leads out of the
 * root is a programming error: {@link IllegalStateException}.
 *
 * <p>Every store promises, and {@code LogStoreContract} (in the tests) checks:
 *
 * <ul>
 * <li>A put is atomic and exclusive: of all puts of a name, by all callers in all processes, at most one takes effect, and a reader finds
 * either nothing or the whole content. That holds for a put that takes effect late, too.
 * <li>A put that returned is durable: the name and its content survive a crash of the process and a power loss.
 * <li>A call that ended has no later effect, but for a put that ended with {@link NoAnswerException}.
 * <li>A file that was put or created can be listed, read and opened by every process as soon as the call returned, and has a tag.
 * </ul>
 *
 * <p>The exceptions named here are part of the contract: classes above decide by them. Every other failure is an {@link IOException} of any
 * other class. Methods may be called from several threads at once; the files that they open may not.
 */
public interface LogStore {
  /** The full name of the root: messages show it. */
  String root();

  /** The reference that the store is made from: {@link Stores#open} makes one that does not differ, in any process. */
  default StoreRef ref() {
    return new StoreRef(root());
  }

  /** Equal to that of another store of this process if one can take the place of the other. */
  default Object identity() {
    return ref();
  }

  /** The full name of {@code name}, for messages. */
  default String location(String name) {
    return root() + "/" + name;
  }

  /** The server or the place that keeps the root, for messages. */
  default String endpoint() {
    return root();
  }

  /**
   * Whether files are asked for over a network, by a client of Hadoop. Then each read takes a request, and what is read is in Hadoop's
   * statistics of the reading thread, from which Spark takes the input bytes of a task.
   */
  default boolean isRemote() {
    return false;
  }

  /**
   * Whether folders are there by themselves. In a store without them, a folder is there as long as a file is in it, and there is none to
   * create or to delete.
   */
  default boolean hasFolders() {
    return true;
  }

  /**
   * Whether each look at a file is a request to a server that takes long and costs money. Callers read files there without a look at them
   * before, and take tags from {@link #listed}.
   */
  default boolean sparesLooks() {
    return false;
  }

  /**
   * Makes sure that puts are exclusive, before the first one that counts in this process. A store of which that is known has nothing to
   * try, and one that has tried does it once.
   *
   * @param folder in which files may be put, some of which stay
   * @throws io.sparklog.spec.PartlogException STORE_UNSAFE
   * @throws IOException if that cannot be told
   */
  default void probe(String folder) throws IOException {}

  /** Whether the root exists and is a folder. */
  boolean rootExists() throws IOException;

  /** Whether {@code name} exists, as a file, a folder or anything else; "" is the root. */
  boolean exists(String name) throws IOException;

  /** Whether {@code name} exists in the folder that holds the root, or with {@code ../} above that. False also if that cannot be told. */
  boolean existsBeside(String name);

  /** The innermost folder above the root that holds {@code name}; empty if none is seen to. Each folder is looked at once. */
  default Optional<String> above(String name) {
    int authority = root().indexOf("://");
    int top = authority < 0 ? 0 : authority + 3;
    String up = "";
    for (int end = root().lastIndexOf('/'); end >= top; end = root().lastIndexOf('/', end - 1)) {
      if (existsBeside(up + name)) {
        return Optional.of(root().substring(0, end));
      }
      up += "../";
    }
    return Optional.empty();
  }

  /** The names (last parts only) in the folder {@code name}, in any order; empty if there is no such folder. */
  List<String> list(String name) throws IOException;

  /** An entry of a listing: the length of the file in bytes, when it was written, as {@link #modifiedMs}, and its {@link #tag}. */
  record Listed(long bytes, long modifiedMs, String tag) {}

  /** The files in the folder {@code name}, by their last parts, without those in folders below. Only where looks are spared. */
  default Map<String, Listed> listed(String name) throws IOException {
    throw new UnsupportedOperationException(location(name));
  }

  /**
   * Reads a whole file.
   *
   * @param bytesMax the largest file to read; for a larger one nothing is allocated
   * @throws java.nio.file.NoSuchFileException if it is absent, and for no other reason: the classes above take it as an answer
   * @throws UnfitFileException if it is larger than {@code bytesMax}, not a regular file, or reached through a symbolic link
   */
  byte[] read(String name, int bytesMax) throws IOException;

  /**
   * Distinguishes the file {@code name} from a file that takes its place later, without reading a byte: the tag of a file that is put never
   * changes, and one that is put after it was deleted has another. Only to be compared with what this store gave.
   *
   * @return empty if {@code name} is absent
   */
  Optional<String> tag(String name) throws IOException;

  /**
   * When a file was last written to, by the clock of the place, in ms since 1970.
   *
   * @throws java.nio.file.NoSuchFileException if it is absent, and for no other reason
   */
  long modifiedMs(String name) throws IOException;

  /**
   * The length of a file, in bytes.
   *
   * @throws java.nio.file.NoSuchFileException if it is absent, and for no other reason
   * @throws UnfitFileException if it is not a regular file, or reached through a symbolic link
   */
  default long bytes(String name) throws IOException {
    try (FileReader file = open(name)) {
      return file.bytes();
    }
  }

  /**
   * The lengths of files, in bytes, by name; one that is absent is left out.
   *
   * @param names of files in {@code folder}, their last parts only
   * @throws UnfitFileException as {@link #open}, where files are looked at one by one
   */
  default Map<String, Long> lengths(String folder, Collection<String> names) throws IOException {
    Map<String, Long> lengths = new HashMap<>();
    for (String name : names) {
      try (FileReader file = open(folder + "/" + name)) {
        lengths.put(name, file.bytes());
      } catch (NoSuchFileException absent) {
        // It is left out.
      }
    }
    return lengths;
  }

  /**
   * Creates the file {@code name} with {@code content}, all or nothing, durable, and never in place of another. Its folder must exist:
   * {@link #createFolder}. If it returns, the name was taken by this call.
   *
   * <p>A store that cannot tell that its put is over throws {@link NoAnswerException}, whatever its client throws, an {@link Error} too.
   *
   * @param temporary a name in the same topic that no other caller uses, for a store that must write the content before it can give it its
   *     name. It writes there, and replaces what an earlier put has left, or in the same folder at a name that begins
   *     with this. Afterwards what it wrote is absent, unless the store could not delete it.
   * @param observer is told of each part of the put that the store has
   * @throws java.nio.file.FileAlreadyExistsException if it was refused: {@code name} existed, and keeps its content. Where the store
   *     repeats a put by itself, that may be what the put itself created.
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
   * Opens a file for reading.
   *
   * @throws java.nio.file.NoSuchFileException if it is absent, and for no other reason
   * @throws UnfitFileException if it is not a regular file, or reached through a symbolic link
   */
  FileReader open(String name) throws IOException;

  /**
   * As the other, without asking for the length.
   *
   * @throws java.nio.file.NoSuchFileException if it is absent: this may come when it is read, and not before
   */
  default FileReader open(String name, Listed told) throws IOException {
    return open(name);
  }

  /**
   * Creates an empty file for appending, and the folders above it. Its content is durable after {@link FileAppender#sync}, its name after
   * {@link #flush} of its folder. No two callers use a name.
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
   * Creates a folder and those above it, if they are missing, and makes all of them durable, also those that others created. A store
   * without folders has nothing to create.
   *
   * @throws IOException also if files cannot be created in it; {@link java.nio.file.AccessDeniedException} if a permission is missing
   */
  void createFolder(String name) throws IOException;

  /**
   * Makes the names in a folder durable, also those that others created. A store whose names are durable at once has nothing to do.
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
