package io.sparklog.storage;

import io.sparklog.spec.PartlogException;
import io.sparklog.spec.Warnings;
import java.io.EOFException;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.time.Clock;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BulkDelete;
import org.apache.hadoop.fs.EtagSource;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FutureDataInputStreamBuilder;
import org.apache.hadoop.fs.Path;

/**
 * A root in S3. A put is exclusive by the rules of FORMAT.md annex J.
 *
 * <p>There are no folders: one is there as long as a file is in it. A file is there, whole, once it is closed.
 */
class S3Store extends HadoopStore {
  private static final String EXCLUSIVE = "fs.option.create.conditional.overwrite";

  private static final String RANDOM = "random";

  /** A file is sent in parts of this size while a task fills it. With Hadoop's default of 64 MiB, few parts are sent before the end. */
  private static final String PART = "fs.s3a.multipart.size";
  private static final String PART_BYTES = "16M";

  /** The most that S3 takes. */
  private static final String DELETED_AT_ONCE = "1000";

  private final String endpoint;
  private final String bucket;

  S3Store(SharedFiles files, Path root, Map<String, String> settings) throws IOException {
    super(files, root, settings);
    this.bucket = String.valueOf(root.toUri().getAuthority());
    try (SharedFiles.Use use = files.use()) {
      String named = use.files().getConf().get("fs.s3a.endpoint", "");
      this.endpoint = named.isEmpty() ? "S3 of AWS" : named;
    }
  }

  /**
   * The store of {@code s3a:}.
   *
   * @throws PartlogException STORE_UNAVAILABLE if hadoop-aws is not there or the file system cannot be opened; STORE_UNSAFE if it does not
   *     offer conditional puts
   */
  static S3Store open(StoreRef ref) {
    Configuration configuration = HadoopSettings.configuration(ref.settings());
    // The default stream keeps the bytes that it reads in the process, reads ahead, and hides that a file is gone.
    configuration.set("fs.s3a.input.stream.type", "classic");
    configuration.set("fs.s3a.bulk.delete.page.size", DELETED_AT_ONCE);
    if (!HadoopSettings.isGiven(PART, configuration)) {
      configuration.set(PART, PART_BYTES);
    }
    try {
      Path root = new Path(ref.root());
      SharedFiles files = HadoopSettings.files(root.toUri(), ref.settings(), configuration);
      try (SharedFiles.Use use = files.use()) {
        S3Store store = new S3Store(files, use.files().makeQualified(root), ref.settings());
        // A file system that does not know the condition may accept it and ignore it.
        if (!use.files().hasPathCapability(root, EXCLUSIVE)) {
          throw PartlogException.of("STORE_UNSAFE", "root", ref.root(), "endpoint", store.endpoint, "reason",
              "this file system offers no conditional puts");
        }
        return store;
      }
    } catch (PartlogException e) {
      throw e;
    } catch (IOException | RuntimeException e) {
      throw unavailable(ref.root(), e);
    }
  }

  @Override
  public String endpoint() {
    return endpoint;
  }

  @Override
  public boolean hasFolders() {
    return false;
  }

  @Override
  public void createFolder(String name) {
    path(name);
  }

  @Override
  public void deleteFolderIfEmpty(String name) {
    path(name);
  }

  @Override
  public void probe(String folder) throws IOException {
    ServerProbe.of(endpoint, bucket).require(this, folder, Clock.systemUTC());
  }

  /** Directory buckets of S3 have another order than others. */
  @Override
  public Listing listing(String name) throws IOException {
    Listing listing = super.listing(name);
    return new Listing(listing.names(), listing.files(), !bucket.endsWith("--x-s3") && !bucket.endsWith("--xa-s3"));
  }

  /** By one request if it has. */
  @Override
  public boolean holdsFiles(String name) throws IOException {
    Path folder = path(name);
    try {
      return look(name, files -> files.listStatusIterator(folder).hasNext());
    } catch (NoSuchFileException absent) {
      return false;
    }
  }

  /** The ETag alone is the same for the same bytes. The time is in seconds: a listing may tell it more finely than a look at the object. */
  @Override
  String tag(FileStatus object) {
    String etag = object instanceof EtagSource tagged ? String.valueOf(tagged.getEtag()).replace("\"", "") : "";
    return etag + " " + object.getModificationTime() / 1000 + " " + object.getLen();
  }

  /** By one request, whose answer has the content. */
  @Override
  public byte[] read(String name, int bytesMax) throws IOException {
    byte[] content;
    try {
      content = ask(name, files -> {
        try (FSDataInputStream in = open(files, name, "whole-file", bytesMax + 1L)) {
          return in.readNBytes(bytesMax + 1);
        }
      });
    } catch (EOFException empty) {
      content = new byte[0];
    }
    if (content.length == 0 && bytes(name) > 0) {
      throw HadoopErrors.cut(location(name), null);
    }
    if (content.length > bytesMax) {
      throw new UnfitFileException(location(name),
          "it has " + bytes(name) + " bytes, more than the " + bytesMax + " that FORMAT.md allows");
    }
    return content;
  }

  /** Opens a file, without a request. @param bytes its length, or a limit of it */
  private FSDataInputStream open(FileSystem files, String name, String policy, long bytes) throws IOException {
    FutureDataInputStreamBuilder builder = files.openFile(path(name))
        .opt("fs.option.openfile.read.policy", policy)
        .optLong("fs.option.openfile.length", bytes);
    if (policy.equals(RANDOM)) {
      builder.optLong("fs.s3a.readahead.range", 0); // A read asks only for the bytes that it returns.
    }
    try {
      return builder.build().get();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new java.io.InterruptedIOException("interrupted while " + location(name) + " was opened");
    } catch (ExecutionException e) {
      throw e.getCause() instanceof IOException failed ? failed : new IOException(e.getCause());
    }
  }

  @Override
  Reader reader(String name, long bytes) throws IOException {
    return opened(name, use -> new Reader(name, use, open(use.files(), name, RANDOM, bytes), bytes));
  }

  /**
   * One conditional put, by one request. If the name was taken, this put itself may have taken it before: the client repeats a request
   * whose answer is lost. Without an answer that refuses the only request, it may be carried out later.
   */
  @Override
  public void putIfAbsent(String name, String temporary, byte[] content, PutObserver observer) throws IOException {
    observer.reached(PutObserver.Stage.BEGUN);
    path(temporary);
    try (SharedFiles.Use use = use()) {
      put(use.files(), name, content, observer);
    }
    observer.reached(PutObserver.Stage.NAMED);
    observer.reached(PutObserver.Stage.DURABLE);
  }

  private void put(FileSystem files, String name, byte[] content, PutObserver observer) throws IOException {
    long repeats = S3Answers.repeats(files);
    FSDataOutputStream out = translate(name, () -> create(files, name, builder -> builder.must(EXCLUSIVE, true)));
    try {
      translate(name, () -> {
        out.write(content);
        return null;
      });
      observer.reached(PutObserver.Stage.WRITTEN);
    } catch (Throwable e) {
      abort(name, out); // To close it would put the bytes that were written so far.
      throw e;
    }
    try {
      out.close();
    } catch (Throwable e) {
      throw S3Answers.ended(location(name), e, S3Answers.repeats(files) != repeats);
    }
  }

  private interface How {
    FSDataOutputStreamBuilder<?, ?> set(FSDataOutputStreamBuilder<?, ?> builder);
  }

  private FSDataOutputStream create(FileSystem files, String name, How how) throws IOException {
    return (FSDataOutputStream) how.set(files.createFile(path(name)).overwrite(true)).build();
  }

  private void abort(String name, FSDataOutputStream out) {
    try {
      out.abort();
    } catch (RuntimeException e) {
      Warnings.warn(S3Store.class, "giving up the upload of {} failed", location(name), e);
    }
  }

  /** Without a look for an existing file, which would be two more requests: the names of data files are used once. */
  @Override
  public FileAppender create(String name) throws IOException {
    return opened(name, use -> new Upload(name, use, create(use.files(), name, builder -> builder.opt("fs.s3a.create.performance", true))));
  }

  @Override
  public void delete(String name) throws IOException {
    deleteAll(List.of(name), () -> {});
  }

  /** A thousand by one request, that leaves no object in the place of a folder. */
  @Override
  public void deleteAll(List<String> names, Runnable before) throws IOException {
    if (names.isEmpty()) {
      return;
    }
    ask(names.get(0), files -> {
      try (BulkDelete bulk = files.createBulkDelete(path(""))) {
        for (int from = 0; from < names.size(); from += bulk.pageSize()) {
          List<Path> page = names.subList(from, Math.min(names.size(), from + bulk.pageSize())).stream().map(this::path).toList();
          before.run();
          List<Map.Entry<Path, String>> failed = bulk.bulkDelete(page);
          if (!failed.isEmpty()) {
            throw new IOException("deleting " + failed.get(0).getKey() + " failed: " + failed.get(0).getValue());
          }
        }
      }
      return null;
    });
  }

  /** A file that is there once its upload has ended. */
  private final class Upload extends Appender {
    private boolean ended;

    private Upload(String name, SharedFiles.Use use, FSDataOutputStream out) {
      super(name, use, out, 0);
    }

    /** The file is there when it is closed, and not before. */
    @Override
    public void sync() throws IOException {
      if (ended) {
        throw new IOException("the upload of " + location(name) + " has ended");
      }
      ended = true;
      closeOut();
    }

    @Override
    public void close() {
      if (!ended) {
        ended = true;
        abort(name, out);
        endUse();
      }
    }
  }
}
