package io.sparklog.format;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.github.luben.zstd.Zstd;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Batches whose header or records are wrong in one way, and rare ones that are right. Damaged codecs: {@link CodecDamageTest}. */
class DamageTest {
  private static final int BYTES_MAX = 1 << 20;
  private static final byte[] TWO = ForgedBatch.nullRecords(2);

  private final BatchDecoder decoder = new BatchDecoder(BYTES_MAX);

  private void refused(String words, byte[] batch) {
    BadBatch e = assertThrows(BadBatch.class, () -> decoder.decode(batch, 0, batch.length));
    assertTrue(e.getMessage().contains(words), e.getMessage());
    assertEquals(0, decoder.count());
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
    high[21] = 0x7f;
    wrongHeader("its attributes are 0x7f00", high, right.length);
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

  /** A decoder keeps 36 bytes of a record, and the smallest record has 7: the limit bounds what a batch of 64 MiB takes. */
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
}
