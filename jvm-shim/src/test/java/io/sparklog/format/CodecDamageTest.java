package io.sparklog.format;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.github.luben.zstd.Zstd;
import com.github.luben.zstd.ZstdCompressCtx;
import com.github.luben.zstd.ZstdOutputStreamNoFinalizer;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.zip.CRC32;
import java.util.zip.GZIPOutputStream;
import net.jpountz.lz4.LZ4Factory;
import net.jpountz.lz4.LZ4FrameOutputStream;
import net.jpountz.lz4.LZ4FrameOutputStream.BLOCKSIZE;
import net.jpountz.lz4.LZ4FrameOutputStream.FLG;
import net.jpountz.xxhash.XXHashFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.xerial.snappy.Snappy;
import org.xerial.snappy.SnappyOutputStream;

/** Compressed records that are wrong in one way or claim too much, and rare framings that are right. */
class CodecDamageTest {
  private static final int BYTES_MAX = 1 << 20;
  private static final byte[] TWO = ForgedBatch.nullRecords(2);

  private final BatchDecoder decoder = new BatchDecoder(BYTES_MAX);

  private void refused(String words, Codec codec, byte[] payload) {
    byte[] batch = ForgedBatch.of(codec, 2, payload).bytes();
    BadBatch e = assertThrows(BadBatch.class, () -> decoder.decode(batch, 0, batch.length));
    assertTrue(e.getMessage().contains(words), e.getMessage());
    assertEquals(0, decoder.count());
  }

  private void twoRecords(Codec codec, byte[] payload) throws BadBatch {
    byte[] batch = ForgedBatch.of(codec, 2, payload).bytes();
    decoder.decode(batch, 0, batch.length);
    assertEquals(List.of(new PlainRecord(0, 1000, null, null, List.of()), new PlainRecord(1, 1000, null, null, List.of())),
        PlainRecord.of(decoder));
  }

  // bombs

  @ParameterizedTest
  @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "NONE")
  void aBombMakesNoMoreThanTheBound(Codec codec) throws Exception {
    byte[] zeros = new byte[64 << 20];
    Decompressor bounded = new Decompressor(RecordsLimit.here(BYTES_MAX));
    for (byte[] payload : List.of(compressed(codec, zeros), compressed(codec, Arrays.copyOf(zeros, BYTES_MAX + 1)))) {
      BadBatch e = assertThrows(BadBatch.class, () -> bounded.decompress(codec, payload, 0, payload.length));
      assertTrue(e.getMessage().contains("more than " + BYTES_MAX + " bytes"), e.getMessage());
      assertTrue(bounded.buffer().length <= BYTES_MAX, "held " + bounded.buffer().length);
    }
    byte[] fits = compressed(codec, Arrays.copyOf(zeros, BYTES_MAX));
    assertEquals(BYTES_MAX, bounded.decompress(codec, fits, 0, fits.length));
    assertEquals(BYTES_MAX, bounded.buffer().length);
  }

  private static byte[] compressed(Codec codec, byte[] plain) throws IOException {
    return Compressor.compressed(codec, plain, 0, plain.length, 0);
  }

  @Test
  void claimsCostNoMemory() {
    Decompressor fresh = new Decompressor(RecordsLimit.here(1 << 30));
    HexFormat hex = HexFormat.of();
    // snappy: 2³² − 1 bytes, 1 GiB in a bare block, 1 GiB in a xerial block; a block of 1 GiB
    for (String payload : List.of("ffffffff0f00", "808080800400", "82534e41505059000000000100000001" + "00000006" + "808080800400",
        "82534e41505059000000000100000001" + "40000000" + "00", "82534e41505059000000000100000001" + "80000000" + "00")) {
      byte[] bytes = hex.parseHex(payload);
      assertThrows(BadBatch.class, () -> fresh.decompress(Codec.SNAPPY, bytes, 0, bytes.length));
    }
    // zstd: a frame whose header claims 2⁶³ bytes, one with a window of 2 GiB and more
    for (String frameHeader : List.of("c0" + "00" + "ffffffffffffff7f", "00" + "a8", "00" + "ff")) {
      String payload = "28b52ffd" + frameHeader + "010000";
      byte[] bytes = hex.parseHex(payload);
      try {
        assertEquals(0, fresh.decompress(Codec.ZSTD, bytes, 0, bytes.length));
      } catch (BadBatch e) {
        assertTrue(e.getMessage().contains("zstd"), e.getMessage());
      }
    }
    // lz4: frames of 4 MiB blocks, a block of 4 MiB that is not there, a content size of 2⁶³
    for (String payload : List.of(frame("6070", "0000400000"), frame("6070", "ffffffff"),
        frame("6870" + "ffffffffffffff7f", "05000000" + "00"))) {
      byte[] bytes = hex.parseHex(payload);
      assertThrows(BadBatch.class, () -> fresh.decompress(Codec.LZ4, bytes, 0, bytes.length));
    }
    assertTrue(fresh.buffer().length <= 1024, "held " + fresh.buffer().length);
  }

  /**
   * A raw snappy block is long enough here to hold what it claims: only the bound stands between the claim and the library, which believes
   * it.
   */
  @Test
  void noClaimOfASnappyBlockGoesBeyondTheBound() throws Exception {
    int bytesMax = 64 << 20;
    long[] claims = {bytesMax + 1L, Integer.MAX_VALUE, 1L << 31, (1L << 31) + 1, 0xfffffffeL, 0xffffffffL, 1L << 32, (1L << 35) - 1};
    byte[] block = new byte[(int) (0xffffffffL * 3 / 64) + 64];
    Decompressor bounded = new Decompressor(RecordsLimit.here(bytesMax));
    for (long claim : claims) {
      for (int bytes : new int[] {64, block.length}) {
        int at = 0;
        for (long rest = claim; rest > 0 || at == 0; rest >>>= 7) {
          block[at++] = (byte) (rest < 0x80 ? rest : rest & 0x7f | 0x80);
        }
        // One literal, up to the end of the block.
        block[at++] = (byte) 0xfc;
        ByteBuffer.wrap(block, at, Integer.BYTES).order(ByteOrder.LITTLE_ENDIAN).putInt(bytes - at - Integer.BYTES - 1);
        BadBatch e = assertThrows(BadBatch.class, () -> bounded.decompress(Codec.SNAPPY, block, 0, bytes), "claim " + claim);
        assertTrue(e.getMessage().matches("a snappy block of " + bytes + " bytes claims .*|.* more than " + bytesMax + " bytes .*"),
            e.getMessage());
      }
    }
    assertEquals(0, bounded.buffer().length);
  }

  /** As the bound nears: what earlier blocks took is counted. */
  @Test
  void claimsOfSeveralBlocksAreAddedUp() throws Exception {
    byte[] half = Snappy.compress(new byte[BYTES_MAX / 2]);
    byte[] one = Snappy.compress(new byte[1]);
    ByteBuffer stream = ByteBuffer.allocate(100_000);
    stream.put(HexFormat.of().parseHex("82534e41505059000000000100000001"));
    for (byte[] block : List.of(half, half, one)) {
      stream.putInt(block.length).put(block);
    }
    Decompressor bounded = new Decompressor(RecordsLimit.here(BYTES_MAX));
    BadBatch e = assertThrows(BadBatch.class, () -> bounded.decompress(Codec.SNAPPY, stream.array(), 0, stream.position()));
    assertTrue(e.getMessage().contains("more than " + BYTES_MAX + " bytes"), e.getMessage());
    assertEquals(BYTES_MAX, bounded.decompress(Codec.SNAPPY, stream.array(), 0, stream.position() - one.length - Integer.BYTES));
    assertEquals(BYTES_MAX, bounded.buffer().length);
  }

  // gzip

  @Test
  void gzipMembersAndHeaderFields() throws Exception {
    ByteArrayOutputStream members = new ByteArrayOutputStream();
    for (int record = 0; record < 2; record++) {
      try (GZIPOutputStream member = new GZIPOutputStream(members)) {
        member.write(TWO, 7 * record, 7);
      }
    }
    twoRecords(Codec.GZIP, members.toByteArray());

    byte[] plain = compressed(Codec.GZIP, TWO);
    byte[] deflated = Arrays.copyOfRange(plain, 10, plain.length);
    byte[] all = HexFormat.of()
        .parseHex("1f8b08" + "1e" + "00000000" + "0000" + "0300" + "616263" + "6e616d6500" + "776f72647300" + "0000");
    CRC32 crc = new CRC32();
    crc.update(all, 0, all.length - 2);
    all[all.length - 2] = (byte) crc.getValue();
    all[all.length - 1] = (byte) (crc.getValue() >> 8);
    twoRecords(Codec.GZIP, joined(all, deflated));
    all[all.length - 1]++;
    refused("header has a wrong checksum", Codec.GZIP, joined(all, deflated));
    twoRecords(Codec.GZIP, joined(HexFormat.of().parseHex("1f8b08" + "01" + "00000000" + "0000"), deflated)); // "text": means nothing

    refused("unknown flags", Codec.GZIP, joined(HexFormat.of().parseHex("1f8b08" + "20" + "00000000" + "0000"), deflated));
    refused("cut off", Codec.GZIP, HexFormat.of().parseHex("1f8b08" + "04" + "00000000" + "0000" + "ffff" + "00"));
    refused("cut off", Codec.GZIP, HexFormat.of().parseHex("1f8b08" + "08" + "00000000" + "0000" + "616161"));
    refused("not gzip data", Codec.GZIP, joined(plain, new byte[10]));
    refused("not gzip data", Codec.GZIP, joined(plain, new byte[1]));
    refused("not gzip data", Codec.GZIP, TWO);
    for (int at = plain.length - 8; at < plain.length; at++) {
      byte[] wrong = plain.clone();
      wrong[at]++;
      refused("wrong checksum", Codec.GZIP, wrong);
    }
  }

  private static byte[] joined(byte[]... parts) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    for (byte[] part : parts) {
      out.writeBytes(part);
    }
    return out.toByteArray();
  }

  // snappy

  @Test
  void snappyFramings() throws Exception {
    twoRecords(Codec.SNAPPY, Snappy.compress(TWO)); // one bare block
    ByteArrayOutputStream stream = new ByteArrayOutputStream();
    try (SnappyOutputStream out = new SnappyOutputStream(stream)) {
      out.write(TWO);
    }
    twoRecords(Codec.SNAPPY, stream.toByteArray());
    byte[] first = compressed(Codec.SNAPPY, Arrays.copyOf(TWO, 7));
    byte[] second = compressed(Codec.SNAPPY, Arrays.copyOfRange(TWO, 7, 14));
    twoRecords(Codec.SNAPPY, joined(first, second)); // two streams
    byte[] reversed = stream.toByteArray();
    reversed[8] = 1;
    reversed[11] = 0;
    twoRecords(Codec.SNAPPY, reversed); // a version that is not ours

    refused("cut off", Codec.SNAPPY, Arrays.copyOf(first, 12));
    refused("inside a block length", Codec.SNAPPY, joined(first, new byte[3]));
    refused("claims 0 bytes", Codec.SNAPPY, joined(first, new byte[4]));
    refused("claims to hold 1000", Codec.SNAPPY, HexFormat.of().parseHex("e80700"));
    refused("does not begin with a valid length", Codec.SNAPPY, HexFormat.of().parseHex("808080808000"));
    refused("does not begin with a valid length", Codec.SNAPPY, HexFormat.of().parseHex("80"));
    // Google's own framing is not Kafka's.
    refused("snappy", Codec.SNAPPY, joined(HexFormat.of().parseHex("ff060000734e61507059"), new byte[20]));
  }

  // lz4

  @Test
  void lz4Frames() throws Exception {
    twoRecords(Codec.LZ4, frameOf(FLG.Bits.BLOCK_INDEPENDENCE));
    twoRecords(Codec.LZ4, frameOf(FLG.Bits.BLOCK_INDEPENDENCE, FLG.Bits.CONTENT_CHECKSUM));
    twoRecords(Codec.LZ4, frameOf(FLG.Bits.BLOCK_INDEPENDENCE, FLG.Bits.BLOCK_CHECKSUM));
    byte[] compressible = new byte[14 * 1000];
    for (int i = 0; i < compressible.length; i++) {
      compressible[i] = (byte) (i / 100);
    }
    for (BLOCKSIZE size : BLOCKSIZE.values()) {
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      try (LZ4FrameOutputStream frame = new LZ4FrameOutputStream(out, size, -1, FLG.Bits.BLOCK_INDEPENDENCE, FLG.Bits.BLOCK_CHECKSUM)) {
        frame.write(compressible);
      }
      Decompressor d = new Decompressor(RecordsLimit.here(BYTES_MAX));
      assertEquals(compressible.length, d.decompress(Codec.LZ4, out.toByteArray(), 0, out.size()));
      assertTrue(Arrays.equals(compressible, 0, compressible.length, d.buffer(), 0, compressible.length));
    }
    ByteArrayOutputStream sized = new ByteArrayOutputStream();
    FLG.Bits[] sizedBits = {FLG.Bits.BLOCK_INDEPENDENCE, FLG.Bits.CONTENT_SIZE};
    try (LZ4FrameOutputStream frame = new LZ4FrameOutputStream(sized, BLOCKSIZE.SIZE_64KB, TWO.length, sizedBits)) {
      frame.write(TWO);
    }
    twoRecords(Codec.LZ4, sized.toByteArray());

    String block = "0e000080" + HexFormat.of().formatHex(TWO);
    twoRecords(Codec.LZ4, HexFormat.of().parseHex(frame("6040", block + "00000000")));
    forgedFrame("linked blocks", "4040", block + "00000000");
    forgedFrame("unknown kind", "a040", block + "00000000"); // version 2
    forgedFrame("unknown kind", "6140", block + "00000000"); // a dictionary
    forgedFrame("unknown kind", "6240", block + "00000000"); // a reserved bit
    forgedFrame("unknown kind", "60c0", block + "00000000");
    forgedFrame("unknown kind", "6041", block + "00000000");
    forgedFrame("unknown size", "6030", block + "00000000");
    forgedFrame("no end", "6040", block);
    forgedFrame("no end", "6040", block + "000000");
    forgedFrame("does not end where the batch does", "6040", block + "0000000000");
    forgedFrame("does not end where the batch does", "6440", block + "00000000" + "000000");
    forgedFrame("wrong checksum", "7040", block + "00000000" + "00000000");
    forgedFrame("claims 65537 bytes", "6040", "01000100" + "00".repeat(65537) + "00000000");
    forgedFrame("claims 15 bytes", "6040", "0f000080" + HexFormat.of().formatHex(TWO));
    byte[] header = frameOf(FLG.Bits.BLOCK_INDEPENDENCE);
    header[6] ^= 1;
    refused("header has a wrong checksum", Codec.LZ4, header);
    refused("not an LZ4 frame", Codec.LZ4, TWO);
    refused("not an LZ4 frame", Codec.LZ4, HexFormat.of().parseHex("04224d186040"));
    refused("cut off", Codec.LZ4, HexFormat.of().parseHex("04224d18684000"));
  }

  @Test
  void anLz4BlockMayNotGrowBeyondTheFramesBlocks() {
    byte[] block = LZ4Factory.fastestInstance().fastCompressor().compress(new byte[(64 << 10) + 1]);
    ByteBuffer size = ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(block.length);
    forgedFrame("LZ4 data is damaged", "6040", HexFormat.of().formatHex(size.array()) + HexFormat.of().formatHex(block) + "00000000");
  }

  private void forgedFrame(String words, String descriptor, String rest) {
    refused(words, Codec.LZ4, HexFormat.of().parseHex(frame(descriptor, rest)));
  }

  /** A frame with a right header checksum. */
  private static String frame(String descriptor, String rest) {
    byte[] bytes = HexFormat.of().parseHex(descriptor);
    int hash = XXHashFactory.fastestInstance().hash32().hash(bytes, 0, bytes.length, 0);
    return "04224d18" + descriptor + String.format("%02x", hash >> 8 & 0xff) + rest;
  }

  private static byte[] frameOf(FLG.Bits... bits) throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try (LZ4FrameOutputStream frame = new LZ4FrameOutputStream(out, BLOCKSIZE.SIZE_64KB, -1, bits)) {
      frame.write(TWO);
    }
    return out.toByteArray();
  }

  // zstd

  @Test
  void zstdFrames() throws Exception {
    byte[] first = Zstd.compress(Arrays.copyOf(TWO, 7));
    byte[] second = Zstd.compress(Arrays.copyOfRange(TWO, 7, 14));
    byte[] skippable = HexFormat.of().parseHex("5a2a4d18" + "03000000" + "616263");
    twoRecords(Codec.ZSTD, joined(first, second));
    twoRecords(Codec.ZSTD, joined(skippable, first, skippable, second, skippable));
    ByteArrayOutputStream stream = new ByteArrayOutputStream();
    try (var out = new ZstdOutputStreamNoFinalizer(stream, 19)) {
      out.setChecksum(true);
      for (byte b : TWO) {
        out.write(b);
        out.flush(); // many small blocks, and no content size
      }
    }
    twoRecords(Codec.ZSTD, stream.toByteArray());

    refused("too early", Codec.ZSTD, Arrays.copyOf(first, first.length - 1));
    refused("too early", Codec.ZSTD, Arrays.copyOf(first, 5));
    refused("too early", Codec.ZSTD, joined(first, second, HexFormat.of().parseHex("5a2a4d18" + "ffffffff" + "61")));
    refused("not a zstd frame", Codec.ZSTD, joined(first, second, new byte[8]));
    refused("not a zstd frame", Codec.ZSTD, TWO);
    refused("not a zstd frame", Codec.ZSTD, HexFormat.of().parseHex("27b52ffd" + "00580100004142")); // of zstd 0.7
    byte[] wrong = stream.toByteArray();
    wrong[wrong.length - 1]++;
    refused("zstd data is damaged", Codec.ZSTD, wrong);
    try (ZstdCompressCtx context = new ZstdCompressCtx().setMagicless(true)) {
      refused("not a zstd frame", Codec.ZSTD, context.compress(TWO));
    }
  }

  @Test
  void zstdOfManySmallBlocksIsNotRefusedForItsBound() throws Exception {
    // Each block could hold 128 KiB: 8 MiB and more in all, where 1 MiB is allowed; but they hold 64 KiB.
    ByteArrayOutputStream stream = new ByteArrayOutputStream();
    byte[] plain = new byte[64 << 10];
    try (var out = new ZstdOutputStreamNoFinalizer(stream, 3)) {
      for (int at = 0; at < plain.length; at += 512) {
        Arrays.fill(plain, at, at + 512, (byte) (at >> 9));
        plain[at + 5] = 'x';
        out.write(plain, at, 512);
        out.flush();
      }
    }
    Decompressor bounded = new Decompressor(RecordsLimit.here(BYTES_MAX));
    assertEquals(plain.length, bounded.decompress(Codec.ZSTD, stream.toByteArray(), 0, stream.size()));
    assertTrue(Arrays.equals(plain, 0, plain.length, bounded.buffer(), 0, plain.length));
  }
}
