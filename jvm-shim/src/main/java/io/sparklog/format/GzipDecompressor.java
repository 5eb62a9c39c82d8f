package io.sparklog.format;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.zip.CRC32;
import java.util.zip.DataFormatException;
import java.util.zip.Inflater;

/** Decompresses gzip, RFC 1952: one or more members. */
final class GzipDecompressor {
  private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

  private static final int HEADER_BYTES = 10;
  private static final int TRAILER_BYTES = 2 * Integer.BYTES;
  private static final int HEADER_CRC_MASK = 0x02;
  private static final int EXTRA_MASK = 0x04;
  private static final int NAME_MASK = 0x08;
  private static final int COMMENT_MASK = 0x10;
  private static final int RESERVED_MASK = 0xe0;

  private final DecompressedBytes out;
  private Inflater inflater;

  GzipDecompressor(DecompressedBytes out) {
    this.out = out;
  }

  /** Decompresses [at, end) and returns how many bytes came out. */
  int decompress(byte[] from, int at, int end) throws BadBatch {
    if (inflater == null) {
      inflater = new Inflater(true);
    }
    int outEnd = 0;
    do {
      at = headerEnd(from, at, end);
      int memberOut = outEnd;
      inflater.reset();
      inflater.setInput(from, at, end - at);
      while (!inflater.finished()) {
        outEnd = part(outEnd, 2L * (end - at));
      }
      at = end - inflater.getRemaining();
      if (end - at < TRAILER_BYTES) {
        throw new BadBatch("its gzip data ends too early");
      }
      CRC32 crc = new CRC32();
      crc.update(out.buffer, memberOut, outEnd - memberOut);
      if ((int) INT.get(from, at) != (int) crc.getValue() || (int) INT.get(from, at + Integer.BYTES) != outEnd - memberOut) {
        throw new BadBatch("its gzip data has a wrong checksum");
      }
      at += TRAILER_BYTES;
    } while (at < end);
    return outEnd;
  }

  private int part(int outEnd, long wanted) throws BadBatch {
    boolean full = outEnd == out.bytesMax; // Data that just fits may still be followed by its end mark.
    if (!full) {
      out.room(outEnd, 1, wanted);
    }
    int bytes;
    try {
      bytes = full
          ? inflater.inflate(new byte[1])
          : inflater.inflate(out.buffer, outEnd, Math.min(out.buffer.length, out.bytesMax) - outEnd);
    } catch (DataFormatException e) {
      throw new BadBatch("its gzip data is damaged: " + e.getMessage(), e);
    }
    if (full && bytes != 0) {
      throw out.tooLarge();
    }
    if (bytes == 0 && !inflater.finished()) {
      // There was room for output, so it waits for more input or for a dictionary, and there is neither.
      throw new BadBatch("its gzip data ends too early");
    }
    return outEnd + bytes;
  }

  private static int headerEnd(byte[] from, int at, int end) throws BadBatch {
    if (end - at < HEADER_BYTES || from[at] != 0x1f || from[at + 1] != (byte) 0x8b || from[at + 2] != 8) {
      throw new BadBatch("its records are not gzip data");
    }
    int flags = from[at + 3];
    if ((flags & RESERVED_MASK) != 0) {
      throw new BadBatch("its gzip header has unknown flags");
    }
    int next = at + HEADER_BYTES;
    if ((flags & EXTRA_MASK) != 0) {
      next = within(next + Short.BYTES, end);
      next = within(next + (from[next - 2] & 0xff | (from[next - 1] & 0xff) << 8), end);
    }
    for (int mask = NAME_MASK; mask <= COMMENT_MASK; mask <<= 1) {
      if ((flags & mask) != 0) {
        do {
          next = within(next + 1, end);
        } while (from[next - 1] != 0);
      }
    }
    if ((flags & HEADER_CRC_MASK) == 0) {
      return next;
    }
    CRC32 crc = new CRC32();
    crc.update(from, at, next - at);
    next = within(next + Short.BYTES, end);
    if ((from[next - 2] & 0xff | (from[next - 1] & 0xff) << 8) != (crc.getValue() & 0xffff)) {
      throw new BadBatch("its gzip header has a wrong checksum");
    }
    return next;
  }

  private static int within(int position, int end) throws BadBatch {
    if (position > end) {
      throw new BadBatch("its gzip header is cut off");
    }
    return position;
  }
}
