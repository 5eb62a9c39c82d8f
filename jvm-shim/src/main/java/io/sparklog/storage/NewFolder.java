package io.sparklog.storage;

import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Warnings;
import java.io.Closeable;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * A folder on a disk of this process that appears with its whole content, or not at all. Until {@link #finish}, it has another name, beside
 * its own. A process that dies leaves it there, and it can be deleted.
 */
public final class NewFolder implements Closeable {
  /** The folder cannot be taken. {@link #getReason} says why, as a clause. */
  public static final class Refused extends FileSystemException {
    private static final long serialVersionUID = 1;

    private Refused(String given, String reason) {
      super(given, null, reason);
    }
  }

  private final String given;
  private final Path path;
  private final LocalStore unfinished;
  private boolean finished;

  private NewFolder(String given, Path path, String id) {
    this.given = given;
    this.path = path;
    this.unfinished = new LocalStore(path.resolveSibling(path.getFileName() + ".unfinished-" + id));
  }

  /**
   * Begins a folder that is empty or absent.
   *
   * @param given a path, as {@link Stores#open} takes it
   * @param marker no folder above may hold this name
   * @param id a random identity
   * @throws Refused if it is another one; its reason says why
   * @throws PartlogException OPTION_VALUE for a text that is not a path
   */
  public static NewFolder begin(String given, String marker, String id) throws IOException {
    Path path;
    try {
      path = FoldersAbove.real(Path.of(Stores.local(given).root()));
    } catch (PartlogException e) {
      if (e.id().equals("STORE_UNSUPPORTED")) {
        throw new Refused(given, "it is not on a disk");
      }
      throw e;
    }
    Optional<Path> root = FoldersAbove.holding(path.resolve(marker), marker);
    if (root.isPresent()) {
      throw new Refused(given, "it lies in the root " + root.get() + ", which holds nothing but topics");
    }
    if (Files.exists(path) && !Files.isDirectory(path)) {
      throw new Refused(given, "it is a file");
    }
    Optional<String> held = first(path);
    if (held.isPresent()) {
      throw new Refused(given, "it is not empty: it holds " + held.get());
    }
    return new NewFolder(given, path, id);
  }

  /** Something in the folder; empty if there is nothing, or no folder. */
  private static Optional<String> first(Path folder) throws IOException {
    if (!Files.isDirectory(folder)) {
      return Optional.empty();
    }
    try (DirectoryStream<Path> entries = Files.newDirectoryStream(folder)) {
      for (Path entry : entries) {
        return Optional.of(entry.getFileName().toString());
      }
    }
    return Optional.empty();
  }

  /** Its full name. */
  public String location() {
    return path.toString();
  }

  /** Where its files are written. */
  public LogStore store() {
    return unfinished;
  }

  /**
   * Gives it its name. All files in it must be synced.
   *
   * @throws Refused if something exists there now
   */
  public void finish() throws IOException {
    try {
      // An empty folder of the name is replaced, and no other.
      Files.move(Path.of(unfinished.root()), path, StandardCopyOption.ATOMIC_MOVE);
    } catch (IOException e) {
      if (Files.exists(path) && (!Files.isDirectory(path) || first(path).isPresent())) {
        throw new Refused(given, "another program has written to it since");
      }
      throw e;
    }
    finished = true;
    new LocalStore(path.getParent()).flush("");
  }

  /** Deletes the written files, unless the folder is finished. */
  @Override
  public void close() {
    Path folder = Path.of(unfinished.root());
    if (finished || !Files.exists(folder)) {
      return;
    }
    try (Stream<Path> all = Files.walk(folder)) {
      List<Path> innermostFirst = all.sorted(Comparator.reverseOrder()).toList();
      for (Path each : innermostFirst) {
        Files.delete(each);
      }
    } catch (IOException e) {
      Warnings.warn(NewFolder.class, "left {}", folder, e);
    }
  }
}
