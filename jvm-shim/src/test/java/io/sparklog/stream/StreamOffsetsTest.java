package io.sparklog.stream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.sparklog.spec.PartlogException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class StreamOffsetsTest {
  @Test
  void equalOffsetsHaveOneText() {
    String canonical = "{\"a\":{\"2\":7,\"10\":9223372036854775807},\"b\":{\"0\":0}}";
    assertEquals(canonical, StreamOffsets.parse(canonical, "c").json());
    assertEquals(canonical, StreamOffsets.parse(" {\"b\" : {\"0\":0}, \"a\":{\"10\":9223372036854775807,\"2\":7}} ", "c").json());
    assertEquals("{}", StreamOffsets.parse("{}", "c").json());
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "-", "[]", "null", "{\"a\":{}}", "{\"a\":[1]}", "{\"a\":{\"0\":-1}}", "{\"a\":{\"0\":1.5}}",
      "{\"a\":{\"00\":1}}", "{\"a\":{\"0\":1,\"0\":2}}", "{\"a\":{\"0\":9223372036854775808}}", "{\"a/b\":{\"0\":1}}",
      "{\"a\":{\"0\":1}} x", "{\"a\":{\"-1\":1}}", "{\"batchWatermarkMs\":0}"})
  void otherTextsAreRefused(String text) {
    PartlogException error = assertThrows(PartlogException.class, () -> StreamOffsets.parse(text, "/c/sources/0"));
    assertEquals("QUERY_CHECKPOINT_CORRUPT", error.id());
    assertTrue(error.getMessage().contains("/c/sources/0"), error.getMessage());
  }
}
