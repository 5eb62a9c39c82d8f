package io.sparklog.format;

import com.github.luben.zstd.Zstd;
import com.github.luben.zstd.ZstdDecompressCtx;
import com.github.luben.zstd.ZstdException;
import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.zip.CRC32;
import java.util.zip.DataFormatException;
import java.util.zip.Inflater;
import net.jpountz.lz4.LZ4Exception;
import net.jpountz.lz4.LZ4Factory;
import net.jpountz.lz4.LZ4SafeDecompressor;
import net.jpountz.xxhash.XXHash32;
import net.jpountz.xxhash.XXHashFactory;
import org.xerial.snappy.Snappy;

/**
 * Decompresses the records section of a batch into a buffer of its own, which grows as output really comes, up to a bound.
 *
 * <p>The framing is walked here and not by the libraries' streams: those allocate what a block header asks for, and a hostile one asks
 * for gigabytes.
 */
final class Decompressor {
  private static final VarHandle INT_LITTLE = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle LONG_LITTLE = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle INT_BIG = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.BIG_ENDIAN);

  /** Contexts hold native memory that no garbage collector sees, and decoders are never closed: so decoders only borrow them. */
  private static final Queue<ZstdDecompressCtx> IDLE_ZSTD = new ConcurrentLinkedQueue<>();

  private final int bytesMax;
  private byte[] buffer = new byte[0];
  private Inflater inflater;
  private LZ4SafeDecompressor lz4;
  private XXHash32 xxHash;

  Decompressor(long bytesMax) {
    this.bytesMax = (int) Math.min(bytesMax, Layout.BATCH_BYTES_MAX);
  }

  /** Where the last {@link #decompress} put its output, from 0 on. */
  byte[] buffer() {
    return buffer;
  }

  /** Decompresses [at, end) and returns how many bytes came out. */
  int decompress(Codec codec, byte[] from, int at, int end) throws BadBatch {
    return switch (codec) {
      case NONE -> throw new IllegalArgumentException("nothing to decompress");
      case GZIP -> gzip(from, at, end);
      case SNAPPY -> snappy(from, at, end);
      case LZ4 -> lz4(from, at, end);
      case ZSTD -> zstd(from, at, end);
    };
  }

  // gzip, RFC 1952: one or more members.

  private static final int GZIP_HEADER_BYTES = 10;
  private static final int GZIP_TRAILER_BYTES = 2 * Integer.BYTES;
  private static final int GZIP_HEADER_CRC_MASK = 0x02;
  private static final int GZIP_EXTRA_MASK = 0x04;
  private static final int GZIP_NAME_MASK = 0x08;
  private static final int GZIP_COMMENT_MASK = 0x10;
  private static final int GZIP_RESERVED_MASK = 0xe0;

  private int gzip(byte[] from, int at, int end) throws BadBatch {
    if (inflater == null) {
      inflater = new Inflater(true);
    }
    int out = 0;
    do {
      at = gzipHeaderEnd(from, at, end);
      int memberOut = out;
      inflater.reset();
      inflater.setInput(from, at, end - at);
      while (!inflater.finished()) {
        out = gzipPart(out, 2L * (end - at));
      }
      at = end - inflater.getRemaining();
      if (end - at < GZIP_TRAILER_BYTES) {
        throw new BadBatch("its gzip data ends too early");
      }
      CRC32 crc = new CRC32();
      crc.update(buffer, memberOut, out - memberOut);
      if ((int) INT_LITTLE.get(from, at) != (int) crc.getValue() || (int) INT_LITTLE.get(from, at + Integer.BYTES) != out - memberOut) {
        throw new BadBatch("its gzip data has a wrong checksum");
      }
      at += GZIP_TRAILER_BYTES;
    } while (at < end);
    return out;
  }

  private int gzipPart(int out, long wanted) throws BadBatch {
    boolean full = out == bytesMax; // Data that just fits may still have its end mark to come.
    if (!full) {
      room(out, 1, wanted);
    }
    int bytes;
    try {
      bytes = full ? inflater.inflate(new byte[1]) : inflater.inflate(buffer, out, Math.min(buffer.length, bytesMax) - out);
    } catch (DataFormatException e) {
      throw new BadBatch("its gzip data is damaged: " + e.getMessage(), e);
    }
    if (full && bytes != 0) {
      throw tooLarge();
    }
    if (bytes == 0 && !inflater.finished()) {
      // Room was given, so it waits for input or for a dictionary, and neither will come.
      throw new BadBatch("its gzip data ends too early");
    }
    return out + bytes;
  }

  private static int gzipHeaderEnd(byte[] from, int at, int end) throws BadBatch {
    if (end - at < GZIP_HEADER_BYTES || from[at] != 0x1f || from[at + 1] != (byte) 0x8b || from[at + 2] != 8) {
      throw new BadBatch("its records are no gzip data");
    }
    int flags = from[at + 3];
    if ((flags & GZIP_RESERVED_MASK) != 0) {
      throw new BadBatch("its gzip header has unknown flags");
    }
    int next = at + GZIP_HEADER_BYTES;
    if ((flags & GZIP_EXTRA_MASK) != 0) {
      next = within(next + Short.BYTES, end);
      next = within(next + (from[next - 2] & 0xff | (from[next - 1] & 0xff) << 8), end);
    }
    for (int mask = GZIP_NAME_MASK; mask <= GZIP_COMMENT_MASK; mask <<= 1) {
      if ((flags & mask) != 0) {
        do {
          next = within(next + 1, end);
        } while (from[next - 1] != 0);
      }
    }
    if ((flags & GZIP_HEADER_CRC_MASK) == 0) {
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

  // snappy: the xerial stream, or one bare block.

  private int snappy(byte[] from, int at, int end) throws BadBatch {
    if (!isXerial(from, at, end)) {
      return snappyBlock(from, at, end, 0);
    }
    int out = 0;
    while (at < end) {
      if (isXerial(from, at, end)) { // Streams may follow one another.
        at += Compressor.XERIAL_HEADER_BYTES; // The version is nobody's business: some write it with its bytes reversed.
        if (at > end) {
          throw new BadBatch("its snappy header is cut off");
        }
        continue;
      }
      if (end - at < Integer.BYTES) {
        throw new BadBatch("its snappy data ends inside a block length");
      }
      int bytes = (int) INT_BIG.get(from, at);
      at += Integer.BYTES;
      if (bytes < 1 || bytes > end - at) {
        throw new BadBatch("a snappy block claims " + bytes + " bytes, and " + (end - at) + " are left");
      }
      out = snappyBlock(from, at, at + bytes, out);
      at += bytes;
    }
    return out;
  }

  private static boolean isXerial(byte[] from, int at, int end) {
    int magicEnd = at + Compressor.XERIAL_MAGIC.length;
    return magicEnd <= end && Arrays.equals(from, at, magicEnd, Compressor.XERIAL_MAGIC, 0, Compressor.XERIAL_MAGIC.length);
  }

  private int snappyBlock(byte[] from, int at, int end, int out) throws BadBatch {
    // A block begins with its uncompressed length as an unsigned varint. The library writes that many bytes, whether there is room or not.
    long plain = 0;
    int next = at;
    int shift = 0;
    do {
      if (next == end || shift > 28) {
        throw new BadBatch("a snappy block has no right length");
      }
      plain |= (from[next] & 0x7fL) << shift;
      shift += 7;
    } while (from[next++] < 0);
    // The densest element of a block makes 64 bytes of 3.
    if (plain * 3 > (end - at) * 64L) {
      throw new BadBatch("a snappy block of " + (end - at) + " bytes claims to hold " + plain);
    }
    // Before it is made an int: 2³¹ and more would become a negative need, for which there is always room.
    if (plain > bytesMax - out) {
      throw tooLarge();
    }
    room(out, (int) plain, plain);
    try {
      return out + Snappy.uncompress(from, at, end - at, buffer, out);
    } catch (IOException e) {
      throw new BadBatch("its snappy data is damaged: " + e.getMessage(), e);
    }
  }

  // lz4: one frame of independent blocks.

  private static final int LZ4_VERSION_MASK = 0xc0;
  private static final int LZ4_VERSION = 0x40;
  private static final int LZ4_INDEPENDENT_MASK = 0x20;
  private static final int LZ4_BLOCK_CHECKSUM_MASK = 0x10;
  private static final int LZ4_CONTENT_SIZE_MASK = 0x08;
  private static final int LZ4_CONTENT_CHECKSUM_MASK = 0x04;
  private static final int LZ4_FLAGS_RESERVED_MASK = 0x03;
  private static final int LZ4_SIZE_RESERVED_MASK = 0x8f;
  private static final int LZ4_STORED_MASK = 0x80000000;

  private int lz4(byte[] from, int at, int end) throws BadBatch {
    if (lz4 == null) {
      lz4 = LZ4Factory.fastestInstance().safeDecompressor();
      xxHash = XXHashFactory.fastestInstance().hash32();
    }
    int descriptorAt = at + Compressor.LZ4_MAGIC.length;
    if (end - descriptorAt < 3 || !Arrays.equals(from, at, descriptorAt, Compressor.LZ4_MAGIC, 0, Compressor.LZ4_MAGIC.length)) {
      throw new BadBatch("its records are no LZ4 frame");
    }
    int flags = from[descriptorAt] & 0xff;
    int size = from[descriptorAt + 1] & 0xff;
    if ((flags & LZ4_VERSION_MASK) != LZ4_VERSION || (flags & LZ4_FLAGS_RESERVED_MASK) != 0 || (size & LZ4_SIZE_RESERVED_MASK) != 0) {
      throw new BadBatch("its LZ4 frame is of an unknown kind");
    }
    if ((flags & LZ4_INDEPENDENT_MASK) == 0) {
      throw new BadBatch("its LZ4 frame has linked blocks; Kafka's format wants independent ones");
    }
    if (size >> 4 < 4) {
      throw new BadBatch("its LZ4 frame has blocks of an unknown size");
    }
    int blockBytesMax = 1 << (8 + 2 * (size >> 4));
    int sizeAt = descriptorAt + 2;
    int next = sizeAt + ((flags & LZ4_CONTENT_SIZE_MASK) != 0 ? Long.BYTES : 0);
    if (next >= end) {
      throw new BadBatch("its LZ4 header is cut off");
    }
    if (from[next] != (byte) (xxHash.hash(from, descriptorAt, next - descriptorAt, 0) >> 8)) {
      throw new BadBatch("its LZ4 header has a wrong checksum");
    }
    next++;
    int trailerBytes = (flags & LZ4_BLOCK_CHECKSUM_MASK) != 0 ? Integer.BYTES : 0;
    int out = 0;
    while (true) {
      if (end - next < Integer.BYTES) {
        throw new BadBatch("its LZ4 frame has no end");
      }
      int field = (int) INT_LITTLE.get(from, next);
      next += Integer.BYTES;
      if (field == 0) {
        break;
      }
      int bytes = field & ~LZ4_STORED_MASK;
      if (bytes > blockBytesMax || bytes > end - next - trailerBytes) {
        throw new BadBatch(
            "an LZ4 block claims " + bytes + " bytes; its frame allows " + blockBytesMax + ", and " + (end - next) + " are left");
      }
      if (trailerBytes != 0 && (int) INT_LITTLE.get(from, next + bytes) != xxHash.hash(from, next, bytes, 0)) {
        throw new BadBatch("an LZ4 block has a wrong checksum");
      }
      out = lz4Block(from, next, bytes, field != bytes, out, blockBytesMax);
      next += bytes + trailerBytes;
    }
    int sumAt = next;
    next += (flags & LZ4_CONTENT_CHECKSUM_MASK) != 0 ? Integer.BYTES : 0;
    if (next != end) {
      throw new BadBatch("its LZ4 frame does not end where the batch does");
    }
    if (sumAt != end && (int) INT_LITTLE.get(from, sumAt) != xxHash.hash(buffer, 0, out, 0)) {
      throw new BadBatch("its LZ4 frame has a wrong checksum");
    }
    if ((flags & LZ4_CONTENT_SIZE_MASK) != 0 && (long) LONG_LITTLE.get(from, sizeAt) != out) {
      throw new BadBatch("its LZ4 frame has another size than it says");
    }
    return out;
  }

  private int lz4Block(byte[] from, int at, int bytes, boolean stored, int out, int blockBytesMax) throws BadBatch {
    if (stored) {
      room(out, bytes, bytes);
      System.arraycopy(from, at, buffer, out, bytes);
      return out + bytes;
    }
    // A byte of LZ4 makes at most 255.
    int wanted = (int) Math.min(blockBytesMax, bytes * 255L);
    room(out, Math.min(wanted, bytesMax - out), wanted);
    try {
      return out + lz4.decompress(from, at, bytes, buffer, out, Math.min(blockBytesMax, Math.min(buffer.length, bytesMax) - out));
    } catch (LZ4Exception e) {
      throw new BadBatch(bytesMax - out < blockBytesMax
          ? "its LZ4 data is damaged, or takes more than " + bytesMax + " bytes"
          : "its LZ4 data is damaged: " + e.getMessage(), e);
    }
  }

  // zstd: one or more frames, decompressed in one call straight into the buffer, which is then its own window.

  private static final int ZSTD_MAGIC = 0xfd2fb528;
  private static final int ZSTD_SKIPPABLE_MAGIC = 0x184d2a50;
  private static final int ZSTD_SKIPPABLE_MASK = 0xfffffff0;
  private static final int ZSTD_BLOCK_HEADER_BYTES = 3;
  private static final int ZSTD_BLOCK_BYTES_MAX = 128 * 1024;
  private static final int ZSTD_CHECKSUM_BYTES = 4;
  private static final int ZSTD_WINDOW_BYTES_MAX = 128 << 20;
  private static final int ZSTD_DESTINATION_TOO_SMALL = (int) Zstd.errDstSizeTooSmall();

  private int zstd(byte[] from, int at, int end) throws BadBatch {
    int capacity = (int) Math.min(zstdBytesMax(from, at, end), bytesMax);
    int room = (int) Math.min(capacity, Math.max(buffer.length, 16L * (end - at) + ZSTD_BLOCK_BYTES_MAX));
    ZstdDecompressCtx zstd = IDLE_ZSTD.poll();
    if (zstd == null) {
      zstd = new ZstdDecompressCtx();
    }
    try {
      while (true) {
        room(0, room, room);
        room = Math.min(buffer.length, capacity);
        try {
          return zstd.decompressByteArray(buffer, 0, room, from, at, end - at);
        } catch (ZstdException e) {
          if (e.getErrorCode() != ZSTD_DESTINATION_TOO_SMALL) {
            throw new BadBatch("its zstd data is damaged: " + e.getMessage(), e);
          }
          if (room == capacity) {
            throw tooLarge();
          }
          room = (int) Math.min(capacity, 4L * room);
        }
      }
    } finally {
      IDLE_ZSTD.add(zstd);
    }
  }

  /** The most bytes that the frames in [at, end) can make, told by their block headers, so that a lie costs no memory. */
  private static long zstdBytesMax(byte[] from, int at, int end) throws BadBatch {
    long bytesMax = 0;
    do {
      if (end - at < Integer.BYTES + 1) {
        throw zstdCut();
      }
      int magic = (int) INT_LITTLE.get(from, at);
      at += Integer.BYTES;
      if ((magic & ZSTD_SKIPPABLE_MASK) == ZSTD_SKIPPABLE_MAGIC) {
        at = zstdSkip(at, end, Integer.BYTES);
        at = zstdSkip(at, end, (int) INT_LITTLE.get(from, at - Integer.BYTES));
        continue;
      }
      if (magic != ZSTD_MAGIC) {
        // The library would read formats older than zstd 0.8 too, with code that hostile data has seldom tried.
        throw new BadBatch("its records are no zstd frame");
      }
      int descriptor = from[at];
      boolean singleSegment = (descriptor & 0x20) != 0;
      int dictionaryBytes = (1 << (descriptor & 0x03)) >> 1;
      int sizeCode = (descriptor >> 6) & 0x03;
      int sizeBytes = sizeCode == 0 ? (singleSegment ? 1 : 0) : 1 << sizeCode;
      int windowAt = at + 1;
      at = zstdSkip(at, end, 1 + (singleSegment ? 0 : 1) + dictionaryBytes + sizeBytes);
      // A frame of a single segment is its own window.
      int window = from[windowAt] & 0xff;
      long windowBytes = singleSegment ? littleEndian(from, at - sizeBytes, sizeBytes) : (8L + (window & 7)) << (window >> 3) + 7;
      if (Long.compareUnsigned(windowBytes, ZSTD_WINDOW_BYTES_MAX) > 0) {
        throw new BadBatch("its zstd frame wants a window of more than " + ZSTD_WINDOW_BYTES_MAX + " bytes");
      }
      boolean last;
      do {
        at = zstdSkip(at, end, ZSTD_BLOCK_HEADER_BYTES);
        int header = from[at - 3] & 0xff | (from[at - 2] & 0xff) << 8 | (from[at - 1] & 0xff) << 16;
        last = (header & 1) != 0;
        int kind = (header >> 1) & 0x03;
        int bytes = header >> 3;
        at = zstdSkip(at, end, kind == 1 ? 1 : bytes); // 1: one byte, repeated
        bytesMax += kind == 2 ? ZSTD_BLOCK_BYTES_MAX : bytes;
      } while (!last);
      at = zstdSkip(at, end, (descriptor & 0x04) != 0 ? ZSTD_CHECKSUM_BYTES : 0);
    } while (at < end);
    return bytesMax;
  }

  private static long littleEndian(byte[] from, int at, int bytes) {
    long number = 0;
    for (int i = bytes - 1; i >= 0; i--) {
      number = number << 8 | from[at + i] & 0xff;
    }
    return number;
  }

  private static int zstdSkip(int at, int end, int bytes) throws BadBatch {
    if (bytes < 0 || bytes > end - at) {
      throw zstdCut();
    }
    return at + bytes;
  }

  private static BadBatch zstdCut() {
    return new BadBatch("its zstd data ends too early");
  }

  /** Makes room for {@code needed} bytes from {@code end} on, and if it must grow, for {@code wanted} where the bound allows. */
  private void room(int end, int needed, long wanted) throws BadBatch {
    if (needed > bytesMax - end) {
      throw tooLarge();
    }
    if (buffer.length - end < needed) {
      buffer = Arrays.copyOf(buffer, Math.min(bytesMax, Growth.of(buffer.length, Math.min(bytesMax, end + wanted))));
    }
  }

  private BadBatch tooLarge() {
    return new BadBatch("its records take more than " + bytesMax + " bytes when decompressed");
  }
}
