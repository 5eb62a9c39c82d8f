package io.sparklog.format;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.sparklog.kit.SeededProperties;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Random;
import java.util.stream.LongStream;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.lifecycle.AddLifecycleHook;
import org.junit.jupiter.api.Test;

@AddLifecycleHook(SeededProperties.class)
class IndexTest {
  private static IndexBuilder builder(long baseOffset, int batches, int batchBytes, long... timestamps) {
    IndexBuilder builder = new IndexBuilder(baseOffset, 4096);
    for (int i = 0; i < batches; i++) {
      builder.batch((long) i * batchBytes, baseOffset + i, timestamps[i % timestamps.length]);
    }
    return builder;
  }

  @Test
  void entriesAreWhereKafkaPutsThem() {
    // Seen in Kafka: batches of 1572 bytes with interval 4096 are indexed at 3, 6, 9, …
    byte[] index = builder(0, 10, 1572, 1_700_000_000_000L).offsetIndex();
    assertEquals("000000030000126c" + "00000006000024d8" + "0000000900003744", HexFormat.of().formatHex(index));
    // Strictly greater: exactly the interval is not enough.
    assertEquals(0, builder(0, 2, 4096, 1).offsetIndex().length);
    assertEquals(8, builder(0, 2, 4097, 1).offsetIndex().length);
    assertEquals("0000000200002000", HexFormat.of().formatHex(builder(0, 3, 4096, 1).offsetIndex()));
  }

  @Test
  void offsetsAreRelativeToTheBase() {
    long base = 5_000_000_000L;
    OffsetIndex index = new OffsetIndex(builder(base, 10, 1572, 1).offsetIndex(), base);
    assertEquals(3, index.entries());
    assertEquals(base + 3, index.offset(0));
    assertEquals(4716, index.position(0));
  }

  @Test
  void timesAreTheGreatestSoFarAndRise() {
    // Batch 0 has the greatest time up to batch 6, which has it too: the earliest counts, and is not written twice.
    IndexBuilder builder = builder(100, 9, 1572, 50, 10, 20, 30, 40, 10, 50, 60, 70);
    assertEquals(entry(50, 0) + entry(70, 8), HexFormat.of().formatHex(builder.timeIndex()));
    assertEquals("000000030000126c" + "00000006000024d8", HexFormat.of().formatHex(builder.offsetIndex()));
  }

  @Test
  void theLastEntryIsTheGreatestTime() {
    assertEquals(entry(7, 0), HexFormat.of().formatHex(builder(100, 1, 1572, 7).timeIndex()));
    assertEquals(entry(9, 1), HexFormat.of().formatHex(builder(100, 3, 100, 7, 9, 8).timeIndex()));
    assertEquals("", HexFormat.of().formatHex(new IndexBuilder(0, 4096).timeIndex()));
  }

  @Test
  void batchesWithoutTimesAreNotInTheTimeIndex() {
    IndexBuilder builder = builder(0, 10, 1572, -1);
    assertEquals(3 * 8, builder.offsetIndex().length);
    assertEquals(0, builder.timeIndex().length);
    assertEquals(entry(0, 0), HexFormat.of().formatHex(builder(0, 1, 100, 0).timeIndex())); // 1970 is a time
  }

  private static String entry(long timestamp, int offset) {
    return String.format("%016x%08x", timestamp, offset);
  }

  @Test
  void offsetsBeyondAnIntAreABug() {
    IndexBuilder builder = new IndexBuilder(0, 4096);
    assertThrows(ArithmeticException.class, () -> builder.batch(0, 1L << 31, 1));
  }

  @Test
  void lookups() {
    long base = 1000;
    IndexBuilder builder = builder(base, 100, 1572, LongStream.range(0, 100).map(i -> 5000 + i * 10).toArray());
    OffsetIndex offsets = new OffsetIndex(builder.offsetIndex(), base);
    assertEquals(33, offsets.entries());
    for (int i = 0; i < 100; i++) {
      int expected = i / 3 - 1;
      assertEquals(expected, offsets.floorByOffset(base + i));
      assertEquals(expected, offsets.floorByPosition(i * 1572L));
      assertEquals(expected, offsets.floorByPosition(i * 1572L + 1571));
    }
    assertEquals(OffsetIndex.NONE, offsets.floorByOffset(base + 2));
    assertEquals(32, offsets.floorByOffset(Long.MAX_VALUE));
    assertEquals(32, offsets.floorByPosition(Long.MAX_VALUE));
    assertEquals(OffsetIndex.NONE, offsets.floorByOffset(Long.MIN_VALUE));
  }

  @Property(tries = 2000)
  void garbageNeverThrowsAndNeverGoesBeyondTheTarget(@ForAll byte[] file, @ForAll long target, @ForAll long base) {
    OffsetIndex offsets = new OffsetIndex(file, Math.abs(base / 2));
    int byOffset = offsets.floorByOffset(target);
    if (byOffset != OffsetIndex.NONE) {
      assertEquals(true, offsets.offset(byOffset) <= target && offsets.position(byOffset) >= 0);
    }
    int byPosition = offsets.floorByPosition(target);
    if (byPosition != OffsetIndex.NONE) {
      assertEquals(true, offsets.position(byPosition) <= target && offsets.position(byPosition) >= 0);
    }
  }

  @Property(tries = 300)
  void theBuilderFollowsTheRuleInWords(@ForAll Random random) {
    IndexBuilder builder = new IndexBuilder(77, 500);
    ByteBuffer offsets = ByteBuffer.allocate(10_000);
    ByteBuffer times = ByteBuffer.allocate(10_000);
    long position = 0;
    long indexed = 0;
    long max = -1;
    long maxOffset = 77;
    long written = -1;
    long offset = 76;
    int batches = random.nextInt(200);
    for (int i = 0; i < batches; i++) {
      offset += 1 + random.nextInt(5);
      long timestamp = random.nextInt(1000) - 1;
      builder.batch(position, offset, timestamp);
      if (timestamp > max) {
        max = timestamp;
        maxOffset = offset;
      }
      if (position - indexed > 500) {
        offsets.putInt((int) (offset - 77)).putInt((int) position);
        indexed = position;
        if (max > written) {
          times.putLong(max).putInt((int) (maxOffset - 77));
          written = max;
        }
      }
      position += 61 + random.nextInt(400);
    }
    if (max > written) {
      times.putLong(max).putInt((int) (maxOffset - 77));
    }
    assertArrayEquals(Arrays.copyOf(offsets.array(), offsets.position()), builder.offsetIndex());
    assertArrayEquals(Arrays.copyOf(times.array(), times.position()), builder.timeIndex());
    assertArrayEquals(builder.timeIndex(), builder.timeIndex()); // asking twice adds nothing
  }
}
