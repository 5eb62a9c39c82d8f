package io.sparklog.format;

import com.github.luben.zstd.ZstdCompressCtx;
import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.Random;
import java.util.function.Supplier;
import java.util.zip.CRC32;
import net.jpountz.lz4.LZ4FrameOutputStream;
import net.jpountz.lz4.LZ4FrameOutputStream.BLOCKSIZE;
import net.jpountz.lz4.LZ4FrameOutputStream.FLG;
import org.xerial.snappy.Snappy;

/**
 * Batches that begin right, in any form that the format allows, and are then changed where it hurts: in their records before these are
 * compressed, in their compressed bytes, in their header. The CRC
 * is right in the end. {@code <seed> <cases>}: writes to standard output, of each batch, its length and bytes, how many records the decoder
 * found (−1: it refused it), and a CRC-32 over them.
 */
public final class MutatedBatches {
  private static final int DECOMPRESSED_BYTES_MAX = 1 << 20;
  private static final long NOON = 1_700_000_000_000L;

  private final Random random;
  private final BatchDecoder decoder = new BatchDecoder(DECOMPRESSED_BYTES_MAX);
  private int lastDelta;

  private MutatedBatches(long seed) {
    random = new Random(seed);
  }

  public static void main(String[] args) throws IOException {
    MutatedBatches mutated = new MutatedBatches(Long.parseLong(args[0]));
    try (DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out, 1 << 16))) {
      for (int left = Integer.parseInt(args[1]); left > 0; left--) {
        byte[] batch = mutated.batch();
        out.writeInt(batch.length);
        out.write(batch);
        int count = -1;
        int sum = 0;
        try {
          mutated.decoder.decode(batch, 0, batch.length);
          count = mutated.decoder.count();
          sum = mutated.sum();
        } catch (BadBatch refused) {
          // Anything else that is thrown ends the process.
        }
        out.writeInt(count);
        out.writeInt(sum);
      }
    }
  }

  /** Batch after batch. */
  public static Supplier<byte[]> of(long seed) {
    MutatedBatches mutated = new MutatedBatches(seed);
    return () -> {
      try {
        return mutated.batch();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    };
  }

  /**
   * Over all that the decoder found: offset delta and time as longs, then key, value and headers, each with its length as an int before it.
   */
  private int sum() {
    CRC32 sum = new CRC32();
    ByteBuffer numbers = ByteBuffer.allocate(2 * Long.BYTES);
    RecordHeaders headers = new RecordHeaders();
    for (int i = 0; i < decoder.count(); i++) {
      sum.update(numbers.clear().putLong(decoder.offsetDeltas()[i]).putLong(decoder.timestamps()[i]).flip());
      add(sum, decoder.keyAt()[i], decoder.keyLengths()[i]);
      add(sum, decoder.valueAt()[i], decoder.valueLengths()[i]);
      sum.update(numbers.clear().putInt(headers.open(decoder.data(), decoder.headersAt()[i], decoder.headersEnd()[i])).flip());
      while (headers.next()) {
        add(sum, headers.keyAt(), headers.keyLength());
        add(sum, headers.valueAt(), headers.valueLength());
      }
    }
    return (int) sum.getValue();
  }

  private void add(CRC32 sum, int at, int length) {
    sum.update(ByteBuffer.allocate(Integer.BYTES).putInt(length).flip());
    sum.update(decoder.data(), at, Math.max(length, 0));
  }

  private boolean oneIn(int n) {
    return random.nextInt(n) == 0;
  }

  private byte[] batch() throws IOException {
    int count = oneIn(12) ? 0 : 1 + random.nextInt(oneIn(30) ? 300 : 12);
    byte[] records = records(count);
    Codec codec = Codec.values()[random.nextInt(Codec.values().length)];
    int where = random.nextInt(10);
    if (where < 4) {
      records = mutated(records);
    }
    byte[] payload = records.length == 0 && random.nextBoolean() ? records : compressed(codec, records);
    if (where >= 4 && where < 7) {
      payload = mutated(payload);
    }
    ForgedBatch batch = ForgedBatch.of(codec, count, payload);
    batch.lastOffsetDelta = lastDelta;
    batch.attributes |= oneIn(6) ? Layout.LOG_APPEND_TIME_MASK : 0;
    if (where == 7) {
      switch (random.nextInt(3)) {
        case 0 -> batch.count = oneIn(4) ? random.nextInt() : count + random.nextInt(5) - 2;
        case 1 -> batch.lastOffsetDelta = oneIn(4) ? random.nextInt() : lastDelta + random.nextInt(5) - 2;
        default -> batch.attributes = random.nextInt(1 << 16);
      }
    }
    byte[] bytes = batch.bytes();
    ByteBuffer.wrap(bytes).putLong(Layout.BASE_TIMESTAMP_AT, oneIn(20) ? random.nextLong() : NOON);
    ByteBuffer.wrap(bytes).putLong(Layout.MAX_TIMESTAMP_AT, oneIn(20) ? random.nextLong() : NOON + random.nextInt(1000));
    if (where == 8) {
      // Anywhere in the header, and more often where sizes stand.
      bytes[oneIn(2)
          ? Layout.LENGTH_AT + random.nextInt(Integer.BYTES)
          : random.nextInt(Layout.HEADER_BYTES)] ^= (byte) (1 << random.nextInt(8));
    }
    return ForgedBatch.sealed(bytes);
  }

  private byte[] records(int count) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    int delta = 0;
    for (int i = 0; i < count; i++) {
      ByteArrayOutputStream record = new ByteArrayOutputStream();
      record.write(oneIn(10) ? random.nextInt() : 0);
      number(record, oneIn(20) ? random.nextLong() : oneIn(4) ? random.nextInt() : random.nextInt(300) - 100);
      number(record, delta);
      lastDelta = delta;
      delta += oneIn(8) ? 1 + random.nextInt(oneIn(10) ? 100_000 : 3) : 1;
      payload(record, true, oneIn(6) ? 300 : 12);
      payload(record, true, oneIn(6) ? 300 : 12);
      int headers = oneIn(3) ? random.nextInt(oneIn(20) ? 90 : 4) : 0;
      number(record, headers);
      for (int header = 0; header < headers; header++) {
        payload(record, false, 6);
        payload(record, true, 6);
      }
      number(out, record.size());
      out.writeBytes(record.toByteArray());
    }
    lastDelta = count == 0 ? random.nextInt(5) : lastDelta;
    return out.toByteArray();
  }

  private void payload(ByteArrayOutputStream out, boolean nullable, int most) {
    if (nullable && oneIn(5)) {
      number(out, -1);
      return;
    }
    byte[] bytes = new byte[random.nextInt(most)];
    if (oneIn(2)) {
      random.nextBytes(bytes);
    }
    number(out, bytes.length);
    out.writeBytes(bytes);
  }

  private static void number(ByteArrayOutputStream out, long number) {
    byte[] bytes = new byte[Varint.LONG_BYTES_MAX];
    out.write(bytes, 0, Varint.write(bytes, 0, number));
  }

  /** In one of the forms that other programs give to it. */
  private byte[] compressed(Codec codec, byte[] plain) throws IOException {
    int half = codec != Codec.NONE && codec != Codec.LZ4 && oneIn(4) ? plain.length / 2 : plain.length;
    byte[] first = whole(codec, Arrays.copyOf(plain, half));
    if (half == plain.length) {
      return first;
    }
    byte[] second = whole(codec, Arrays.copyOfRange(plain, half, plain.length));
    return joined(first, second);
  }

  private byte[] whole(Codec codec, byte[] plain) throws IOException {
    if (codec == Codec.NONE) {
      return plain;
    }
    if (oneIn(3)) {
      return Compressor.compressed(codec, plain, 0, plain.length, 0);
    }
    return switch (codec) {
      case GZIP -> gzip(plain);
      case SNAPPY -> snappy(plain);
      case LZ4 -> lz4(plain);
      default -> zstd(plain);
    };
  }

  private byte[] gzip(byte[] plain) {
    byte[] header = {0x1f, (byte) 0x8b, 8, (byte) (random.nextInt(16) << 1), 0, 0, 0, 0, 0, 0};
    if ((header[3] & 4) != 0) {
      header = joined(header, new byte[] {2, 0, 7, 7});
    }
    for (int mask = 8; mask <= 16; mask <<= 1) {
      header = (header[3] & mask) != 0 ? joined(header, new byte[] {'n', 0}) : header;
    }
    if ((header[3] & 2) != 0) {
      CRC32 crc = new CRC32();
      crc.update(header);
      header = joined(header, new byte[] {(byte) crc.getValue(), (byte) (crc.getValue() >> 8)});
    }
    byte[] member = Compressor.compressed(Codec.GZIP, plain, 0, plain.length, 0);
    return joined(header, Arrays.copyOfRange(member, 10, member.length));
  }

  private byte[] snappy(byte[] plain) throws IOException {
    byte[] block = Snappy.compress(plain);
    if (oneIn(2)) {
      return block;
    }
    ByteBuffer stream = ByteBuffer.allocate(Compressor.XERIAL_HEADER_BYTES + Integer.BYTES + block.length);
    return stream.put(Compressor.XERIAL_MAGIC)
        .putInt(random.nextInt(3))
        .putInt(oneIn(4) ? random.nextInt() : 1)
        .putInt(block.length)
        .put(block)
        .array();
  }

  private byte[] lz4(byte[] plain) throws IOException {
    EnumSet<FLG.Bits> bits = EnumSet.of(FLG.Bits.BLOCK_INDEPENDENCE);
    for (FLG.Bits bit : EnumSet.of(FLG.Bits.BLOCK_CHECKSUM, FLG.Bits.CONTENT_CHECKSUM, FLG.Bits.CONTENT_SIZE)) {
      if (oneIn(2)) {
        bits.add(bit);
      }
    }
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    BLOCKSIZE size = BLOCKSIZE.values()[random.nextInt(BLOCKSIZE.values().length)];
    try (LZ4FrameOutputStream frame = new LZ4FrameOutputStream(out, size, plain.length, bits.toArray(FLG.Bits[]::new))) {
      frame.write(plain);
    }
    return out.toByteArray();
  }

  private byte[] zstd(byte[] plain) {
    try (ZstdCompressCtx zstd = new ZstdCompressCtx()) {
      zstd.setLevel(1 + random.nextInt(5)).setChecksum(random.nextBoolean()).setContentSize(random.nextBoolean());
      byte[] frame = zstd.compress(plain);
      if (oneIn(4)) {
        ByteBuffer skippable = ByteBuffer.allocate(11).order(ByteOrder.LITTLE_ENDIAN).putInt(0x184d2a50 + random.nextInt(16)).putInt(3);
        return oneIn(2) ? joined(skippable.array(), frame) : joined(frame, skippable.array());
      }
      return frame;
    }
  }

  private static byte[] joined(byte[] one, byte[] other) {
    byte[] both = Arrays.copyOf(one, one.length + other.length);
    System.arraycopy(other, 0, both, one.length, other.length);
    return both;
  }

  private byte[] mutated(byte[] bytes) {
    for (int times = 1 + random.nextInt(3); times > 0 && bytes.length > 0; times--) {
      bytes = mutatedOnce(bytes.clone(), random.nextInt(bytes.length));
    }
    return bytes;
  }

  private byte[] mutatedOnce(byte[] bytes, int at) {
    byte[] before = Arrays.copyOf(bytes, at);
    byte[] after = Arrays.copyOfRange(bytes, at, bytes.length);
    switch (random.nextInt(8)) {
      case 0 -> bytes[at] ^= (byte) (1 << random.nextInt(8));
      case 1 -> bytes[at] = (byte) random.nextInt();
      case 2 -> bytes[at] = new byte[] {0, 1, 2, 0x7e, 0x7f, -128, -2, -1}[random.nextInt(8)];
      case 3 -> {
        return before;
      }
      case 4 -> {
        return joined(before, Arrays.copyOfRange(after, 1, after.length));
      }
      case 5 -> {
        byte[] more = new byte[1 + random.nextInt(6)];
        random.nextBytes(more);
        return joined(joined(before, more), after);
      }
      case 6 -> {
        // Another number, as long as it comes out, over what was there.
        byte[] number = new byte[Varint.LONG_BYTES_MAX];
        int length = Varint.write(number, 0, oneIn(2) ? random.nextInt() >> random.nextInt(32) : random.nextLong() >> random.nextInt(64));
        System.arraycopy(number, 0, bytes, at, Math.min(length, after.length));
      }
      default ->
        System.arraycopy(bytes, at, bytes, random.nextInt(bytes.length - Math.min(8, after.length) + 1), Math.min(8, after.length));
    }
    return bytes;
  }
}
