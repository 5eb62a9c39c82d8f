package io.sparklog.storage;

import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * A place that keeps files, for reading: the half of a {@link LogStore} that changes nothing. A class that only reads takes this one.
 *
 * <p>Names are relative to the root and separated by {@code /}; {@code io.sparklog.segment.Names} builds them. A name that leads out of the
 * root is a programming error: {@link IllegalStateException}.
 *
 * <p>The exceptions named here are part of the contract: classes above decide by them. Every other failure is an {@link IOException} of any
 * other class. Methods may be called from several threads at once; the files that they open may not.
 */
public interface ReadStore {
  /** The full name of the root: messages show it. */
  String root();

  /** The full name of {@code name}, for messages. */
  default String location(String name) {
    return root() + "/" + name;
  }

  /**
   * Whether the place is behind a network: HDFS or an object store, by a client of Hadoop. Each look and each read is a request there,
   * which takes long and may cost money. Callers read files without a look at them before, take lengths and tags from {@link #listing}, and
   * ask for bytes ahead of their use. Spark takes the input bytes of a task from Hadoop's statistics of the thread that reads.
   *
   * <p>Elsewhere the place is a disk: a {@link LinkingStore}. Then a directory may be the directory of a Kafka broker, and a topic has a
   * Kafka view. Over a network the program does not look for these.
   */
  default boolean isRemote() {
    return false;
  }

  /**
   * Whether folders are there by themselves, as on a disk and in HDFS. In an object store, a folder exists as long as a file is in it, and
   * is never created or deleted by itself.
   */
  default boolean hasFolders() {
    return true;
  }

  /** Makes requests to the place at once. On a disk the caller makes each, when it needs the answer. */
  default Requests requests() {
    return Requests.IN_TURN;
  }

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

  /** Whether the folder {@code name} has a file, also in a folder below it. Only in a store without folders. */
  default boolean holdsFiles(String name) throws IOException {
    return !list(name).isEmpty();
  }

  /**
   * Runs a task as soon as a file appears in a folder, by any process of the machine. The task must not block, and may run without need.
   * The store does not keep the task: it ends when its owner drops it, or when the folder is deleted.
   *
   * @return whether each file is seen; false where a caller must look by itself
   */
  default boolean watch(String folder, Runnable task) {
    return false;
  }

  /** The names (last parts only) in the folder {@code name}, in any order; empty if the folder does not exist. */
  List<String> list(String name) throws IOException;

  /** A file in a listing: its length in bytes, the time when it was written, as {@link #modifiedMs}, and its {@link #tag}. */
  record Listed(long bytes, long modifiedMs, String tag) {}

  /**
   * A listing of a folder.
   *
   * @param names the last parts of the names of its files; in a store that lists names alone, also of its folders
   * @param files by name; empty in a store that lists names alone
   * @param isInOrder whether the names were listed in their order. A listing that has passed the place of a name has the name if it was
   *     there all the time, also if the listing is slow
   */
  record Listing(Collection<String> names, Map<String, Listed> files, boolean isInOrder) {}

  /** The files in the folder {@code name}, without files in folders below. */
  default Listing listing(String name) throws IOException {
    return new Listing(list(name), Map.of(), false);
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
   * Distinguishes the file {@code name} from a later file of this name, without reading a byte. The tag of a file that is put never
   * changes. A file that is put after a deletion has another tag. Compare a tag only with tags of this store.
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
   * The lengths of files, in bytes, by name; an absent file is left out.
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
   * Opens a file for reading.
   *
   * @throws java.nio.file.NoSuchFileException if it is absent, and for no other reason
   * @throws UnfitFileException if it is not a regular file, or reached through a symbolic link
   */
  FileReader open(String name) throws IOException;

  /**
   * As the other, for a caller that knows the length of the file. A store over a network does not look at the file first. So the first
   * read finds out that a file is absent, and a read beyond its end that the file is too short.
   *
   * @param bytes the length, or less: the caller reads no byte from there on
   */
  default FileReader open(String name, long bytes) throws IOException {
    return open(name);
  }
}
