package io.sparklog.format;

import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.xerial.snappy.Snappy;

/** Decompresses snappy: the stream of xerial's library, or one bare block. */
final class SnappyDecompressor {
  private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.BIG_ENDIAN);

  private final DecompressedBytes out;

  SnappyDecompressor(DecompressedBytes out) {
    this.out = out;
  }

  /** Decompresses [at, end) and returns how many bytes came out. */
  int decompress(byte[] from, int at, int end) throws BadBatch {
    if (!isXerial(from, at, end)) {
      return block(from, at, end, 0);
    }
    int outEnd = 0;
    while (at < end) {
      if (isXerial(from, at, end)) { // Streams may follow one another.
        at += Compressor.XERIAL_HEADER_BYTES; // The version is not checked: some writers reverse its bytes.
        if (at > end) {
          throw new BadBatch("its snappy header is cut off");
        }
        continue;
      }
      if (end - at < Integer.BYTES) {
        throw new BadBatch("its snappy data ends inside a block length");
      }
      int bytes = (int) INT.get(from, at);
      at += Integer.BYTES;
      if (bytes < 1 || bytes > end - at) {
        throw new BadBatch("a snappy block claims " + bytes + " bytes, and " + (end - at) + " are left");
      }
      outEnd = block(from, at, at + bytes, outEnd);
      at += bytes;
    }
    return outEnd;
  }

  private static boolean isXerial(byte[] from, int at, int end) {
    int magicEnd = at + Compressor.XERIAL_MAGIC.length;
    return magicEnd <= end && Arrays.equals(from, at, magicEnd, Compressor.XERIAL_MAGIC, 0, Compressor.XERIAL_MAGIC.length);
  }

  private int block(byte[] from, int at, int end, int outEnd) throws BadBatch {
    // A block begins with its uncompressed length as an unsigned varint. The library writes that many bytes, whether there is room or not.
    long plain = 0;
    int next = at;
    int shift = 0;
    do {
      if (next == end || shift > 28) {
        throw new BadBatch("a snappy block does not begin with a valid length");
      }
      plain |= (from[next] & 0x7fL) << shift;
      shift += 7;
    } while (from[next++] < 0);
    // The densest element of a block makes 64 bytes of 3.
    if (plain * 3 > (end - at) * 64L) {
      throw new BadBatch("a snappy block of " + (end - at) + " bytes claims to hold " + plain);
    }
    // Checked as a long: 2³¹ and more would be a negative int, for which there is always room.
    if (plain > out.bytesMax - outEnd) {
      throw out.tooLarge();
    }
    out.room(outEnd, (int) plain, plain);
    try {
      return outEnd + Snappy.uncompress(from, at, end - at, out.buffer, outEnd);
    } catch (IOException e) {
      throw new BadBatch("its snappy data is damaged: " + e.getMessage(), e);
    }
  }
}
