package bench;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** The requests that a call must make, by Hadoop's client alone, in the JVM of the Spark that is measured. */
public final class StoreFloor implements AutoCloseable {
  private static final int RANGE_BYTES = 8 << 20;

  private final FileSystem files;
  private final ExecutorService threads;

  /** The bytes from {@code from} on of a file. */
  private record Range(FileStatus file, long from, int bytes) {}

  /**
   * @param atOnce how many requests are made at once
   * @param configuration of a file system that nothing else uses
   */
  public StoreFloor(String folder, Configuration configuration, int atOnce) throws IOException {
    files = FileSystem.newInstance(new Path(folder).toUri(), configuration);
    threads = Executors.newFixedThreadPool(atOnce);
  }

  /** One listing. */
  public int list(String folder) throws IOException {
    return files.listStatus(new Path(folder)).length;
  }

  /** One listing, then the bytes of each file in the folder whose name ends so, and a listing again. */
  public void open(String folder, String ending) throws IOException, InterruptedException, ExecutionException {
    fetch(listed(folder, ending, false));
    list(folder);
  }

  /** One listing, then for each folder in it a listing, the bytes of a file, and the listing again; those of all folders at once. */
  public void topics(String folder) throws IOException, InterruptedException, ExecutionException {
    List<Future<Integer>> topics = new ArrayList<>();
    for (FileStatus topic : files.listStatus(new Path(folder))) {
      topics.add(threads.submit(() -> fetch(listed(topic.getPath().toString(), ".json", false).get(0)) + list(topic.getPath().toString())));
    }
    for (Future<Integer> topic : topics) {
      topic.get();
    }
  }

  /** The bytes of all files below a folder, by ranges of 8 MiB. Finding the files is a part of it. */
  public long fetchAll(String folder, String ending) throws IOException, InterruptedException, ExecutionException {
    return fetch(listed(folder, ending, true));
  }

  /** So many bytes in the middle of the only file below a folder. */
  public long fetchMiddle(String folder, long bytes) throws IOException, InterruptedException, ExecutionException {
    FileStatus file = listed(folder, ".log", true).get(0).file;
    return fetch(ranges(file, (file.getLen() - bytes) / 2, (file.getLen() + bytes) / 2));
  }

  /** Puts new files, one after another. @param bytes of each file */
  public void put(String folder, List<Integer> bytes) throws IOException {
    for (int number = 0; number < bytes.size(); number++) {
      try (FSDataOutputStream out = (FSDataOutputStream) files.createFile(new Path(folder + "/" + number))
          .overwrite(true)
          .opt("fs.s3a.create.performance", true)
          .build()) {
        out.write(new byte[bytes.get(number)]);
      }
    }
  }

  private List<Range> listed(String folder, String ending, boolean below) throws IOException {
    List<Range> found = new ArrayList<>();
    for (var rest = files.listFiles(new Path(folder), below); rest.hasNext();) {
      FileStatus file = rest.next();
      if (file.getPath().getName().endsWith(ending)) {
        found.addAll(ranges(file, 0, file.getLen()));
      }
    }
    return found;
  }

  private static List<Range> ranges(FileStatus file, long from, long to) {
    List<Range> found = new ArrayList<>();
    for (long at = from; at < to; at += RANGE_BYTES) {
      found.add(new Range(file, at, (int) Math.min(RANGE_BYTES, to - at)));
    }
    return found;
  }

  private long fetch(List<Range> ranges) throws InterruptedException, ExecutionException {
    List<Future<Integer>> asked = ranges.stream().map(range -> threads.submit(() -> fetch(range))).toList();
    long bytes = 0;
    for (Future<Integer> one : asked) {
      bytes += one.get();
    }
    return bytes;
  }

  private int fetch(Range range) throws IOException, InterruptedException, ExecutionException {
    boolean isWhole = range.bytes == range.file.getLen();
    try (FSDataInputStream in = files.openFile(range.file.getPath())
        .opt("fs.option.openfile.read.policy", isWhole ? "whole-file" : "random")
        .optLong("fs.option.openfile.length", range.file.getLen())
        .build()
        .get()) {
      byte[] bytes = new byte[range.bytes];
      if (isWhole) {
        in.readFully(bytes);
      } else {
        in.readFully(range.from, bytes);
      }
      return bytes.length;
    }
  }

  @Override
  public void close() throws IOException {
    threads.shutdown();
    files.close();
  }
}
