package io.sparklog.spec;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.JsonNode;
import io.sparklog.format.Vectors;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;

class TimeTextTest {
  @Test
  void theSameTextsAreTimesAsInPython() {
    for (JsonNode vector : Vectors.load("times.json")) {
      String text = vector.get("time").textValue();
      JsonNode millis = vector.get("millis");
      assertEquals(millis.isNull() ? OptionalLong.empty() : OptionalLong.of(millis.longValue()), TimeText.millis(text), text);
    }
  }
}
