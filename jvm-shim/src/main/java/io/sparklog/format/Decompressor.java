package io.sparklog.format;

/**
 * Decompresses the records section of a batch into a buffer of its own, which grows as output really comes, up to a bound.
 *
 * <p>Each codec's class walks the framing itself, without the library's stream. Those streams allocate the bytes that a block header asks
 * for, and a hostile header asks for gigabytes.
 */
final class Decompressor {
  private final DecompressedBytes out;
  private final GzipDecompressor gzip;
  private final SnappyDecompressor snappy;
  private final Lz4Decompressor lz4;
  private final ZstdDecompressor zstd;

  /** @param limit output of more bytes is refused */
  Decompressor(RecordsLimit limit) {
    out = new DecompressedBytes(limit);
    gzip = new GzipDecompressor(out);
    snappy = new SnappyDecompressor(out);
    lz4 = new Lz4Decompressor(out);
    zstd = new ZstdDecompressor(out);
  }

  /** Where the last {@link #decompress} put its output, from 0 on. */
  byte[] buffer() {
    return out.buffer;
  }

  /** Decompresses [at, end) and returns how many bytes came out. */
  int decompress(Codec codec, byte[] from, int at, int end) throws BadBatch {
    return switch (codec) {
      case NONE -> throw new IllegalArgumentException("nothing to decompress");
      case GZIP -> gzip.decompress(from, at, end);
      case SNAPPY -> snappy.decompress(from, at, end);
      case LZ4 -> lz4.decompress(from, at, end);
      case ZSTD -> zstd.decompress(from, at, end);
    };
  }
}
