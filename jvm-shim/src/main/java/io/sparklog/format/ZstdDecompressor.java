package io.sparklog.format;

import com.github.luben.zstd.Zstd;
import com.github.luben.zstd.ZstdDecompressCtx;
import com.github.luben.zstd.ZstdException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/**
 * Decompresses zstd: one or more frames, in one call of the library straight into the buffer, which is then its own window.
 */
final class ZstdDecompressor {
  private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

  private static final int MAGIC = 0xfd2fb528;
  private static final int SKIPPABLE_MAGIC = 0x184d2a50;
  private static final int SKIPPABLE_MASK = 0xfffffff0;
  private static final int BLOCK_HEADER_BYTES = 3;
  private static final int BLOCK_BYTES_MAX = 128 * 1024;
  private static final int CHECKSUM_BYTES = 4;
  private static final int WINDOW_BYTES_MAX = 128 << 20;
  private static final int DESTINATION_TOO_SMALL = (int) Zstd.errDstSizeTooSmall();

  /** Contexts hold native memory that no garbage collector sees, and decoders are never closed, so decoders only borrow them. */
  private static final Queue<ZstdDecompressCtx> IDLE = new ConcurrentLinkedQueue<>();

  private final DecompressedBytes out;

  ZstdDecompressor(DecompressedBytes out) {
    this.out = out;
  }

  /** Decompresses [at, end) and returns how many bytes came out. */
  int decompress(byte[] from, int at, int end) throws BadBatch {
    int capacity = (int) Math.min(bytesMax(from, at, end), out.bytesMax);
    int length = (int) Math.min(capacity, Math.max(out.buffer.length, 16L * (end - at) + BLOCK_BYTES_MAX));
    ZstdDecompressCtx context = IDLE.poll();
    if (context == null) {
      context = new ZstdDecompressCtx();
    }
    try {
      while (true) {
        out.room(0, length, length);
        length = Math.min(out.buffer.length, capacity);
        try {
          return context.decompressByteArray(out.buffer, 0, length, from, at, end - at);
        } catch (ZstdException e) {
          if (e.getErrorCode() != DESTINATION_TOO_SMALL) {
            throw new BadBatch("its zstd data is damaged: " + e.getMessage(), e);
          }
          if (length == capacity) {
            throw out.tooLarge();
          }
          length = (int) Math.min(capacity, 4L * length);
        }
      }
    } finally {
      IDLE.add(context);
    }
  }

  /** The most bytes that the frames in [at, end) can make, computed from their block headers, so that a false claim costs no memory. */
  private static long bytesMax(byte[] from, int at, int end) throws BadBatch {
    long most = 0;
    do {
      if (end - at < Integer.BYTES + 1) {
        throw cut();
      }
      int magic = (int) INT.get(from, at);
      at += Integer.BYTES;
      if ((magic & SKIPPABLE_MASK) == SKIPPABLE_MAGIC) {
        at = skip(at, end, Integer.BYTES);
        at = skip(at, end, (int) INT.get(from, at - Integer.BYTES));
        continue;
      }
      if (magic != MAGIC) {
        // The library would read formats older than zstd 0.8 too, with code that has rarely been tested with hostile data.
        throw new BadBatch("its records are not a zstd frame");
      }
      int descriptor = from[at];
      boolean singleSegment = (descriptor & 0x20) != 0;
      int dictionaryBytes = (1 << (descriptor & 0x03)) >> 1;
      int sizeCode = (descriptor >> 6) & 0x03;
      int sizeBytes = sizeCode == 0 ? (singleSegment ? 1 : 0) : 1 << sizeCode;
      int windowAt = at + 1;
      at = skip(at, end, 1 + (singleSegment ? 0 : 1) + dictionaryBytes + sizeBytes);
      // A frame of a single segment is its own window.
      int window = from[windowAt] & 0xff;
      long windowBytes = singleSegment ? littleEndian(from, at - sizeBytes, sizeBytes) : (8L + (window & 7)) << (window >> 3) + 7;
      if (Long.compareUnsigned(windowBytes, WINDOW_BYTES_MAX) > 0) {
        throw new BadBatch("its zstd frame wants a window of more than " + WINDOW_BYTES_MAX + " bytes");
      }
      boolean last;
      do {
        at = skip(at, end, BLOCK_HEADER_BYTES);
        int header = from[at - 3] & 0xff | (from[at - 2] & 0xff) << 8 | (from[at - 1] & 0xff) << 16;
        last = (header & 1) != 0;
        int kind = (header >> 1) & 0x03;
        int bytes = header >> 3;
        at = skip(at, end, kind == 1 ? 1 : bytes); // 1: one byte, repeated
        most += kind == 2 ? BLOCK_BYTES_MAX : bytes;
      } while (!last);
      at = skip(at, end, (descriptor & 0x04) != 0 ? CHECKSUM_BYTES : 0);
    } while (at < end);
    return most;
  }

  private static long littleEndian(byte[] from, int at, int bytes) {
    long number = 0;
    for (int i = bytes - 1; i >= 0; i--) {
      number = number << 8 | from[at + i] & 0xff;
    }
    return number;
  }

  private static int skip(int at, int end, int bytes) throws BadBatch {
    if (bytes < 0 || bytes > end - at) {
      throw cut();
    }
    return at + bytes;
  }

  private static BadBatch cut() {
    return new BadBatch("its zstd data ends too early");
  }
}
