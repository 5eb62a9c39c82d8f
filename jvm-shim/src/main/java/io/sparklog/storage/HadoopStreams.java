package io.sparklog.storage;

import java.io.IOException;
import org.apache.hadoop.fs.FSDataOutputStream;

/** Writing to streams of Hadoop, so that a failure keeps its own exception. */
final class HadoopStreams {
  private HadoopStreams() {}

  /** Writes a whole file, which can be read when this returns. */
  static void writeWhole(FSDataOutputStream out, byte[] content) throws IOException {
    try {
      out.write(content);
      out.hsync();
    } catch (Throwable e) {
      closeAfter(e, out);
      throw e;
    }
    out.close();
  }

  /**
   * Closes a stream that has failed. One of HDFS throws the same exception again, which a try-with-resources would suppress in itself: that
   * throws another, which says nothing.
   */
  static void closeAfter(Throwable failure, FSDataOutputStream out) {
    try {
      out.close();
    } catch (IOException | RuntimeException e) {
      if (e != failure && e != failure.getCause()) {
        failure.addSuppressed(e);
      }
    }
  }
}
