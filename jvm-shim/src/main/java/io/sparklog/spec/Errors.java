package io.sparklog.spec;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The texts of {@code spec/errors.json}, which both halves of sparklog read. */
final class Errors {
  private static final Pattern PARAMETER = Pattern.compile("<([a-z]+)>");
  private static final JsonNode DECLARED = load("errors.json");

  private Errors() {}

  static JsonNode load(String name) {
    try (InputStream in = Errors.class.getResourceAsStream(name)) {
      if (in == null) {
        throw new IllegalStateException("io/sparklog/spec/" + name + " is not in the jar");
      }
      return new ObjectMapper().readTree(in);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** How a caller can react: a kind of errors.json. */
  static String kind(String id) {
    return DECLARED.get(id).get("kind").textValue();
  }

  /** {@code [PARTLOG_<id>] text fix}, with the parameters filled in. */
  static String message(String id, Map<String, String> parameters) {
    JsonNode declared = DECLARED.get(id);
    if (declared == null) {
      throw new IllegalStateException("errors.json does not declare " + id);
    }
    String template = declared.get("text").textValue() + " " + declared.get("fix").textValue();
    Set<String> unused = new HashSet<>(parameters.keySet());
    String text = PARAMETER.matcher(template).replaceAll(match -> {
      String value = parameters.get(match.group(1));
      if (value == null) {
        throw new IllegalStateException(id + " needs the parameter " + match.group(1));
      }
      unused.remove(match.group(1));
      return Matcher.quoteReplacement(value);
    });
    if (!unused.isEmpty()) {
      throw new IllegalStateException(id + " has no parameters " + unused);
    }
    return "[PARTLOG_" + id + "] " + text;
  }
}
