package io.sparklog.storage;

import com.sun.management.UnixOperatingSystemMXBean;
import io.sparklog.spec.Warnings;
import java.io.EOFException;
import java.io.IOException;
import java.io.SyncFailedException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.FileChannel;
import java.nio.channels.WritableByteChannel;
import java.nio.file.AccessDeniedException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/**
 * A directory of a local disk, or of anything that is mounted like one. Uses {@code java.nio} alone.
 *
 * <p>Hadoop's local file system is not used: it writes {@code .crc} files next to ours, and has no safe put-if-absent.
 */
class LocalStore implements LinkingStore {
  /** The folder of a name may be deleted, while it is empty, just before the name is put there. */
  private static final int LINK_TRIES = 100;

  /** Java reads and writes the heap through a buffer outside it, which a thread keeps: pieces bound the buffers of all threads. */
  static final int PIECE_BYTES = 1 << 20;

  private final Path directory;

  /** @param directory absolute: the working directory of a task may differ from the driver's */
  LocalStore(Path directory) {
    this.directory = directory;
  }

  @Override
  public String root() {
    return directory.toString();
  }

  @Override
  public boolean rootExists() {
    return Files.isDirectory(directory);
  }

  @Override
  public boolean exists(String name) {
    return Files.exists(path(name), LinkOption.NOFOLLOW_LINKS);
  }

  @Override
  public boolean existsBeside(String name) {
    return Files.exists(directory.resolveSibling(name), LinkOption.NOFOLLOW_LINKS);
  }

  @Override
  public Optional<String> above(String name) {
    return FoldersAbove.holding(directory, name).map(Path::toString);
  }

  @Override
  public List<String> list(String name) throws IOException {
    List<String> names = new ArrayList<>();
    Path folder = unlinked(name);
    if (isOfAnotherKind(folder)) {
      return List.of();
    }
    try (DirectoryStream<Path> entries = Files.newDirectoryStream(folder)) {
      entries.forEach(entry -> names.add(entry.getFileName().toString()));
    } catch (NoSuchFileException | NotDirectoryException replaced) {
      return List.of();
    } catch (DirectoryIteratorException e) {
      throw e.getCause();
    }
    return names;
  }

  @Override
  public boolean watch(String folder, Runnable task) {
    try {
      return FolderWatch.begin(unlinked(folder), task);
    } catch (UnfitFileException link) {
      return false;
    }
  }

  /** Whether there is something that is not a folder: to open a pipe as a folder would block. */
  private static boolean isOfAnotherKind(Path folder) {
    try {
      return !Files.readAttributes(folder, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS).isDirectory();
    } catch (IOException e) {
      return false; // Listing it gives a better error.
    }
  }

  @Override
  public byte[] read(String name, int bytesMax) throws IOException {
    try (FileChannel channel = channel(regular(name), StandardOpenOption.READ, LinkOption.NOFOLLOW_LINKS)) {
      long bytes = channel.size();
      if (bytes > bytesMax) {
        throw new UnfitFileException(location(name), "it has " + bytes + " bytes, more than the " + bytesMax + " that FORMAT.md allows");
      }
      ByteBuffer content = ByteBuffer.allocate((int) bytes);
      LocalReader.readFully(channel, content, 0, location(name));
      return content.array();
    }
  }

  /** The inode, the length and the time of the last change, in ns: after a deletion, the next file often has the same inode. */
  @Override
  public Optional<String> tag(String name) throws IOException {
    try {
      BasicFileAttributes file = Files.readAttributes(path(name), BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
      return Optional.of(file.fileKey() + " " + file.size() + " " + file.lastModifiedTime().to(TimeUnit.NANOSECONDS));
    } catch (NoSuchFileException absent) {
      return Optional.empty();
    }
  }

  @Override
  public long modifiedMs(String name) throws IOException {
    return Files.getLastModifiedTime(path(name), LinkOption.NOFOLLOW_LINKS).toMillis();
  }

  @Override
  public void putIfAbsent(String name, String temporary, byte[] content, PutObserver observer) throws IOException {
    observer.reached(PutObserver.Stage.BEGUN);
    writeTemporary(temporary, content);
    observer.reached(PutObserver.Stage.WRITTEN);
    try {
      // A link and not a rename: a rename silently replaces the target, so two writers would both believe that they won.
      Files.createLink(path(name), path(temporary));
      observer.reached(PutObserver.Stage.NAMED);
      syncFolder(path(name).getParent());
      observer.reached(PutObserver.Stage.DURABLE);
    } finally {
      dropTemporary(temporary);
    }
  }

  private void writeTemporary(String temporary, byte[] content) throws IOException {
    // Only this write uses the name, and it may put a second time.
    Files.deleteIfExists(path(temporary));
    try (FileAppender writer = create(temporary)) {
      writer.write(content, 0, content.length);
      writer.sync();
    }
  }

  /** A failure is only logged: it must not hide how the put ended, and a file that stays in {@code tmp/} does no harm. */
  private void dropTemporary(String temporary) {
    try {
      Files.deleteIfExists(path(temporary));
    } catch (IOException e) {
      Warnings.warn(LocalStore.class, "left {}", location(temporary), e);
    }
  }

  @Override
  public FileReader open(String name) throws IOException {
    return new LocalReader(location(name), channel(regular(name), StandardOpenOption.READ, LinkOption.NOFOLLOW_LINKS));
  }

  @Override
  public FileAppender create(String name) throws IOException {
    Path path = unlinked(name);
    boolean inNewFolder = makeFolders(path.getParent());
    return new LocalWriter(location(name), channel(path, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE), inNewFolder, 0);
  }

  @Override
  public FileAppender append(String name) throws IOException {
    FileChannel channel = channel(regular(name), StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS);
    return new LocalWriter(location(name), channel, false, channel.size());
  }

  /** A task's share of the process's limit, if up to four tasks a core run at once and 256 files are left for sockets and jars. */
  @Override
  public int openFilesMax() {
    long process = ManagementFactory.getOperatingSystemMXBean() instanceof UnixOperatingSystemMXBean unix
        ? unix.getMaxFileDescriptorCount()
        : 1024;
    return (int) Math.min(Integer.MAX_VALUE, Math.max(8, (process - 256) / (4L * Runtime.getRuntime().availableProcessors())));
  }

  @Override
  public FileStamper stamp(String name) throws IOException {
    return new Stamper(channel(regular(name), StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS));
  }

  @Override
  public void link(String existing, String name) throws IOException {
    for (int tries = 1;; tries++) {
      makeFolders(unlinked(name).getParent());
      try {
        Files.createLink(path(name), path(existing));
        return;
      } catch (NoSuchFileException absent) {
        if (tries == LINK_TRIES || !exists(existing)) {
          throw absent;
        }
      }
    }
  }

  @Override
  public boolean isSameFile(String one, String other) throws IOException {
    try {
      return Files.isSameFile(path(one), path(other));
    } catch (NoSuchFileException absent) {
      return false;
    }
  }

  @Override
  public void createFolder(String name) throws IOException {
    Path folder = unlinked(name);
    makeFolders(folder);
    if (!Files.isWritable(folder)) {
      throw new AccessDeniedException(folder.toString());
    }
    // A process that created a folder may have died before it made the folder durable.
    for (Path at = folder; !at.equals(directory); at = at.getParent()) {
      syncFolder(at.getParent());
    }
    try {
      syncFolder(directory.getParent());
    } catch (AccessDeniedException e) {
      // A process that may not read the folder above did not create the root in it.
    }
  }

  @Override
  public void flush(String folder) throws IOException {
    syncFolder(path(folder));
  }

  @Override
  public void delete(String name) throws IOException {
    Files.deleteIfExists(path(name));
  }

  @Override
  public void deleteFolderIfEmpty(String name) throws IOException {
    Path folder = unlinked(name);
    try {
      if (Files.isDirectory(folder)) {
        Files.deleteIfExists(folder);
      }
    } catch (DirectoryNotEmptyException filled) {
      // It stays.
    }
  }

  /** The only way to a file or folder: a test overrides it to watch writes and syncs, and to make them fail. */
  FileChannel channel(Path path, OpenOption... options) throws IOException {
    return FileChannel.open(path, options);
  }

  private Path path(String name) {
    Path path = directory.resolve(name).normalize();
    if (!path.startsWith(directory)) {
      throw new IllegalStateException("the name " + name + " leads out of the root " + directory);
    }
    return path;
  }

  /** The path of a name; refuses a symbolic link anywhere on it below the root. */
  private Path unlinked(String name) throws UnfitFileException {
    Path path = path(name);
    for (Path at = path; !at.equals(directory); at = at.getParent()) {
      if (Files.isSymbolicLink(at)) {
        throw new UnfitFileException(at.toString(), "it is a symbolic link, and below a root none is followed");
      }
    }
    return path;
  }

  /** The path of an existing regular file: opening a pipe would block until another process opens its other end. */
  private Path regular(String name) throws IOException {
    Path path = unlinked(name);
    try {
      if (Files.readAttributes(path, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS).isRegularFile()) {
        return path;
      }
    } catch (FileSystemException e) {
      requireFolders(path);
      throw e;
    }
    throw new UnfitFileException(path.toString(), "it is not a regular file");
  }

  private void requireFolders(Path path) throws UnfitFileException {
    for (Path above = path.getParent(); !above.equals(directory); above = above.getParent()) {
      if (Files.exists(above, LinkOption.NOFOLLOW_LINKS) && !Files.isDirectory(above, LinkOption.NOFOLLOW_LINKS)) {
        throw new UnfitFileException(above.toString(), "it is not a folder");
      }
    }
  }

  /**
   * Creates {@code folder} and the missing folders above it. Each but {@code folder} itself is durable.
   *
   * @return whether {@code folder} was missing
   */
  private boolean makeFolders(Path folder) throws IOException {
    Deque<Path> missing = new ArrayDeque<>();
    for (Path at = folder; at != null && !Files.isDirectory(at); at = at.getParent()) {
      missing.push(at);
    }
    for (Path made : missing) {
      try {
        Files.createDirectory(made);
      } catch (FileAlreadyExistsException another) {
        if (!Files.isDirectory(made)) {
          throw another;
        }
      }
      if (!made.equals(folder)) {
        syncFolder(made.getParent()); // Also if another writer created it: that may not have synced it yet.
      }
    }
    return !missing.isEmpty();
  }

  private void syncFolder(Path folder) throws IOException {
    try (FileChannel channel = channel(folder, StandardOpenOption.READ)) {
      try {
        channel.force(true);
      } catch (ClosedChannelException interrupted) {
        throw interrupted;
      } catch (IOException e) {
        throw (IOException) new SyncFailedException(folder + ": " + e.getMessage()).initCause(e);
      }
    }
  }

  private record Stamper(FileChannel channel) implements FileStamper {
    @Override
    public void replace(long position, byte[] from, int at, int length) throws IOException {
      LocalWriter.writeFully(channel, position, from, at, length);
    }

    @Override
    public void sync() throws IOException {
      channel.force(false);
    }

    @Override
    public void close() throws IOException {
      channel.close();
    }
  }

  /** A file on a local disk that is open for reading. */
  private record LocalReader(String location, FileChannel channel) implements FileReader {
    @Override
    public long bytes() throws IOException {
      return channel.size();
    }

    @Override
    public void read(long position, ByteBuffer to) throws IOException {
      readFully(channel, to, position, location);
    }

    @Override
    public long send(long position, long bytes, WritableByteChannel to) throws IOException {
      long sent = channel.transferTo(position, bytes, to);
      if (sent == 0 && bytes > 0 && position >= channel.size()) {
        throw new EOFException(location + " ends at byte " + channel.size());
      }
      return sent;
    }

    @Override
    public void close() throws IOException {
      channel.close();
    }

    static void readFully(FileChannel channel, ByteBuffer to, long position, String name) throws IOException {
      long at = position;
      int end = to.limit();
      while (to.position() < end) {
        to.limit(Math.min(end, to.position() + PIECE_BYTES));
        int read = channel.read(to, at);
        to.limit(end);
        if (read < 0) {
          throw new EOFException(name + " ends at byte " + at + ", " + to.remaining() + " bytes too early");
        }
        at += read;
      }
    }
  }
}
