package io.sparklog.storage;

import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalFileSystem;

/**
 * Tells Spark's UI what was read: Spark takes the input bytes of a task from Hadoop's statistics of the task's thread, and java.nio does
 * not count there.
 */
public final class ReadStatistics {
  private ReadStatistics() {}

  /** Counts {@code bytes} read by the calling thread. */
  @SuppressWarnings("deprecation") // Spark reads these statistics and no newer ones
  public static void add(long bytes) {
    FileSystem.getStatistics("file", LocalFileSystem.class).incrementBytesRead(bytes);
  }
}
