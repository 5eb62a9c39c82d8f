package io.sparklog.json;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

final class JsonTest {
  private static final int NUMBERS = 10_000;

  /** A version file may hold a million segments of a dozen numbers. */
  @Test
  void aNumberThatIsRightIsNotTurnedIntoText() throws Damaged {
    byte[] json = IntStream.range(0, NUMBERS)
        .mapToObj(i -> "17")
        .collect(Collectors.joining(",", "[", "]"))
        .getBytes(StandardCharsets.UTF_8);
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    Json.parse(json, 0, json.length); // The first call loads classes.
    long before = threads.getCurrentThreadAllocatedBytes();
    JsonNode parsed = Json.parse(json, 0, json.length);
    long allocated = threads.getCurrentThreadAllocatedBytes() - before;
    assertEquals(NUMBERS, parsed.size());
    assertTrue(allocated < 100 * NUMBERS, allocated + " bytes for " + NUMBERS + " numbers");
  }

  @Test
  void aNumberThatIsNoIntegerOf64BitsIsTold() {
    for (String number : new String[] {"9223372036854775808", "1.5"}) {
      byte[] json = ("[1," + number + "]").getBytes(StandardCharsets.UTF_8);
      Damaged told = assertThrows(Damaged.class, () -> Json.parse(json, 0, json.length));
      assertEquals("it holds the number " + number + ", which is not an integer of 64 bits", told.getMessage());
    }
  }
}
