package io.sparklog.format;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.kit.SeededProperties;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tag;
import net.jqwik.api.lifecycle.AddLifecycleHook;

@AddLifecycleHook(SeededProperties.class)
@Tag("slow")
class BatchPropertiesTest {
  private static final long DECOMPRESSED_BYTES_MAX = 8 << 20;

  private final BatchDecoder used = new BatchDecoder(DECOMPRESSED_BYTES_MAX);

  @Provide
  Arbitrary<List<PlainRecord>> records() {
    return Batches.records();
  }

  @Property(tries = 400)
  void whatIsEncodedDecodes(@ForAll("records") List<PlainRecord> records, @ForAll Codec codec, @ForAll boolean logAppendTime)
      throws BadBatch {
    BatchEncoder encoder = new BatchEncoder(codec, logAppendTime);
    byte[] batch = PlainRecord.encode(encoder, 1L << 40, records);

    assertTrue(encoder.isEmpty());
    assertEquals(61, encoder.bytes());
    assertEquals(batch.length, BatchHeader.check(batch, 0, batch.length));
    assertEquals(1L << 40, BatchHeader.baseOffset(batch, 0));
    long max = records.stream().mapToLong(PlainRecord::timestamp).max().orElseThrow();
    assertEquals(max, BatchHeader.maxTimestamp(batch, 0));
    List<PlainRecord> expected = records;
    if (logAppendTime) {
      expected = records.stream().map(r -> new PlainRecord(r.offsetDelta(), max, r.key(), r.value(), r.headers())).toList();
    }
    assertEquals(expected, PlainRecord.decode(batch));
    used.decode(batch, 0, batch.length); // One that has seen other batches reads the same.
    assertEquals(expected, PlainRecord.of(used));
  }

  @Property(tries = 60)
  void aFlippedBitIsNoticedOrDoesNoHarm(@ForAll("records") List<PlainRecord> records, @ForAll Codec codec, @ForAll Random random)
      throws BadBatch {
    byte[] batch = PlainRecord.encode(new BatchEncoder(codec, false), 7, records);
    int bits = batch.length * 8;
    for (int i = 0; i < 61 * 8 + 400; i++) {
      int bit = i < 61 * 8 ? i : random.nextInt(bits);
      batch[bit >> 3] ^= (byte) (1 << (bit & 7));
      if (bit < 8 * 8 || bit >= 12 * 8 && bit < 16 * 8) {
        // Base offset and leader epoch are not covered, and no part of the records.
        used.decode(batch, 0, batch.length);
        assertEquals(records, PlainRecord.of(used));
      } else {
        int flipped = bit;
        assertThrows(BadBatch.class, () -> used.decode(batch, 0, batch.length), () -> "bit " + flipped);
        assertEquals(0, used.count());
      }
      batch[bit >> 3] ^= (byte) (1 << (bit & 7));
    }
  }

  @Property(tries = 300)
  void hostileCompressedDataGivesRecordsOrBadBatch(@ForAll("records") List<PlainRecord> records, @ForAll Codec codec,
      @ForAll Random random) {
    byte[] batch = PlainRecord.encode(new BatchEncoder(codec, false), 7, records);
    for (int i = 0; i < 50; i++) {
      byte[] forged = batch.clone();
      int changes = 1 + random.nextInt(3);
      for (int change = 0; change < changes; change++) {
        // The first bytes, where the framing is, more often.
        int at = random.nextBoolean() ? 61 + random.nextInt(Math.min(40, batch.length - 61)) : 61 + random.nextInt(batch.length - 61);
        forged[at] = random.nextBoolean() ? (byte) random.nextInt() : (byte) (forged[at] ^ 1 << random.nextInt(8));
      }
      if (random.nextInt(4) == 0) {
        int cut = 61 + random.nextInt(batch.length - 61);
        forged = Arrays.copyOf(forged, cut);
        forged[8] = (byte) ((cut - 12) >>> 24);
        forged[9] = (byte) ((cut - 12) >>> 16);
        forged[10] = (byte) ((cut - 12) >>> 8);
        forged[11] = (byte) (cut - 12);
      }
      decodesOrRefuses(ForgedBatch.sealed(forged));
    }
  }

  @Property(tries = 2000)
  void theFastLoopAgreesWithThePlainParser(@ForAll("records") List<PlainRecord> records, @ForAll Random random) {
    byte[] batch = PlainRecord.encode(new BatchEncoder(Codec.NONE, false), 0, records.subList(0, Math.min(6, records.size())));
    for (int i = 0; i < 20; i++) {
      ForgedBatch forged = ForgedBatch.of(BatchHeader.count(batch, 0), Arrays.copyOfRange(batch, 61, batch.length));
      int changes = random.nextInt(4);
      for (int change = 0; change < changes; change++) {
        damage(forged, random);
      }
      compare(forged);
    }
  }

  /** Small damage to a few small records meets each check more often than damage to large ones. */
  @Property(tries = 3000)
  void theFastLoopAgreesWithThePlainParserOnSmallRecords(@ForAll Random random) {
    List<PlainRecord> records = new ArrayList<>();
    int count = 1 + random.nextInt(12);
    for (int i = 0; i < count; i++) {
      List<PlainRecord.Header> headers = new ArrayList<>();
      for (int h = random.nextInt(4); h > 1; h--) {
        headers.add(new PlainRecord.Header("61".repeat(random.nextInt(3)), random.nextBoolean() ? null : "62".repeat(random.nextInt(70))));
      }
      records.add(
          new PlainRecord(i, random.nextLong() >>> 1 + random.nextInt(63), random.nextInt(3) == 0 ? null : "6b".repeat(random.nextInt(4)),
              random.nextInt(3) == 0 ? null : "76".repeat(random.nextInt(random.nextInt(10) == 0 ? 9000 : 70)), headers));
    }
    byte[] batch = PlainRecord.encode(new BatchEncoder(Codec.NONE, false), 0, records);
    for (int i = 0; i < 40; i++) {
      ForgedBatch forged = ForgedBatch.of(count, Arrays.copyOfRange(batch, 61, batch.length));
      int changes = random.nextInt(4);
      for (int change = 0; change < changes; change++) {
        damage(forged, random);
      }
      compare(forged);
    }
  }

  private static void damage(ForgedBatch forged, Random random) {
    byte[] data = forged.payload;
    switch (random.nextInt(8)) {
      case 0 -> forged.count += random.nextInt(3) - 1;
      case 1 -> forged.lastOffsetDelta = Math.max(forged.count - 1, 0) + random.nextInt(5);
      case 2 -> {
        int at = random.nextInt(data.length + 1); // one byte more: often a longer varint
        byte[] longer = Arrays.copyOf(data, data.length + 1);
        System.arraycopy(data, at, longer, at + 1, data.length - at);
        longer[at] = (byte) (random.nextBoolean() ? 0x80 : random.nextInt());
        forged.payload = longer;
      }
      case 3 -> {
        if (data.length > 1) {
          int at = random.nextInt(data.length);
          byte[] shorter = Arrays.copyOf(data, data.length - 1);
          System.arraycopy(data, at + 1, shorter, at, data.length - at - 1);
          forged.payload = shorter;
        }
      }
      case 4 -> data[random.nextInt(data.length)] += (byte) (random.nextBoolean() ? 2 : -2);
      case 5 -> data[random.nextInt(data.length)] = (byte) random.nextInt();
      default -> data[random.nextInt(data.length)] ^= (byte) (1 << random.nextInt(8));
    }
  }

  private void compare(ForgedBatch forged) {
    forged.count = Math.max(forged.count, 0);
    byte[] batch = forged.bytes();
    List<PlainRecord> expected = null;
    try {
      if (forged.count <= forged.lastOffsetDelta + 1) {
        expected = PlainParser.parse(forged.payload, forged.count, forged.lastOffsetDelta, 1000);
      }
    } catch (PlainParser.Refused e) {
      // expected stays null
    }
    try {
      used.decode(batch, 0, batch.length);
      assertEquals(expected, PlainRecord.of(used), () -> PlainRecord.hex(batch, 61, batch.length - 61));
    } catch (BadBatch e) {
      assertEquals(null, expected, () -> e.getMessage() + ": " + PlainRecord.hex(batch, 61, batch.length - 61));
    }
  }

  private void decodesOrRefuses(byte[] batch) {
    try {
      used.decode(batch, 0, batch.length);
      PlainRecord.of(used); // Each position lies inside.
    } catch (BadBatch e) {
      assertTrue(e.getMessage().length() > 10, e.getMessage());
    }
  }
}
