package io.sparklog.segment;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.format.Layout;
import java.nio.ByteBuffer;
import org.junit.jupiter.api.Test;

final class SegmentBuilderTest {
  private static byte[] batch(int bytes, int count) {
    byte[] batch = new byte[bytes];
    ByteBuffer.wrap(batch).putInt(Layout.LENGTH_AT, bytes - Layout.UNCOUNTED_BYTES).putInt(Layout.COUNT_AT, count);
    return batch;
  }

  /** Small records compress so well that offsets may end before bytes do. */
  @Test
  void aSegmentEndsByOffsetsAsByBytes() {
    SegmentBuilder segment = new SegmentBuilder(0, "file", 0);
    byte[] million = batch(100, 1 << 20);
    for (int i = 0; i < 2047; i++) {
      assertTrue(segment.fits(million, 0, Integer.MAX_VALUE), "batch " + i);
      segment.add(million, 0, 0, true, true);
    }
    // 2³¹ − 2²⁰ offsets are taken.
    assertFalse(segment.fits(million, 0, Integer.MAX_VALUE));
    assertTrue(segment.fits(batch(100, (1 << 20) - 1), 0, Integer.MAX_VALUE));
    assertTrue(segment.fits(batch(100, 1), 0, 204_800));
    assertFalse(segment.fits(batch(101, 1), 0, 204_800));
    segment.add(batch(100, (1 << 20) - 1), 0, 0, true, true);
    assertEquals(Integer.MAX_VALUE, segment.segment().end());
    assertFalse(segment.fits(batch(100, 1), 0, Integer.MAX_VALUE));
  }
}
