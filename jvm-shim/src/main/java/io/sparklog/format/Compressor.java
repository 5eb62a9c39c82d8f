package io.sparklog.format;

import com.github.luben.zstd.Zstd;
import com.github.luben.zstd.ZstdCompressCtx;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.zip.CRC32;
import java.util.zip.Deflater;
import net.jpountz.lz4.LZ4Compressor;
import net.jpountz.lz4.LZ4Factory;
import org.xerial.snappy.Snappy;

/**
 * Compresses the records section of a batch, framed as Kafka's Java clients frame it.
 *
 * <p>Codec contexts are expensive to create and hold a megabyte of native memory. An encoder holds none, since thousands can be open: a
 * pool keeps them, as many as were ever in use at the same time.
 */
final class Compressor {
  static final byte[] XERIAL_MAGIC = {(byte) 0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0};
  static final int XERIAL_VERSION = 1;
  static final int XERIAL_HEADER_BYTES = XERIAL_MAGIC.length + 2 * Integer.BYTES;
  static final byte[] LZ4_MAGIC = {0x04, 0x22, 0x4d, 0x18};

  private static final int XERIAL_BLOCK_BYTES = 32 * 1024;
  private static final int LZ4_BLOCK_BYTES = 64 * 1024;
  // Version 1, independent blocks, nothing else; blocks of 64 KiB; the checksum of these two bytes.
  private static final byte[] LZ4_DESCRIPTOR = {0x60, 0x40, (byte) 0x82};
  private static final int LZ4_STORED_MASK = 0x80000000;
  private static final byte[] GZIP_HEADER = {0x1f, (byte) 0x8b, Deflater.DEFLATED, 0, 0, 0, 0, 0, 0, (byte) 0xff};
  private static final int GZIP_TRAILER_BYTES = 2 * Integer.BYTES;
  // Level 1 with matches of 5 bytes and more, not 6. Batches of 256 KiB of JSON, CSV, text and binary records are within 4 % of their size
  // at level 3 (JSON is 1 to 5 % smaller). The speed is 1.3 to 1.8 times the speed of level 3, and 4 times for data that does not compress.
  private static final int ZSTD_LEVEL = 1;
  private static final int ZSTD_MATCH_BYTES_MIN = 5;
  private static final int ZSTD_HASH_BITS = 16;
  private static final int IDLE_BYTES_MAX = 4 << 20;

  private static final VarHandle INT_LITTLE = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle INT_BIG = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.BIG_ENDIAN);

  private static final Queue<Compressor> IDLE = new ConcurrentLinkedQueue<>();

  private byte[] buffer = new byte[0];
  private ZstdCompressCtx zstd;
  private Deflater deflater;
  private LZ4Compressor lz4;

  private Compressor() {}

  /** An array of {@code before} bytes, which the caller fills, followed by the compressed form of [at, at + length). */
  static byte[] compressed(Codec codec, byte[] from, int at, int length, int before) {
    Compressor compressor = IDLE.poll();
    if (compressor == null) {
      compressor = new Compressor();
    }
    int end = compressor.compress(codec, from, at, length, before);
    byte[] result = Arrays.copyOf(compressor.buffer, end);
    if (compressor.buffer.length > IDLE_BYTES_MAX) {
      compressor.buffer = new byte[0];
    }
    IDLE.add(compressor);
    return result;
  }

  private int compress(Codec codec, byte[] from, int at, int length, int to) {
    return switch (codec) {
      case NONE -> throw new IllegalArgumentException("nothing to compress");
      case GZIP -> gzip(from, at, length, to);
      case SNAPPY -> snappy(from, at, length, to);
      case LZ4 -> lz4(from, at, length, to);
      case ZSTD -> zstd(from, at, length, to);
    };
  }

  private int gzip(byte[] from, int at, int length, int to) {
    if (deflater == null) {
      deflater = new Deflater(Deflater.DEFAULT_COMPRESSION, true);
    }
    room(to, GZIP_HEADER.length + length / 2L + 64);
    System.arraycopy(GZIP_HEADER, 0, buffer, to, GZIP_HEADER.length);
    int end = to + GZIP_HEADER.length;
    deflater.reset();
    deflater.setInput(from, at, length);
    deflater.finish();
    while (!deflater.finished()) {
      room(end, 64);
      end += deflater.deflate(buffer, end, buffer.length - end);
    }
    CRC32 crc = new CRC32();
    crc.update(from, at, length);
    room(end, GZIP_TRAILER_BYTES);
    INT_LITTLE.set(buffer, end, (int) crc.getValue());
    INT_LITTLE.set(buffer, end + Integer.BYTES, length);
    return end + GZIP_TRAILER_BYTES;
  }

  private int snappy(byte[] from, int at, int length, int to) {
    room(to, XERIAL_HEADER_BYTES);
    System.arraycopy(XERIAL_MAGIC, 0, buffer, to, XERIAL_MAGIC.length);
    INT_BIG.set(buffer, to + XERIAL_MAGIC.length, XERIAL_VERSION);
    INT_BIG.set(buffer, to + XERIAL_MAGIC.length + Integer.BYTES, XERIAL_VERSION);
    int end = to + XERIAL_HEADER_BYTES;
    for (int done = 0; done < length; done += XERIAL_BLOCK_BYTES) {
      int plain = Math.min(XERIAL_BLOCK_BYTES, length - done);
      room(end, Integer.BYTES + (long) Snappy.maxCompressedLength(plain));
      try {
        int bytes = Snappy.compress(from, at + done, plain, buffer, end + Integer.BYTES);
        INT_BIG.set(buffer, end, bytes);
        end += Integer.BYTES + bytes;
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
    return end;
  }

  private int lz4(byte[] from, int at, int length, int to) {
    if (lz4 == null) {
      lz4 = LZ4Factory.fastestInstance().fastCompressor();
    }
    room(to, LZ4_MAGIC.length + LZ4_DESCRIPTOR.length);
    System.arraycopy(LZ4_MAGIC, 0, buffer, to, LZ4_MAGIC.length);
    System.arraycopy(LZ4_DESCRIPTOR, 0, buffer, to + LZ4_MAGIC.length, LZ4_DESCRIPTOR.length);
    int end = to + LZ4_MAGIC.length + LZ4_DESCRIPTOR.length;
    for (int done = 0; done < length; done += LZ4_BLOCK_BYTES) {
      int plain = Math.min(LZ4_BLOCK_BYTES, length - done);
      room(end, Integer.BYTES + (long) lz4.maxCompressedLength(plain));
      int block = end + Integer.BYTES;
      int bytes = lz4.compress(from, at + done, plain, buffer, block, buffer.length - block);
      if (bytes < plain) {
        INT_LITTLE.set(buffer, end, bytes);
      } else {
        System.arraycopy(from, at + done, buffer, block, plain);
        INT_LITTLE.set(buffer, end, plain | LZ4_STORED_MASK);
        bytes = plain;
      }
      end = block + bytes;
    }
    room(end, Integer.BYTES);
    INT_LITTLE.set(buffer, end, 0);
    return end + Integer.BYTES;
  }

  private int zstd(byte[] from, int at, int length, int to) {
    if (zstd == null) {
      zstd = new ZstdCompressCtx().setLevel(ZSTD_LEVEL).setMinMatch(ZSTD_MATCH_BYTES_MIN).setHashLog(ZSTD_HASH_BITS);
    }
    room(to, Zstd.compressBound(length));
    return to + zstd.compressByteArray(buffer, to, buffer.length - to, from, at, length);
  }

  private void room(int end, long bytes) {
    if (buffer.length - end < bytes) {
      buffer = Arrays.copyOf(buffer, Layout.grown(buffer.length, end + bytes));
    }
  }
}
