package io.sparklog.spec;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import io.sparklog.format.Vectors;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Test;

/** No message shows a secret that is in a name. */
final class ShownTest {
  private static List<JsonNode> names() {
    return StreamSupport.stream(Vectors.load("names_shown.json").spliterator(), false).toList();
  }

  private static String name(JsonNode vector) {
    return vector.get("name").textValue();
  }

  @Test
  void aNameIsShownWithoutItsSecrets() {
    for (JsonNode vector : names()) {
      String shown = vector.get("shown").textValue();
      assertEquals(shown, Shown.name(name(vector)), name(vector));
      assertEquals(shown, Shown.text(name(vector)), name(vector));
      assertEquals(shown, Shown.text(shown), "once more");
      assertFalse(Pattern.compile("KEY|SEC|RET").matcher(shown).find(), shown);
    }
  }

  @Test
  void aNameWithinATextIsShownWithoutItsSecrets() {
    for (JsonNode vector : names()) {
      String name = name(vector);
      if (name.matches("\\S+")) {
        String shown = vector.get("shown").textValue();
        assertEquals("opening '" + shown + "' failed", Shown.text("opening '" + name + "' failed"));
        assertEquals("status of " + shown + " on host", Shown.text("status of " + name + " on host"));
      }
    }
    assertEquals("asked (http://host:9870), then http://host:9871: refused",
        Shown.text("asked (http://host:9870), then http://host:9871: refused"));
    assertEquals("why? a: b/c?d, e@f:8020 and 12:30/x?y", Shown.text("why? a: b/c?d, e@f:8020 and 12:30/x?y"));
  }

  /** A pattern that begins anew at each character would take hours. */
  @Test
  void aLongTextIsWalkedThroughOnce() {
    for (String run : List.of("x", "x1+", "1", "a:", "a:/", "/", "::", "a:/.")) {
      String text = run.repeat(8_000_000 / run.length());
      assertEquals(text, Shown.text(text));
    }
    String late = "x".repeat(4_000_000) + " 1.s3a://KEY:SEC@bucket";
    assertTrue(Shown.text(late).endsWith("x 1.s3a://…@bucket"));
  }

  @Test
  void aLongValueIsCutBetweenCharacters() {
    assertEquals("x".repeat(100), Shown.value("x".repeat(100)));
    assertEquals("\uD83D\uDE00".repeat(100) + "…", Shown.value("\uD83D\uDE00".repeat(101)));
  }

  /** The name may be any parameter, alone or in a text of Hadoop's, which may be another parameter. */
  @Test
  void noErrorShowsASecretOfAName() {
    JsonNode declared = Errors.load("errors.json");
    List<UnaryOperator<String>> texts = List.of(name -> name, name -> name + "/_partlog/t", name -> "java.io.IOException: " + name + ": no",
        name -> "'" + name + "' (" + name + ")");
    int parameters = 0;
    for (String id : (Iterable<String>) declared::fieldNames) {
      Set<String> names = parameters(declared.get(id));
      for (String one : names) {
        parameters++;
        for (JsonNode vector : names()) {
          for (UnaryOperator<String> text : name(vector).matches("\\S+") ? texts : texts.subList(0, 2)) {
            assertHidden(error(id, names, one, text.apply(name(vector)), "a text"));
          }
        }
      }
      if (names.size() > 1) { // A text that repeats a name of which it cannot tell the end.
        String name = "s3a://bucket/a b?secret_key=SECRET";
        assertHidden(error(id, names, names.iterator().next(), name, "opening " + name + " failed"));
      }
    }
    assertTrue(parameters > 200, parameters + " parameters");
  }

  private static Set<String> parameters(JsonNode error) {
    Set<String> parameters = new LinkedHashSet<>();
    Matcher found = Pattern.compile("<([a-z]+)>").matcher(error.get("text").textValue() + error.get("fix").textValue());
    while (found.find()) {
      parameters.add(found.group(1));
    }
    return parameters;
  }

  private static PartlogException error(String id, Set<String> names, String one, String value, String others) {
    Object[] given = names.stream().flatMap(name -> List.of(name, name.equals(one) ? value : others).stream()).toArray();
    return PartlogException.of(id, given);
  }

  private static void assertHidden(PartlogException error) {
    String all = error.getMessage() + error.parameters();
    assertFalse(Pattern.compile("SECRET|SEC/RET|SE\\?CRET").matcher(all).find(), all);
  }
}
