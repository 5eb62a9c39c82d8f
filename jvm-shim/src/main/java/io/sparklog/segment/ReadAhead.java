package io.sparklog.segment;

import io.sparklog.format.Layout;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.zip.CRC32C;

/**
 * The bytes of one data file after another, read ahead of the caller, which asks for headers and batches in order. It uses its buffers
 * again for the next file until they are released, and leaves closing to the caller. If the file ends too early, that is SEGMENT_CORRUPT.
 */
public final class ReadAhead {
  /**
   * Small batches are read together, this many bytes at once. Larger batches are read singly: then they are still in the processor's
   * nearest cache when they are decoded, and nothing is moved.
   */
  private static final int READ_BYTES = 128 << 10;

  /** Bytes that are only checksummed are read this many at once. */
  private static final int PASSED_BYTES = 256 << 10;

  /** Bytes that are only checksummed. One for each thread: a reader that waits for its next call needs none. */
  private static final ThreadLocal<ByteBuffer> PASSED = ThreadLocal
      .withInitial(() -> ByteBuffer.allocateDirect(PASSED_BYTES + Layout.HEADER_BYTES));

  private static final byte[] NOTHING = {};

  private final ReadRoom room;

  private SegmentFile file;
  private long fileBytes;
  private long endPosition;
  private long aheadPosition;

  private byte[] buffer = NOTHING;
  private long bufferPosition;
  private int bufferBytes;

  /** The header behind the bytes that were passed. */
  private final byte[] header = new byte[Layout.HEADER_BYTES];
  private long headerPosition;
  private int headerBytes;

  private long bytesRead;

  public ReadAhead() {
    this(ReadRoom.UNBOUNDED);
  }

  /** @param room has the memory of buffers that are larger than usual */
  public ReadAhead(ReadRoom room) {
    this.room = room;
  }

  /**
   * Goes to a file. The caller will ask for nothing from {@code endPosition} on, and nothing is read ahead from {@code aheadPosition} on.
   *
   * @param fileBytes the end of the file, so that all bytes before it can be read; or a later position, if the caller does not need it
   */
  void begin(SegmentFile file, long fileBytes, long endPosition, long aheadPosition) {
    this.file = file;
    this.fileBytes = fileBytes;
    this.endPosition = Math.min(endPosition, fileBytes);
    this.aheadPosition = Math.min(aheadPosition, this.endPosition);
    bufferBytes = 0;
    headerPosition = -1;
  }

  /** Makes sure that {@code bytes} bytes from {@code position} on are in {@link #buffer}, and returns where they begin. */
  int find(long position, int bytes) throws IOException {
    long within = position - bufferPosition;
    if (within >= 0 && within + bytes <= bufferBytes) {
      return (int) within;
    }
    if (position == headerPosition && bytes <= headerBytes) {
      bufferPosition = position;
      bufferBytes = headerBytes;
      System.arraycopy(header, 0, buffer, 0, headerBytes);
      return 0;
    }
    require(position + bytes);
    int kept = within >= 0 && within < bufferBytes ? bufferBytes - (int) within : 0;
    long ahead = isLarge(bytes) ? bytes + Layout.HEADER_BYTES : READ_BYTES;
    int want = (int) Math.max(bytes, Math.min(aheadPosition - position, ahead));
    int from = kept == 0 ? 0 : (int) within;
    if (want <= buffer.length) {
      System.arraycopy(buffer, from, buffer, 0, kept);
    } else {
      grow(want, Arrays.copyOfRange(buffer, from, from + kept));
    }
    bufferPosition = position;
    bufferBytes = 0;
    read(position + kept, ByteBuffer.wrap(buffer, kept, want - kept));
    bufferBytes = want;
    return 0;
  }

  /** @param kept a header, or the start of a small batch. So the large buffer of before is not in memory beside the new one */
  private void grow(int bytes, byte[] kept) {
    buffer = NOTHING;
    bufferBytes = 0;
    if (bytes > READ_BYTES) {
      room.buffer(bytes);
    }
    buffer = Arrays.copyOf(kept, bytes);
  }

  /** Gives the buffer up, and its memory. */
  public void release() {
    buffer = NOTHING;
    bufferBytes = 0;
    headerPosition = -1;
    room.give();
  }

  /** Holds the found batch, until the next {@link #find}. */
  byte[] buffer() {
    return buffer;
  }

  /** Whether a batch of this size is read on its own. */
  static boolean isLarge(int bytes) {
    return bytes > READ_BYTES / 2;
  }

  /**
   * Adds {@code bytes} bytes from {@code position} on to {@code crc}. It does not copy them into the buffer, only the header after them.
   */
  void pass(long position, int bytes, CRC32C crc) throws IOException {
    int within = (int) (position - bufferPosition);
    int buffered = Math.min(bytes, bufferBytes - within);
    crc.update(buffer, within, buffered);
    if (buffered == bytes) {
      return;
    }
    long end = position + bytes;
    require(end);
    ByteBuffer passed = PASSED.get();
    headerBytes = (int) Math.min(Layout.HEADER_BYTES, endPosition - end);
    for (long at = position + buffered; at < end;) {
      int length = (int) Math.min(PASSED_BYTES, end - at);
      int read = at + length == end ? length + headerBytes : length;
      read(at, passed.clear().limit(read));
      crc.update(passed.flip().limit(length));
      at += length;
      passed.limit(read);
    }
    passed.get(header, 0, headerBytes);
    headerPosition = end;
  }

  /** Bytes read so far, of all files. */
  public long bytesRead() {
    return bytesRead;
  }

  private void require(long end) {
    if (end > fileBytes) {
      throw file.cut("it ends at byte " + fileBytes);
    }
  }

  private void read(long from, ByteBuffer to) throws IOException {
    int bytes = to.remaining();
    file.read(from, to);
    bytesRead += bytes;
  }

  /** The memory of one reader, where many readers share memory. For the thread of the reader. */
  public interface ReadRoom {
    /** For a reader without others. */
    ReadRoom UNBOUNDED = new ReadRoom() {
      @Override
      public void buffer(int bytes) {}

      @Override
      public long ahead() {
        return Long.MAX_VALUE;
      }

      @Override
      public void give() {}
    };

    /** Waits until there is memory for a buffer of so many bytes. It takes the place of the last buffer, which is given up before. */
    void buffer(int bytes);

    /** How many bytes may be asked for beyond the bytes that the caller is known to need. They are the reader's until {@link #give}. */
    long ahead();

    /** Gives all memory back. The reader has none. */
    void give();
  }
}
