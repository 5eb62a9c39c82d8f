package io.sparklog.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.format.Layout;
import java.nio.ByteBuffer;
import org.junit.jupiter.api.Test;

final class BatchRunTest {
  private static byte[] batch(int bytes, int count) {
    byte[] batch = new byte[bytes];
    ByteBuffer.wrap(batch).putInt(Layout.LENGTH_AT, bytes - Layout.UNCOUNTED_BYTES).putInt(Layout.COUNT_AT, count);
    return batch;
  }

  /** Small records compress so well that offsets may end before bytes do. */
  @Test
  void aSegmentEndsByOffsetsAsByBytes() {
    BatchRun run = new BatchRun(0, "file", 0);
    byte[] million = batch(100, 1 << 20);
    for (int i = 0; i < 2047; i++) {
      assertTrue(run.fits(million, 0, Integer.MAX_VALUE), "batch " + i);
      run.add(million, 0, 0, true, true);
    }
    // 2³¹ − 2²⁰ offsets are taken.
    assertFalse(run.fits(million, 0, Integer.MAX_VALUE));
    assertTrue(run.fits(batch(100, (1 << 20) - 1), 0, Integer.MAX_VALUE));
    assertTrue(run.fits(batch(100, 1), 0, 204_800));
    assertFalse(run.fits(batch(101, 1), 0, 204_800));
    run.add(batch(100, (1 << 20) - 1), 0, 0, true, true);
    assertEquals(Integer.MAX_VALUE, run.piece(null).segment().end());
    assertFalse(run.fits(batch(100, 1), 0, Integer.MAX_VALUE));
  }
}
