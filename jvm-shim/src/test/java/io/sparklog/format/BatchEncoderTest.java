package io.sparklog.format;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import io.sparklog.kit.Seed;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class BatchEncoderTest {
  @Test
  void bytesWithIsExactAndNeverOverflows() {
    BatchEncoder encoder = new BatchEncoder(Codec.NONE, false);
    assertEquals(61 + 7, encoder.bytesWith(5, -1, -1, 1));
    assertEquals(61 + 7, encoder.bytesWith(5, 0, 0, 1));
    assertEquals(Integer.MAX_VALUE, encoder.bytesWith(5, Integer.MAX_VALUE, Integer.MAX_VALUE, Integer.MAX_VALUE));
    assertEquals(Integer.MAX_VALUE, encoder.bytesWith(5, -1, Integer.MAX_VALUE, 1));
    assertEquals(Integer.MAX_VALUE, encoder.bytesWith(5, -1, Layout.BATCH_BYTES_MAX - 70, 1));
    assertEquals(61 + 5 + 4 + 5 + (Layout.BATCH_BYTES_MAX - 100) + 1, encoder.bytesWith(5, -1, Layout.BATCH_BYTES_MAX - 100, 1));
    assertTrue(encoder.isEmpty());
    assertEquals(0, encoder.capacityBytes());
  }

  @Test
  void anOpenBatchTellsWhatItHolds() {
    BatchEncoder encoder = new BatchEncoder(Codec.NONE, false);
    assertEquals(61, encoder.bytes());
    for (long timestamp : new long[] {50, 20, 70, 60}) {
      encoder.begin(timestamp, -1, 3, 1);
    }
    assertFalse(encoder.isEmpty());
    assertEquals(4, encoder.records());
    assertEquals(20, encoder.minTimestamp());
    assertEquals(70, encoder.maxTimestamp());
    assertFalse(encoder.isOrdered());
    assertTrue(encoder.capacityBytes() >= encoder.bytes() && encoder.capacityBytes() < 4096);
    byte[] batch = encoder.close(3);
    assertEquals(50, BatchHeader.baseTimestamp(batch, 0));
    assertEquals(70, BatchHeader.maxTimestamp(batch, 0));
    assertEquals(3, BatchHeader.lastOffsetDelta(batch, 0));
    assertEquals(0, BatchHeader.leaderEpoch(batch, 0));
    assertEquals(-1, BatchHeader.producerId(batch, 0));
    assertEquals(-1, BatchHeader.producerEpoch(batch, 0));
    assertEquals(-1, BatchHeader.baseSequence(batch, 0));

    encoder.begin(10, -1, 3, 1); // The next batch knows nothing of the last.
    assertEquals(10, encoder.minTimestamp());
    assertEquals(10, encoder.maxTimestamp());
    assertTrue(encoder.isOrdered());
    assertEquals(1, encoder.records());
    encoder.release();
    assertEquals(0, encoder.capacityBytes());
    assertTrue(encoder.isEmpty());
    assertThrows(IllegalStateException.class, () -> encoder.close(0));
    encoder.begin(10, -1, 3, 1);
    assertEquals(61 + 10, encoder.close(0).length);
  }

  @Test
  void whatABufferHeldBeforeDoesNotShow() throws BadBatch {
    BatchEncoder encoder = new BatchEncoder(Codec.NONE, false);
    encoder.begin(1, 100, 100, 100);
    Arrays.fill(encoder.buffer(), 61 + 10, encoder.bytes(), (byte) 0x55);
    encoder.close(0);
    encoder.begin(1, 0, 0, 1); // No headers: the caller copies nothing.
    assertEquals(List.of(new PlainRecord(0, 1, "", "", List.of())), PlainRecord.decode(encoder.close(0)));
  }

  @ParameterizedTest
  @EnumSource
  void largeBatches(Codec codec) throws BadBatch {
    // More than one block of each codec, half of it noise, and more records than the decoder's arrays begin with.
    long seed = Seed.draw();
    Random random = new Random(seed);
    List<PlainRecord> records = new ArrayList<>();
    for (int i = 0; i < 20_000; i++) {
      byte[] value = new byte[i % 100];
      if (i % 2 == 0) {
        random.nextBytes(value);
      }
      String key = PlainRecord.hex(new byte[i % 7], 0, i % 7);
      records.add(new PlainRecord(i, 1000 + i, key, PlainRecord.hex(value, 0, value.length), List.of()));
    }
    byte[] batch = PlainRecord.encode(new BatchEncoder(codec, false), 0, records);
    assertEquals(records, PlainRecord.decode(batch), "seed " + seed);
    byte[] noise = new byte[300_000];
    random.nextBytes(noise);
    PlainRecord one = new PlainRecord(0, 9, null, PlainRecord.hex(noise, 0, noise.length), List.of());
    assertEquals(List.of(one), PlainRecord.decode(PlainRecord.encode(new BatchEncoder(codec, false), 0, List.of(one))), "seed " + seed);
  }

  @ParameterizedTest
  @EnumSource
  void threadsDoNotDisturbEachOther(Codec codec) {
    List<String> failures = Collections.synchronizedList(new ArrayList<>());
    IntStream.range(0, 400).parallel().forEach(i -> {
      PlainRecord record = new PlainRecord(0, i, "6b", String.format("%08x", i).repeat(i + 1), List.of());
      try {
        if (!List.of(record).equals(PlainRecord.decode(PlainRecord.encode(new BatchEncoder(codec, false), i, List.of(record))))) {
          failures.add("record " + i);
        }
      } catch (BadBatch e) {
        failures.add(e.getMessage());
      }
    });
    assertEquals(List.of(), failures);
  }

  @Test
  void decodingAllocatesNothingPerRecord() throws BadBatch {
    BatchEncoder encoder = new BatchEncoder(Codec.NONE, false);
    HeadersEncoder headers = new HeadersEncoder();
    headers.begin(1);
    headers.add(new byte[] {'h'}, null);
    for (int i = 0; i < 10_000; i++) {
      encoder.begin(1_000_000L + i * 100_000L, 16, 100, headers.bytes());
      System.arraycopy(headers.buffer(), 0, encoder.buffer(), encoder.headersAt(), headers.bytes());
    }
    byte[] batch = encoder.close(0);
    BatchDecoder decoder = new BatchDecoder(1 << 20);
    decoder.decode(batch, 0, batch.length);
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long before = threads.getCurrentThreadAllocatedBytes();
    decoder.decode(batch, 0, batch.length);
    long allocated = threads.getCurrentThreadAllocatedBytes() - before;
    assertEquals(10_000, decoder.count());
    assertTrue(allocated < 1000, allocated + " bytes");
  }

  @Test
  void headersEncoderCounts() {
    HeadersEncoder headers = new HeadersEncoder();
    headers.begin(0);
    assertEquals(1, headers.bytes());
    headers.begin(2);
    assertThrows(IllegalStateException.class, headers::bytes);
    headers.add(new byte[] {'a'}, new byte[0]);
    byte[] part = {1, 2, 3, 4, 5};
    headers.add(part, 1, 2, part, 3, 1);
    assertEquals(1 + 3 + 5, headers.bytes());
    assertArrayEquals(new byte[] {4, 2, 'a', 0, 4, 2, 3, 2, 4}, Arrays.copyOf(headers.buffer(), headers.bytes()));
    assertThrows(IllegalStateException.class, () -> headers.add(part, part));
    headers.begin(1);
    headers.add(new byte[10_000], new byte[10_000]);
    assertEquals(1 + 3 + 10_000 + 3 + 10_000, headers.bytes());
  }

  @Test
  void headerCrcAndStamp() {
    BatchEncoder encoder = new BatchEncoder(Codec.NONE, false);
    encoder.begin(1, -1, -1, 1);
    byte[] batch = encoder.close(5);
    CRC32C headers = new CRC32C();
    BatchHeader.addTo(headers, batch, 0);
    CRC32C expected = new CRC32C();
    expected.update(batch, 8, 53);
    assertEquals(expected.getValue(), headers.getValue());

    BatchHeader.setBaseOffset(batch, 0, Long.MAX_VALUE - 1);
    assertEquals(Long.MAX_VALUE - 1, BatchHeader.baseOffset(batch, 0));
    CRC32C stamped = new CRC32C();
    BatchHeader.addTo(stamped, batch, 0);
    assertEquals(headers.getValue(), stamped.getValue());
  }

  @Test
  void codecNames() {
    for (Codec codec : Codec.values()) {
      assertEquals(codec, Codec.named(codec.optionName()));
    }
    assertEquals(null, Codec.named("brotli"));
    assertEquals(null, Codec.named("NONE"));
  }
}
