package io.sparklog.format;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;
import net.jpountz.lz4.LZ4Exception;
import net.jpountz.lz4.LZ4Factory;
import net.jpountz.lz4.LZ4SafeDecompressor;
import net.jpountz.xxhash.XXHash32;
import net.jpountz.xxhash.XXHashFactory;

/** Decompresses LZ4: one frame of independent blocks. */
final class Lz4Decompressor {
  private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

  private static final int VERSION_MASK = 0xc0;
  private static final int VERSION = 0x40;
  private static final int INDEPENDENT_MASK = 0x20;
  private static final int BLOCK_CHECKSUM_MASK = 0x10;
  private static final int CONTENT_SIZE_MASK = 0x08;
  private static final int CONTENT_CHECKSUM_MASK = 0x04;
  private static final int FLAGS_RESERVED_MASK = 0x03;
  private static final int SIZE_RESERVED_MASK = 0x8f;
  private static final int STORED_MASK = 0x80000000;

  private final DecompressedBytes out;
  private LZ4SafeDecompressor library;
  private XXHash32 xxHash;

  Lz4Decompressor(DecompressedBytes out) {
    this.out = out;
  }

  /** Decompresses [at, end) and returns how many bytes came out. */
  int decompress(byte[] from, int at, int end) throws BadBatch {
    if (library == null) {
      library = LZ4Factory.fastestInstance().safeDecompressor();
      xxHash = XXHashFactory.fastestInstance().hash32();
    }
    int descriptorAt = at + Compressor.LZ4_MAGIC.length;
    if (end - descriptorAt < 3 || !Arrays.equals(from, at, descriptorAt, Compressor.LZ4_MAGIC, 0, Compressor.LZ4_MAGIC.length)) {
      throw new BadBatch("its records are not an LZ4 frame");
    }
    int flags = from[descriptorAt] & 0xff;
    int size = from[descriptorAt + 1] & 0xff;
    if ((flags & VERSION_MASK) != VERSION || (flags & FLAGS_RESERVED_MASK) != 0 || (size & SIZE_RESERVED_MASK) != 0) {
      throw new BadBatch("its LZ4 frame is of an unknown kind");
    }
    if ((flags & INDEPENDENT_MASK) == 0) {
      throw new BadBatch("its LZ4 frame has linked blocks; Kafka's format requires independent ones");
    }
    if (size >> 4 < 4) {
      throw new BadBatch("its LZ4 frame has blocks of an unknown size");
    }
    int blockBytesMax = 1 << (8 + 2 * (size >> 4));
    int sizeAt = descriptorAt + 2;
    int next = sizeAt + ((flags & CONTENT_SIZE_MASK) != 0 ? Long.BYTES : 0);
    if (next >= end) {
      throw new BadBatch("its LZ4 header is cut off");
    }
    if (from[next] != (byte) (xxHash.hash(from, descriptorAt, next - descriptorAt, 0) >> 8)) {
      throw new BadBatch("its LZ4 header has a wrong checksum");
    }
    next++;
    int trailerBytes = (flags & BLOCK_CHECKSUM_MASK) != 0 ? Integer.BYTES : 0;
    int outEnd = 0;
    while (true) {
      if (end - next < Integer.BYTES) {
        throw new BadBatch("its LZ4 frame has no end");
      }
      int field = (int) INT.get(from, next);
      next += Integer.BYTES;
      if (field == 0) {
        break;
      }
      int bytes = field & ~STORED_MASK;
      if (bytes > blockBytesMax || bytes > end - next - trailerBytes) {
        throw new BadBatch(
            "an LZ4 block claims " + bytes + " bytes; its frame allows " + blockBytesMax + ", and " + (end - next) + " are left");
      }
      if (trailerBytes != 0 && (int) INT.get(from, next + bytes) != xxHash.hash(from, next, bytes, 0)) {
        throw new BadBatch("an LZ4 block has a wrong checksum");
      }
      outEnd = block(from, next, bytes, field != bytes, outEnd, blockBytesMax);
      next += bytes + trailerBytes;
    }
    int sumAt = next;
    next += (flags & CONTENT_CHECKSUM_MASK) != 0 ? Integer.BYTES : 0;
    if (next != end) {
      throw new BadBatch("its LZ4 frame does not end where the batch does");
    }
    if (sumAt != end && (int) INT.get(from, sumAt) != xxHash.hash(out.buffer, 0, outEnd, 0)) {
      throw new BadBatch("its LZ4 frame has a wrong checksum");
    }
    if ((flags & CONTENT_SIZE_MASK) != 0 && (long) LONG.get(from, sizeAt) != outEnd) {
      throw new BadBatch("its LZ4 frame does not have the size that it claims");
    }
    return outEnd;
  }

  private int block(byte[] from, int at, int bytes, boolean stored, int outEnd, int blockBytesMax) throws BadBatch {
    if (stored) {
      out.room(outEnd, bytes, bytes);
      System.arraycopy(from, at, out.buffer, outEnd, bytes);
      return outEnd + bytes;
    }
    // A byte of LZ4 makes at most 255.
    int wanted = (int) Math.min(blockBytesMax, bytes * 255L);
    out.room(outEnd, Math.min(wanted, out.bytesMax - outEnd), wanted);
    try {
      return outEnd + library.decompress(from, at, bytes, out.buffer, outEnd,
          Math.min(blockBytesMax, Math.min(out.buffer.length, out.bytesMax) - outEnd));
    } catch (LZ4Exception e) {
      // The library does not distinguish damage from output that does not fit.
      throw out.bytesMax - outEnd < blockBytesMax ? out.tooLarge() : new BadBatch("its LZ4 data is damaged: " + e.getMessage(), e);
    }
  }
}
