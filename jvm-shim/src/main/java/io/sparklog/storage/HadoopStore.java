package io.sparklog.storage;

import io.sparklog.spec.PartlogException;
import java.io.EOFException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.lang.ref.Cleaner;
import java.nio.ByteBuffer;
import java.nio.file.NoSuchFileException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * A root in a file system of Hadoop: what does not depend on which one.
 *
 * <p>Its {@link FileSystem} may be closed and opened again between two calls; see {@link SharedFiles}. So each call asks for it, and a file
 * that is open keeps it open.
 */
abstract class HadoopStore implements LogStore {
  /** Ends the uses of files that were not closed. */
  private static final Cleaner CLEANER = Cleaner.create();

  private static final Duration LATE_LIMIT = Duration.ofSeconds(30);

  /** A buffer that is not an array is filled in pieces of this size. */
  private static final int PIECE_BYTES = 64 << 10;

  private final SharedFiles files;
  private final StoreRef ref;
  private final Object user = HadoopSettings.user();

  /**
   * @param root the full name
   * @param settings of {@code files}
   */
  HadoopStore(SharedFiles files, Path root, Map<String, String> settings) {
    this.files = files;
    String name = root.toString();
    this.ref = new StoreRef(name.endsWith("/") ? name.substring(0, name.length() - 1) : name, new TreeMap<>(settings));
  }

  /** STORE_UNAVAILABLE. */
  static PartlogException unavailable(String root, Throwable why) {
    Throwable first = why;
    while (first instanceof RuntimeException && first.getCause() != null) {
      first = first.getCause();
    }
    return PartlogException.caused(why, "STORE_UNAVAILABLE", "root", root, "cause", first);
  }

  @Override
  public String root() {
    return ref.root();
  }

  @Override
  public StoreRef ref() {
    return ref;
  }

  /** Also the user: one must not work with the rights of another. */
  @Override
  public Object identity() {
    return identity(ref, user);
  }

  static Object identity(StoreRef ref, Object user) {
    return List.of(ref, user);
  }

  @Override
  public boolean isRemote() {
    return true;
  }

  @Override
  public Requests requests() {
    return files.requests();
  }

  /** A late put was seen to come after 4 s, and another NameNode to take over after 16 s. */
  @Override
  public Duration lateLimit() {
    return LATE_LIMIT;
  }

  /** The path of a name. */
  final Path path(String name) {
    if (name.startsWith("/") || Arrays.asList(name.split("/")).contains("..")) {
      throw new IllegalStateException("the name " + name + " leads out of the root " + root());
    }
    // Not by two arguments: that takes a colon in a name for the end of a scheme. A slash for the root of the file system itself.
    return new Path(name.isEmpty() ? root() + "/" : location(name));
  }

  final SharedFiles.Use use() throws IOException {
    return files.use();
  }

  /** A question to the file system. */
  @FunctionalInterface
  interface Ask<T> {
    T to(FileSystem files) throws IOException;
  }

  /** The answer, or the exception that {@link LogStore} promises in place of Hadoop's. */
  final <T> T ask(String name, Ask<T> question) throws IOException {
    try (SharedFiles.Use use = files.use()) {
      return translate(name, () -> question.to(use.files()));
    }
  }

  /**
   * As {@link #ask}, for a look or a listing. The SDK of AWS ends with an exception of its own if the answer is not a listing, such as an
   * empty answer or the page of a proxy.
   */
  final <T> T look(String name, Ask<T> question) throws IOException {
    return ask(name, files -> {
      try {
        return question.to(files);
      } catch (RuntimeException e) {
        throw new IOException("the answer to a look at " + location(name) + " cannot be understood: " + e, e);
      }
    });
  }

  /** Opens a file. */
  @FunctionalInterface
  interface Opening<T> {
    T by(SharedFiles.Use use) throws IOException;
  }

  /** As {@link #ask}, for a file that ends the use when it is closed. */
  final <T> T opened(String name, Opening<T> opening) throws IOException {
    SharedFiles.Use use = files.use();
    try {
      return translate(name, () -> opening.by(use));
    } catch (Throwable e) {
      use.close();
      throw e;
    }
  }

  final <T> T translate(String name, HadoopErrors.Access<T> call) throws IOException {
    return HadoopErrors.translate(location(name), call);
  }

  /** @throws NoSuchFileException if it is absent */
  final FileStatus status(String name) throws IOException {
    Path path = path(name);
    return look(name, files -> files.getFileStatus(path));
  }

  /** As {@link #status}. @throws UnfitFileException if it is not a file */
  final FileStatus fileStatus(String name) throws IOException {
    FileStatus status = status(name);
    if (!status.isFile()) {
      throw new UnfitFileException(location(name), "it is not a regular file");
    }
    return status;
  }

  @Override
  public boolean rootExists() throws IOException {
    try {
      return status("").isDirectory();
    } catch (NoSuchFileException absent) {
      return false;
    }
  }

  @Override
  public boolean exists(String name) throws IOException {
    try {
      status(name);
      return true;
    } catch (NoSuchFileException absent) {
      return false;
    }
  }

  @Override
  public boolean existsBeside(String name) {
    Path above = path("").getParent();
    try {
      return above != null && !name.startsWith("/") && ask("", files -> files.exists(new Path(above + "/" + name)));
    } catch (IOException e) {
      return false;
    }
  }

  @Override
  public List<String> list(String name) throws IOException {
    List<String> names = new ArrayList<>();
    for (FileStatus entry : entries(name)) {
      names.add(entry.getPath().getName());
    }
    return names;
  }

  /** The files and folders in a folder; empty if the folder does not exist. */
  final FileStatus[] entries(String name) throws IOException {
    Path folder = path(name);
    try {
      return look(name, files -> {
        FileStatus[] entries = files.listStatus(folder);
        // A file is listed as itself.
        boolean isFile = entries.length == 1 && entries[0].isFile() && entries[0].getPath().equals(files.makeQualified(folder));
        return isFile ? new FileStatus[0] : entries;
      });
    } catch (NoSuchFileException absent) {
      return new FileStatus[0];
    }
  }

  /** By one request for a thousand names. Names are in order. */
  @Override
  public Listing listing(String name) throws IOException {
    Map<String, Listed> files = new HashMap<>();
    for (FileStatus entry : entries(name)) {
      if (entry.isFile()) {
        files.put(entry.getPath().getName(), new Listed(entry.getLen(), entry.getModificationTime(), tag(entry)));
      }
    }
    return new Listing(files.keySet(), files, true);
  }

  /** The tag of a file. */
  abstract String tag(FileStatus file);

  @Override
  public Optional<String> tag(String name) throws IOException {
    try {
      return Optional.of(tag(status(name)));
    } catch (NoSuchFileException absent) {
      return Optional.empty();
    }
  }

  /** By one listing. */
  @Override
  public Map<String, Long> lengths(String folder, Collection<String> names) throws IOException {
    Map<String, Long> lengths = new HashMap<>();
    for (FileStatus entry : entries(folder)) {
      if (entry.isFile() && names.contains(entry.getPath().getName())) {
        lengths.put(entry.getPath().getName(), entry.getLen());
      }
    }
    return lengths;
  }

  @Override
  public long modifiedMs(String name) throws IOException {
    return status(name).getModificationTime();
  }

  @Override
  public long bytes(String name) throws IOException {
    return fileStatus(name).getLen();
  }

  /** Its names are durable at once. */
  @Override
  public void flush(String folder) {
    path(folder);
  }

  /** Whether {@code name} is gone now, as far as this can be known. */
  private boolean isGone(String name) {
    try {
      return !exists(name);
    } catch (IOException e) {
      return false;
    }
  }

  /**
   * An end that comes before byte {@code bytes} of a file means: the file is shorter, or gone, or the place cannot be asked. A client
   * may take a connection that was cut, again and again, for the end of the file.
   */
  final IOException unlessShorter(String name, long bytes, EOFException end) {
    try {
      long there = bytes(name);
      return there < bytes
          ? (EOFException) new EOFException(location(name) + " ends at byte " + there + ", " + (bytes - there) + " bytes too early")
              .initCause(end)
          : HadoopErrors.cut(location(name), end);
    } catch (IOException unknown) {
      unknown.addSuppressed(end);
      return unknown;
    }
  }

  @Override
  public FileReader open(String name) throws IOException {
    return open(name, bytes(name));
  }

  @Override
  public FileReader open(String name, long bytes) {
    return PlannedReads.single(this::reader, requests(), name, bytes);
  }

  /** A file that is open for reading, where each read is a request. @param bytes its length, or a limit of it */
  abstract Reader reader(String name, long bytes) throws IOException;

  /** A file that is open for reading. Its caller tells a range only if it has {@link Requests#streamedBytesMin}. */
  final class Reader implements FileReader {
    private final String name;
    private final SharedFiles.Use use;
    private final FSDataInputStream in;
    private final long bytes;

    /** The range that is read by a stream, which goes on from read to read; empty if each read is a request. */
    private long streamedFrom;
    private long streamedTo;

    /** @param use is ended when this is closed */
    Reader(String name, SharedFiles.Use use, FSDataInputStream in, long bytes) {
      this.name = name;
      this.use = use;
      this.in = in;
      this.bytes = bytes;
      CLEANER.register(this, use::close);
    }

    private String location() {
      return HadoopStore.this.location(name);
    }

    @Override
    public long bytes() {
      return bytes;
    }

    @Override
    public void expect(long from, long to) {
      streamedFrom = from;
      streamedTo = to;
    }

    /** @throws NoSuchFileException if the file is gone: a file can be deleted during a read */
    @Override
    public void read(long position, ByteBuffer to) throws IOException {
      if (position + to.remaining() > bytes) {
        throw new EOFException(location() + " ends at byte " + bytes + ", " + (position + to.remaining() - bytes) + " bytes too early");
      }
      long end = position + to.remaining();
      try {
        if (to.hasArray()) {
          readFully(position, to.array(), to.arrayOffset() + to.position(), to.remaining());
          to.position(to.limit());
        } else {
          copy(position, to);
        }
      } catch (EOFException e) {
        throw unlessShorter(name, end, e);
      } catch (IOException e) {
        throw !(e instanceof FileNotFoundException) && isGone(name)
            ? (IOException) new NoSuchFileException(location()).initCause(e)
            : HadoopErrors.translated(location(), e);
      }
    }

    private void readFully(long position, byte[] to, int at, int length) throws IOException {
      if (position >= streamedFrom && position + length <= streamedTo) {
        in.seek(position);
        in.readFully(to, at, length);
      } else {
        in.readFully(position, to, at, length);
      }
    }

    private void copy(long position, ByteBuffer to) throws IOException {
      byte[] piece = new byte[Math.min(PIECE_BYTES, to.remaining())];
      for (long at = position; to.hasRemaining();) {
        int length = Math.min(piece.length, to.remaining());
        readFully(at, piece, 0, length);
        to.put(piece, 0, length);
        at += length;
      }
    }

    @Override
    public void close() throws IOException {
      try (use) {
        in.close();
      }
    }
  }

  /** A file that is being written. */
  abstract class Appender implements FileAppender {
    final String name;
    final FSDataOutputStream out;
    private final SharedFiles.Use use;
    private long position;
    private Throwable failure;
    private boolean closed;

    /**
     * @param use is ended when this is closed
     * @param position how many bytes the file has
     */
    Appender(String name, SharedFiles.Use use, FSDataOutputStream out, long position) {
      this.name = name;
      this.use = use;
      this.out = out;
      this.position = position;
      CLEANER.register(this, use::close);
    }

    @Override
    public void write(byte[] from, int at, int length) throws IOException {
      act(() -> {
        out.write(from, at, length);
        return null;
      });
      position += length;
    }

    /** Remembers if it fails. */
    final void act(HadoopErrors.Access<Void> call) throws IOException {
      try {
        translate(name, call);
      } catch (Throwable e) {
        failure = e;
        throw e;
      }
    }

    /** Ends the use of a file that is given up. */
    final void endUse() {
      closed = true;
      use.close();
    }

    @Override
    public long position() {
      return position;
    }

    /** Once: a second call does nothing. After a failure, which the caller knows, it does not fail. */
    final void closeOut() throws IOException {
      if (closed) {
        return;
      }
      closed = true;
      try (use) {
        if (failure == null) {
          translate(name, () -> {
            out.close();
            return null;
          });
        } else {
          HadoopStreams.closeAfter(failure, out);
        }
      }
    }
  }
}
