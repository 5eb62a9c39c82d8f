package io.sparklog.storage;

import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalFileSystem;

/**
 * Reports bytes read to Spark's UI. Spark takes the input bytes of a task from Hadoop's statistics of the task's thread, which java.nio
 * does not update.
 */
public final class ReadStatistics {
  private ReadStatistics() {}

  /** Counts {@code bytes} read by the calling thread. */
  @SuppressWarnings("deprecation") // Spark reads these statistics, not the newer ones
  public static void add(long bytes) {
    FileSystem.getStatistics("file", LocalFileSystem.class).incrementBytesRead(bytes);
  }
}
