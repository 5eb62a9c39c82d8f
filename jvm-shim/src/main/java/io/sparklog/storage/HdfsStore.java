package io.sparklog.storage;

import io.sparklog.spec.Option;
import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Warnings;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options.Rename;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.PathIsNotEmptyDirectoryException;
import org.apache.hadoop.security.AccessControlException;
import org.apache.hadoop.fs.permission.FsAction;
import org.apache.hadoop.hdfs.DFSUtilClient;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;

/** A root in HDFS. A put is exclusive by the rules of FORMAT.md annex I. */
class HdfsStore extends HadoopStore {
  /** Each open file has a thread and a connection in its client. */
  private static final int OPEN_FILES_MAX = 100;

  /** Counts the puts of this process, for names of temporary files. */
  private static final AtomicLong PUTS = new AtomicLong();

  HdfsStore(SharedFiles files, StoreRef resolved) {
    super(files, new Path(resolved.root()), resolved.settings());
  }

  /**
   * The store of {@code hdfs:} and of {@code viewfs:} that leads there.
   *
   * @throws PartlogException STORE_UNSUPPORTED if it leads elsewhere; STORE_UNAVAILABLE if the file system cannot be reached
   */
  static HdfsStore open(StoreRef ref) {
    Configuration configuration = HadoopSettings.configuration(ref.settings());
    try {
      Path root = resolved(new Path(ref.root()), configuration);
      if (!"hdfs".equals(root.toUri().getScheme())) {
        throw PartlogException.of("STORE_UNSUPPORTED", "root", ref.root(), "where",
            "at " + root + ", in a store of the scheme " + root.toUri().getScheme());
      }
      String path = root.toUri().getPath();
      if (!path.isEmpty() && !DFSUtilClient.isValidName(path)) {
        throw Option.invalidValue("path", ref.root(), "HDFS does not take this name; give one without colons");
      }
      SharedFiles files = HadoopSettings.files(root.toUri(), ref.settings(), configuration);
      try (SharedFiles.Use use = files.use()) {
        if (!(use.files() instanceof DistributedFileSystem)) {
          throw PartlogException.of("STORE_UNSUPPORTED", "root", ref.root(), "where", "in a file system of " + use.files().getClass());
        }
        return new HdfsStore(files, new StoreRef(use.files().makeQualified(root).toString(), ref.settings()));
      }
    } catch (PartlogException e) {
      throw e;
    } catch (IOException | RuntimeException e) {
      throw unavailable(ref.root(), e);
    }
  }

  /** Where a mount table leads. The root need not exist. */
  private static Path resolved(Path root, Configuration configuration) throws IOException {
    if (!"viewfs".equals(root.toUri().getScheme())) {
      return root;
    }
    try (FileSystem mounts = FileSystem.newInstance(root.toUri(), configuration)) {
      String below = "";
      for (Path at = root; at != null; at = at.getParent()) {
        try {
          return new Path(mounts.resolvePath(at) + below);
        } catch (FileNotFoundException absent) {
          below = "/" + at.getName() + below;
        }
      }
      return root;
    }
  }

  @Override
  public byte[] read(String name, int bytesMax) throws IOException {
    FileStatus status = fileStatus(name);
    if (status.getLen() > bytesMax) {
      throw new UnfitFileException(location(name),
          "it has " + status.getLen() + " bytes, more than the " + bytesMax + " that FORMAT.md allows");
    }
    byte[] content = new byte[(int) status.getLen()];
    try (FileReader file = reader(name, status.getLen())) {
      file.read(0, content, 0, content.length);
    }
    return content;
  }

  /** The number that HDFS gives a file, the time at which it was closed, in ms, and the length. */
  @Override
  String tag(FileStatus file) {
    long id = file instanceof HdfsFileStatus ofHdfs ? ofHdfs.getFileId() : 0;
    return id + " " + file.getModificationTime() + " " + file.getLen();
  }

  @Override
  public void putIfAbsent(String name, String temporary, byte[] content, PutObserver observer) throws IOException {
    observer.reached(PutObserver.Stage.BEGUN);
    path(name);
    // Another file for each put: the rename of an earlier one, if it comes late, must not find half of this content.
    String unnamed = temporary + "-" + PUTS.incrementAndGet();
    boolean dropped = false;
    try {
      write(unnamed, content);
      observer.reached(PutObserver.Stage.WRITTEN);
      give(name, unnamed);
      dropped = true;
      observer.reached(PutObserver.Stage.NAMED);
      observer.reached(PutObserver.Stage.DURABLE);
    } catch (NoAnswerException e) {
      dropped = true;
      throw e;
    } finally {
      if (!dropped) {
        drop(unnamed);
      }
    }
  }

  private void write(String unnamed, byte[] content) throws IOException {
    Path path = path(unnamed);
    ask(unnamed, files -> {
      HadoopStreams.writeWhole(files.create(path, true), content);
      return null;
    });
  }

  /**
   * Not {@link FileSystem#rename(Path, Path)}, which does not tell why it failed, and not a {@code create} of the name, which a reader
   * would see empty.
   */
  void rename(FileSystem files, Path unnamed, Path name) throws IOException {
    ((DistributedFileSystem) files).rename(unnamed, name, Rename.NONE);
  }

  private void give(String name, String unnamed) throws IOException {
    try (SharedFiles.Use use = use()) {
      rename(use.files(), path(unnamed), path(name));
    } catch (FileAlreadyExistsException | FileNotFoundException | AccessControlException answer) {
      throw HadoopErrors.translated(location(name), answer);
    } catch (Throwable e) {
      // Once the temporary file is deleted under its own name, it was not renamed, and never will be.
      if (!drop(unnamed)) {
        throw new NoAnswerException(location(name), e);
      }
      throw new IOException("the rename to " + location(name) + " failed: " + e, e);
    }
  }

  /**
   * Deletes a temporary file. A failure is only logged: it must not hide how the put ended, and a file that stays in {@code tmp/} does no
   * harm.
   *
   * @return whether it was there, and is deleted
   */
  private boolean drop(String unnamed) {
    boolean interrupted = Thread.interrupted(); // Otherwise the client would not even ask.
    try (SharedFiles.Use use = use()) {
      return use.files().delete(path(unnamed), false);
    } catch (IOException | RuntimeException e) {
      Warnings.warn(HdfsStore.class, "left {}", location(unnamed), e);
      return false;
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  @Override
  Reader reader(String name, long bytes) throws IOException {
    Path path = path(name);
    return opened(name, use -> new Reader(name, use, use.files().open(path), bytes));
  }

  @Override
  public FileAppender create(String name) throws IOException {
    Path path = path(name);
    return opened(name, use -> new Written(name, use, use.files().create(path, false), 0));
  }

  @Override
  public FileAppender append(String name) throws IOException {
    FileStatus status = fileStatus(name);
    Path path = path(name);
    return opened(name, use -> new Written(name, use, use.files().append(path), status.getLen()));
  }

  @Override
  public int openFilesMax() {
    return OPEN_FILES_MAX;
  }

  @Override
  public void createFolder(String name) throws IOException {
    Path folder = path(name);
    ask(name, files -> {
      files.mkdirs(folder);
      files.access(folder, FsAction.WRITE_EXECUTE);
      return null;
    });
  }

  @Override
  public void delete(String name) throws IOException {
    Path path = path(name);
    ask(name, files -> files.delete(path, false));
  }

  @Override
  public void deleteFolderIfEmpty(String name) throws IOException {
    try {
      if (status(name).isDirectory()) {
        delete(name);
      }
    } catch (PathIsNotEmptyDirectoryException | NoSuchFileException stays) {
      // It stays, or is gone.
    }
  }

  /** A file that can be read from its sync on. */
  private final class Written extends Appender {
    private Written(String name, SharedFiles.Use use, FSDataOutputStream out, long position) {
      super(name, use, out, position);
    }

    /** Closes it, too: before that, its length is not known to the NameNode. */
    @Override
    public void sync() throws IOException {
      act(() -> {
        out.hsync();
        return null;
      });
      closeOut();
    }

    @Override
    public void close() throws IOException {
      closeOut();
    }
  }
}
