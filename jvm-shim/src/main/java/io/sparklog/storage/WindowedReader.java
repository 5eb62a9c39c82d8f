package io.sparklog.storage;

import java.io.IOException;
import java.nio.ByteBuffer;

/** A file over a network. It asks for many bytes at once if the caller has announced a range that it will read front to back. */
final class WindowedReader implements FileReader {
  /** How many bytes are asked for at once. A request takes about as long as the transfer of some of them. */
  private static final int WINDOW_BYTES = 8 << 20;

  private final FileReader file;
  private long from;
  private long to;
  private byte[] window = new byte[0];
  private long windowPosition;
  private int windowBytes;

  WindowedReader(FileReader file) {
    this.file = file;
  }

  @Override
  public String location() {
    return file.location();
  }

  @Override
  public long bytes() throws IOException {
    return file.bytes();
  }

  @Override
  public void expect(long first, long end) throws IOException {
    from = first;
    to = Math.min(end, bytes());
  }

  @Override
  public void read(long position, ByteBuffer buffer) throws IOException {
    long within = position - windowPosition;
    boolean begins = within >= 0 && within < windowBytes;
    if (begins) {
      int there = (int) Math.min(buffer.remaining(), windowBytes - within);
      buffer.put(window, (int) within, there);
    }
    long next = begins ? windowPosition + windowBytes : position;
    int wanted = buffer.remaining();
    if (wanted == 0) {
      return;
    }
    if (wanted >= WINDOW_BYTES || next < from || next + wanted > to) {
      file.read(next, buffer);
      return;
    }
    int bytes = (int) Math.min(WINDOW_BYTES, to - next);
    if (window.length < bytes) {
      window = new byte[bytes];
    }
    windowBytes = 0;
    file.read(next, window, 0, bytes);
    windowPosition = next;
    windowBytes = bytes;
    buffer.put(window, 0, wanted);
  }

  @Override
  public void close() throws IOException {
    file.close();
  }
}
