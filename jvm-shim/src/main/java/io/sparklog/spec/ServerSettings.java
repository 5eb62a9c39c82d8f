package io.sparklog.spec;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The settings of a server, as {@code spec/server.json} declares them. */
public final class ServerSettings {
  /** A setting of one listener: {@code listener.name.<name in lower case>.<key>}. */
  private static final Pattern OF_LISTENER = Pattern.compile("listener\\.name\\.[a-z0-9_]+\\.(.+)");

  private static final Map<String, Option> SETTINGS = new TreeMap<>();
  private static final Map<String, Option> LISTENER_SETTINGS = new TreeMap<>();

  static {
    for (JsonNode declaration : Errors.load("server.json").get("settings")) {
      Option setting = new Option(declaration);
      (declaration.path("listener").booleanValue() ? LISTENER_SETTINGS : SETTINGS).put(setting.key(), setting);
    }
  }

  private ServerSettings() {}

  /** The settings of the server as a whole, with their defaults; empty for a setting without a default. */
  public static SortedMap<String, String> defaults() {
    TreeMap<String, String> defaults = new TreeMap<>();
    SETTINGS.forEach((key, setting) -> defaults.put(key, Optional.ofNullable(setting.defaultValue()).orElse("")));
    return defaults;
  }

  /** Whether a setting has this key. */
  public static boolean isDeclared(String key) {
    return find(key).isPresent();
  }

  /** ` Did you mean …?`, with the settings whose keys are the nearest. */
  public static String nearest(String key) {
    return Options.nearest(key, SETTINGS.keySet());
  }

  /**
   * The value as it is used: numbers without a sign or leading zeros, true and false in lower case.
   *
   * @param key that is declared
   * @throws PartlogException OPTION_VALUE
   */
  public static String canonical(String key, String value) {
    return find(key).orElseThrow().canonical(key, value);
  }

  private static Optional<Option> find(String key) {
    Matcher ofListener = OF_LISTENER.matcher(key);
    return Optional.ofNullable(ofListener.matches() ? LISTENER_SETTINGS.get(ofListener.group(1)) : SETTINGS.get(key));
  }
}
