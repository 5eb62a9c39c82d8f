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

/** Wrong batches, each wrong in one way, and rare ones that are right. */
class DamageTest {
  private static final int BYTES_MAX = 1 << 20;
  private static final byte[] TWO = ForgedBatch.nullRecords(2);

  private final BatchDecoder decoder = new BatchDecoder(BYTES_MAX);

  private void refused(String words, byte[] batch) {
    BadBatch e = assertThrows(BadBatch.class, () -> decoder.decode(batch, 0, batch.length));
    assertTrue(e.getMessage().contains(words), e.getMessage());
    assertEquals(0, decoder.count());
  }

  private void refused(String words, Codec codec, byte[] payload) {
    refused(words, ForgedBatch.of(codec, 2, payload).bytes());
  }

  private void twoRecords(Codec codec, byte[] payload) throws BadBatch {
    byte[] batch = ForgedBatch.of(codec, 2, payload).bytes();
    decoder.decode(batch, 0, batch.length);
    assertEquals(List.of(new PlainRecord(0, 1000, null, null, List.of()), new PlainRecord(1, 1000, null, null, List.of())),
        PlainRecord.of(decoder));
  }

  // the header

  @Test
  void headerFieldsAreChecked() throws BadBatch {
    byte[] right = ForgedBatch.of(2, TWO).bytes();
    assertEquals(right.length, BatchHeader.check(right, 0, Long.MAX_VALUE));
    wrongHeader("60 bytes are left", right, 60);
    wrongHeader("are left", right, right.length - 1L);
    wrongHeader("gives it 60 bytes", with(right, 8, 48), right.length);
    wrongHeader("gives it -2147483636 bytes", with(right, 8, Integer.MIN_VALUE), right.length);
    wrongHeader("gives it 2147483659 bytes", with(right, 8, Integer.MAX_VALUE), Long.MAX_VALUE - 1, "limit");
    byte[] magic = right.clone();
    magic[16] = 1;
    wrongHeader("magic number is 1", magic, right.length);
    byte[] codec = right.clone();
    codec[22] = 5;
    wrongHeader("codec 5", codec, right.length);
    wrongHeader("records count is -1", with(right, 57, -1), right.length);
    wrongHeader("last offset delta is -1", with(right, 23, -1), right.length);
    wrongHeader("no room", with(right, 57, 3), right.length);
    byte[] high = right.clone();
    high[21] = 0x7f; // Bits 8 to 15 are nobody's.
    assertEquals(right.length, BatchHeader.check(high, 0, right.length));
  }

  private static void wrongHeader(String words, byte[] batch, long bytesLeft) {
    wrongHeader(words, batch, bytesLeft, words);
  }

  private static void wrongHeader(String words, byte[] batch, long bytesLeft, String orWords) {
    String message = assertThrows(BadBatch.class, () -> BatchHeader.check(batch, 0, bytesLeft)).getMessage();
    assertTrue(message.contains(words) || message.contains(orWords), message);
  }

  private static byte[] with(byte[] batch, int at, int value) {
    byte[] changed = batch.clone();
    ByteBuffer.wrap(changed).putInt(at, value);
    return changed;
  }

  @Test
  void aBatchMustHaveTheLengthThatTheCallerKnows() {
    byte[] batch = ForgedBatch.of(2, TWO).bytes();
    byte[] longer = Arrays.copyOf(batch, batch.length + 1);
    assertThrows(BadBatch.class, () -> decoder.decode(longer, 0, longer.length));
  }

  // truncation and counts

  @ParameterizedTest
  @EnumSource
  void everyTruncationIsNoticed(Codec codec) {
    byte[] batch = PlainRecord.encode(new BatchEncoder(codec, false), 0, sample(20));
    for (int bytes = 0; bytes < batch.length; bytes++) {
      byte[] cut = Arrays.copyOf(batch, bytes);
      assertThrows(BadBatch.class, () -> decoder.decode(cut, 0, cut.length));
      if (bytes > 61) {
        // And with a length and a CRC that hide it.
        byte[] hidden = ForgedBatch.sealed(with(cut, 8, bytes - 12));
        assertThrows(BadBatch.class, () -> decoder.decode(hidden, 0, hidden.length));
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  void countTooHighOrTooLow(Codec codec) {
    byte[] batch = PlainRecord.encode(new BatchEncoder(codec, false), 0, sample(20));
    for (int count : new int[] {0, 1, 19}) {
      refused("left after its last record", ForgedBatch.sealed(with(batch, 57, count)));
    }
    byte[] roomy = with(batch, 23, Integer.MAX_VALUE);
    refused("a number runs over the end", ForgedBatch.sealed(with(roomy, 57, 21)));
    refused("its records take", ForgedBatch.sealed(with(roomy, 57, Layout.BATCH_RECORDS_MAX)));
    refused("the limit is 1048576", ForgedBatch.sealed(with(roomy, 57, Layout.BATCH_RECORDS_MAX + 1)));
    refused("the limit is 1048576", ForgedBatch.sealed(with(roomy, 57, Integer.MAX_VALUE)));
  }

  private static List<PlainRecord> sample(int count) {
    PlainRecord[] records = new PlainRecord[count];
    for (int i = 0; i < count; i++) {
      List<PlainRecord.Header> headers = i % 4 == 0 ? List.of(new PlainRecord.Header("68", null)) : List.of();
      records[i] = new PlainRecord(i, 1000 + i, i % 3 == 0 ? null : "6b", i % 5 == 0 ? null : "7676", headers);
    }
    return List.of(records);
  }

  /** What is kept of a record takes 36 bytes, of which the smallest record has 7: the limit bounds what a batch of 64 MiB takes. */
  @Test
  void asManyRecordsAsABatchMayHave() throws Exception {
    int most = Layout.BATCH_RECORDS_MAX;
    byte[] plain = ForgedBatch.nullRecords(most + 1);
    int last = plain.length - 10;
    byte[] batch = ForgedBatch.of(Codec.ZSTD, most, Zstd.compress(Arrays.copyOf(plain, last))).bytes();
    BatchDecoder bounded = new BatchDecoder(64 << 20);
    bounded.decode(batch, 0, batch.length);
    assertEquals(most, bounded.count());
    assertEquals(most - 1, bounded.offsetDeltas()[most - 1]);
    assertEquals(most, bounded.timestamps().length);
    byte[] more = ForgedBatch.of(Codec.ZSTD, most + 1, Zstd.compress(plain)).bytes();
    BadBatch e = assertThrows(BadBatch.class, () -> bounded.decode(more, 0, more.length));
    assertTrue(e.getMessage().contains("the limit is " + most), e.getMessage());

    BatchEncoder encoder = new BatchEncoder(Codec.ZSTD, false);
    for (int i = 0; i < most; i++) {
      assertTrue(encoder.bytesWith(0, -1, -1, 1) < Integer.MAX_VALUE);
      encoder.begin(0, -1, -1, 1);
    }
    assertEquals(Integer.MAX_VALUE, encoder.bytesWith(0, -1, -1, 1), "a writer begins another batch");
  }

  // records

  @Test
  void recordsThatLie() throws BadBatch {
    one("0c 00 00 00 01 01 00");
    record("claims 5 bytes", "0a 00 00 00 01 01 00");
    record("claims -6 bytes", "0b 00 00 00 01 01 00");
    record("claims 7 bytes", "0e 00 00 00 01 01 00");
    record("has 1 bytes too many", "0e 00 00 00 01 01 00 00");
    record("runs over the end", "0c 00 00 00 01 01 80");
    record("offset delta -1", "0c 00 00 01 01 01 00");
    record("last offset delta is 0", "0c 00 00 02 01 01 00");
    record("a key of 3 bytes", "0c 00 00 00 06 01 00");
    record("a key of -2 bytes", "0c 00 00 00 03 01 00");
    record("a value of 2 bytes", "0c 00 00 00 01 04 00");
    record("claims 1 headers", "0c 00 00 00 01 01 02");
    record("claims -1 headers", "0c 00 00 00 01 01 01");
    one("10 00 00 00 01 01 02 00 00");
    one("10 00 00 00 01 01 02 00 01");
    record("a header has no key", "10 00 00 00 01 01 02 01 00");
    record("a header has a length of 1", "10 00 00 00 01 01 02 00 02");
    record("claims 2 headers", "10 00 00 00 01 01 04 00 00");
    one("12 00 00 80 80 00 81 00 01 00"); // longer forms than needed
    one("1c 00 80 80 80 80 80 80 80 80 00 00 01 01 00");
    record("more than 5 bytes", "16 00 00 80 80 80 80 80 00 01 01 00");
    record("more than 10 bytes", "20 00 80 80 80 80 80 80 80 80 80 80 00 00 01 01 00");
    record("more than 32 bits", "14 00 00 80 80 80 80 10 01 01 00");
    record("more than 64 bits", "1e 00 80 80 80 80 80 80 80 80 80 02 00 01 01 00");
  }

  private void one(String payload) throws BadBatch {
    byte[] batch = ForgedBatch.of(1, HexFormat.of().parseHex(payload.replace(" ", ""))).bytes();
    decoder.decode(batch, 0, batch.length);
    assertEquals(1, decoder.count());
    PlainRecord.of(decoder);
  }

  private void record(String words, String payload) {
    refused(words, ForgedBatch.of(1, HexFormat.of().parseHex(payload.replace(" ", ""))).bytes());
  }

  @Test
  void offsetsMustRise() {
    byte[] batch = ForgedBatch.of(2, HexFormat.of().parseHex("0c000000010100" + "0c000000010100")).bytes();
    refused("offset delta 0 after 0", batch);
  }

  // empty batches

  @Test
  void emptyBatches() throws BadBatch {
    for (Codec codec : Codec.values()) {
      ForgedBatch empty = ForgedBatch.of(codec, 0, new byte[0]);
      empty.lastOffsetDelta = 41;
      decoder.decode(empty.bytes(), 0, 61);
      assertEquals(0, decoder.count());
    }
    refused("left after its last record", ForgedBatch.of(0, new byte[1]).bytes());
    for (Codec codec : List.of(Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)) {
      assertThrows(BadBatch.class, () -> decoder.decode(ForgedBatch.of(codec, 2, new byte[0]).bytes(), 0, 61));
    }
  }

  // bombs

  @ParameterizedTest
  @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "NONE")
  void aBombMakesNoMoreThanTheBound(Codec codec) throws Exception {
    byte[] zeros = new byte[64 << 20];
    Decompressor bounded = new Decompressor(BYTES_MAX);
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
    Decompressor fresh = new Decompressor(1 << 30);
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
    Decompressor bounded = new Decompressor(bytesMax);
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
    Decompressor bounded = new Decompressor(BYTES_MAX);
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
    refused("no gzip data", Codec.GZIP, joined(plain, new byte[10]));
    refused("no gzip data", Codec.GZIP, joined(plain, new byte[1]));
    refused("no gzip data", Codec.GZIP, TWO);
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
    refused("no right length", Codec.SNAPPY, HexFormat.of().parseHex("808080808000"));
    refused("no right length", Codec.SNAPPY, HexFormat.of().parseHex("80"));
    // Google's own framing is no Kafka's.
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
      Decompressor d = new Decompressor(BYTES_MAX);
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
    refused("no LZ4 frame", Codec.LZ4, TWO);
    refused("no LZ4 frame", Codec.LZ4, HexFormat.of().parseHex("04224d186040"));
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
    refused("no zstd frame", Codec.ZSTD, joined(first, second, new byte[8]));
    refused("no zstd frame", Codec.ZSTD, TWO);
    refused("no zstd frame", Codec.ZSTD, HexFormat.of().parseHex("27b52ffd" + "00580100004142")); // of zstd 0.7
    byte[] wrong = stream.toByteArray();
    wrong[wrong.length - 1]++;
    refused("zstd data is damaged", Codec.ZSTD, wrong);
    try (ZstdCompressCtx context = new ZstdCompressCtx().setMagicless(true)) {
      refused("no zstd frame", Codec.ZSTD, context.compress(TWO));
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
    Decompressor bounded = new Decompressor(BYTES_MAX);
    assertEquals(plain.length, bounded.decompress(Codec.ZSTD, stream.toByteArray(), 0, stream.size()));
    assertTrue(Arrays.equals(plain, 0, plain.length, bounded.buffer(), 0, plain.length));
  }
}
