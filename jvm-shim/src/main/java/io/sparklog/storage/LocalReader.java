package io.sparklog.storage;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;

/** A file on a local disk that is open for reading. */
record LocalReader(String location, FileChannel channel) implements FileReader {
  @Override
  public long bytes() throws IOException {
    return channel.size();
  }

  @Override
  public void read(long position, ByteBuffer to) throws IOException {
    readFully(channel, to, position, location);
  }

  @Override
  public void close() throws IOException {
    channel.close();
  }

  static void readFully(FileChannel channel, ByteBuffer to, long position, String name) throws IOException {
    long at = position;
    while (to.hasRemaining()) {
      int read = channel.read(to, at);
      if (read < 0) {
        throw new EOFException(name + " ends at byte " + at + ", " + to.remaining() + " bytes too early");
      }
      at += read;
    }
  }
}
